"""The exact expected loss of one attention layer where one token returns across sequences.

[Z, App. A.4] As in `expected_loss`, with one relevant token a sequence, which with probability p is
a fixed unit vector x̃ and else ~ N(0, I/d). The column of W that reads x̃ and the d − 1 others are
learned at different rates: each of the two parts has a component along its part of W*, and a length
across it.
"""

from __future__ import annotations

import sympy as sp

from dynamics import Reduction

from .expected_loss import DIMENSION, SEQUENCE_LENGTH, T, d, other, relevant, score_gap, w
from .model import Parameter

p = sp.Symbol("p", nonnegative=True)
w_repeated = sp.Symbol("w_rep", real=True)
alpha = 1 / (1 + (T - 1) * sp.exp(-score_gap))

PARAMETERS = (
    SEQUENCE_LENGTH,
    Parameter(d, DIMENSION.meaning, minimum=2, integer=True),
    Parameter(p, "probability of the repeated token", minimum=0),
)
PROPER_PROBABILITY = ((sp.Lt(p, 1), "give p < 1, so that fresh tokens are seen at all"),)

# Second moments of the relevant token along x̃, and along each other direction; on fresh tokens
# alone both are 1/d.
REPEATED, FRESH = p + (1 - p) / d, (1 - p) / d

# Norms of the two parts of W* where all its columns have norm 1.
UNIT_COLUMNS = (sp.S.One, sp.sqrt(d - 1))

# Group coordinates of the full parameters: along W*, along one direction across it, along all
# further ones, first for the column of x̃ and then for the others together.
column, column_across, column_rest = sp.symbols("W_rep W_rep_perp W_rep_rest", real=True)
others, others_across, others_rest = sp.symbols("W_par W_perp W_rest", real=True)


def _fit(attention: sp.Expr, along: sp.Expr, across: sp.Expr, norm: sp.Expr) -> sp.Expr:
    """‖αW − W*‖² of one part, `across` the square of all that is orthogonal to W*."""
    return (attention * along - norm) ** 2 + attention**2 * across


def cross_sample_reduction(
    coordinates: tuple[sp.Symbol, ...],
    across: tuple[sp.Expr, sp.Expr],
    norms: tuple[sp.Expr, sp.Expr] = UNIT_COLUMNS,
) -> Reduction:
    """The layer's d² + T parameters on w̃, w, the lengths across W* and the gap.

    Arguments:

    - `coordinates`: the reduced coordinates.
    - `across`: the two lengths across W*, expressions in the coordinates.
    - `norms`: those of the two parts of W*.
    """
    total = sp.exp(relevant) + (T - 1) * sp.exp(other)
    signal, noise = sp.exp(relevant) / total, sp.exp(other) / total
    rests = d - 2, d**2 - d - 2
    repeated = column_across**2 + rests[0] * column_rest**2
    fresh = others_across**2 + rests[1] * others_rest**2
    fit = REPEATED * _fit(signal, column, repeated, norms[0])
    fit += FRESH * _fit(signal, others, fresh, norms[1])
    square = column**2 + others**2 + repeated + fresh
    return Reduction(
        ((T - 1) * noise**2 * square / d + fit) / 2,
        {
            column: w_repeated,
            column_across: across[0],
            column_rest: sp.S.Zero,
            others: w,
            others_across: across[1],
            others_rest: sp.S.Zero,
            relevant: (1 - 1 / T) * score_gap,
            other: -score_gap / T,
        },
        coordinates,
        {column_rest: rests[0], others_rest: rests[1], other: T - 1},
    )


def cross_sample_loss(
    repeated: sp.Expr,
    fresh: sp.Expr,
    across: tuple[sp.Expr, sp.Expr],
    norms: tuple[sp.Expr, sp.Expr] = UNIT_COLUMNS,
) -> sp.Expr:
    """The reduced loss in the form of [Z, Eq. 17], for given second moments."""
    square = w_repeated**2 + w**2 + across[0] ** 2 + across[1] ** 2
    fit = repeated * _fit(alpha, w_repeated, across[0] ** 2, norms[0])
    fit += fresh * _fit(alpha, w, across[1] ** 2, norms[1])
    return ((1 - alpha) ** 2 * square / (d * (T - 1)) + fit) / 2
