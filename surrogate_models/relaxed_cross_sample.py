"""Cross-sample repetition from a net's own initial weights.

As `cross_sample_repetition`, but W may start anywhere and W* have any norm. The column of W that
reads the repeated token has a component w̃ along W*'s column and a length r̃ across it; the other
columns together have w along W*'s others and r across them. Lengths across can only shrink.
"""

from __future__ import annotations

import sympy as sp

from dynamics import GradientFlow

from .cross_sample_laws import early_flow
from .cross_sample_loss import (
    FRESH,
    PARAMETERS,
    PROPER_PROBABILITY,
    REPEATED,
    UNIT_COLUMNS,
    alpha,
    cross_sample_loss,
    cross_sample_reduction,
    p,
    w_repeated,
)
from .expected_loss import T, d, r, score_gap, w
from .model import Parameter, SurrogateModel

NORMS = M_repeated, M_fresh = sp.symbols("M_rep M", positive=True)
r_repeated = sp.Symbol("r_rep", nonnegative=True)
w0_repeated, w0 = sp.symbols("w_rep0 w0", real=True)
r0_repeated, r0 = sp.symbols("r_rep0 r0", nonnegative=True)

_ACROSS = (r_repeated, r)


def relaxed_cross_sample() -> SurrogateModel:
    """One relevant token a sequence (B = 1), positional scores, any W and W*."""
    state = (w_repeated, r_repeated, w, r, score_gap)
    reduction = cross_sample_reduction(state, _ACROSS, NORMS)
    return SurrogateModel(
        name="relaxed-cross-sample",
        title="cross-sample repetition from a net's own weights",
        source="this project; the task is [Z] Zucchet et al. 2025, arXiv 2505.17863, App. A.4",
        assumptions=(
            "gradient flow on the training loss expected over its data",
            "a = 0 at the start: uniform attention",
        ),
        parameters=(
            *PARAMETERS,
            *(
                Parameter(norm, f"norm of W*'s {part}", default, 0, positive=True)
                for norm, part, default in zip(
                    NORMS,
                    ("column on the repeated token", "other columns"),
                    UNIT_COLUMNS,
                    strict=True,
                )
            ),
            Parameter(w0_repeated, "initial weight along W*, repeated token", sp.S.Zero),
            Parameter(r0_repeated, "initial weight across W*, repeated token", sp.S.Zero, 0),
            Parameter(w0, "initial weight along W*, other columns", sp.S.Zero),
            Parameter(r0, "initial weight across W*, other columns", sp.S.Zero, 0),
        ),
        constraints=PROPER_PROBABILITY,
        reduction=reduction,
        flow=GradientFlow(
            cross_sample_loss(REPEATED, FRESH, _ACROSS, NORMS),
            state=state,
            parameters=(T, d, p, *NORMS, w0_repeated, r0_repeated, w0, r0),
            metric=reduction.metric,
            initial={w_repeated: w0_repeated, r_repeated: r0_repeated, w: w0, r: r0},
            observables={
                "alpha": alpha,
                "test_loss": cross_sample_loss(1 / d, 1 / d, _ACROSS, NORMS),
            },
            timescale=1 / early_flow().growth,
            clock=T * alpha,
        ),
        laws=(),
        plateau_of="test_loss",
    )
