"""k sparse attention patterns in series, which must all be right at once.

The simplest account of circuits that need several attention hops, such as an induction head
(k = 2): each hop attends to one of N places through a score of its own, and the answer passes
through all of them. There is no noise from the other places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy as sp

from dynamics import SMALL, GradientFlow, Reduction

from .blow_up import BlowUp, late_rate, relaxation, relaxation_equation, relaxed, total
from .expected_loss import DIMENSION, d, w
from .ledger import Equation
from .model import RHO, Law, Parameter, SurrogateModel, Validity, about

N, k = sp.symbols("N k", positive=True)
a = sp.Symbol("a", real=True)
weight, score = sp.symbols("W a_hop", real=True)


def _loss(answer: sp.Expr, hop_score: sp.Expr) -> sp.Expr:
    attention = 1 / (1 + (N - 1) * sp.exp(-hop_score))
    return (sp.sqrt(d) - answer * attention**k) ** 2 / (2 * d)


EARLY = BlowUp(w, a, growth=1 / (N**k * sp.sqrt(d)), hops=k)


def _derive(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    for hops in (1, 2, 3):
        early = replace(EARLY, growth=EARLY.growth.subs(k, hops), hops=sp.Integer(hops))
        flow = model.flow.substitute({k: hops})
        yield from early.early_rates(flow, {N: N / SMALL}, case=f" at k = {hops}")
    yield from EARLY.integrals()
    yield late_rate(model.flow, w, a, (sp.sqrt(d) - w) / d)
    yield relaxation_equation(1 / d)
    yield total(law.time, EARLY.quadrature(), relaxed(1 / d))


def attention_chain() -> SurrogateModel:
    """k hops over N places each, from W = 0 and uniform attention."""
    reduction = Reduction(_loss(weight, score), {weight: w, score: a}, (w, a), {score: k})
    alpha = 1 / (1 + (N - 1) * sp.exp(-a))
    return SurrogateModel(
        name="attention-chain",
        title="k attention hops in series, one score each",
        source="this project; [Z] Zucchet et al. 2025, arXiv 2505.17863, §3.2 measures k = 2",
        assumptions=(
            "gradient flow on the loss",
            "all scores 0 at the start: the hops stay alike, and move as one at weight k",
            "w = 0 at the start",
            "places that are not attended to add no noise",
        ),
        parameters=(
            Parameter(N, "places each hop chooses from", minimum=2, integer=True),
            DIMENSION,
            Parameter(k, "attention hops in series", sp.S(2), minimum=1, integer=True),
        ),
        constraints=(),
        reduction=reduction,
        flow=GradientFlow(
            _loss(w, a),
            state=(w, a),
            parameters=(N, d, k),
            metric=reduction.metric,
            observables={"alpha": alpha},
            timescale=1 / EARLY.growth,
            clock=(N * alpha) ** k,
        ),
        laws=(
            Law(
                name="chain law",
                time=EARLY.leading + relaxation(1 / d),
                derivation=(
                    "a − w²/2 is conserved while α ≪ 1, so ẇ = exp(kw²/2)/(N^k √d) blows up at "
                    "the first term; the second is the relaxation of w at rate 1/d thereafter"
                ),
                validity=(
                    Validity(sp.And(N >= 256, d >= 16, k <= 4), (-0.012, 0.0)),
                    Validity(sp.And(N >= 32, d >= 16, k <= 4), (-0.057, 0.0)),
                ),
                limits=sp.And(N <= 2**14, d <= 2**14, k <= 4, about(RHO, sp.Rational(1, 5))),
                measured="loss ratio 0.2, N ≤ 16384, d ≤ 16384, k ≤ 4",
                proof=_derive,
            ),
        ),
    )
