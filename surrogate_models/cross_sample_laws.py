"""When fresh tokens are learned, where one token returns across sequences: the closed forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim

from .blow_up import BlowUp, late_rate, relaxation, relaxation_equation, relaxed, total
from .cross_sample_loss import FRESH, REPEATED, alpha, p, w_repeated
from .expected_loss import T, d, score_gap, w
from .ledger import Equation, Step
from .model import RHO, Law, SurrogateModel, Validity, about

_HALF, _MOST = sp.Rational(1, 2), sp.Rational(9, 10)
_DOMAIN = {T: (20, 60), d: (5, 20), p: (0.1, 0.9), RHO: (0.01, 0.99)}
_LIMITS = sp.And(T <= 2**18, d <= 2**14, about(RHO, sp.Rational(1, 5)))
_MEASURED = "loss ratio 0.2, T ≤ 262144, d ≤ 16384"


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
        domain=_DOMAIN,
    )
    yield from early.integrals()
    yield late_rate(model.flow, w, score_gap, FRESH * (sp.sqrt(d - 1) - w))
    yield relaxation_equation(FRESH)
    yield total(law.time, early.quadrature(), early.delay(), relaxed(FRESH))


# The weight w̃ relative to w while both grow along the first direction.
_SLOPE = REPEATED / (FRESH * sp.sqrt(d - 1))


def _arc(slope: sp.Expr) -> sp.Expr:
    """Area between a circle's arc and its axis, from the ray w̃ = slope w on, over R²."""
    return (sp.atan(slope) - slope / (1 + slope**2)) / 2


def _detour() -> sp.Expr:
    """How much longer w takes since w̃ stays at 1/α meanwhile, in units of t."""
    radius = sp.LambertW(T**2)  # R², from w̃ = T e^{−g}, g = w̃²/2
    return _arc(_SLOPE) * radius / (FRESH * sp.sqrt(d - 1))


def _derive_two_phases(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    early, norm = early_flow(), sp.sqrt(d - 1)

    def equation(text: str, claimed: Any, derived: Any, **options: Any) -> Equation:
        return Equation(Step.LAW, text, Claim(claimed, derived, domain=_DOMAIN, **options))

    noise = (1 - alpha) ** 2 / (d * (T - 1))
    silent = {
        w_repeated: REPEATED * alpha * (1 - alpha * w_repeated),
        w: FRESH * alpha * (norm - alpha * w),
    }
    drive = sum(weight * rate for weight, rate in silent.items())
    rates = {weight: rate - noise * weight for weight, rate in silent.items()}
    stirred = alpha * noise / (1 - alpha) * sum(weight**2 for weight in silent)
    rates[score_gap] = T / (T - 1) * (1 - alpha) * (drive + stirred)
    for state, rate in zip(model.flow.state, model.flow.rhs, strict=True):
        yield equation(f"rate of {state}, the noise of the other tokens last", rates[state], rate)
    silent[score_gap] = T / (T - 1) * (1 - alpha) * drive
    orbit = (1 - 1 / T) * score_gap + (sp.exp(score_gap) - 1) / T - (w_repeated**2 + w**2) / 2
    change = sum(sp.diff(orbit, z) * rate for z, rate in silent.items())
    yield equation("(1 − 1/T)Δa + (e^Δa − 1)/T − (w̃² + w²)/2 is conserved without noise", 0, change)
    yield equation(
        "dt/dw along it: attention's share, and the late relaxation's",
        (1 / alpha + w / (norm - alpha * w)) / (FRESH * norm),
        1 / silent[w],
    )
    yield equation(
        "dw̃/dw while both αw̃ and αw are small",
        _SLOPE,
        silent[w_repeated] / silent[w],
        limit={T: T / SMALL},
    )
    # Then αw̃ = 1, and on the orbit w̃² + w² = R²: 1/α is the height of a circle's arc.
    slope, radius = sp.symbols("kappa R", positive=True)
    foot = radius / sp.sqrt(1 + slope**2)
    yield equation(
        "the arc's area from the ray w̃ = κw on, as κ grows",
        -sp.sqrt(radius**2 - foot**2) * sp.diff(foot, slope),
        sp.diff(_arc(slope) * radius**2, slope),
    )
    yield equation("which is nothing at κ = 0", 0, _arc(sp.S.Zero))
    yield from early.integrals()
    yield relaxation_equation(FRESH)
    terms = early.quadrature(), early.delay(), _detour(), relaxed(FRESH)
    yield equation("the law is their sum", law.time, sp.Add(*terms))


def laws() -> tuple[Law, ...]:
    """The two-phase law, and the plateau law that it extends to large p."""
    early = early_flow()
    return (
        Law(
            name="two-phase law",
            time=early.leading + early.noise + _detour() + relaxation(FRESH),
            derivation=(
                "attention takes off along the direction that grows first, and stalls where "
                "the repeated token is learned, αw̃ = 1; from there w̃ = 1/α, and the "
                "noise-free orbit is a circle of radius √W(T²), to leading logarithm: the "
                "area under its arc is what fresh tokens wait for attention; then they are "
                "learned at rate (1 − p)/d"
            ),
            validity=(
                Validity(sp.And(p <= _HALF, T >= 1024, d >= 16), (-0.0082, 0.0066)),
                Validity(sp.And(p <= _MOST, T >= 1024, d >= 16), (-0.027, 0.0172)),
                Validity(sp.And(p <= _MOST, T >= 256, d >= 16), (-0.051, 0.0172)),
            ),
            limits=_LIMITS,
            measured=_MEASURED,
            proof=_derive_two_phases,
        ),
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
            limits=_LIMITS,
            measured=_MEASURED,
            proof=_derive,
        ),
    )
