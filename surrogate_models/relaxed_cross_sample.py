"""Cross-sample repetition from a net's own initial weights.

As `cross_sample_repetition`, but W may start anywhere and W* have any norm. The column of W that
reads the repeated token has a component w̃ along W*'s column and a length r̃ across it; the other
columns together have w along W*'s others and r across them. Lengths across can only shrink.
"""

from __future__ import annotations

import sympy as sp

from dynamics import GradientFlow, Reduction

from .cross_sample_repetition import (
    FRESH,
    PARAMETERS,
    PROPER_PROBABILITY,
    REPEATED,
    alpha,
    early_flow,
    p,
    w_repeated,
)
from .expected_loss import T, d, r, score_gap, w
from .model import Parameter, SurrogateModel

M_repeated, M_fresh = sp.symbols("M_rep M", positive=True)
r_repeated = sp.Symbol("r_rep", nonnegative=True)
starts = w0_repeated, w0 = sp.symbols("w_rep0 w0", real=True)
across = r0_repeated, r0 = sp.symbols("r_rep0 r0", nonnegative=True)

# Group coordinates of the full parameters: along W*, along one direction across it, along all
# further ones, first for the repeated token's column and then for the others together.
column, column_across, column_rest = sp.symbols("W_rep W_rep_perp W_rep_rest", real=True)
others, others_across, others_rest = sp.symbols("W_par W_perp W_rest", real=True)
relevant, other = sp.symbols("a_rel a_oth", real=True)


def _fit(attention: sp.Expr, along: sp.Expr, sideways: sp.Expr, norm: sp.Expr) -> sp.Expr:
    """‖αW − W*‖² of one group of columns, `sideways` the square of all that is across W*."""
    return (attention * along - norm) ** 2 + attention**2 * sideways


def _full_loss() -> sp.Expr:
    total = sp.exp(relevant) + (T - 1) * sp.exp(other)
    signal, noise = sp.exp(relevant) / total, sp.exp(other) / total
    repeated = column_across**2 + (d - 2) * column_rest**2
    fresh = others_across**2 + (d**2 - d - 2) * others_rest**2
    square = column**2 + others**2 + repeated + fresh
    fit = REPEATED * _fit(signal, column, repeated, M_repeated)
    fit += FRESH * _fit(signal, others, fresh, M_fresh)
    return ((T - 1) * noise**2 * square / d + fit) / 2


def _loss(repeated: sp.Expr, fresh: sp.Expr) -> sp.Expr:
    square = w_repeated**2 + r_repeated**2 + w**2 + r**2
    fit = repeated * _fit(alpha, w_repeated, r_repeated**2, M_repeated)
    fit += fresh * _fit(alpha, w, r**2, M_fresh)
    return ((1 - alpha) ** 2 * square / (d * (T - 1)) + fit) / 2


def relaxed_cross_sample() -> SurrogateModel:
    """One relevant token a sequence (B = 1), positional scores, any W and W*."""
    reduction = Reduction(
        _full_loss(),
        {
            column: w_repeated,
            column_across: r_repeated,
            column_rest: sp.S.Zero,
            others: w,
            others_across: r,
            others_rest: sp.S.Zero,
            relevant: (1 - 1 / T) * score_gap,
            other: -score_gap / T,
        },
        (w_repeated, r_repeated, w, r, score_gap),
        {column_rest: d - 2, others_rest: d**2 - d - 2, other: T - 1},
    )
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
            Parameter(M_repeated, "norm of W*'s column on the repeated token", sp.S.One, 0, True),
            Parameter(M_fresh, "norm of W*'s other columns", sp.sqrt(d - 1), 0, True),
            Parameter(w0_repeated, "initial weight along W*, repeated token", sp.S.Zero),
            Parameter(r0_repeated, "initial weight across W*, repeated token", sp.S.Zero, 0),
            Parameter(w0, "initial weight along W*, other columns", sp.S.Zero),
            Parameter(r0, "initial weight across W*, other columns", sp.S.Zero, 0),
        ),
        constraints=PROPER_PROBABILITY,
        reduction=reduction,
        flow=GradientFlow(
            _loss(REPEATED, FRESH),
            state=(w_repeated, r_repeated, w, r, score_gap),
            parameters=(T, d, p, M_repeated, M_fresh, w0_repeated, r0_repeated, w0, r0),
            metric=reduction.metric,
            initial={w_repeated: w0_repeated, r_repeated: r0_repeated, w: w0, r: r0},
            observables={"alpha": alpha, "test_loss": _loss(1 / d, 1 / d)},
            timescale=1 / early_flow().growth,
            clock=T * alpha,
        ),
        laws=(),
        plateau_of="test_loss",
    )
