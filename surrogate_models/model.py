"""What a surrogate model is: a loss with its assumptions, its flow, and the laws that follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from jaxtyping import Bool, Float
from sympy.logic.boolalg import Boolean

from dynamics import GradientFlow, InputError, Reduction, Settings, is_zero

if TYPE_CHECKING:
    from .ledger import Equation, Ledger

# The fraction ρ of the initial loss at which a plateau ends; laws are expressions in it.
RHO = sp.Symbol("rho", positive=True)


def about(expression: sp.Expr, value: Any) -> Boolean:
    """The condition that an expression has a value, to rounding."""
    return sp.Abs(expression / value - 1) < 1e-9


@dataclass(frozen=True)
class Parameter:
    """A parameter of a model, and the values it admits.

    Arguments:

    - `symbol`: its symbol; the name is the symbol's.
    - `meaning`: a short description, for help texts.
    - `default`: a number or an expression in other parameters; none if it must be given.
    - `minimum`: the least value admitted (itself excluded if `positive`).
    - `integer`: whether the quantity it stands for counts something.
    """

    symbol: sp.Symbol
    meaning: str
    default: sp.Expr | None = None
    minimum: float | None = None
    positive: bool = False
    integer: bool = False

    @property
    def name(self) -> str:
        return self.symbol.name

    def check(self, values: Any, *, integers: bool) -> None:
        """Raise `InputError`, naming a value that the parameter does not admit."""
        values = np.asarray(values, float).ravel()
        bad = ~np.isfinite(values)
        remedy = "a finite number"
        if not bad.any() and self.minimum is not None:
            bad = values <= self.minimum if self.positive else values < self.minimum
            remedy = f"{self.symbol} {'>' if self.positive else '≥'} {self.minimum:g}"
        if not bad.any() and self.integer and integers:
            bad = values != np.round(values)
            remedy = "a whole number"
        if bad.any():
            raise InputError(f"{self.name} ({self.meaning}) is {values[bad][0]:g}: give {remedy}")


@dataclass(frozen=True)
class Validity:
    """A range of parameters in which a law's error against its flow was measured.

    Arguments:

    - `condition`: a condition on the parameters.
    - `error`: the least and the greatest law/flow − 1 found where it holds.
    """

    condition: Boolean
    error: tuple[float, float]

    def __str__(self) -> str:
        relations = self.condition.args if isinstance(self.condition, sp.And) else (self.condition,)
        ranges = sorted(str(relation) for relation in relations)
        words = re.sub(r"Eq\((\w+), (\w+)\)", r"\1 = \2", ", ".join(ranges))
        words = words.replace("<=", "≤").replace(">=", "≥").replace("**2", "²").replace("*", "·")
        low, high = map(_percent, self.error)
        return f"{words}: error {low} to {high}"


def _percent(error: float) -> str:
    return f"{error:+.2%}" if 0 < abs(error) < 0.01 else f"{error:+.1%}"


@dataclass(frozen=True)
class Law:
    """A closed form for the plateau length.

    Arguments:

    - `name`: short name.
    - `time`: the plateau length in units of t, an expression in parameters and `RHO`.
    - `derivation`: where it comes from, in a sentence.
    - `validity`: ranges in which its error was measured, the tightest first.
    - `limits`: a condition on the parameters and `RHO`, what the measurement covered at all;
      outside it nothing is claimed. `measured` says the same in words.
    - `proof`: makes the equations that derive it, for the ledger.
    """

    name: str
    time: sp.Expr
    derivation: str
    validity: tuple[Validity, ...]
    limits: Boolean
    measured: str
    proof: Callable[[SurrogateModel, Law], Iterable[Equation]] | None = None


@dataclass(frozen=True)
class SurrogateModel:
    """A reduced model of training, from its loss to closed-form plateau lengths.

    Arguments:

    - `name`: as commands spell it.
    - `title`: one line on what is modelled.
    - `source`: the paper and its equations.
    - `assumptions`: what the reduction rests on, a sentence each.
    - `parameters`: in the order of the flow's.
    - `constraints`: conditions between parameters, each with the sentence that states it.
    - `reduction`: the loss of all the trained parameters, and their embedding.
    - `flow`: the reduced flow, with its initial state, timescale and clock. Its loss may be
      written in the source's form: `prove` checks that it is the reduction's.
    - `laws`: closed-form plateau lengths, the recommended one first.
    - `beside`: names of models whose prediction belongs beside this one's.
    - `plateau_of`: the observable whose fall ends the plateau.
    - `ledger`: makes the equations of the source, beside what the model gives for them.
    """

    name: str
    title: str
    source: str
    assumptions: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    constraints: tuple[tuple[Boolean, str], ...]
    reduction: Reduction
    flow: GradientFlow
    laws: tuple[Law, ...]
    beside: tuple[str, ...] = ()
    plateau_of: str = "loss"
    ledger: Ledger | None = None

    def prove(self) -> None:
        """Raise unless the embedding is invariant and the stated flow is the reduced one."""
        self.reduction.prove()
        if not is_zero(self.flow.observable("loss") - self.reduction.reduced_loss):
            raise InputError(f"{self.name}: the stated loss is not the reduction's: correct it")
        if not all(map(is_zero, self.flow.metric - self.reduction.metric)):
            raise InputError(f"{self.name}: the metric is not the induced one: correct it")

    def settings(self, at: Mapping[str, Any], *, integers: bool = False) -> Settings:
        """Every parameter's value, of one shape: those of `at`, checked, and defaults.

        Arguments:

        - `at`: values by name, of shapes that broadcast.
        - `integers`: insist on whole numbers where a parameter counts something. The flow
          itself is defined for real values, and derivatives need them.

        Raises `InputError` on unknown or missing names and on values outside the domain.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        if unknown := [name for name in at if name not in known]:
            raise InputError(
                f"{self.name} has no parameter {', '.join(unknown)}: it has {', '.join(known)}"
            )
        values: dict[str, Any] = {}
        for name, parameter in known.items():
            if at.get(name) is not None:
                parameter.check(at[name], integers=integers)
                values[name] = np.asarray(at[name], float)
            elif parameter.default is None:
                raise InputError(f"{name} ({parameter.meaning}) is missing: give it a value")
        for name, parameter in known.items():
            if name not in values:
                values[name] = _evaluate(sp.sympify(parameter.default), values)
        try:
            arrays = np.broadcast_arrays(*(np.asarray(values[name], float) for name in known))
        except ValueError:
            shapes = ", ".join(f"{name} {np.shape(value)}" for name, value in values.items())
            raise InputError(f"the settings' shapes do not broadcast ({shapes})") from None
        values = dict(zip(known, arrays, strict=True))
        for condition, sentence in self.constraints:
            bad = ~self._where(condition, values)
            if bad.any():
                named = sorted(map(str, condition.free_symbols))
                where = ", ".join(f"{name} = {values[name][bad][0]:g}" for name in named)
                raise InputError(f"{where}: {sentence}")
        return values

    def admits(self, at: Mapping[str, Any]) -> Bool[np.ndarray, "*lanes"]:
        """Where the constraints between parameters hold; errors are those of `settings`."""
        values = replace(self, constraints=()).settings(at)
        held = (self._where(condition, values) for condition, _ in self.constraints)
        shape = np.shape(next(iter(values.values())))
        return np.logical_and.reduce([np.ones(shape, bool), *held])

    @staticmethod
    def _where(condition: Any, values: Settings) -> Bool[np.ndarray, "*lanes"]:
        shape = np.shape(next(iter(values.values())))
        return np.broadcast_to(np.asarray(_evaluate(condition, values), bool), shape)

    def law_times(self, law: Law, at: Settings, rho: float) -> Float[np.ndarray, "*lanes"]:
        """The law's plateau lengths, in units of t, whether or not it is valid there."""
        return np.asarray(_evaluate(law.time, {**at, RHO.name: np.asarray(rho)}), float)

    def law_holds(
        self, law: Law, validity: Validity, at: Settings, rho: float
    ) -> Bool[np.ndarray, "*lanes"]:
        """Where the law's error was measured to keep to that validity."""
        condition = sp.And(law.limits, validity.condition)
        shape = np.broadcast_shapes(*(np.shape(value) for value in at.values()))
        return np.broadcast_to(_evaluate(condition, {**at, RHO.name: np.full(shape, rho)}), shape)

    def law_validity(self, law: Law, at: Settings, rho: float) -> Validity | None:
        """The tightest stated range of the law that holds all the settings, if one does."""
        for validity in law.validity:
            if self.law_holds(law, validity, at, rho).all():
                return validity
        return None


def _evaluate(expression: sp.Basic, values: Mapping[str, Any]) -> Any:
    """The expression at the named values. Only functions that numpy lacks load scipy."""
    symbols = sorted(expression.free_symbols, key=str)
    special: dict[str, Any] = {}
    if expression.has(sp.erfc):
        from scipy.special import erfc

        special["erfc"] = erfc
    if expression.has(sp.expint):
        from scipy.special import expn

        special["expint"] = expn
    if expression.has(sp.LambertW):
        from scipy.special import lambertw

        special["LambertW"] = lambda z, branch=0: np.real(lambertw(z, branch))
    expression = expression.replace(sp.zeta, lambda s: sp.zeta(s).evalf())
    if expression.has(sp.polylog):
        from .polylogarithm import polylogarithm

        special["polylog"] = polylogarithm
    modules: list[Any] = [special, "numpy"]
    function = sp.lambdify(symbols, expression, modules=modules)
    with np.errstate(all="ignore"):  # what is beyond floating point shows as infinite or NaN
        return function(*(values[str(symbol)] for symbol in symbols))
