"""The derivation of a model, step by step, each published equation beside what follows here.

A model's own derivation starts from the loss of all trained parameters and ends at its laws.
Published equations join the step they speak of. Every verdict is computed, when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import sympy as sp

from dynamics import Claim, Judgement, Verdict, judge

if TYPE_CHECKING:
    from .model import SurrogateModel


class Step(StrEnum):
    """The steps of a derivation, in order."""

    LOSS = "loss"
    REDUCTION = "reduction"
    FLOW = "reduced flow"
    HESSIAN = "Hessian"
    START = "linearisation at the start"
    ESCAPE = "escape time of the linear theory"
    LATE = "late phase"
    LAW = "law"


class Source(StrEnum):
    """Whose equation it is, and how well its printed form is known."""

    OURS = "ours"
    PRINTED = "printed"  # as read from a machine extraction of the paper's first version
    RESTATED = "restated"  # the number is the paper's; its content is put in our own form


@dataclass(frozen=True)
class Equation:
    """One equation of the ledger.

    Arguments:

    - `step`: where in the derivation it belongs.
    - `text`: what it says.
    - `claim`: its right-hand side, and what the model gives for it.
    - `label`: the number in its source; empty for ours.
    - `source`: see `Source`.
    - `corrected`: the right-hand side as it should be, where the claim differs and the derived
      expression itself is not the form to print.
    """

    step: Step
    text: str
    claim: Claim
    label: str = ""
    source: Source = Source.OURS
    corrected: sp.Expr | None = None

    @cached_property
    def judgement(self) -> Judgement:
        """The verdict, computed once."""
        return judge(self.claim)

    @cached_property
    def correction(self) -> Judgement | None:
        """Where the claim differs, the verdict on what should stand there."""
        if self.judgement.verdict is not Verdict.DIFFERS:
            return None
        right = self.claim.derived if self.corrected is None else self.corrected
        return judge(replace(self.claim, claimed=right))

    @property
    def sound(self) -> bool:
        """Whether all that we claim holds: an equation of ours, or our correction of another's."""
        ours = self.correction or (self.judgement if self.source is Source.OURS else None)
        return ours is None or ours.verdict in (Verdict.PROVED, Verdict.LEADING)


@dataclass(frozen=True)
class Chapter:
    """One step of a model's derivation: what is derived, and the equations that speak of it.

    - `formulas`: pairs of a left-hand side and what it equals, both sympy objects.
    """

    step: Step
    text: str
    formulas: tuple[tuple[sp.Basic, sp.Basic], ...]
    equations: tuple[Equation, ...]


# Makes a model's equations; called only when a derivation is asked for.
Ledger = Callable[["SurrogateModel"], Iterable[Equation]]


def equations(model: SurrogateModel) -> tuple[Equation, ...]:
    """All equations of a model: of its reduction, of its source, and of its laws."""
    own = _reduction_equations(model)
    laws = (equation for law in model.laws if law.proof for equation in law.proof(model, law))
    return (*own, *(model.ledger(model) if model.ledger else ()), *laws)


def derive(model: SurrogateModel) -> tuple[Chapter, ...]:
    """The model's derivation from its loss to its laws.

    Verdicts are computed when an `Equation.judgement` is first read.
    """
    found = equations(model)
    return tuple(
        Chapter(step, text, tuple(formulas), tuple(e for e in found if e.step is step))
        for step, text, formulas in _story(model)
    )


def _reduction_equations(model: SurrogateModel) -> Iterator[Equation]:
    reduction, flow = model.reduction, model.flow
    for (group, _), left in zip(reduction.embedding, reduction.residual().flat(), strict=True):
        text = f"the gradient does not leave the embedding along {group}"
        yield Equation(Step.REDUCTION, text, Claim(0, left))
    yield Equation(
        Step.REDUCTION,
        "the reduced loss is the full one on the embedding",
        Claim(flow.loss, reduction.reduced_loss),
    )
    for (i, row), (j, column) in (
        (a, b) for a in enumerate(flow.state) for b in enumerate(flow.state) if a[0] <= b[0]
    ):
        yield Equation(
            Step.REDUCTION,
            f"the metric of {row}, {column} is the induced one",
            Claim(flow.metric[i, j], reduction.metric[i, j]),
        )


def _story(
    model: SurrogateModel,
) -> Iterator[tuple[Step, str, Iterable[tuple[sp.Basic, sp.Basic]]]]:
    """What each step derives, in words and formulas."""
    flow, reduction = model.flow, model.reduction
    readable = _in_attention(model)
    loss, t = sp.Symbol("L"), sp.Symbol("t")
    functions = {symbol: sp.Function(symbol.name)(t) for symbol in flow.state}

    def rate(symbol: sp.Symbol) -> sp.Basic:
        return sp.Derivative(functions[symbol], t)

    assumptions = "; ".join(model.assumptions)
    counts = dict(reduction.multiplicity)
    groups = ", ".join(f"{g} (× {counts[g]})" if g in counts else f"{g}" for g in groups_of(model))
    yield (
        Step.LOSS,
        f"The loss of all trained parameters, in groups {groups}. Assumed: {assumptions}.",
        [(loss, reduction.loss)],
    )
    yield (
        Step.REDUCTION,
        "The embedding, and the metric G = ∂φᵀ∂φ that it induces.",
        [*reduction.embedding, (sp.Symbol("G"), flow.metric)],
    )
    yield (
        Step.FLOW,
        "dz/dt = −G⁻¹ ∂L/∂z.",
        [
            *readable.definition,
            (loss, readable(flow.loss)),
            *((rate(z), readable(r)) for z, r in zip(flow.state, flow.rhs, strict=True)),
        ],
    )
    hessian = flow.hessian()
    yield (
        Step.HESSIAN,
        "Second derivatives of the reduced loss.",
        [
            (sp.Derivative(loss, *((a, 2),) if a is b else (a, b)), readable(hessian[i, j]))
            for i, a in enumerate(flow.state)
            for j, b in enumerate(flow.state)
            if i <= j
        ],
    )
    start = dict(zip(flow.state, flow.initial, strict=True))
    slope = flow.jacobian().subs(start, simultaneous=True).applyfunc(sp.factor)
    yield (
        Step.START,
        "The rates and their Jacobian J at the initial state.",
        [
            *(
                (rate(z), sp.factor(r.subs(start)))
                for z, r in zip(flow.state, flow.rhs, strict=True)
            ),
            (sp.Symbol("J"), sp.ImmutableMatrix(slope)),
        ],
    )
    if any(equation.step is Step.ESCAPE for equation in _from(model)):
        yield Step.ESCAPE, "How long the linear flow takes to lower the loss.", []
    if any(equation.step is Step.LATE for equation in _from(model)):
        yield Step.LATE, "Once attention has formed, w follows its quasi-steady value.", []
    for_laws = [(sp.Symbol("t"), law.time) for law in model.laws]
    text = " ".join(f"{law.name}: {law.derivation}." for law in model.laws)
    if model.laws:
        yield Step.LAW, text, for_laws


def _from(model: SurrogateModel) -> Iterable[Equation]:
    return model.ledger(model) if model.ledger else ()


def groups_of(model: SurrogateModel) -> tuple[sp.Symbol, ...]:
    """The group coordinates of the full parameters."""
    return tuple(group for group, _ in model.reduction.embedding)


class _in_attention:
    """Writes expressions in the attention α instead of the score, where a model observes it."""

    def __init__(self, model: SurrogateModel) -> None:
        self.definition: list[tuple[sp.Basic, sp.Basic]] = []
        self.back: dict[sp.Basic, sp.Basic] = {}
        observed = dict(model.flow.observables).get("alpha")
        exponentials = observed.atoms(sp.exp) if observed is not None else set()
        if observed is not None and len(exponentials) == 1:
            (exponential,) = exponentials
            alpha = sp.Symbol("alpha", positive=True)
            solutions = sp.solve(observed - alpha, exponential)
            if len(solutions) == 1:
                self.definition = [(alpha, observed)]
                self.back = {exponential: solutions[0], 1 / exponential: 1 / solutions[0]}

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        return sp.factor(sp.sympify(expression).subs(self.back)) if self.back else expression
