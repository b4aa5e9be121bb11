"""Single-location regression where one token returns across sequences.

With probability p the relevant token is a fixed unit vector x̃, else x_T ~ N(0, I/d). The net
learns x̃'s own column of W* faster, attention with it, and pays for it on fresh tokens. The
plateau is that of the loss on fresh tokens (p = 0), the test loss.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from dynamics import SMALL, GradientFlow, Reduction

from . import cross_sample_ledger
from .blow_up import BlowUp, late_rate, relaxation, relaxation_equation, relaxed, total
from .expected_loss import DIMENSION, SEQUENCE_LENGTH, T, d, score_gap, w
from .ledger import Equation
from .model import RHO, Law, Parameter, SurrogateModel, Validity, about

p = sp.Symbol("p", nonnegative=True)
w_repeated = sp.Symbol("w_rep", real=True)
alpha = 1 / (1 + (T - 1) * sp.exp(-score_gap))

PARAMETERS = (
    SEQUENCE_LENGTH,
    Parameter(d, DIMENSION.meaning, minimum=2, integer=True),
    Parameter(p, "probability of the repeated token", minimum=0),
)
PROPER_PROBABILITY = ((sp.Lt(p, 1), "give p < 1, so that fresh tokens are seen at all"),)

# Second moments of the relevant token along x̃, and along each other direction.
REPEATED, FRESH = p + (1 - p) / d, (1 - p) / d

# Group coordinates of the full parameters: the component of W's column on x̃ along W*'s, that of
# each of the d − 1 other columns, all that is orthogonal; the relevant score, the others.
column, each_other, rest, relevant, other = sp.symbols("W_rep W_col W_rest a_rel a_oth", real=True)


def _full_loss() -> sp.Expr:
    total = sp.exp(relevant) + (T - 1) * sp.exp(other)
    signal, noise = sp.exp(relevant) / total, sp.exp(other) / total
    orthogonal = (d**2 - d) * rest**2
    square = column**2 + (d - 1) * each_other**2 + orthogonal
    # How the orthogonal part is spread over columns changes its coefficient, not that it is even
    # in it and therefore stays at 0.
    fit = REPEATED * (signal * column - 1) ** 2 + FRESH * (
        (d - 1) * (signal * each_other - 1) ** 2 + signal**2 * orthogonal
    )
    return ((T - 1) * noise**2 * square / d + fit) / 2


def _loss(repeated: sp.Expr, fresh: sp.Expr) -> sp.Expr:
    """The reduced loss [Z, Eq. 17] for given second moments."""
    noise = (1 - alpha) ** 2 * (w**2 + w_repeated**2) / (d * (T - 1))
    fit = repeated * (alpha * w_repeated - 1) ** 2 + fresh * (alpha * w - sp.sqrt(d - 1)) ** 2
    return (noise + fit) / 2


def early_flow() -> BlowUp:
    """Along the direction of (w̃, w) that grows first, u from 0 at the rate λ."""
    u = sp.Symbol("u", real=True)
    rate = sp.sqrt(REPEATED**2 + FRESH**2 * (d - 1)) / T
    return BlowUp(u, score_gap, growth=rate, damping=1 / (d * T))


def _derive(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    early = early_flow()
    direction = {
        w_repeated: REPEATED / (T * early.growth) * early.weight,
        w: FRESH * sp.sqrt(d - 1) / (T * early.growth) * early.weight,
        score_gap: score_gap,
    }
    yield from early.early_rates(
        model.flow,
        {T: T / SMALL},
        direction,
        domain={T: (20, 60), d: (5, 20), p: (0.1, 0.9)},
    )
    yield from early.integrals()
    yield late_rate(model.flow, w, score_gap, FRESH * (sp.sqrt(d - 1) - w))
    yield relaxation_equation(FRESH)
    yield total(law.time, early.quadrature(), early.delay(), relaxed(FRESH))


def cross_sample_repetition() -> SurrogateModel:
    """One relevant token a sequence (B = 1), columns of W* of norm 1, positional scores."""
    reduction = Reduction(
        _full_loss(),
        {
            column: w_repeated,
            each_other: w / sp.sqrt(d - 1),
            rest: sp.S.Zero,
            relevant: (1 - 1 / T) * score_gap,
            other: -score_gap / T,
        },
        (w_repeated, w, score_gap),
        {each_other: d - 1, rest: d**2 - d, other: T - 1},
    )
    early = early_flow()
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
            _loss(REPEATED, FRESH),
            state=(w_repeated, w, score_gap),
            parameters=(T, d, p),
            metric=reduction.metric,
            observables={"alpha": alpha, "test_loss": _loss(1 / d, 1 / d)},
            timescale=1 / early.growth,
            clock=T * alpha,
        ),
        laws=(
            Law(
                name="plateau law",
                time=early.leading + early.noise + relaxation(FRESH),
                derivation=(
                    "along the direction that grows first, at rate λ, the invariant of the case "
                    "p = 0 holds; then fresh tokens are learned at rate (1 − p)/d"
                ),
                validity=(
                    Validity(sp.And(p <= sp.Rational(1, 10), T >= 1024, d >= 16), (-0.04, 0.0)),
                    Validity(sp.And(p <= sp.Rational(1, 2), T >= 256, d >= 16), (-0.17, 0.0)),
                ),
                limits=sp.And(T <= 2**18, d <= 2**14, about(RHO, sp.Rational(1, 5))),
                measured="loss ratio 0.2, T ≤ 262144, d ≤ 16384",
                proof=_derive,
            ),
        ),
        plateau_of="test_loss",
        ledger=cross_sample_ledger.equations,
    )
