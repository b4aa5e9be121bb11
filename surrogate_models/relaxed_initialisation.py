"""Single-location regression from a net's own initial weights: why seeds differ.

W may start anywhere and W* have any norm. What the loss sees of W is its component w along W*
and the length r of the rest, which can only shrink. Scores are positional and start at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import sympy as sp

from dynamics import SMALL, GradientFlow

from .blow_up import BlowUp, late_rate, relaxation, relaxation_equation, relaxed, total
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
    r,
    score_gap,
    w,
)
from .ledger import Equation
from .model import Law, Parameter, SurrogateModel, Validity

w0 = sp.Symbol("w0", real=True)
r0 = sp.Symbol("r0", nonnegative=True)


_NO_WEIGHT_ACROSS: Any = sp.Eq(r0, 0)


EARLY = BlowUp(w, score_gap, growth=B * M / (d * T), coupling=1 / B, damping=1 / (d * T), start=w0)


def _derive(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    bare = replace(model.flow, initial={w: w0})
    # The part of W across W* only fades while attention is spread: at r0 = 0 it is not there.
    along = GradientFlow(
        bare.loss.subs(r, 0),
        state=(w, score_gap),
        parameters=bare.parameters,
        metric={score_gap: bare.metric[2, 2]},
    )
    yield from EARLY.early_rates(along, {T: T / SMALL})
    yield from EARLY.integrals()
    yield late_rate(along, w, score_gap, (M - w) / d)
    yield relaxation_equation(1 / d)
    yield total(law.time, EARLY.quadrature(), relaxed(1 / d))


def relaxed_initialisation() -> SurrogateModel:
    """W starts with component w0 along W* and length r0 across it; M is √d unless given."""
    reduction = layer_reduction((w, r, score_gap), r)
    return SurrogateModel(
        name="relaxed-initialisation",
        title="single-location regression from a net's own weights, positional scores",
        source="this project; the layer is [Z] Zucchet et al. 2025, arXiv 2505.17863, Eq. 2",
        assumptions=(
            "gradient flow on the loss expected over fresh data",
            "a = 0 at the start: uniform attention",
        ),
        parameters=(
            SEQUENCE_LENGTH,
            DIMENSION,
            REPETITION,
            TARGET_NORM,
            Parameter(w0, "initial weight along the target map", sp.S.Zero),
            Parameter(r0, "initial weight orthogonal to the target map", sp.S.Zero, minimum=0),
        ),
        constraints=(BELOW_LENGTH,),
        reduction=reduction,
        flow=GradientFlow(
            layer_loss(r),
            state=(w, r, score_gap),
            parameters=(T, d, B, M, w0, r0),
            metric=reduction.metric,
            initial={w: w0, r: r0},
            observables={"alpha": alpha},
            timescale=1 / (EARLY.growth * sp.sqrt(EARLY.coupling)),
            clock=T * alpha,
        ),
        laws=(
            Law(
                name="Mills-ratio law",
                time=EARLY.leading + relaxation(1 / d),
                derivation=(
                    "Q = Δa − w²/(2B) is conserved while Bα ≪ 1, so ẇ = λ exp((w² − w0²)/(2B)) "
                    "blows up at ∫ dw/ẇ from w0, a Gaussian tail over its density; the last "
                    "term is the relaxation of w at rate 1/d once attention has formed"
                ),
                validity=(
                    Validity(
                        sp.And(_NO_WEIGHT_ACROSS, w0 >= -1, w0 <= 3, d >= 64, T >= 256 * B),
                        (-0.032, 0.05),
                    ),
                ),
                limits=LIMITS,
                measured=MEASURED,
                proof=_derive,
            ),
        ),
    )
