"""The exact expected loss of one attention layer on single-location regression.

[Z, §2 and App. A] Tokens x_t ~ N(0, I_d/d), t = 1…T, the last B of them equal; target
y* = W* x_T with W* of Frobenius norm M; the layer answers y = W Σ_t α_t x_t, α = softmax(a).
Over fresh data the loss ½E‖y − y*‖² depends on W through its component along W* and its norm,
and on a through the softmax:

    L(W, a) = ½ [ Σ_{t≤T−B} α_t² ‖W‖² + ‖(Σ_{t>T−B} α_t) W − W*‖² ] / d

Every softmax score is one of B relevant or T − B other ones. The layer treats each kind alike,
so two group coordinates hold them all.
"""

from __future__ import annotations

import sympy as sp

from dynamics import Reduction

from .model import RHO, Parameter, about

T, d, B, M = sp.symbols("T d B M", positive=True)
w, score_gap = sp.symbols("w Delta_a", real=True)
r = sp.Symbol("r", nonnegative=True)

# Group coordinates of the full parameters: W along W*, along one direction orthogonal to it,
# along all further directions; the relevant scores, the other scores.
along, across, further, relevant, other = sp.symbols("W_par W_perp W_rest a_rel a_oth", real=True)

SEQUENCE_LENGTH = Parameter(T, "sequence length", minimum=2, integer=True)
DIMENSION = Parameter(d, "token dimension", minimum=1, integer=True)
REPETITION = Parameter(
    B, "copies of the relevant token in a sequence", sp.S.One, minimum=1, integer=True
)
TARGET_NORM = Parameter(M, "Frobenius norm of the target map", sp.sqrt(d), 0, positive=True)
BELOW_LENGTH = (sp.Lt(B, T), "give B < T, so that one token at least is not relevant")

# What the layer's laws were measured on, as a condition and in words.
LIMITS = sp.And(T <= 2**18, d <= 2**14, B <= 64, about(M**2, d), about(RHO, sp.Rational(1, 5)))
MEASURED = "loss ratio 0.2, M = √d, T ≤ 262144, d ≤ 16384, B ≤ 64"

# Attention per relevant token, as a function of the score gap.
alpha = 1 / ((T - B) * sp.exp(-score_gap) + B)


def _layer_loss(dimensions_left: sp.Expr, other_score: sp.Expr = other) -> sp.Expr:
    total = B * sp.exp(relevant) + (T - B) * sp.exp(other_score)
    signal, noise = sp.exp(relevant) / total, sp.exp(other_score) / total
    square = along**2 + across**2 + dimensions_left * further**2
    fit = B**2 * signal**2 * square - 2 * B * signal * M * along + M**2
    return ((T - B) * noise**2 * square + fit) / (2 * d)


def layer_reduction(
    coordinates: tuple[sp.Symbol, ...], weight_across: sp.Expr, *, shared_score: bool = False
) -> Reduction:
    """The layer's d² + T parameters on the embedding W = w Ŵ* + (weight across) Û, gap Δa.

    Arguments:

    - `coordinates`: the reduced coordinates, w and the score gap among them.
    - `weight_across`: the length of W orthogonal to W*, an expression in the coordinates.
    - `shared_score`: one score serves all relevant tokens and the others have none, as when a
      semantic feature marks them. Otherwise every position has its own score: the gap is then
      split so that the scores sum to 0, orthogonal to the softmax shift.
    """
    rest = d**2 - 2
    weights = {along: w, across: weight_across, further: sp.S.Zero}
    if shared_score:
        # The other scores are no parameters then: they stay 0, at no weight in the metric.
        scores = {relevant: score_gap}
        return Reduction(
            _layer_loss(rest, other_score=sp.S.Zero),
            {**weights, **scores},
            coordinates,
            {further: rest},
        )
    scores = {relevant: (1 - B / T) * score_gap, other: -B / T * score_gap}
    counts = {further: rest, relevant: B, other: T - B}
    return Reduction(_layer_loss(rest), {**weights, **scores}, coordinates, counts)


def layer_loss(weight_across: sp.Expr) -> sp.Expr:
    """The reduced loss in the form of [Z, Eq. 12], in w, the gap, and the weight across W*."""
    square = w**2 + weight_across**2
    fit = (B * alpha * w - M) ** 2 + (B * alpha) ** 2 * weight_across**2
    return ((1 - B * alpha) ** 2 * square / (d * (T - B)) + fit / d) / 2
