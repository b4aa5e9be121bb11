"""The first stage of a tensor factorisation: when heads that start alike find one pattern.

[Y, §3] From V = 0 and uniform attention all heads take the strongest pattern together, so that one
value V and one score gap g stand for all H of them. The two geometries differ in kind: emergence
takes a time in proportion to T in the logit flow, to √T in the replicator flow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim, GradientFlow, Reduction

from .blow_up import BlowUp, late_rate, relaxation, relaxation_equation, relaxed, total
from .ledger import Equation, Step
from .model import RHO, Law, Parameter, SurrogateModel, Validity, about
from .polylogarithm import expansion
from .tensor_factorisation import Geometry, T

m, n, H = sp.symbols("m n H", positive=True)
V, V0, g = sp.symbols("V V0 g", real=True)
value, relevant, other = sp.symbols("V_head a_rel a_oth", real=True)
on_block, outside = sp.symbols("x_rel x_oth", positive=True)

# Attention per position of the block, and outside it.
alpha = 1 / (n + (T - n) * sp.exp(-g))
elsewhere = alpha * sp.exp(-g)

_LIMITS = sp.And(T <= 2**16, m <= 128, H <= 8, n <= 16, about(RHO, sp.Rational(1, 4)))
_MEASURED = "loss ratio 0.25 (half the pattern learned), T ≤ 65536, m ≤ 128, H ≤ 8, n ≤ 16"


def _loss(head_value: sp.Expr, on: sp.Expr, off: sp.Expr) -> sp.Expr:
    return (n * (m / n - H * head_value * on) ** 2 + (T - n) * (H * head_value * off) ** 2) / 2


def _reduction(geometry: Geometry) -> Reduction:
    if geometry == "logit":
        total = n * sp.exp(relevant) + (T - n) * sp.exp(other)
        return Reduction(
            _loss(value, sp.exp(relevant) / total, sp.exp(other) / total),
            {value: V, relevant: (1 - n / T) * g, other: -n / T * g},
            (V, g),
            {value: H, relevant: H * n, other: H * (T - n)},
        )
    square = n * on_block**2 + (T - n) * outside**2
    norm = sp.sqrt(n * sp.exp(g) + T - n)
    return Reduction(
        _loss(value, on_block**2 / square, outside**2 / square),
        {value: V, on_block: sp.exp(g / 2) / norm, outside: 1 / norm},
        (V, g),
        {value: H, on_block: 4 * H * n, outside: 4 * H * (T - n)},
    )


def tensor_factorisation(geometry: Geometry = "logit") -> SurrogateModel:
    """The first stage, in one of the two geometries of `tensor_factorisation`."""
    logit = geometry == "logit"
    reduction = _reduction(geometry)
    gap_metric = n * (T - n) / T if logit else n * alpha * (T - n) * elsewhere
    observables = {"alpha": alpha, "residual": 1 - n * H * V * alpha / m}
    return SurrogateModel(
        name="tensor-factorisation" + ("" if logit else "-replicator"),
        title=f"heads that find their first pattern, {geometry} flow",
        source="[Y] Yüksel et al. 2026, arXiv 2602.19143, §3; laws by this project",
        assumptions=(
            "gradient flow in the values",
            "gradient flow in the scores" if logit else "natural gradient flow on the simplex",
            "all heads start alike, at uniform attention: they stay alike",
            "the other patterns are too weak to be noticed yet",
        ),
        parameters=(
            Parameter(T, "positions", minimum=2, integer=True),
            Parameter(m, "strength of the pattern", minimum=0, positive=True),
            Parameter(H, "heads", sp.S.One, minimum=1, integer=True),
            Parameter(n, "positions in the pattern's block", sp.S.One, minimum=1, integer=True),
            Parameter(V0, "initial value of each head", sp.S.Zero),
        ),
        constraints=((sp.Lt(n, T), "give n < T, so that there are positions to ignore"),),
        reduction=reduction,
        flow=GradientFlow(
            _loss(V, alpha, elsewhere),
            state=(V, g),
            parameters=(T, m, H, n, V0),
            metric={V: H, g: H * gap_metric},
            initial={V: V0},
            observables=observables,
            timescale=sp.sqrt(n) / m * (T if logit else sp.sqrt(T)),
            clock=T * alpha if logit else sp.S.One,
        ),
        laws=_logit_laws() if logit else _replicator_laws(),
        beside=("tensor-factorisation-replicator",) if logit else (),
    )


_SOLVED = relaxation(H / n)
_HALF = sp.Rational(1, 2)


def _valid(length: int, strength: int, error: tuple[float, float]) -> Validity:
    """From V = 0, where T is this many blocks long, and the pattern so much stronger than √n H."""
    at_rest: Any = sp.Eq(V0, 0)
    condition = sp.And(T >= length * n, m >= strength * H * sp.sqrt(n), at_rest)
    return Validity(condition, error)


def _logit_laws() -> tuple[Law, ...]:
    early = BlowUp(V, g, growth=m / T, coupling=1 / n, damping=H / T)
    started = BlowUp(V, g, growth=m / T, coupling=1 / n, damping=H / T, start=V0)

    def terms(flow: BlowUp) -> sp.Expr:
        if flow.start != 0:
            return flow.leading + _SOLVED
        return flow.leading + flow.noise + flow.saturation(n / T, sp.Rational(5, 2)) + _SOLVED

    def derive(model: SurrogateModel, law: Law) -> Iterator[Equation]:
        flow = started if law.time.has(V0) else early
        yield from flow.early_rates(model.flow, {T: T / SMALL})
        yield from flow.integrals()
        yield late_rate(model.flow, V, g, m / n - H / n * V)
        yield relaxation_equation(H / n)
        if flow is started:
            yield total(law.time, flow.quadrature(), relaxed(H / n))
        else:
            next_order = flow.saturation(n / T, sp.Rational(5, 2))
            yield total(law.time, flow.quadrature(), flow.delay(), next_order, relaxed(H / n))

    return (
        Law(
            name="first-stage law",
            time=terms(early),
            derivation=(
                "Q = g − V²/(2n) is conserved while nα ≪ 1, so V̇ = (m/T) exp(V²/(2n)) blows up at "
                "the first term; noise of the other positions, saturation in n/T and the "
                "relaxation of V at rate H/n follow"
            ),
            validity=(
                _valid(256, 8, (-0.0024, 0.0001)),
                _valid(64, 2, (-0.03, 0.0004)),
                _valid(32, 1, (-0.069, 0.0008)),
            ),
            limits=_LIMITS,
            measured=_MEASURED,
            proof=derive,
        ),
        Law(
            name="Mills-ratio law",
            time=terms(started),
            derivation="the same invariant, from V = V0 on: a Gaussian tail over its density",
            validity=(
                Validity(
                    sp.And(
                        T >= 400 * n, m >= 4 * H * sp.sqrt(n), V0 >= -sp.Rational(1, 2), V0 <= 1
                    ),
                    (-0.06, 0.0),
                ),
            ),
            limits=_LIMITS,
            measured=_MEASURED,
            proof=derive,
        ),
    )


def _replicator_laws() -> tuple[Law, ...]:
    # The quadrature is a Bose integral, of order ½ at fugacity 1 − n/T.
    unit = n / m
    orbit = unit * sp.sqrt(sp.pi / 2) * sp.polylog(_HALF, 1 - n / T)
    noise = (sp.pi**2 / 4 - 2) * H * n / m**2
    c = 2 * n / T
    root = sp.sqrt(c - V0**2)
    turn = unit * 2 / root * (sp.pi / 2 - sp.atan(V0 / root))
    beyond = unit * sp.sqrt(sp.pi / 2) * sp.zeta(_HALF)
    return (
        Law(
            name="first-stage law",
            time=orbit + noise + _SOLVED,
            derivation=(
                "V²/2 − ln(1 + (n/T)(e^g − 1)) is conserved without noise, at any attention; along "
                "it t = ∫dg/V(…) is a Bose integral, π√(nT/2)/m at leading order; the noise of the "
                "other positions and the relaxation of V at rate H/n follow"
            ),
            validity=(
                _valid(64, 8, (0.0, 0.0015)),
                _valid(8, 2, (-0.048, 0.0041)),
            ),
            limits=_LIMITS,
            measured=_MEASURED,
            proof=_derive_replicator,
        ),
        Law(
            name="started law",
            time=turn + beyond + _SOLVED,
            derivation=(
                "g̈ = (m²/(nT)) e^g while nα ≪ 1, a fall in an exponential potential from the speed "
                "mV0/n; below V0 = −√(2n/T) it never turns. The second term is the next of the "
                "Bose integral"
            ),
            validity=(
                Validity(
                    sp.And(T >= 256 * n, m >= 4 * H * sp.sqrt(n), V0**2 <= n / T), (-0.011, 0.0065)
                ),
                Validity(sp.And(T >= 64 * n, m >= H * sp.sqrt(n), V0**2 <= n / T), (-0.078, 0.039)),
            ),
            limits=_LIMITS,
            measured=_MEASURED,
            proof=_derive_started,
        ),
    )


def _derive_replicator(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    residual, left = m / n - H * V * alpha, 1 - n * alpha
    rates = (
        n * alpha * residual - H * V * left**2 / (T - n),
        V * residual + H * V**2 * left / (T - n),
    )
    for state, claimed, rate in zip((V, g), rates, model.flow.rhs, strict=True):
        yield _law(f"rate of {state}, the noise of the other positions last", Claim(claimed, rate))
    invariant = V**2 / 2 - sp.log(1 + n / T * (sp.exp(g) - 1))
    silent = {V: n * alpha * residual, g: V * residual}
    change = sum(sp.diff(invariant, z) * rate for z, rate in silent.items())
    yield _law("V²/2 − ln(1 + (n/T)(e^g − 1)) is conserved without noise", Claim(0, change))
    # In u = V²/2: dg = e^u du/(e^u − 1 + b), of which the late phase counts du.
    u, b, k = sp.symbols("u b k", positive=True)
    gap = sp.log(1 + (sp.exp(u) - 1) / b)
    bose = (1 - b) / (sp.exp(u) - (1 - b))
    yield _law("dg/du along it, less the late phase's 1", Claim(bose, sp.diff(gap, u) - 1))
    series = sp.integrate((1 - b) ** k * sp.exp(-k * u) / sp.sqrt(2 * u), (u, 0, sp.oo))
    yield _law(
        "term k of its Bose series ∫Σ(1 − b)^k e^(−ku)/√(2u) du",
        Claim(sp.sqrt(sp.pi / 2) * (1 - b) ** k / sp.sqrt(k), series),
    )
    yield _law(
        "leading term, where n/T is small",
        Claim(
            sp.pi * sp.sqrt(n * T / 2) / m,
            sp.integrate(1 / sp.sqrt(sp.exp(u) - 1), (u, 0, sp.oo)) * n / m / sp.sqrt(2 * n / T),
        ),
    )
    # First order of the noise: g″ = e^g − ε g′ with ε = H√n/(m√T). In v = √(e^g − 1) it takes
    # ε∫g′dg from the energy, and so ∫(that)/(2(e^g − 1))^{3/2} dg from the time.
    v = sp.Symbol("v", positive=True)
    lost = sp.integrate(sp.sqrt(2) * v * 2 * v / (1 + v**2), (v, 0, v))
    slowing = lost / (sp.sqrt(2) * v) ** 3 * 2 * v / (1 + v**2)
    antiderivative = sp.atan(v) ** 2 + 2 * sp.atan(v) / v
    yield _law(
        "the noise's delay per ε, along v = √(e^g − 1)",
        Claim(sp.diff(antiderivative, v), slowing),
    )
    ends = [sp.limit(antiderivative, v, end) for end in (0, sp.oo)]
    delay = (ends[1] - ends[0]) * (sp.sqrt(n * T) / m) * (H * sp.sqrt(n) / (m * sp.sqrt(T)))
    yield _law("and its integral", Claim((sp.pi**2 / 4 - 2) * H * n / m**2, delay))
    yield late_rate(model.flow, V, g, m / n - H / n * V)
    yield relaxation_equation(H / n)
    orbit = n / m * sp.sqrt(sp.pi / 2) * sp.polylog(_HALF, 1 - n / T)
    yield total(law.time, orbit, delay, relaxed(H / n))


def _derive_started(model: SurrogateModel, law: Law) -> Iterator[Equation]:
    early = {V: m / T * sp.exp(g), g: m / n * V}
    for state, rate in zip((V, g), model.flow.rhs, strict=True):
        claim = Claim(early[state], rate, limit={T: T / SMALL, V: V * SMALL ** sp.Rational(1, 2)})
        yield _law(f"early rate of {state}, where V is of order √(n/T)", claim)
    energy = V**2 - 2 * n / T * sp.exp(g)
    change = sum(sp.diff(energy, z) * rate for z, rate in early.items())
    yield _law("V² − (2n/T)e^g is conserved", Claim(0, change))
    # Its antiderivative in the current V; V tends to infinity.
    root = sp.sqrt(2 * n / T - V0**2)
    antiderivative = 2 / root * sp.atan(V / root)
    along = sp.diff(antiderivative, V) * (m / T * sp.exp(g))
    gap = sp.log((V**2 - V0**2 + 2 * n / T) * T / (2 * n))
    narrow = {V0: (-0.2, 0.2), T: (20, 60)}
    yield _law(
        "dg/V integrates to an arctangent",
        Claim(m / n, along.subs(g, gap), domain=narrow),
    )
    whole = 2 / root * (sp.pi / 2) - antiderivative.subs(V, V0)
    b = sp.Symbol("b", positive=True)
    yield _law(
        "the Bose integral's next term, at small b = n/T",
        Claim(
            sp.sqrt(sp.pi / b) + sp.zeta(_HALF),
            expansion(_HALF, -sp.log(1 - b), terms=2),
            limit={b: b * SMALL},
            scale=1,
        ),
    )
    yield relaxation_equation(H / n)
    beyond = sp.sqrt(sp.pi / 2) * sp.zeta(_HALF)
    yield total(law.time, n / m * (whole + beyond), relaxed(H / n), domain=narrow)


def _law(text: str, claim: Claim) -> Equation:
    return Equation(Step.LAW, text, claim)
