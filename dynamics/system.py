"""Dynamical systems as symbolic data, to be transformed before they are compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import sympy as sp

from .errors import InputError
from .identities import cancelled


@dataclass(frozen=True, kw_only=True)
class System:
    """What every system has, whether or not it descends a loss.

    Arguments:

    - `state`: the n state symbols, in the order every array of states follows.
    - `parameters`: the parameter symbols, likewise.
    - `initial`: initial value of each state, an expression in the parameters; a mapping
      may leave states out, and what is left out starts at 0.
    - `observables`: named expressions in state and parameters, to be read off trajectories.
    - `timescale`: a typical duration in units of t, an expression in the parameters; solvers
      integrate in t/timescale. By default one over the initial Jacobian's largest entry.
    - `clock`: the dimensionless Sundman factor c > 0, an expression in state and parameters;
      first passages are integrated in s with ds = c dt/timescale, which evens out a flow
      whose rate varies over decades (c = 1 by default).

    Raises `InputError` when an expression holds a symbol declared nowhere.
    """

    state: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...] = ()
    initial: Any = ()  # kept as a tuple of expressions
    observables: Any = ()  # kept as a tuple of (name, expression) pairs
    timescale: sp.Expr | None = None
    clock: sp.Expr = sp.S.One

    def __post_init__(self) -> None:
        def set_(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        set_("state", _symbols(self.state, "state"))
        set_("parameters", _symbols(self.parameters, "parameters"))
        initial: Any = self.initial
        if isinstance(initial, Mapping):
            _only_states(initial, self.state, "initial")
            initial = tuple(initial.get(symbol, 0) for symbol in self.state)
        set_("initial", tuple(sp.sympify(value) for value in initial or (0,) * len(self.state)))
        if len(self.initial) != len(self.state):
            raise InputError(
                f"initial has {len(self.initial)} values for {len(self.state)} states: "
                "give one per state, or a mapping from state to value"
            )
        items = self.observables
        items = items.items() if isinstance(items, Mapping) else items
        set_("observables", tuple((name, sp.sympify(value)) for name, value in items))
        set_("clock", sp.sympify(self.clock))
        if self.timescale is not None:
            set_("timescale", sp.sympify(self.timescale))
        if self.clock == 0:
            raise InputError("clock is 0: give a positive expression")
        self._declared("clock", (self.clock,))
        self._declared("observables", [value for _, value in self.observables])
        self._declared("initial", self.initial, self.parameters)
        self._declared("timescale", (self.timescale or sp.S.One,), self.parameters)

    def _declared(
        self,
        name: str,
        expressions: Sequence[sp.Basic],
        allowed: tuple[sp.Symbol, ...] | None = None,
    ) -> None:
        allowed = self.state + self.parameters if allowed is None else allowed
        unknown = set().union(*(e.free_symbols for e in expressions)) - set(allowed)
        if unknown:
            raise InputError(
                f"{name} holds {', '.join(sorted(map(str, unknown)))}, which it may not: "
                f"declare it, or use only ({', '.join(map(str, allowed))})"
            )

    @property
    def rhs(self) -> tuple[sp.Expr, ...]:
        """The time derivative of each state, in units of 1/t."""
        raise NotImplementedError  # an abstract property; both subclasses define it

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(symbol.name for symbol in self.parameters)

    def observable(self, name: str) -> sp.Expr:
        """The expression of a named observable or state; raises `InputError` if unknown."""
        known = {symbol.name: symbol for symbol in self.state} | dict(self.observables)
        if name not in known:
            raise InputError(f"observable {name!r} is unknown: use one of {', '.join(known)}")
        return known[name]

    def jacobian(self) -> sp.ImmutableMatrix:
        """∂rhs/∂state, n × n."""
        return sp.ImmutableMatrix(sp.Matrix(self.rhs).jacobian(self.state))

    def linearise(self, at: Mapping[sp.Symbol, Any]) -> VectorField:
        """The affine flow f(z₀) + J(z₀)(z − z₀) around a point z₀ given state by state."""
        missing = [symbol.name for symbol in self.state if symbol not in at]
        if missing:
            raise InputError(f"at lacks {', '.join(missing)}: give the point's every state")
        point = [sp.sympify(at[symbol]) for symbol in self.state]
        there = list(zip(self.state, point, strict=True))
        deviation = sp.Matrix([symbol - value for symbol, value in there])
        value = sp.Matrix(self.rhs).subs(there) + self.jacobian().subs(there) * deviation
        return VectorField(tuple(value), **self._shared())

    def substitute(self, values: Mapping[sp.Symbol, Any]) -> Self:
        """The same system with parameters replaced by numbers or expressions.

        Parameters that disappear leave the declaration; new symbols join it.
        Raises `InputError` when asked to replace a state.
        """
        if taken := [symbol.name for symbol in values if symbol in self.state]:
            raise InputError(f"substitute may not replace the state {', '.join(taken)}")
        given = {symbol: sp.sympify(value) for symbol, value in values.items()}
        new = set().union(*(value.free_symbols for value in given.values()))
        kept = [p for p in self.parameters if p not in given]
        kept += sorted(new - set(kept) - set(self.state), key=str)

        def subs(value: Any) -> Any:
            if isinstance(value, sp.Basic):
                return value.xreplace(given)
            if isinstance(value, tuple):
                return tuple(map(subs, value))
            return value

        changes = {f.name: subs(getattr(self, f.name)) for f in fields(self)}
        return replace(self, **{**changes, "parameters": tuple(kept)})

    def _shared(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(System)}


@dataclass(frozen=True)
class VectorField(System):
    """Any autonomous ODE ż = rhs(z; parameters).

    Arguments:

    - `field`: one expression per state. The other arguments are those of `System`.
    """

    field: tuple[sp.Expr, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "field", tuple(sp.sympify(value) for value in self.field))
        if len(self.field) != len(self.state):
            raise InputError(
                f"field has {len(self.field)} components for {len(self.state)} states: "
                "give one per state"
            )
        self._declared("field", self.field)

    @property
    def rhs(self) -> tuple[sp.Expr, ...]:
        return self.field


@dataclass(frozen=True)
class GradientFlow(System):
    """Steepest descent of a loss in a metric, ż = −G⁻¹ ∇loss.

    Arguments:

    - `loss`: the loss, an expression in state and parameters; it is also the observable
      "loss", unless `observables` names another one so.
    - `metric`: G, a symmetric n × n matrix, or a mapping from state to its diagonal entry
      (1 where left out, and everywhere by default). A reduced loss needs the metric that its
      embedding induces: `reduce` computes it.

    The other arguments are those of `System`.
    """

    loss: sp.Expr
    metric: Any = None  # kept as an ImmutableMatrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", sp.sympify(self.loss))
        super().__post_init__()
        metric: Any = {} if self.metric is None else self.metric
        if isinstance(metric, Mapping):
            _only_states(metric, self.state, "metric")
            metric = sp.diag(*(metric.get(symbol, 1) for symbol in self.state))
        metric = sp.ImmutableMatrix(metric)
        n = len(self.state)
        if metric.shape != (n, n) or metric != metric.T:
            raise InputError(f"metric is {metric.shape}: give a symmetric {n} × {n} matrix")
        if metric.det() == 0:
            raise InputError(f"metric {metric.tolist()} is singular: give a positive definite one")
        object.__setattr__(self, "metric", metric)
        if "loss" not in dict(self.observables):
            object.__setattr__(self, "observables", (("loss", self.loss), *self.observables))
        self._declared("loss", (self.loss,))
        self._declared("metric", metric.flat())

    @property
    def gradient(self) -> sp.ImmutableMatrix:
        """∂loss/∂state, n × 1: the differential, before the metric turns it into a velocity."""
        return sp.ImmutableMatrix([sp.diff(self.loss, symbol) for symbol in self.state])

    @cached_property
    def rhs(self) -> tuple[sp.Expr, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        rates = tuple(-self.metric.inv() * self.gradient)
        # A metric of the state may vanish with the gradient, as on the simplex at its corners.
        return tuple(map(cancelled, rates)) if self.metric.has(*self.state) else rates

    def hessian(self) -> sp.ImmutableMatrix:
        """∂²loss/∂state², n × n."""
        return sp.ImmutableMatrix(sp.hessian(self.loss, self.state))

    def modified(self, step: sp.Expr) -> GradientFlow:
        """The flow that gradient descent with this step size follows to second order.

        Descent on L follows the flow of L + (step/4)‖∇L‖², the norm in the inverse metric,
        with error O(step²) where the flow of L itself errs by O(step) (backward error
        analysis: Barrett & Dherin 2021). The observable "loss" stays the loss itself.

        Arguments:

        - `step`: the learning rate, in units of t; a symbol becomes a parameter.
        """
        step = sp.sympify(step)
        correction = (self.gradient.T * self.metric.inv() * self.gradient)[0]
        new = sorted(step.free_symbols - set(self.parameters), key=str)
        return replace(
            self,
            loss=self.loss + step / 4 * correction,
            parameters=self.parameters + tuple(new),
        )


def _only_states(values: Mapping[Any, Any], state: tuple[sp.Symbol, ...], name: str) -> None:
    """Raise `InputError` on a key that is no state; symbols with other assumptions are none."""
    if stray := [str(key) for key in values if key not in state]:
        raise InputError(
            f"{name} names {', '.join(stray)}, which is no state: use the symbols of state, "
            "with the same assumptions"
        )


def _symbols(symbols: Any, name: str) -> tuple[sp.Symbol, ...]:
    symbols = (symbols,) if isinstance(symbols, sp.Symbol) else tuple(symbols)
    if not all(isinstance(symbol, sp.Symbol) for symbol in symbols):
        raise InputError(f"{name} is {symbols}: give sympy symbols")
    twice = {symbol.name for symbol in symbols if sum(symbol.name == s.name for s in symbols) > 1}
    if twice:
        raise InputError(f"{name} names {', '.join(sorted(twice))} twice: give each name once")
    return symbols
