"""Models of a user's own, from one file: the documented example, and mistakes by name."""

from pathlib import Path

import numpy as np
import pytest

from dynamics import InputError, Verdict
from surrogate_models import (
    MODELS,
    derive,
    equations,
    invert_flow,
    load_model,
    model,
    predict,
    register,
)

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "series-weights.toml"


def test_the_documented_example():
    """Its reduction and claims are proved, and its law falls on its flow."""
    surrogate = model(str(EXAMPLE))
    assert surrogate.name == "series-weights"
    assert all(equation.sound for equation in equations(surrogate))
    verdicts = [e.judgement.verdict for e in equations(surrogate)][-3:]
    assert verdicts == [Verdict.LEADING, Verdict.LEADING, Verdict.PROVED]
    assert [chapter.step.value for chapter in derive(surrogate)][-1] == "law"
    prediction = predict(surrogate, {"N": 65536.0, "s0": [0.01, 0.1, 0.5]})
    np.testing.assert_allclose(prediction.laws["series law"], prediction.passages.time, rtol=2e-4)


MINIMAL = """
loss = "(1 - w)**2/2"
[parameters]
[state]
w = 0
"""


def test_the_smallest_file_relaxes(tmp_path):
    path = tmp_path / "smallest.toml"
    path.write_text(MINIMAL)
    surrogate = load_model(path)
    assert surrogate.name == "smallest" and surrogate.laws == ()
    np.testing.assert_allclose(predict(surrogate, {}).passages.time, np.log(5) / 2, rtol=1e-7)


def test_everything_a_file_may_say(tmp_path):
    path = tmp_path / "all.toml"
    path.write_text(
        """
name = "all"
loss = "(m - n*u)**2/(2*n)"
plateau_of = "gap"
timescale = "scale"
clock = "2"
constraints = [{ smaller = "n", larger = "m", remedy = "give n < m" }]
[parameters]
n = { meaning = "copies", minimum = 1, integer = true }
m = { default = "2*n", minimum = 0, positive = true }
shift = { default = 0.5 }
[define]
scale = "n/m"
[state]
z = "shift - 1/2"
[embedding]
u = "z"
[multiplicity]
u = "n"
[observables]
gap = "(m - n*z)**2"
[laws.relaxation]
time = "log(1/rho)/2"
derivation = "linear"
measured = "everywhere"
validity = [{ minimum = { n = 1 }, maximum = { m = "2*n" }, error = [-0.001, 0.001] }]
[[claims]]
claimed = "m - n*z"
derived = "n*rate_z"
[[claims]]
text = "wrong"
claimed = "m"
derived = "rate_z"
[[claims]]
text = "for many copies"
claimed = "n*z"
derived = "n*z + 1"
limit = { n = "n/epsilon" }
"""
    )
    surrogate = load_model(path)
    claims = equations(surrogate)[-3:]
    verdicts = [Verdict.PROVED, Verdict.DIFFERS, Verdict.LEADING]
    assert [claim.judgement.verdict for claim in claims] == verdicts
    assert [claim.sound for claim in claims] == [True, False, True]
    at = surrogate.settings({"n": [1, 3]})
    assert at["m"].tolist() == [2, 6] and at["shift"].tolist() == [0.5, 0.5]
    prediction = predict(surrogate, {"n": [1, 3]})
    np.testing.assert_allclose(prediction.passages.time, np.log(5) / 2, rtol=1e-7)
    law = surrogate.laws[0]
    assert str(law.validity[0]) == "m ≤ 2·n, n ≥ 1: error -0.10% to +0.10%"
    assert surrogate.law_validity(law, at, 0.2) is law.validity[0]
    with pytest.raises(InputError, match="m = 2, n = 3: give n < m"):
        surrogate.settings({"n": 3, "m": 2})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("loss = ", "lost = "), "the file has an entry lost: the entries are name, title"),
        (('loss = "(1 - w)**2/2"', ""), "the file lacks loss"),
        (('"(1 - w)**2/2"', "3"), "the file.loss is 3: give text"),
        (('"(1 - w)**2/2"', '"1 - v"'), "loss is '1 - v': v is unknown; the names are pi, w"),
        (('"(1 - w)**2/2"', '"__import__(w)"'), "__import__ is no function here"),
        (('"(1 - w)**2/2"', '"w.real"'), "only names, numbers"),
        (("w = 0", 'w = "w"'), "state.w is 'w': w is unknown"),
        (("w = 0", ""), "state is empty: give"),
        (("[state]", "[parameters.w]\n[state]"), "state.w: the name is taken"),
        (("[state]", "[parameters.q]\nminimum = true\n[state]"), "parameters.q.minimum is True"),
        (("[state]", "[parameters.q]\nleast = 1\n[state]"), "parameters.q has an entry least"),
        (("[state]", '[define]\nw = "1"\n[state]'), "define.w: the name is taken"),
        (("[state]", '[define]\n"a b" = "1"\n[state]'), "give letters, digits"),
        (("w = 0", "w = 0\n[multiplicity]\nv = 2"), "multiplicity.v: name one of w"),
        (("[state]", "plateau_of = 3\n[state]"), "parameters.plateau_of is 3: give a table"),
        (("loss", 'plateau_of = "x"\nloss'), "observable 'x' is unknown"),
        (("w = 0", "w = 0\n[laws.a]\n"), "laws.a lacks time"),
        (("w = 0", 'w = 0\n[laws.a]\ntime = "w"'), "laws.a.time is 'w': w is unknown"),
        (("loss", 'constraints = [{ smaller = "1" }]\nloss'), "constraints lacks larger"),
        (("loss", 'claims = [{ claimed = "1" }]\nloss'), "claims lacks derived"),
        (
            ("loss", 'claims = [{ claimed = "w", derived = "w", limit = { v = "1" } }]\nloss'),
            "claims.limit names v",
        ),
        (
            ("w = 0", "w = 0\n[embedding]\nu = 'w'\nv = '2*w'"),
            "loss holds w, which the embedding replaces: write it in u, v",
        ),
        (("loss", "loss = 1\nloss"), "give a TOML file"),
        (("[state]", "[parameters.lambda]\n[state]"), "parameters.lambda: give letters"),
        (
            ("[state]", "[parameters.q]\ndefault = -4\nminimum = 0\n[state]"),
            "q (q) is -4: give q ≥ 0",
        ),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, change, message):
    path = tmp_path / "model.toml"
    assert change[0] in MINIMAL
    path.write_text(MINIMAL.replace(*change, 1))
    with pytest.raises(InputError) as error:
        load_model(path)
    assert message in str(error.value) and str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_gradient_that_leaves_the_embedding_is_named(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text(
        'loss = "(1 - u)**2 + 3*v**2"\n[parameters]\n[state]\nw = 0\n'
        "[embedding]\nu = 'w'\nv = 'w'\n"
    )
    with pytest.raises(InputError, match="the gradient leaves the embedding along u, v"):
        load_model(path)


def test_defaults_that_name_defaults_are_followed_to_the_unknown(tmp_path):
    """M → q → N, each at its default: dM/dN is known, and Newton's root is the flow's."""
    path = tmp_path / "chain.toml"
    path.write_text(
        """
loss = "(M - w)**2/(2*M)"
[parameters]
N = { minimum = 1 }
q = { default = "2*N", minimum = 0, positive = true }
M = { default = "q**2", minimum = 0, positive = true }
[state]
w = 0
"""
    )
    surrogate = load_model(path)
    (interval,) = invert_flow(surrogate, "N", 100.0, {}).within
    # dw/dt = (M − w)/M, so the plateau is M ln(5)/2 long, and M = 4N².
    np.testing.assert_allclose(interval.edges[1], np.sqrt(50 / np.log(5)), rtol=1e-7)


def test_missing_and_undecodable_files(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        model(str(tmp_path / "none.toml"))
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="give a TOML file"):
        load_model(path)
    with pytest.raises(InputError, match="give a TOML file"):
        load_model(tmp_path)


def test_models_register_by_name(monkeypatch):
    monkeypatch.setattr("surrogate_models.registry.MODELS", dict(MODELS))
    register("mine", lambda: load_model(EXAMPLE))
    assert model("mine").name == "series-weights"
    with pytest.raises(InputError, match="model 'mine' is taken"):
        register("mine", lambda: load_model(EXAMPLE))
