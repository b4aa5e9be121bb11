"""Single-location regression where one token returns across sequences.

With probability p the relevant token is a fixed unit vector x̃, else x_T ~ N(0, I/d). The net
learns x̃'s own column of W* faster, attention with it, and pays for it on fresh tokens. The
plateau is that of the loss on fresh tokens (p = 0), the test loss.
"""

from __future__ import annotations

import sympy as sp

from dynamics import GradientFlow

from .cross_sample_laws import early_flow, laws
from .cross_sample_ledger import equations
from .cross_sample_loss import (
    FRESH,
    PARAMETERS,
    PROPER_PROBABILITY,
    REPEATED,
    alpha,
    cross_sample_loss,
    cross_sample_reduction,
    p,
    w_repeated,
)
from .expected_loss import T, d, score_gap, w
from .model import SurrogateModel

_ON_TARGET = (sp.S.Zero, sp.S.Zero)


def cross_sample_repetition() -> SurrogateModel:
    """One relevant token a sequence (B = 1), columns of W* of norm 1, positional scores."""
    reduction = cross_sample_reduction((w_repeated, w, score_gap), _ON_TARGET)
    return SurrogateModel(
        name="cross-sample-repetition",
        title="single-location regression with one token repeated across sequences",
        source="[Z] Zucchet et al. 2025, arXiv 2505.17863, App. A.4, Eq. 17–21",
        assumptions=(
            "gradient flow on the training loss expected over its data",
            "a = 0 at the start: uniform attention",
            "W = 0 at the start, and columns of W* of norm 1",
        ),
        parameters=PARAMETERS,
        constraints=PROPER_PROBABILITY,
        reduction=reduction,
        flow=GradientFlow(
            cross_sample_loss(REPEATED, FRESH, _ON_TARGET),
            state=(w_repeated, w, score_gap),
            parameters=(T, d, p),
            metric=reduction.metric,
            observables={
                "alpha": alpha,
                "test_loss": cross_sample_loss(1 / d, 1 / d, _ON_TARGET),
            },
            timescale=1 / early_flow().growth,
            clock=T * alpha,
        ),
        laws=laws(),
        plateau_of="test_loss",
        ledger=equations,
    )
