"""The derivation of a model, step by step, each published equation beside what follows here.

A model's own derivation starts from the loss of all trained parameters and ends at its laws.
Published equations join the step they speak of. Every verdict is computed, when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
        """Where a published claim differs, the verdict on what should stand there."""
        if self.source is Source.OURS or self.judgement.verdict is not Verdict.DIFFERS:
            return None
        right = self.claim.derived if self.corrected is None else self.corrected
        return judge(replace(self.claim, claimed=right))

    @property
    def sound(self) -> bool:
        """Whether all that we claim holds: an equation of ours, or our correction of another's."""
        ours = self.judgement if self.source is Source.OURS else self.correction
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
    """The model's derivation from its loss to its laws, one chapter a step.

    Verdicts are computed when an `Equation.judgement` is first read.
    """
    found = equations(model)
    chapters = []
    for step in Step:
        text, formulas = _STORY[step](model)
        spoken = tuple(equation for equation in found if equation.step is step)
        if formulas or spoken:
            chapters.append(Chapter(step, text, tuple(formulas), spoken))
    return tuple(chapters)


def _reduction_equations(model: SurrogateModel) -> Iterator[Equation]:
    reduction, flow = model.reduction, model.flow
    gradients = zip(reduction.tangent_gradient.flat(), reduction.full_gradient.flat(), strict=True)
    for (group, _), (tangent, full) in zip(reduction.embedding, gradients, strict=True):
        text = f"the gradient does not leave the embedding along {group}"
        yield Equation(Step.REDUCTION, text, Claim(tangent, full))
    text = "the reduced loss is the full one on the embedding"
    yield Equation(Step.REDUCTION, text, Claim(flow.loss, reduction.reduced_loss))
    for i, row in enumerate(flow.state):
        for j, column in enumerate(flow.state[: i + 1]):
            text = f"the metric of {column}, {row} is the induced one"
            claim = Claim(flow.metric[i, j], reduction.metric[i, j])
            yield Equation(Step.REDUCTION, text, claim)


Formula = tuple[sp.Basic, sp.Basic]
_LOSS, _TIME, _METRIC, _JACOBIAN = sp.symbols("L t G J")


def _rate(symbol: sp.Symbol) -> sp.Basic:
    return sp.Derivative(sp.Function(symbol.name)(_TIME), _TIME)


def _loss(model: SurrogateModel) -> tuple[str, list[Formula]]:
    reduction = model.reduction
    counts = dict(reduction.multiplicity)
    groups = (f"{g} (× {counts[g]})" if g in counts else f"{g}" for g, _ in reduction.embedding)
    text = f"The loss of all trained parameters, in groups {', '.join(groups)}."
    if model.assumptions:
        text += f" Assumed: {'; '.join(model.assumptions)}."
    return text, [(_LOSS, reduction.loss)]


def _reduction(model: SurrogateModel) -> tuple[str, list[Formula]]:
    text = "The embedding φ, and the metric G = ∂φᵀ∂φ that it induces."
    return text, [*model.reduction.embedding, (_METRIC, model.flow.metric)]


def _flow(model: SurrogateModel) -> tuple[str, list[Formula]]:
    flow, readable = model.flow, _InAttention(model)
    rates = ((_rate(z), readable(rate)) for z, rate in zip(flow.state, flow.rhs, strict=True))
    text = "Gradient flow on the reduced loss, dz/dt = −G⁻¹ ∂L/∂z."
    return text, [*readable.definition, (_LOSS, readable(flow.loss)), *rates]


def _hessian(model: SurrogateModel) -> tuple[str, list[Formula]]:
    flow, readable = model.flow, _InAttention(model)
    hessian: Any = flow.hessian()
    loss = sp.Function("L")(*flow.state)
    entries: list[Formula] = [
        (sp.Derivative(loss, a, b), readable(hessian[i, j]))
        for i, a in enumerate(flow.state)
        for j, b in enumerate(flow.state)
        if i <= j
    ]
    return "Second derivatives of the reduced loss.", entries


def _start(model: SurrogateModel) -> tuple[str, list[Formula]]:
    flow = model.flow
    start: Any = dict(zip(flow.state, flow.initial, strict=True))
    rates = [
        (_rate(z), sp.factor(rate.subs(start, simultaneous=True)))
        for z, rate in zip(flow.state, flow.rhs, strict=True)
    ]
    slopes = flow.jacobian().subs(start, simultaneous=True).applyfunc(sp.factor)
    text = "The rates and their Jacobian J at the initial state."
    return text, [*start.items(), *rates, (_JACOBIAN, sp.ImmutableMatrix(slopes))]


def _escape(model: SurrogateModel) -> tuple[str, list[Formula]]:
    return "How long the linear flow takes to lower the loss.", []


def _late(model: SurrogateModel) -> tuple[str, list[Formula]]:
    return "Once attention has formed, the weight follows its quasi-steady value.", []


def _laws(model: SurrogateModel) -> tuple[str, list[Formula]]:
    text = " ".join(f"{law.name}: {law.derivation}." for law in model.laws)
    return text, [(_TIME, law.time) for law in model.laws]


_STORY = {
    Step.LOSS: _loss,
    Step.REDUCTION: _reduction,
    Step.FLOW: _flow,
    Step.HESSIAN: _hessian,
    Step.START: _start,
    Step.ESCAPE: _escape,
    Step.LATE: _late,
    Step.LAW: _laws,
}


class _InAttention:
    """Writes expressions in the attention α instead of the score, where a model observes it."""

    def __init__(self, model: SurrogateModel) -> None:
        self.definition: list[Formula] = []
        self._back: Any = {}
        observed = dict(model.flow.observables).get("alpha", sp.S.Zero)
        exponentials = observed.atoms(sp.exp)
        if len(exponentials) == 1:
            (exponential,) = exponentials
            alpha = sp.Symbol("alpha", positive=True)
            solutions = sp.solve(observed - alpha, exponential)
            if len(solutions) == 1:
                self.definition = [(alpha, observed)]
                self._back = {exponential: solutions[0], 1 / exponential: 1 / solutions[0]}

    def __call__(self, expression: Any) -> Any:
        return sp.factor(expression.subs(self._back)) if self._back else expression
