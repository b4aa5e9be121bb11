"""The ledger: every verdict expected, every claim of ours sound, every mutation found out."""

from dataclasses import replace

import pytest
import sympy as sp

from dynamics import SMALL, Claim, Verdict, judge
from dynamics.claims import _leading_term
from surrogate_models import MODELS, Source, Step, derive, equations, model
from surrogate_models.expected_loss import B, T, d

PROVED, LEADING, DIFFERS = Verdict.PROVED, Verdict.LEADING, Verdict.DIFFERS

# What the published equations come to, by label and text; a label alone stands for all its texts.
PUBLISHED = {
    "single-location": {
        "Z9": PROVED,
        "Z10": PROVED,
        "Z11": PROVED,
        ("Z14", "dw/dt"): PROVED,
        ("Z14", "dΔa/dt, without the induced metric"): DIFFERS,
        "Z7": DIFFERS,
    },
    "single-location-shared": {
        "Z3": PROVED,
        "Z4": LEADING,
        "Z12": PROVED,
        "Z13": PROVED,
        "Z14": PROVED,
        ("Z5/Z15", "dw/dt at the start"): PROVED,
        ("Z5/Z15", "dΔa/dt at the start"): PROVED,
        ("Z5/Z15", "∂(dw/dt)/∂w"): LEADING,
        ("Z5/Z15", "∂(dw/dt)/∂Δa"): LEADING,
        ("Z5/Z15", "∂(dΔa/dt)/∂w"): LEADING,
        ("Z5/Z15", "∂(dΔa/dt)/∂Δa"): PROVED,
        ("Hessian", "∂²L/∂w²"): PROVED,
        ("Hessian", "∂²L/∂w∂Δa"): PROVED,
        ("Hessian", "∂²L/∂Δa²"): DIFFERS,
        "Z6": DIFFERS,
        ("A.2", "escape time, appendix"): LEADING,
        ("A.2", "escape time with the arcsine for its hyperbolic namesake"): DIFFERS,
        ("A.2", "arcsinh x ≈ ½ ln x at large x"): DIFFERS,
        "Z7": LEADING,
        "w∞": PROVED,
        "Z16": PROVED,
        "late Hessian": LEADING,
    },
    "cross-sample-repetition": {
        "Z17": PROVED,
        "Z18": PROVED,
        "Z19": PROVED,
        "Z20": LEADING,
        "Z21": PROVED,
        "Hessian": PROVED,
        ("A.4.2", "∂(dw̃/dt)/∂Δa"): LEADING,
        ("A.4.2", "∂(dw/dt)/∂Δa, with p for 1 − p"): DIFFERS,
        ("A.4.2", "∂(dΔa/dt)/∂w̃"): PROVED,
        ("A.4.2", "∂(dΔa/dt)/∂w, without √(d − 1)"): DIFFERS,
        ("A.4.2", "∂(dw̃/dt)/∂w̃"): LEADING,
        ("A.4.2", "∂(dw/dt)/∂w"): LEADING,
        ("A.4.2", "∂(dΔa/dt)/∂Δa"): PROVED,
        ("A.4.2", "λ at large d"): LEADING,
        "A.4.2": PROVED,
        "Z8": LEADING,
    },
}


@pytest.fixture(scope="module")
def ledgers():
    """Every model's equations, judged once for this module."""
    return {name: equations(model(name)) for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_verdicts_of_published_equations(ledgers, name):
    expected = PUBLISHED.get(name, {})
    seen = set()
    for equation in ledgers[name]:
        if equation.source is Source.OURS:
            assert not equation.label
            continue
        key = (equation.label, equation.text)
        key = key if key in expected else equation.label
        assert equation.judgement.verdict is expected[key], equation
        seen.add(key)
    assert seen == set(expected)


@pytest.mark.parametrize("name", MODELS)
def test_all_that_we_claim_holds(ledgers, name):
    for equation in ledgers[name]:
        assert equation.sound, (equation.text, str(equation.judgement))
        assert equation.source is not Source.OURS or equation.judgement.verdict is not DIFFERS


@pytest.mark.parametrize("name", MODELS)
def test_every_law_is_derived(ledgers, name):
    """Of each law: its early flow, what is conserved, its quadrature, and that it is their sum."""
    texts = [equation.text for equation in ledgers[name] if equation.step is Step.LAW]
    laws = model(name).laws
    assert sum(text == "the law is their sum" for text in texts) == len(laws)
    if laws:
        assert any("conserved" in text for text in texts)
        assert any("quadrature" in text or "Bose" in text for text in texts)


def mutants(claim: Claim):
    """The claim with one of its terms a third larger; to leading order, one of the leading terms.

    A claim of nothing gets a term of the size its error is measured against.
    """
    terms = [term for term in sp.Add.make_args(claim.claimed) if term != 0]
    if not terms:
        yield replace(claim, claimed=claim.scale if claim.limit else sp.S.One)
        return
    if claim.limit:
        orders = [
            _leading_term((term / claim.scale).subs(dict(claim.limit), simultaneous=True))[1]
            for term in terms
        ]
        terms = [term for term, order in zip(terms, orders, strict=True) if order == min(orders)]
    for term in terms:
        yield replace(claim, claimed=claim.claimed + term / 3)


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_term_flips_the_verdict(ledgers, name):
    """Whatever holds, holds no more; what differs is cured by its correction, and by no mutant."""
    for equation in ledgers[name]:
        right = equation.correction or equation.judgement
        assert right.verdict in (PROVED, LEADING), equation
        for mutant in mutants(right.claim):
            assert judge(mutant).verdict is DIFFERS, (equation.text, mutant.claimed)


def test_nothing_proved_is_contradicted_at_fifty_digits(ledgers):
    for found in ledgers.values():
        for equation in found:
            if equation.judgement.verdict is PROVED:
                witness = equation.judgement.witness
                size = abs(witness.claimed) + abs(witness.derived) + sp.Float("1e-10", 50)
                assert abs(witness.claimed - witness.derived) < size * sp.Float("1e-43", 50)


def test_differences_come_with_the_corrected_form(ledgers):
    """Those named for this paper, and what should stand there."""
    found = {
        (name, e.label, e.text): e
        for name, ledger in ledgers.items()
        for e in ledger
        if e.judgement.verdict is DIFFERS
    }
    assert len(found) == 8
    for equation in found.values():
        assert not equation.judgement.witness.agrees
    epsilon = sp.Symbol("varepsilon", positive=True)
    z6 = found["single-location-shared", "Z6", "escape time at B = 1, main text"]
    reach = sp.sqrt(d) * T / 2
    assert z6.claim.claimed - reach * sp.log(epsilon * sp.sqrt(d) * T) == 0
    assert sp.simplify(z6.corrected - reach * sp.log(2 * epsilon * sp.sqrt(d) * T)) == 0
    z7 = found["single-location", "Z7", "repetition shortens the escape in proportion to B"]
    expected = sp.sqrt(d) * T / (2 * sp.sqrt(B)) * sp.log(2 * epsilon * sp.sqrt(d) * T / B**1.5)
    at = {T: 300, d: 64, B: 4, epsilon: 0.8}
    assert abs(z7.corrected.subs(at).evalf() / expected.subs(at).evalf() - 1) < 1e-12


def test_a_derivation_walks_from_loss_to_law():
    chapters = derive(model("single-location-shared"))
    assert [chapter.step for chapter in chapters] == list(Step)
    assert all(chapter.formulas or chapter.equations for chapter in chapters)
    steps = [chapter.step for chapter in derive(model("attention-chain"))]
    assert steps == [step for step in Step if step not in (Step.ESCAPE, Step.LATE)]


def test_a_derivation_shows_what_it_says():
    """Rates written in the attention are the model's rates."""
    surrogate = model("single-location")
    flow = next(c for c in derive(surrogate) if c.step is Step.FLOW)
    alpha, definition = flow.formulas[0]
    for (_, shown), rate in zip(flow.formulas[2:], surrogate.flow.rhs, strict=True):
        assert not shown.has(sp.exp)
        assert judge(Claim(shown.subs(alpha, definition), rate)).verdict is PROVED


def test_limits_shrink_what_they_should():
    """A limit in the wrong direction does not hold."""
    claim = next(e for e in equations(model("single-location-shared")) if e.label == "Z4").claim
    wrong = {symbol: value.subs(SMALL, 1 / SMALL) for symbol, value in claim.limit}
    assert judge(replace(claim, limit=wrong)).verdict is DIFFERS
