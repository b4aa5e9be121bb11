"""Verdicts: proof first, a second witness after it, and neither mistaken for the other."""

import pytest
import sympy as sp

import dynamics.claims
from dynamics import SMALL, Claim, ContradictionError, InputError, Verdict, judge

x, y = sp.symbols("x y", positive=True)
z = sp.Symbol("z", real=True)
long = {x: x / SMALL}


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim((x + y) ** 2, x**2 + 2 * x * y + y**2), Verdict.PROVED),
        (Claim(0, sp.sin(z) ** 2 + sp.cos(z) ** 2 - 1), Verdict.PROVED),
        (Claim(sp.pi / 4, sp.integrate(1 / (1 + x**2), (x, 0, 1))), Verdict.PROVED),
        (Claim(x, x + sp.Rational(1, 10**30)), Verdict.DIFFERS),
        (Claim(x, x + sp.Rational(1, 10**30), limit=long), Verdict.LEADING),
        (Claim(x, sp.sqrt(x**2 + x), limit=long), Verdict.LEADING),
        (Claim(2 * x, sp.sqrt(x**2 + x), limit=long), Verdict.DIFFERS),
        (Claim(sp.log(x), sp.asinh(x), limit=long, scale=1), Verdict.DIFFERS),
        # The logarithm alone makes the ratio tend to 1: that is no power of what is small.
        (Claim(sp.log(x), sp.asinh(x), limit=long), Verdict.DIFFERS),
        (Claim(sp.log(2 * x), sp.asinh(x), limit=long, scale=1), Verdict.LEADING),
        (Claim(0, 1 / x, limit=long, scale=1), Verdict.LEADING),
        (Claim(0, 1 / x, limit={y: y / SMALL}, scale=1), Verdict.DIFFERS),
        (Claim(sp.erfc(z), 1 - sp.erf(z)), Verdict.UNDECIDED),
        # Equal at every point drawn, where the cosine is positive, and still no identity.
        (Claim(sp.sqrt(sp.cos(z) ** 2), sp.cos(z)), Verdict.UNDECIDED),
        (Claim(sp.sqrt(sp.cosh(z) ** 2), sp.cosh(z)), Verdict.PROVED),
        (Claim(sp.sqrt(sp.exp(2 * z)), sp.exp(z)), Verdict.PROVED),
    ],
)  # fmt: skip
def test_verdicts(claim, verdict):
    assert judge(claim).verdict is verdict


def test_the_leading_error_is_stated():
    judgement = judge(Claim(1 / x, 1 / (x - y), limit=long))
    assert judgement.error == -y / x and judgement.order == 1
    assert str(judgement) == "holds to leading order, relative error ≈ -y/x"
    half = judge(Claim(sp.sqrt(x), sp.sqrt(x) + 3, limit=long))
    assert half.order == sp.Rational(1, 2) and half.error == -3 / sp.sqrt(x)


def test_a_difference_has_a_witness():
    judgement = judge(Claim(x * y, x + y))
    point = judgement.witness.point
    assert set(point) == {x, y} and all(1 < value < 2 for value in point.values())
    assert abs(judgement.witness.claimed - point[x] * point[y]) < 1e-40
    assert abs(judgement.witness.derived - point[x] - point[y]) < 1e-40
    assert "against" in str(judgement)
    inside = judge(Claim(x, y, domain={x: (30, 40)})).witness.point
    assert 30 < inside[x] < 40


def test_a_false_proof_is_contradicted(monkeypatch):
    """Were the proof wrong, the 50-digit points would say so, and no verdict be given."""
    monkeypatch.setattr(dynamics.claims, "is_zero", lambda expression: True)
    with pytest.raises(ContradictionError, match="was proved, but at x"):
        judge(Claim(x, x + sp.Rational(1, 10**30)))


def test_a_false_order_is_contradicted(monkeypatch):
    monkeypatch.setattr(dynamics.claims, "_leading_term", lambda expression: (x, sp.Integer(2)))
    with pytest.raises(ContradictionError, match="at order 2, but is off by"):
        judge(Claim(1 / x, 1 / (x - y), limit=long))


def test_agreement_is_no_proof():
    """Equal to 50 digits at every point, and still not called proved."""
    claim = Claim(sp.erf(z), sp.erf(z) + sp.Rational(1, 10**60))
    assert judge(claim).verdict is Verdict.UNDECIDED


def test_a_scale_of_zero_is_refused():
    with pytest.raises(InputError, match="scale is 0"):
        Claim(x, 0, limit=long)
