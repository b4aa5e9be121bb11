"""The commands as a user types them: answers, JSON, files, and one sentence for a mistake."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from dynamics import grid
from onset.__main__ import main
from onset.arguments import axis
from surrogate_models import predict, single_location


def test_predict_gives_law_flow_and_the_other_score(answer):
    result = answer("predict", "single-location", "--T", "512", "--d", "64", "--lr", "0.1")
    positional, shared = result["single-location"], result["single-location-shared"]
    assert round(positional["laws"]["plateau law"]["time"]) == 5295
    assert abs(positional["flow"]["time"] - 5314.0) < 0.01
    assert abs(shared["flow"]["time"] - 5319.27) < 0.01
    assert positional["flow"]["steps"] == positional["flow"]["time"] / 0.1
    law = positional["laws"]["plateau law"]
    assert law["error"] == law["time"] / positional["flow"]["time"] - 1
    assert law["validity"] == "T ≥ 256·B, d ≥ 16: error -2.4% to +0.0%"
    assert result["settings"] == {"T": 512, "d": 64, "B": 1, "M": 8}


def test_predict_answers_the_law_before_anything_compiles(capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("onset.predict.set_up_jax", interrupt)
    assert main(["predict", "single-location", "--T", "512", "--d", "64"]) == 130
    out = capsys.readouterr().out
    assert "5,294.95" in out and "T ≥ 256·B" in out and "flow" not in out


def test_predict_in_words(capsys):
    at = "--T 512 --d 64 --lr 0.1".split()
    assert main(["predict", "single-location", *at]) == 0
    out = capsys.readouterr().out
    assert "5,314.00" in out and "53,140.0" in out and "-19.05 (-0.36%)" in out
    assert main(["predict", "single-location", *at, "--horizon", "100"]) == 0
    assert "longer than 100" in capsys.readouterr().out
    assert main(["predict", "single-location", "--T", "4", "--d", "2"]) == 0
    assert "outside its stated range" in capsys.readouterr().out


def test_sweep_is_predict_over_a_grid(answer):
    result = answer("sweep", "single-location", "--T", "16:64:3", "--d", "8,9.5", "--B", "2")
    at = grid(T=[16, 32, 64], d=[8, 9.5], B=[2])
    expected = predict(single_location(), at)
    np.testing.assert_allclose(result["flow"], expected.passages.time.ravel(), rtol=1e-9)
    np.testing.assert_allclose(result["law"], expected.laws["plateau law"].ravel(), rtol=1e-12)
    assert result["T"] == pytest.approx(at["T"].ravel().tolist())
    assert set(result["status"]) == {"reached"} and result["unit"] == "t"


def test_sweep_writes_and_resumes(capsys, tmp_path, monkeypatch):
    command = f"sweep single-location --T 16:64:5 --d 8,16 --lr 0.5 --out {tmp_path}".split()
    monkeypatch.setattr("onset.sweep.BLOCK", 4)
    assert main(command) == 0
    assert "10 settings: 10 reached, 0 censored, 0 failed" in capsys.readouterr().out
    (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("sweep-"))
    with open(folder / "sweep.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["T", "d", "B", "M", "law", "flow", "status"] and len(rows) == 10
    assert (folder / "sweep.png").stat().st_size > 10_000

    lines = (folder / "results.jsonl").read_text()
    (folder / "results.jsonl").write_text("".join(lines.splitlines(True)[:2]))
    solved = []
    monkeypatch.setattr("onset.sweep.predict", lambda *a, **k: solved.append(1) or predict(*a, **k))
    before = (folder / "sweep.csv").read_text()
    assert main(command) == 0
    assert len(solved) == 1  # of three blocks, the one that was missing
    assert (folder / "sweep.csv").read_text() == before
    assert (folder / "results.jsonl").read_text() == lines


def test_sweep_tells_censored_lanes(answer):
    result = answer("sweep", "single-location", "--T", "16,1024", "--d", "8", "--horizon", "500")
    assert result["status"] == ["reached", "censored"] and result["flow"][1] == 500


def test_validate_and_report(capsys, answer, tmp_path):
    command = f"validate single-location --T 8 --d 4 --B 1 2 --seeds 2 --out {tmp_path}".split()
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "4 nets, 0 censored, 0 failed" in out and "report.md" in err
    (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("single-location-"))
    page = (folder / "report.md").read_text()
    (folder / "report.md").unlink()
    result = answer("report", str(folder))
    assert (folder / "report.md").read_text() == page
    assert result["nets"] == 4


@pytest.mark.parametrize("command", [[], ["--help"], ["predict"], ["sweep", "-h"], ["validate"]])
def test_help_lists_what_there_is(capsys, command):
    assert main(command) == 0
    assert "usage: onset" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["predict", "sweep", "validate"])
def test_help_of_a_command_lists_its_flags(capsys, name):
    with pytest.raises(SystemExit) as stop:
        main([name, "single-location", "--help"])
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "--T" in out and "equence length" in out and "--json" in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("nonsense", "command 'nonsense' is unknown: use one of derive, laws, predict"),
        ("predict nonsense", "model 'nonsense' is unknown: use one of single-location"),
        ("predict single-location --d 4", "--T"),
        ("predict single-location --T 1 --d 4", "T (sequence length) is 1: give T ≥ 2"),
        ("predict single-location --T 8 --d 0", "d (token dimension) is 0: give d ≥ 1"),
        ("predict single-location --T 8 --d 4 --B 8", "B = 8, T = 8: give B < T"),
        ("predict single-location --T 8.5 --d 4", "is 8.5: give a whole number"),
        ("predict single-location --T nan --d 4", "is nan: give a finite number"),
        ("predict single-location --T abc --d 4", "--T: could not convert string to float: 'abc'"),
        ("predict single-location --T 8 --d 4 --M -1", "is -1: give M > 0"),
        ("predict single-location --T 8 --d 4 --ratio 1", "loss ratio is 1.0: give a number"),
        ("predict single-location --T 8 --d 4 --ratio nan", "loss ratio is nan: give a number"),
        ("predict single-location --T 8 --d 4 --lr 0", "lr is 0.0: give a positive number"),
        ("predict single-location --T 8 --d 4 --horizon -1", "horizon is -1.0: give a positive"),
        ("predict single-location --T 8 --d 4 --q 3", "--q"),
        ("sweep single-location --T 8:x --d 4", "T is '8:x': give a number, a list"),
        ("sweep single-location --T 8:9:0 --d 4", "T is '8:9:0': give a number, a list"),
        ("sweep single-location --T 8:9 --d 4", "T is '8:9': give a number, a list"),
        ("sweep single-location --T 8:-9:3 --d 4", "T (sequence length) is -0.5: give T ≥ 2"),
        ("sweep single-location --T 4,8 --d 4 --B 1,4", "B = 4, T = 4: give B < T"),
        ("sweep single-location --T 8 --d nan", "d (token dimension) is nan"),
        ("sweep single-location --T 2:9:100000 --d 1:9:100000", "the grid holds 1e+10 settings"),
        ("validate nonsense", "study 'nonsense' is unknown: use one of single-location"),
        ("validate single-location --preset huge", "preset 'huge' is unknown: use one of quick"),
        ("validate single-location --preset", "preset '' is unknown"),
        ("validate single-location --T 4 --B 4", "T = 4, B = 4: give B < T"),
        ("validate single-location --T 8.5", "--T"),
        ("validate single-location --ratio nan", "ratio is nan: give a number between 0 and 1"),
        ("validate single-location --seeds 0", "seeds is 0: give 1 or more"),
        ("report nowhere", "nowhere holds no config.toml: name a run's folder"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(capsys, tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith("onset: ") and err.count("\n") == 1 and message in err
    assert out == "" and not (tmp_path / "runs").exists()


def test_a_damaged_run_folder_stops_the_command_and_is_left_alone(capsys, tmp_path):
    command = f"validate single-location --T 8 --d 4 --B 1 2 --seeds 2 --out {tmp_path}".split()
    assert main(command) == 0
    (folder,) = (path for path in tmp_path.iterdir() if path.name.startswith("single-location-"))
    file = folder / "results.jsonl"
    file.write_text("garbage\n" + file.read_text())
    before = file.read_text()
    capsys.readouterr()
    for again in (command, ["report", str(folder)]):
        assert main(again) == 2
        assert "line 1 of" in capsys.readouterr().err
    assert file.read_text() == before


def test_axes_are_spelled_three_ways():
    assert axis("T", "64").tolist() == [64]
    assert axis("T", "16,64,2.5").tolist() == [16, 64, 2.5]
    np.testing.assert_allclose(axis("T", "16:4096:5"), [16, 64, 256, 1024, 4096])
    np.testing.assert_allclose(axis("w0", "-1:3:5"), [-1, 0, 1, 2, 3])


def test_the_console_script():
    """In a process of its own: exit codes, and a closed pipe is no error."""
    environment = dict(os.environ)

    def onset(*arguments):
        command = [sys.executable, "-m", "onset", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    good = onset("predict", "single-location", "--T", "32", "--d", "16", "--B", "4", "--json")
    assert good.returncode == 0
    assert abs(json.loads(good.stdout)["single-location"]["flow"]["time"] - 104.795) < 1e-3
    bad = onset("predict", "single-location", "--T", "1", "--d", "16")
    assert (bad.returncode, bad.stdout) == (2, "")
