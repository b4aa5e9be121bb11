"""Single-location regression from zero initialisation, with two kinds of attention scores.

Positional scores, one per position, are the layer as [Z, Eq. 2] writes it. A shared score,
one for all relevant tokens, is the flow that [Z, Eq. 4 and 14] prints. With B > 1 copies of
the relevant token they part: repetition speeds emergence up by √B or by B.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from dynamics import SMALL, Claim, GradientFlow

from . import single_location_ledger
from .blow_up import (
    BlowUp,
    late_rate,
    relaxation,
    relaxation_equation,
    relaxed,
    saturation_equations,
    total,
)
from .expected_loss import (
    BELOW_LENGTH,
    DIMENSION,
    LIMITS,
    MEASURED,
    REPETITION,
    SEQUENCE_LENGTH,
    TARGET_NORM,
    B,
    M,
    T,
    alpha,
    d,
    layer_loss,
    layer_reduction,
    score_gap,
    w,
)
from .ledger import Equation, Step
from .model import Law, SurrogateModel, Validity

_PARAMETERS = (SEQUENCE_LENGTH, DIMENSION, REPETITION, TARGET_NORM)
_ASSUMPTIONS = (
    "gradient flow on the loss expected over fresh data",
    "a = 0 at the start: uniform attention",
    "W = 0 at the start",
)
_DERIVATION = (
    "{invariant} is conserved while Bα ≪ 1, so ẇ = λ exp({exponent}) blows up at the first "
    "term; the second is the first order of the noise of the T − B other tokens; the third is "
    "the relaxation of w at rate 1/d once attention has formed"
)
_NEXT_ORDER = (
    "the same, with the next order in B/T: attention saturates along the exact orbit, which "
    "leaves the parabola at −W₋₁(−B/T); B ≪ d is assumed, so that w is still short of M there"
)
# A fraction of relevant tokens that vanishes, at weights of any size.
LONG = {T: T / SMALL}


def early_flow(*, shared: bool) -> BlowUp:
    """Growth BM/(dT), noise at rate 1/(dT), and a gap that w drives B times slower per position."""
    coupling = sp.S.One if shared else 1 / B
    return BlowUp(w, score_gap, growth=B * M / (d * T), coupling=coupling, damping=1 / (d * T))


def _model(
    name: str,
    title: str,
    *,
    shared: bool,
    source: str,
    laws: tuple[Law, ...],
    beside: tuple[str, ...],
) -> SurrogateModel:
    reduction = layer_reduction((w, score_gap), sp.S.Zero, shared_score=shared)
    early = early_flow(shared=shared)
    return SurrogateModel(
        name=name,
        title=title,
        source=source,
        assumptions=_ASSUMPTIONS,
        parameters=_PARAMETERS,
        constraints=(BELOW_LENGTH,),
        reduction=reduction,
        flow=GradientFlow(
            layer_loss(sp.S.Zero),
            state=(w, score_gap),
            parameters=(T, d, B, M),
            metric=reduction.metric,
            observables={"alpha": alpha},
            timescale=1 / (early.growth * sp.sqrt(early.coupling)),
            clock=T * alpha,
        ),
        laws=laws,
        beside=beside,
        ledger=single_location_ledger.shared if shared else single_location_ledger.positional,
    )


def _laws(
    *,
    shared: bool,
    ranges: tuple[Validity, ...],
    next_ranges: tuple[Validity, ...],
    invariant: str,
    exponent: str,
) -> tuple[Law, ...]:
    early, late = early_flow(shared=shared), relaxation(1 / d)
    saturation = early.saturation(B / T, sp.S(2) if shared else sp.Rational(5, 2))

    def derive(model: SurrogateModel, law: Law) -> Iterator[Equation]:
        yield from early.early_rates(model.flow, LONG)
        yield from early.integrals()
        yield late_rate(model.flow, w, score_gap, (M - w) / d)
        yield relaxation_equation(1 / d)
        yield total(law.time, early.quadrature(), early.delay(), relaxed(1 / d))

    def derive_next(model: SurrogateModel, law: Law) -> Iterator[Equation]:
        coupling = early.coupling / (1 if shared else 1 - B / T)
        orbit = score_gap + B / (T - B) * (sp.exp(score_gap) - 1) - coupling * w**2 / 2
        rate = B * alpha * (M - B * alpha * w) / d
        gap_rate = coupling * (1 - B * alpha) * w * rate
        yield Equation(
            Step.LAW,
            "the exact orbit without noise",
            Claim(0, sp.diff(orbit, w) * rate + sp.diff(orbit, score_gap) * gap_rate),
        )
        yield from saturation_equations()
        yield total(law.time, early.quadrature(), saturation, early.delay(), relaxed(1 / d))

    return (
        Law(
            name="plateau law",
            time=early.leading + early.noise + late,
            derivation=_DERIVATION.format(invariant=invariant, exponent=exponent),
            validity=ranges,
            limits=LIMITS,
            measured=MEASURED,
            proof=derive,
        ),
        Law(
            name="second-order law",
            time=early.leading + saturation + early.noise + late,
            derivation=_NEXT_ORDER,
            validity=next_ranges,
            limits=LIMITS,
            measured=MEASURED,
            proof=derive_next,
        ),
    )


def _ranges(far: tuple[float, float], near: tuple[float, float]) -> tuple[Validity, ...]:
    return tuple(
        Validity(sp.And(T >= factor * B, d >= 16), error)
        for factor, error in ((256, far), (32, near))
    )


def _next_ranges(*errors: tuple[float, float]) -> tuple[Validity, ...]:
    return tuple(
        Validity(sp.And(T >= 32 * B, d >= factor * B), error)
        for factor, error in zip((256, 64, 16), errors, strict=True)
    )


def single_location() -> SurrogateModel:
    """One free score per position. M is √d unless given."""
    return _model(
        "single-location",
        "single-location regression, positional scores",
        shared=False,
        source="[Z] Zucchet et al. 2025, arXiv 2505.17863, §2 and App. A; metric induced by Eq. 2",
        laws=_laws(
            shared=False,
            ranges=_ranges((-0.024, 0.0), (-0.071, 0.0)),
            next_ranges=_next_ranges((-0.001, 0.0008), (-0.008, 0.0008), (-0.026, 0.0008)),
            invariant="Q = Δa − w²/(2B)",
            exponent="w²/(2B)",
        ),
        beside=("single-location-shared",),
    )


def single_location_shared() -> SurrogateModel:
    """One score for all relevant tokens, as a semantic feature gives. M is √d unless given."""
    return _model(
        "single-location-shared",
        "single-location regression, one shared score",
        shared=True,
        source="[Z] Zucchet et al. 2025, arXiv 2505.17863, Eq. 4, 12 and 14",
        laws=_laws(
            shared=True,
            ranges=_ranges((-0.013, 0.0), (-0.058, 0.0)),
            next_ranges=_next_ranges((-0.0018, 0.0005), (-0.0092, 0.0005), (-0.028, 0.0005)),
            invariant="Q = Δa − w²/2",
            exponent="w²/2",
        ),
        beside=(),
    )
