"""Few coordinates for many parameters: the embedding, its invariance, its induced metric.

Gradient flow on N parameters θ, started on an n-dimensional surface θ = φ(z) that the
gradient never leaves, is the flow ż = −(∂φᵀ∂φ)⁻¹ ∇(L∘φ). The metric ∂φᵀ∂φ is part of the
reduction: descending the reduced loss L∘φ with metric 1 is another model.

Two moves make this symbolic for any N. Parameters that the loss treats alike and that start
equal stay equal: n of them are one group coordinate u, of weight n in the inner product. And
a direction that the loss ignores is divided out by choosing φ orthogonal to it, which the
invariance check confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sympy as sp

from .errors import InputError, InvarianceError
from .identities import is_zero
from .system import GradientFlow


@dataclass(frozen=True)
class Reduction:
    """An embedding of few coordinates into the parameters of a loss.

    Arguments:

    - `loss`: the full loss, an expression in one symbol per group of exchangeable parameters.
    - `embedding`: φ, each group's common value as an expression in the coordinates.
    - `coordinates`: the n reduced coordinates z.
    - `multiplicity`: how many parameters each group holds (1 where left out); n may be symbolic.
    """

    loss: sp.Expr
    embedding: Any  # a mapping, kept as a tuple of (group, expression) pairs
    coordinates: tuple[sp.Symbol, ...]
    multiplicity: Any = ()  # likewise

    def __post_init__(self) -> None:
        for name in ("embedding", "multiplicity"):
            pairs: Any = getattr(self, name)
            pairs = pairs.items() if isinstance(pairs, Mapping) else pairs
            pairs = tuple((group, sp.sympify(value)) for group, value in pairs)
            object.__setattr__(self, name, pairs)
        groups = [group for group, _ in self.embedding]
        if stray := [str(g) for g, _ in self.multiplicity if g not in groups]:
            raise InputError(f"multiplicity names {', '.join(stray)}, which embedding does not map")

    @property
    def reduced_loss(self) -> sp.Expr:
        """L∘φ."""
        return self.loss.subs(dict(self.embedding), simultaneous=True)

    @cached_property
    def _tangent(self) -> sp.Matrix:
        """∂φ/∂z, one row per group."""
        return sp.Matrix([value for _, value in self.embedding]).jacobian(self.coordinates)

    @cached_property
    def _weight(self) -> sp.Matrix:
        """The inner product on group coordinates, diag(multiplicity)."""
        count = dict(self.multiplicity)
        return sp.diag(*(count.get(group, sp.S.One) for group, _ in self.embedding))

    @cached_property
    def metric(self) -> sp.ImmutableMatrix:
        """∂φᵀ∂φ in the inner product of the full parameters, n × n."""
        product = self._tangent.T * self._weight * self._tangent
        return sp.ImmutableMatrix(product.applyfunc(sp.factor))

    @cached_property
    def full_gradient(self) -> sp.ImmutableMatrix:
        """The gradient of the full loss on the embedding, group by group."""
        there = dict(self.embedding)
        gradient = sp.Matrix([sp.diff(self.loss, group) for group in there])
        return sp.ImmutableMatrix(self._weight.inv() * gradient.subs(there, simultaneous=True))

    @cached_property
    def tangent_gradient(self) -> sp.ImmutableMatrix:
        """Its projection on the embedding's tangent space; the same, if the flow stays there."""
        along = self.metric.inv() * (self._tangent.T * self._weight * self.full_gradient)
        return sp.ImmutableMatrix(self._tangent * along)

    def residual(self) -> sp.ImmutableMatrix:
        """The part of the full gradient that leaves the embedding, group by group."""
        return sp.ImmutableMatrix(self.full_gradient - self.tangent_gradient)

    def prove(self) -> None:
        """Raise `InvarianceError`, naming the groups at fault, unless `residual` vanishes."""
        groups = [str(group) for group, _ in self.embedding]
        left = [
            g for g, part in zip(groups, self.residual().flat(), strict=True) if not is_zero(part)
        ]
        if left:
            raise InvarianceError(
                f"the gradient leaves the embedding along {', '.join(left)}: "
                "start from an embedding that the flow preserves"
            )

    def flow(self, **options: Any) -> GradientFlow:
        """The reduced flow; `options` are `GradientFlow`'s (parameters, initial, …)."""
        return GradientFlow(
            self.reduced_loss, metric=self.metric, state=self.coordinates, **options
        )


def reduce(
    loss: sp.Expr,
    embedding: Mapping[sp.Symbol, Any],
    *,
    coordinates: tuple[sp.Symbol, ...],
    multiplicity: Mapping[sp.Symbol, Any] | None = None,
    **options: Any,
) -> GradientFlow:
    """Reduce the gradient flow of `loss` to an embedding, after proving that it stays there.

    Proved is that the gradient does not leave the embedding, given the loss. Taken on trust is
    that a group's symbol stands for `multiplicity` parameters which the loss treats alike, and
    that the loss is already written for all of them, as a function of their common value.

    Arguments are those of `Reduction`; `options` those of `GradientFlow`.

    Returns the reduced `GradientFlow`, with its induced metric. Raises `InvarianceError` when
    the gradient leaves the embedding, or when that it stays could not be proved.

    ```python
    >>> import sympy as sp
    >>> from dynamics import reduce
    >>> x, y, u, n = sp.symbols("x y u n", positive=True)
    >>> flow = reduce(  # x, and n parameters equal to y, whose common value is x
    ...     (n * y**2 + x**2) / 2, {x: u, y: u}, coordinates=(u,), multiplicity={y: n},
    ...     parameters=(n,),
    ... )
    >>> flow.metric, sp.simplify(flow.rhs[0])
    (Matrix([[n + 1]]), -u)

    ```
    """
    reduction = Reduction(loss, embedding, coordinates, multiplicity or {})
    reduction.prove()
    return reduction.flow(**options)
