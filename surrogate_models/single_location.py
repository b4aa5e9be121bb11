"""Single-location regression from zero initialisation, with two kinds of attention scores.

Positional scores, one per position, are the layer as [Z, Eq. 2] writes it. A shared score,
one for all relevant tokens, is the flow that [Z, Eq. 4 and 14] prints. With B > 1 copies of
the relevant token they part: repetition speeds emergence up by √B or by B.
"""

from __future__ import annotations

import sympy as sp

from dynamics import GradientFlow

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
from .model import RHO, Law, SurrogateModel, Validity

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


def _model(
    name: str, title: str, *, shared: bool, source: str, law: Law, beside: tuple[str, ...]
) -> SurrogateModel:
    reduction = layer_reduction((w, score_gap), sp.S.Zero, shared_score=shared)
    rate = B * M / (d * T)
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
            timescale=(1 if shared else sp.sqrt(B)) / rate,
            clock=T * alpha,
        ),
        laws=(law,),
        beside=beside,
    )


def _plateau_law(
    speedup: sp.Expr, *, ranges: tuple[Validity, ...], invariant: str, exponent: str
) -> Law:
    """The law whose leading term repetition shortens by `speedup`, and its noise term twice."""
    first = sp.sqrt(sp.pi / 2) * d * T / (M * speedup)
    noise = (1 - sp.pi / 4) * d * T / (M * speedup) ** 2
    return Law(
        name="plateau law",
        time=first + noise + d / 2 * sp.log(1 / RHO),
        derivation=_DERIVATION.format(invariant=invariant, exponent=exponent),
        validity=ranges,
        limits=LIMITS,
        measured=MEASURED,
    )


def _ranges(far: tuple[float, float], near: tuple[float, float]) -> tuple[Validity, ...]:
    return tuple(
        Validity(sp.And(T >= factor * B, d >= 16), error)
        for factor, error in ((256, far), (32, near))
    )


def single_location() -> SurrogateModel:
    """One free score per position. M is √d unless given."""
    return _model(
        "single-location",
        "single-location regression, positional scores",
        shared=False,
        source="[Z] Zucchet et al. 2025, arXiv 2505.17863, §2 and App. A; metric induced by Eq. 2",
        law=_plateau_law(
            sp.sqrt(B),
            ranges=_ranges((-0.024, 0.0), (-0.071, 0.0)),
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
        law=_plateau_law(
            B,
            ranges=_ranges((-0.013, 0.0), (-0.058, 0.0)),
            invariant="Q = Δa − w²/2",
            exponent="w²/2",
        ),
        beside=(),
    )
