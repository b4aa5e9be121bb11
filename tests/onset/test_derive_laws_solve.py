"""`onset derive`, `laws` and `solve` as a user types them."""

from pathlib import Path

import numpy as np
import pytest

import surrogate_models.ledger
from dynamics import Verdict
from onset.__main__ import main
from surrogate_models import MODELS, predict, single_location

EXAMPLE = str(Path(__file__).parents[2] / "docs" / "examples" / "series-weights.toml")


def test_derive_in_four_forms(capsys, answer):
    assert main(["derive", EXAMPLE]) == 0
    text = capsys.readouterr().out
    assert "ds/dt = -alpha*s*(-M + alpha*s**2)" in text
    assert "✓ a − s²/2 is conserved by these: identity proved" in text
    assert "≈ early rate of s: holds to leading order, relative error ≈" in text
    assert main(["derive", EXAMPLE, "--markdown"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# series-weights\n") and r"$$\frac{d}{d t} s{\left(t \right)} =" in page
    assert "**identity proved**" in page
    assert main(["derive", EXAMPLE, "--latex"]) == 0
    document = capsys.readouterr().out
    assert r"\documentclass" in document and document.rstrip().endswith(r"\end{document}")
    assert document.count(r"\begin{itemize}") == document.count(r"\end{itemize}") == 2
    result = answer("derive", EXAMPLE)
    assert [chapter["step"] for chapter in result["chapters"]][0] == "loss"
    rates = result["chapters"][-1]["equations"]
    assert rates[0]["verdict"] == "holds to leading order" and rates[0]["limit"] == {
        "N": "N/epsilon"
    }
    assert all(e["sound"] for chapter in result["chapters"] for e in chapter["equations"])


def test_derive_shows_printed_and_corrected_forms(capsys):
    assert main(["derive", "single-location"]) == 0
    text = capsys.readouterr().out
    line = "✗ [Z7] repetition shortens the escape in proportion to B: differs (at B = "
    assert line in text and "corrected: T*sqrt(d)*log(2*T*sqrt(d)*varepsilon/B**(3/2))" in text
    assert "[Z9, restated]" in text


def test_derive_all_is_one_table(capsys, answer, monkeypatch):
    monkeypatch.setattr("onset.derive.MODELS", {k: MODELS[k] for k in list(MODELS)[-4:]})
    assert main(["derive", "--all"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("relaxed-cross-sample: our derivation: 24 identity")
    assert len(out.splitlines()) == 4  # no published equation among these
    result = answer("derive", "--all")
    assert list(result) == list(MODELS)[-4:]
    assert main(["derive", "--all", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| model | equation | says | verdict |")


def test_a_claim_of_ours_that_fails_is_exit_code_1(capsys, tmp_path, monkeypatch):
    path = tmp_path / "wrong.toml"
    path.write_text(
        'loss = "(1 - w)**2/2"\n[parameters]\n[state]\nw = 0\n'
        '[[claims]]\ntext = "too fast"\nclaimed = "2*(1 - w)"\nderived = "rate_w"\n'
    )
    assert main(["derive", str(path)]) == 1
    out, err = capsys.readouterr()
    assert "✗ too fast: differs (at w = " in out
    assert err.startswith("onset: a claim fails: too fast: differs") and err.count("\n") == 1
    # A published equation that differs is no failure, unless our correction of it is.
    right = surrogate_models.ledger.judge

    def never(claim):
        judgement = right(claim)
        object.__setattr__(judgement, "verdict", Verdict.UNDECIDED)
        return judgement

    monkeypatch.setattr(surrogate_models.ledger, "judge", never)
    path.write_text('loss = "(1 - w)**2/2"\n[parameters]\n[state]\nw = 0\n')
    assert main(["derive", str(path)]) == 1


def test_laws_as_a_table_and_at_a_setting(capsys, answer):
    assert main(["laws"]) == 0
    out = capsys.readouterr().out
    laws = {(name, law.name) for name, build in MODELS.items() for law in build().laws}
    assert all(name in out and law in out for name, law in laws) and len(laws) == 12
    assert "T ≥ 32·B, d ≥ 256·B" in out and "-0.10% to +0.08%" in out
    result = answer("laws")
    assert len([law for each in result.values() for law in each]) == 12
    assert main(["laws", "attention-chain"]) == 0
    assert "t = sqrt(2)*sqrt(pi)*N**k*sqrt(d)/(2*sqrt(k))" in capsys.readouterr().out
    at = "laws single-location --T 100 --d 64 --lr 0.5".split()
    assert main(at) == 0
    assert "stated for T ≥ 32·B, d ≥ 16" in capsys.readouterr().out
    first, second = answer(*at)["laws"]
    assert first["applies"].startswith("T ≥ 32·B, d ≥ 16")
    assert second["applies"].startswith("T ≥ 32·B, d ≥ 64·B")
    assert first["steps"] == 2 * first["time"]
    outside = answer(*"laws single-location --T 9 --d 4".split())["laws"]
    assert [law["applies"] for law in outside] == [None, None]


def test_laws_say_why_they_are_not_stated(capsys, answer):
    assert main("laws tensor-factorisation --T 1000 --m 5".split()) == 0
    assert "not stated at the loss ratio 0.2 (loss ratio 0.25" in capsys.readouterr().out
    assert main(["laws", EXAMPLE]) == 0
    out = capsys.readouterr().out
    assert "series law  not measured" in out and "proves them" not in out
    command = "laws tensor-factorisation-replicator --T 1000 --m 5 --n 2 --V0 0.1"
    assert [law["time"] is None for law in answer(*command.split())["laws"]] == [False, True]


def test_derive_escapes_what_markdown_and_latex_would_eat(capsys, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(
        'title = "a_b * 100% {c} $d"\nloss = "(1 - w)**2/2"\n[parameters]\n[state]\nw = 0\n'
        '[[claims]]\ntext = "2*w*3"\nclaimed = "2*w"\nderived = "rate_w"\n'
    )
    assert main(["derive", str(path), "--markdown"]) == 1
    page = capsys.readouterr().out
    assert r"a\_b \* 100% {c} $d" in page and r"- 2\*w\*3: **differs**" in page
    assert "  - claimed $2 w$\n  - here $1 - w$" in page
    assert main(["derive", str(path), "--latex"]) == 1
    assert r"a\_b * 100\% \{c\} \$d" in capsys.readouterr().out


def test_solve_prefers_the_law_that_speaks_of_the_unknown(capsys):
    command = "solve tensor-factorisation --for V0 --within 100 --T 1000 --m 5 --ratio 0.25"
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "Mills-ratio law: V0 ≥ 1.588" in out and "outside its stated range" in out
    command = "solve tensor-factorisation --for lr --within 1000 --T 512 --m 5 --V0 -3 --ratio 0.25"
    assert main(command.split()) == 0
    assert "outside its stated range" in capsys.readouterr().out


def test_solve_answers_by_law_and_by_flow(capsys, answer):
    command = "solve single-location --for B --within 20000 --T 512 --d 64 --lr 0.1"
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "plateau law: B ≥ 8 (18,802.29, root 7.05361), looking from 1 to 511" in out
    assert "flow: B ≥ 8 (19,452.18, root 7.53021)" in out
    result = answer(*command.split())
    assert result["flow"]["within"][0]["low"] == 8 and result["for"] == "B"
    result = answer(*"solve single-location --for lr --within 1000 --T 512 --d 64".split())
    time = float(predict(single_location(), {"T": 512.0, "d": 64.0}).passages.time)
    np.testing.assert_allclose(result["flow"]["lr"], time / 1000, rtol=1e-9)


def test_solve_says_when_nothing_does(capsys, answer):
    command = "solve single-location --for B --within 1 --T 512 --d 64"
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "plateau law: no B between 1 and 511 does; the shortest seen is" in out
    assert "flow: no B between 1 and 511 does; the shortest seen is" in out
    assert answer(*command.split())["flow"]["within"] == []


def test_a_file_of_ones_own_in_every_command(answer):
    result = answer("predict", EXAMPLE, "--N", "1024")
    assert abs(result["series-weights"]["laws"]["series law"]["error"]) < 0.002
    result = answer("sweep", EXAMPLE, "--N", "64,1024", "--s0", "0.1")
    assert result["status"] == ["reached", "reached"]
    result = answer(*f"solve {EXAMPLE} --for s0 --within 100 --N 1024".split())
    assert abs(result["flow"]["within"][0]["low"] - 1.155) < 1e-3
    assert answer("laws", EXAMPLE, "--N", "64")["laws"][0]["applies"] is None


@pytest.mark.parametrize("command", ["derive", "laws --help", "solve", "derive --help", "solve -h"])
def test_help(capsys, command):
    assert main(command.split()) == 0
    out = capsys.readouterr().out
    assert "usage: onset" in out and "MODEL.toml" in out and "tensor-factorisation" in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("derive nonsense", "model 'nonsense' is unknown: use one of single-location"),
        ("derive nowhere.toml", "model file nowhere.toml: No such file or directory"),
        ("derive attention-chain --latex --json", "--latex and --json are both given"),
        ("derive --all --latex", "--latex is given with --all: choose --markdown or --json"),
        ("derive attention-chain --T 3", "--T"),
        ("laws nonsense", "model 'nonsense' is unknown"),
        ("laws relaxed-cross-sample", "relaxed-cross-sample has no closed-form law"),
        ("laws single-location --T 8", "--d"),
        ("laws single-location --T 1 --d 4", "T (sequence length) is 1: give T ≥ 2"),
        ("laws --T 8", "--T"),
        ("solve single-location --T 8 --d 4", "--for is missing: name the parameter"),
        ("solve single-location --for q --within 3", "--for is 'q': use one of T, d, B, M, lr"),
        ("solve single-location --for B --T 8 --d 4", "within is 0: give a positive number"),
        ("solve single-location --for B --within nan --T 8 --d 4", "within is nan"),
        ("solve single-location --for B --within 9 --T 8", "--d"),
        ("solve single-location --for B --within 9 --T 8 --d 4 --B 2", "--B"),
        ("solve single-location --for B --within 9 --T 8.5 --d 4", "8.5: give a whole number"),
        (
            "solve single-location --for B --within 9 --T 8 --d 4 --between 9 12",
            "no B between 9 and 12 is admitted: widen the range",
        ),
        ("solve single-location --for lr --within 9 --T 8 --d 4 --lr 1", "leave --lr out"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(capsys, tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith("onset: ") and err.count("\n") == 1 and message in err
    assert out == ""
