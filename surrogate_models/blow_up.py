"""Finite-time blow-up of the early flow: where the leading terms of every law come from.

While attention is still sparse in mass, α ≪ 1, each surrogate's weight u and score gap g follow

    du/dt = λ e^{kg} − ν u,      dg/dt = c λ u e^{kg}

with a growth λ, a coupling c, k attention hops and a damping ν, the noise of the other tokens.
Without damping dg/du = cu: Q = g − cu²/2 is conserved, so du/dt = λ exp(ck(u² − u₀²)/2) from
g = 0, u = u₀, and u is infinite at a Gaussian tail over its density, the Mills ratio.
Attention forms at that time, up to what is small in 1/T.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import sympy as sp

from dynamics import SMALL, Claim, GradientFlow

from .ledger import Equation, Step
from .model import RHO

_x, _y, _epsilon = sp.symbols("x y epsilon_", positive=True)
_steepness = sp.Symbol("s", positive=True)
_F, _start = sp.symbols("F u0", real=True)
_RATIO = {RHO: (0.01, 0.99)}


def mills_ratio(x: sp.Expr) -> sp.Expr:
    """(1 − Φ(x))/φ(x) of the standard normal distribution."""
    return sp.sqrt(sp.pi / 2) * sp.exp(x**2 / 2) * sp.erfc(x / sp.sqrt(2))


@dataclass(frozen=True)
class BlowUp:
    """The early flow of a weight and a score gap (see this module).

    Arguments:

    - `weight`, `gap`: the symbols u and g.
    - `growth`, `coupling`, `damping`, `hops`: λ, c, ν and k.
    - `start`: u₀.
    """

    weight: sp.Symbol
    gap: sp.Symbol
    growth: sp.Expr
    coupling: sp.Expr = sp.S.One
    damping: sp.Expr = sp.S.Zero
    hops: sp.Expr = sp.S.One
    start: sp.Expr = sp.S.Zero

    @property
    def leading(self) -> sp.Expr:
        """The blow-up time without damping, in units of t."""
        steepness = sp.sqrt(self.coupling * self.hops)
        tail = mills_ratio(self.start * steepness) if self.start != 0 else sp.sqrt(sp.pi / 2)
        return tail / (self.growth * steepness)

    @property
    def noise(self) -> sp.Expr:
        """By how much damping delays it, to first order, for one hop from u₀ = 0."""
        return (1 - sp.pi / 4) * self.damping / (self.growth**2 * self.coupling)

    def saturation(self, share: sp.Expr, loss: sp.Expr) -> sp.Expr:
        """The next order in the share b = B/T of relevant tokens, for one hop from u₀ = 0.

        Attention saturates: e^{−g} du becomes the orbit's own, g + b(e^g − 1) ≈ cu²/2, which
        leaves the parabola where b e^g = g, at g* = −W₋₁(−b). The first order of the quadrature
        is √(2g*)(1 + (½ + ln 2)/g*), less `loss` times √(π/2), what the prefactors lose.
        """
        gap = -sp.LambertW(-share, -1)
        gain = sp.sqrt(2 * gap) * (1 + (sp.Rational(1, 2) + sp.log(2)) / gap)
        return share * (gain - loss * sp.sqrt(sp.pi / 2)) / (self.growth * sp.sqrt(self.coupling))

    @property
    def rates(self) -> dict[sp.Symbol, sp.Expr]:
        """du/dt and dg/dt."""
        drive = self.growth * sp.exp(self.hops * self.gap)
        return {
            self.weight: drive - self.damping * self.weight,
            self.gap: self.coupling * self.weight * drive,
        }

    def early_rates(
        self,
        flow: GradientFlow,
        limit: Mapping[sp.Symbol, Any],
        embedding: Mapping[sp.Symbol, Any] | None = None,
        *,
        domain: Mapping[sp.Symbol, Any] | None = None,
        case: str = "",
    ) -> Iterator[Equation]:
        """That a model's flow is this one early on.

        Arguments:

        - `flow`: the model's flow.
        - `limit`: how its parameters grow as `SMALL` tends to 0.
        - `embedding`: its states as functions of u and g, where they are not u and g themselves.
        - `domain`: of `Claim`.
        - `case`: words to add where only a case is shown.
        """
        states: Any = embedding or {self.weight: self.weight, self.gap: self.gap}
        drive = self.growth * sp.exp(self.hops * self.gap)
        for state, rate in zip(flow.state, flow.rhs, strict=True):
            along = sum(sp.diff(states[state], z) * r for z, r in self.rates.items())
            size = self.rates[self.gap] if state is self.gap else drive
            there = rate.subs(states, simultaneous=True)
            claim = Claim(along, there, limit=limit, scale=size, domain=domain or {})
            yield _law(f"early rate of {state}{case}", claim)

    def integrals(self) -> Iterator[Equation]:
        """What makes `leading` and `noise` the times of this flow."""
        Q = self.gap - self.coupling * self.weight**2 / 2
        undamped = replace(self, damping=sp.S.Zero).rates
        change = sum(sp.diff(Q, z) * rate for z, rate in undamped.items())
        yield _law(f"Q = {Q} is conserved without damping", Claim(0, change))
        text = "its blow-up time is the quadrature of 1/u̇ along Q"
        yield _law(text, Claim(self.leading, self.quadrature()))
        if self.damping != 0 and self.start == 0:
            yield from self._damped()

    def quadrature(self) -> sp.Expr:
        """The integral that `leading` evaluates, as sympy finds it."""
        started = self.start != 0
        values = {_steepness: self.coupling * self.hops, _start: self.start}
        return _gaussian_tail(started).subs(values) / self.growth

    def delay(self) -> sp.Expr:
        """The integral that `noise` evaluates, as sympy finds it."""
        unit = 1 / (sp.sqrt(self.coupling) * self.growth)
        return _first_order_delay() * self.damping * unit**2

    def _damped(self) -> Iterator[Equation]:
        gap = _x**2 / 2 + _epsilon * _F
        yield _law(
            "damping lifts the gap by ε∫y² exp(−y²/2)dy to first order, in x = √c u, ε = ν/(√c λ)",
            Claim(
                _x + _epsilon * sp.diff(_lift(), _x),  # its slope along the path …
                _x * sp.exp(gap) / _speed(),  # … which is this
                limit={_epsilon: _epsilon * SMALL},
                scale=_epsilon,
            ),
        )
        yield _law(
            "and delays the blow-up by its first-order integral", Claim(self.noise, self.delay())
        )


# The integrals, over symbols of their own, evaluated once a process.


@cache
def _gaussian_tail(started: bool) -> sp.Expr:
    """∫ exp(s(u0² − u²)/2) du from u0, or from 0, to infinity."""
    u, start = sp.Symbol("u", positive=True), _start if started else sp.S.Zero
    return sp.integrate(sp.exp(_steepness * (start**2 - u**2) / 2), (u, start, sp.oo))


def _speed() -> sp.Expr:
    """dx/dτ in x = √c u and τ = √c λ t, where the gap is x²/2 + εF."""
    return sp.exp(_x**2 / 2 + _epsilon * _F) - _epsilon * _x


@cache
def _lift() -> sp.Expr:
    """F, how much the damping ε lifts the gap at x."""
    return sp.integrate(_y**2 * sp.exp(-(_y**2) / 2), (_y, 0, _x))


@cache
def _first_order_delay() -> sp.Expr:
    """dτ/dε of the blow-up at ε = 0."""
    first = sp.diff(1 / _speed(), _epsilon).subs(_epsilon, 0).subs(_F, _lift())
    return sp.integrate(sp.expand(first), (_x, 0, sp.oo))


def saturation_equations() -> Iterator[Equation]:
    """The two constants of `BlowUp.saturation`."""
    u, v, near = sp.symbols("u v delta", positive=True)
    # Beyond g* the orbit adds ∫(√(1 + u) − 1)/u² du in u = b e^g/g*, less its logarithm at 0;
    # here in v = √(1 + u).
    antiderivative = sp.integrate(sp.cancel((v - 1) * 2 * v / (v**2 - 1) ** 2), v)
    rest = sp.limit(antiderivative, v, sp.oo) - antiderivative.subs(v, sp.sqrt(1 + near))
    yield _law(
        "the orbit beyond g* adds ½ + ln 2",
        Claim(
            sp.Rational(1, 2) + sp.log(2),
            sp.limit(rest + sp.log(near) / 2, near, 0, "+"),
        ),
    )
    yield _law(
        "each prefactor takes a multiple of √(π/2)",
        Claim(
            sp.sqrt(sp.pi / 2),
            sp.integrate(sp.exp(-u) / sp.sqrt(2 * u), (u, 0, sp.oo)),
        ),
    )


def relaxation(rate: sp.Expr) -> sp.Expr:
    """How long ẏ = rate (1 − y) takes from 0 until (1 − y)² = ρ."""
    return sp.log(1 / RHO) / (2 * rate)


def relaxed(rate: sp.Expr) -> sp.Expr:
    """The integral that `relaxation` evaluates, as sympy finds it."""
    y, part = sp.symbols("y r", positive=True)
    return sp.integrate(1 / (1 - y), (y, 0, 1 - part)).subs(part, sp.sqrt(RHO)) / rate


def relaxation_equation(rate: sp.Expr) -> Equation:
    """What makes `relaxation` right."""
    text = "attention formed, the loss relaxes to ρ in"
    return _law(text, Claim(relaxation(rate), relaxed(rate), domain=_RATIO))


def _law(text: str, claim: Claim) -> Equation:
    return Equation(Step.LAW, text, claim)


def late_rate(flow: GradientFlow, weight: sp.Symbol, gap: sp.Symbol, claimed: sp.Expr) -> Equation:
    """The rate of the weight once the gap is large."""
    formed = {gap: gap - sp.log(SMALL)}
    rate = dict(zip(flow.state, flow.rhs, strict=True))[weight]
    return _law(f"late rate of {weight}", Claim(claimed, rate, limit=formed))


def total(
    time: sp.Expr, *terms: sp.Expr, domain: Mapping[sp.Symbol, Any] | None = None
) -> Equation:
    """That a law is the sum of the terms derived."""
    claim = Claim(time, sp.Add(*terms), domain={**_RATIO, **(domain or {})})
    return _law("the law is their sum", claim)
