"""The equations of [Z] on single-location regression, beside what follows from its loss.

Numbers are those of the paper's first version. Printed forms were read from a machine extraction
of it; an equation marked restated has the paper's number and our wording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim

from .expected_loss import B, M, T, alpha, d, other, relevant, score_gap, w
from .ledger import Equation, Source, Step
from .model import SurrogateModel

_fraction = sp.Symbol("varepsilon", positive=True)  # how much of its initial value the loss loses
_time = sp.Symbol("t", positive=True)

# Where random points are drawn: B < T, and a loss ratio within (0, 1).
_DOMAIN = {T: (20, 60), d: (5, 20), B: (1, 4), _fraction: (0.1, 0.9)}
_LONG = {T: T / SMALL**2}
_LONG_AND_WIDE = {T: T / SMALL**2, d: d / SMALL**2}
_RATE = B / (sp.sqrt(d) * T)


def _claim(claimed: Any, derived: Any, **options: Any) -> Claim:
    """With columns of W* of norm 1, as the paper has them: M = √d."""
    return Claim(claimed, sp.sympify(derived).subs(M, sp.sqrt(d)), domain=_DOMAIN, **options)


def _printed(step: Step, label: str, text: str, claim: Claim, **options: Any) -> Equation:
    return Equation(step, text, claim, label, Source.PRINTED, **options)


def _restated(step: Step, label: str, text: str, claim: Claim) -> Equation:
    return Equation(step, text, claim, label, Source.RESTATED)


def expectation(expression: sp.Expr, entries: Sequence[Any], variance: sp.Expr) -> sp.Expr:
    """Of a polynomial, at most quadratic in each of the independent centred Gaussian entries."""
    terms = sp.Poly(sp.expand(expression), *entries).terms()
    even = [(powers, c) for powers, c in terms if all(p in (0, 2) for p in powers)]
    return sp.Add(*(c * variance ** (sum(powers) // 2) for powers, c in even))


def full_layer() -> Iterator[Equation]:
    """Z9–Z11, the layer with all its parameters: every T, d, B; proved at T = 4, d = B = 2."""
    length, dimension, copies = 4, 2, 2
    others = length - copies
    scores = sp.symbols(f"a1:{length + 1}", real=True)
    total = sum(map(sp.exp, scores))
    attention = [sp.exp(score) / total for score in scores]
    W, target = (sp.Matrix(2, 2, sp.symbols(f"{name}1:3(1:3)", real=True)) for name in ("W", "V"))
    tokens = [sp.Matrix(sp.symbols(f"x{t}_1:3", real=True)) for t in range(others + 1)]
    entries = [entry for token in tokens for entry in token]
    shares = sp.symbols(f"alpha1:{length + 1}", positive=True)
    *rest, repeated = tokens
    answer = sum((s * W * x for s, x in zip(shares, rest, strict=False)), sp.zeros(2, 1))
    error = answer + sum(shares[others:]) * W * repeated - target * repeated
    expected = expectation(error.dot(error) / 2, entries, sp.Rational(1, dimension))

    def norm(matrix: Any) -> Any:
        return sum(entry**2 for entry in matrix)

    signal = sum(shares[others:])
    noise = sum(share**2 for share in shares[:others])
    loss = (noise * norm(W) + norm(signal * W - target)) / (2 * dimension)
    at = "at T = 4, d = 2, B = 2"
    yield _restated(
        Step.LOSS, "Z9", f"the loss is the expectation over tokens, {at}", Claim(loss, expected)
    )
    softmax = dict(zip(shares, attention, strict=True))
    fit = (signal * W - target).applyfunc(lambda entry: entry.subs(softmax))
    values: Any = noise, signal, loss
    noise, signal, full = (value.subs(softmax) for value in values)
    yield _restated(
        Step.LOSS,
        "Z10",
        f"gradient in W, {at}",
        Claim((noise * W[0, 1] + signal * fit[0, 1]) / dimension, sp.diff(full, W[0, 1])),
    )
    slopes = [
        *(share * norm(W) / dimension for share in attention[:others]),
        *[sum(f * v for f, v in zip(fit.flat(), W.flat(), strict=True)) / dimension] * copies,
    ]
    mean = sum(share * slope for share, slope in zip(attention, slopes, strict=True))
    for position, kind in ((0, "another"), (length - 1, "a relevant")):
        yield _restated(
            Step.LOSS,
            "Z11",
            f"gradient in {kind} token's score, {at}",
            Claim(attention[position] * (slopes[position] - mean), sp.diff(full, scores[position])),
        )


def positional(model: SurrogateModel) -> Iterator[Equation]:
    """What the printed reduced flow says, against one free score per position."""
    yield from full_layer()
    rate_w, rate_gap = model.flow.rhs
    loss: Any = model.flow.loss.subs(M, sp.sqrt(d))
    shared: Any = -sp.diff(loss, score_gap)
    unit: Any = -sp.diff(loss, w)
    yield _printed(Step.FLOW, "Z14", "dw/dt", _claim(unit, rate_w))
    yield _printed(
        Step.FLOW,
        "Z14",
        "dΔa/dt, without the induced metric",
        _claim(shared, rate_gap, limit=_LONG),
        corrected=T / (B * (T - B)) * shared,
    )
    reach = sp.sqrt(d) * T / (2 * sp.sqrt(B))
    exact = reach * sp.asinh(_fraction * sp.sqrt(d) * T / sp.sqrt(B) ** 3)
    yield from _linear_theory(model, coupling=1 / B)
    yield _printed(
        Step.ESCAPE,
        "Z7",
        "repetition shortens the escape in proportion to B",
        _claim(_escape(sp.log(2 * _fraction / _RATE)), exact, limit=_LONG, scale=reach),
        corrected=reach * sp.log(2 * _fraction * sp.sqrt(d) * T / sp.sqrt(B) ** 3),
    )


def _escape(logarithm: sp.Expr) -> sp.Expr:
    return logarithm / (2 * _RATE)


def _linear_theory(model: SurrogateModel, coupling: sp.Expr) -> Iterator[Equation]:
    """Z5/Z15 and the escape time they give, for a gap that w drives `coupling` times as fast."""
    start = {w: 0, score_gap: 0}
    rates = [rate.subs(start) for rate in model.flow.rhs]
    slopes = model.flow.jacobian().subs(start)
    growth = sp.sqrt(coupling)
    entries = (
        ("dw/dt at the start", _RATE, rates[0]),
        ("dΔa/dt at the start", 0, rates[1]),
        ("∂(dw/dt)/∂w", 0, slopes[0, 0]),
        ("∂(dw/dt)/∂Δa", _RATE, slopes[0, 1]),
        ("∂(dΔa/dt)/∂w", coupling * _RATE, slopes[1, 0]),
        ("∂(dΔa/dt)/∂Δa", 0, slopes[1, 1]),
    )
    for text, claimed, derived in entries:
        claim = _claim(claimed, derived, limit=_LONG_AND_WIDE, scale=_RATE)
        if coupling == 1:
            yield _restated(Step.START, "Z5/Z15", text, claim)
        else:
            yield Equation(Step.START, text, claim)
    # The linear flow's solution from 0, and what it does to the loss.
    s = growth * _RATE * _time
    weight, gap = sp.sinh(s) / growth, sp.cosh(s) - 1
    yield Equation(
        Step.ESCAPE,
        f"w = {weight} solves the linear flow",
        _claim(sp.diff(weight, _time), _RATE * (1 + gap)),
    )
    yield Equation(
        Step.ESCAPE,
        f"Δa = {gap} solves the linear flow",
        _claim(sp.diff(gap, _time), coupling * _RATE * weight),
    )
    small = sp.Symbol("s", positive=True)
    lost = 1 - 2 * model.flow.loss.subs({w: sp.sinh(small) / growth, score_gap: sp.cosh(small) - 1})
    yield Equation(
        Step.ESCAPE,
        "the part of the loss that is lost, 1 − L/L(0), in s = growth rate × t",
        _claim(
            _RATE / growth * sp.sinh(2 * small),
            lost,
            limit={**_LONG_AND_WIDE, small: small * SMALL},
        ),
    )
    yield Equation(
        Step.ESCAPE,
        "T = arcsinh(√c ε/λ)/(2√c λ) loses the part ε",
        _claim(
            _fraction,
            (_RATE / growth * sp.sinh(2 * small)).subs(
                small, sp.asinh(growth * _fraction / _RATE) / 2
            ),
        ),
    )


def shared(model: SurrogateModel) -> Iterator[Equation]:
    """The equations of [Z, §2 and App. A], for one score that all relevant tokens share."""
    flow: Any = model.flow
    reduction = model.reduction
    loss = flow.loss.subs(M, sp.sqrt(d))
    total = B * sp.exp(relevant) + (T - B) * sp.exp(other)
    softmax = (sp.exp(relevant) / total).subs({relevant: score_gap, other: 0})
    yield _restated(
        Step.REDUCTION, "Z3", "attention on a relevant token at B = 1",
        _claim(1 / (1 + (T - 1) * sp.exp(-score_gap)), softmax.subs(B, 1)),
    )  # fmt: skip
    yield _restated(Step.REDUCTION, "Z13", "attention on a relevant token", _claim(alpha, softmax))
    yield _restated(
        Step.REDUCTION, "Z13", "∂α/∂Δa",
        _claim(alpha * (1 - B * alpha), sp.diff(softmax, score_gap)),
    )  # fmt: skip
    fit, noise = B * alpha * w - sp.sqrt(d), (1 - B * alpha) ** 2 * w**2
    yield _printed(
        Step.REDUCTION, "Z12", "the reduced loss",
        _claim((noise / (d * (T - B)) + fit**2 / d) / 2, reduction.reduced_loss),
    )  # fmt: skip

    one = alpha.subs(B, 1)
    rate_w, rate_gap = (rate.subs(B, 1) for rate in flow.rhs)
    yield _printed(
        Step.FLOW, "Z4", "dw/dt at B = 1, without the other tokens' noise",
        _claim(one * (sp.sqrt(d) - one * w) / d, rate_w, limit=_LONG_AND_WIDE),
    )  # fmt: skip
    yield _printed(
        Step.FLOW, "Z4", "dΔa/dt at B = 1, without the other tokens' noise",
        _claim(one * (1 - one) * w * (sp.sqrt(d) - one * w) / d, rate_gap, limit=_LONG_AND_WIDE),
    )  # fmt: skip
    drive, damping = B * alpha * (sp.sqrt(d) - B * alpha * w) / d, (1 - B * alpha) / (d * (T - B))
    yield _printed(
        Step.FLOW, "Z14", "dw/dt", _claim(drive - (1 - B * alpha) * damping * w, flow.rhs[0])
    )
    yield _printed(
        Step.FLOW, "Z14", "dΔa/dt",
        _claim((1 - B * alpha) * (w * drive + B * alpha * damping * w**2), flow.rhs[1]),
    )  # fmt: skip

    share = alpha * (1 - B * alpha)
    slope = -(1 - B * alpha) * (w * drive + B * alpha * damping * w**2)
    curvature = B**2 * w**2 / (d * (T - B)) + B**2 * w**2 / d
    hessian = flow.hessian()
    yield _restated(
        Step.HESSIAN, "Hessian", "∂²L/∂w²",
        _claim((1 - B * alpha) ** 2 / (d * (T - B)) + (B * alpha) ** 2 / d, hessian[0, 0]),
    )  # fmt: skip
    yield _restated(
        Step.HESSIAN, "Hessian", "∂²L/∂w∂Δa",
        _claim(
            share * B * ((2 * B * alpha * w - sp.sqrt(d)) / d - 2 * damping * w), hessian[0, 1]
        ),
    )  # fmt: skip
    yield _printed(
        Step.HESSIAN, "Hessian", "∂²L/∂Δa²",
        _claim((1 - 2 * B * alpha) / share * slope + share * curvature, hessian[1, 1]),
        corrected=(1 - 2 * B * alpha) * slope + share**2 * curvature,
    )  # fmt: skip

    yield from _linear_theory(model, coupling=sp.S.One)
    exact = _escape(sp.asinh(_fraction / _RATE))
    scale = _escape(sp.S.One)
    yield _printed(
        Step.ESCAPE, "Z6", "escape time at B = 1, main text",
        _claim(
            _escape(sp.log(_fraction / _RATE)).subs(B, 1), exact.subs(B, 1),
            limit=_LONG, scale=scale.subs(B, 1),
        ),
        corrected=_escape(sp.log(2 * _fraction / _RATE)).subs(B, 1),
    )  # fmt: skip
    yield _printed(
        Step.ESCAPE, "A.2", "escape time, appendix",
        _claim(_escape(sp.log(2 * _fraction / _RATE)), exact, limit=_LONG, scale=scale),
    )  # fmt: skip
    yield _printed(
        Step.ESCAPE, "A.2", "escape time with the arcsine for its hyperbolic namesake",
        _claim(_escape(sp.asin(_fraction / _RATE)), exact, limit=_LONG, scale=scale),
    )  # fmt: skip
    x = sp.Symbol("x", positive=True)
    yield _printed(
        Step.ESCAPE, "A.2", "arcsinh x ≈ ½ ln x at large x",
        Claim(sp.log(x) / 2, sp.asinh(x), limit={x: x / SMALL}, scale=1),
        corrected=sp.log(2 * x),
    )  # fmt: skip
    yield _printed(
        Step.ESCAPE, "Z7", "repetition shortens the escape in proportion to B",
        _claim(_escape(sp.log(2 * _fraction / _RATE)), exact, limit=_LONG, scale=scale),
    )  # fmt: skip

    steady = sp.solve(sp.diff(loss, w), w)[0]
    quasi = (B * alpha / sp.sqrt(d)) / ((1 - B * alpha) ** 2 / (d * (T - B)) + (B * alpha) ** 2 / d)
    yield _printed(
        Step.LATE, "w∞", "the weight that the attention makes best", _claim(quasi, steady)
    )
    yield _restated(
        Step.LATE, "Z16", "dΔa/dt along w∞",
        _claim(
            (1 - B * alpha) ** 2 * quasi**2 / (d * (T - B)),
            flow.rhs[1].subs(M, sp.sqrt(d)).subs(w, steady),
        ),
    )  # fmt: skip
    formed = {score_gap: score_gap - sp.log(SMALL)}
    for text, claimed, entry in (
        ("∂²L/∂w² once attention has formed", 1 / d, hessian[0, 0]),
        ("∂²L/∂w∂Δa once attention has formed", 0, hessian[0, 1]),
        ("∂²L/∂Δa² once attention has formed", 0, hessian[1, 1]),
    ):
        there = entry.subs(M, sp.sqrt(d)).subs(w, steady)
        yield _restated(
            Step.LATE, "late Hessian", text, _claim(claimed, there, limit=formed, scale=1 / d)
        )
