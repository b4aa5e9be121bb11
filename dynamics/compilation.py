"""From symbols to JAX: each system is compiled once; parameters stay arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float

from .system import System

Scalar = Callable[..., Float[Array, "..."]]
Vector = Callable[..., tuple[Float[Array, "..."], ...]]


def symbolic_function(expressions: Sequence[sp.Expr], arguments: Sequence[sp.Symbol]) -> Vector:
    """A JAX function of the arguments' values, in order, returning one array per expression.

    Common subexpressions are shared (without that a softmax flow traces for minutes). Constant
    expressions are broadcast to the arguments' common shape. Where an expression is guarded by
    a `Piecewise`, derivatives come from sympy, branch by branch: JAX's own would multiply the
    unselected branch's infinity by zero and return NaN at the guard.
    """
    function = sp.lambdify(list(arguments), list(expressions), modules="jax", cse=True)

    def evaluate(*values):
        values = tuple(map(jnp.asarray, values))  # Python's own numbers raise where JAX's say inf
        shape = jnp.broadcast_shapes(*map(jnp.shape, values))
        dtype = jnp.result_type(float, *values)
        return tuple(jnp.broadcast_to(jnp.asarray(v, dtype), shape) for v in function(*values))

    if not any(expression.has(sp.Piecewise) for expression in expressions):
        return evaluate
    guarded = jax.custom_jvp(evaluate)

    @guarded.defjvp
    def _(primals, tangents):
        jacobian = sp.Matrix(expressions).jacobian(sp.Matrix(arguments))
        partials = symbolic_function(jacobian.flat(), arguments)(*primals)
        n = len(arguments)
        rows = (partials[i * n : (i + 1) * n] for i in range(len(expressions)))
        tangent = (jnp.asarray(sum(map(jnp.multiply, row, tangents))) for row in rows)
        return guarded(*primals), tuple(tangent)

    return guarded


def hoisted_function(
    expressions: Sequence[sp.Expr],
    variables: Sequence[sp.Symbol],
    parameters: Sequence[sp.Symbol],
) -> tuple[Vector, Vector]:
    """`symbolic_function` in two parts, so that a loop need not repeat what never changes.

    Returns `constants`, a function of the parameters' values, and `function`, to be called as
    `function(*variables, *constants(*parameters))`. XLA does not split them by itself: without
    this a sweep takes a quarter longer.
    """
    hoisted: dict[sp.Expr, sp.Symbol] = {}

    def walk(expression: Any) -> Any:
        if isinstance(expression, sp.Expr) and not expression.has(*variables):
            number = expression.is_Number
            return expression if number else hoisted.setdefault(expression, sp.Dummy(real=True))
        if isinstance(expression, sp.Add | sp.Mul):
            adds = isinstance(expression, sp.Add)
            fixed, rest = expression.as_independent(*variables, as_Add=adds)
            terms = rest.args if rest.func is expression.func else (rest,)
            return expression.func(walk(fixed), *map(walk, terms))
        if not expression.args:
            return expression
        return expression.func(*map(walk, expression.args))

    remaining = [walk(sp.sympify(expression)) for expression in expressions]
    constants = symbolic_function(tuple(hoisted), parameters)
    return constants, symbolic_function(remaining, (*variables, *hoisted.values()))


@dataclass(frozen=True)
class CompiledSystem:
    """A system's functions in JAX, each built when first asked for.

    All but `initial` and `timescale` take `(state, parameters)`, two sequences of scalars or
    broadcastable arrays in the order the system declares; those two take `(parameters)`. All
    are pure: `jax.jit`, `jax.vmap` and `jax.grad` apply.
    """

    system: System

    @cached_property
    def rhs(self) -> Vector:
        """dstate/dt, a tuple of n arrays."""
        return self._of_state(self.system.rhs)

    @cached_property
    def jacobian(self) -> Callable[..., tuple[tuple[Float[Array, ...], ...], ...]]:
        """∂rhs/∂state, n tuples of n arrays."""
        n = len(self.system.state)
        entries = self._of_state(self.system.jacobian().flat())

        def jacobian(state, parameters):
            flat = entries(state, parameters)
            return tuple(flat[i * n : (i + 1) * n] for i in range(n))

        return jacobian

    @cached_property
    def initial(self) -> Vector:
        """The initial state, a tuple of n arrays, from the parameters alone."""
        start = symbolic_function(self.system.initial, self.system.parameters)
        return lambda parameters: start(*parameters)

    @cached_property
    def timescale(self) -> Scalar:
        """The typical duration, one array in units of t, from the parameters alone."""
        if self.system.timescale is not None:
            scale = symbolic_function((self.system.timescale,), self.system.parameters)
            return lambda parameters: scale(*parameters)[0]

        def reciprocal_rate(parameters):
            rates = self.jacobian(self.initial(parameters), parameters)
            fastest = jnp.max(jnp.abs(jnp.stack([rate for row in rates for rate in row])), axis=0)
            # An initial point with no linear dynamics sets no scale: fall back on t itself.
            return jnp.where(fastest > 0, 1 / jnp.where(fastest > 0, fastest, 1), 1)

        return reciprocal_rate

    def observable(self, name: str) -> Scalar:
        """One array: a named observable or state. The loss of a gradient flow is "loss"."""
        return self._scalar(self.system.observable(name))

    def _of_state(self, expressions: Sequence[sp.Expr]) -> Vector:
        function = symbolic_function(expressions, self.system.state + self.system.parameters)
        return lambda state, parameters: function(*state, *parameters)

    def _scalar(self, expression: sp.Expr) -> Scalar:
        function = self._of_state((expression,))
        return lambda state, parameters: function(state, parameters)[0]


@lru_cache(maxsize=128)
def compile_system(system: System) -> CompiledSystem:
    """The system's functions in JAX. Equal systems share one compilation."""
    return CompiledSystem(system)
