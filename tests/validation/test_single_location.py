"""The study as a user runs it: prediction against nets, interruption, report."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from dynamics import InputError, PassageStatus
from validation import RunFolder, SingleLocationStudy, write_report
from validation.single_location import PRESETS, results, run

EXACT = SingleLocationStudy(
    T=(32, 64), d=(8,), B=(1, 4), seeds=3, lr=0.1, batch=0, weight_scale=1.0
)
SMALL = SingleLocationStudy(T=(8, 16), d=(4,), B=(1, 2), seeds=2)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return run(SMALL, tmp_path_factory.mktemp("runs"), progress=False)


def test_each_nets_plateau_is_predicted(tmp_path):
    """From its own M, w0 and r0, with nothing fitted; the step's error is linear in lr."""
    slow = results(run(EXACT, tmp_path, progress=False))
    fast = results(run(replace(EXACT, lr=1.0), tmp_path, progress=False))
    assert slow.measured.reached.all() and fast.measured.reached.all()
    assert slow.compared["flow"].quantile(1.0) < 1.5e-3
    ratio = fast.compared["flow"].error / slow.compared["flow"].error
    np.testing.assert_allclose(ratio, 10, rtol=0.1)
    assert slow.compared["descent"].quantile(1.0) < 5e-6
    assert fast.compared["descent"].quantile(1.0) < 5e-4
    # The nets differ by more than any of these errors: the prediction is each one's own.
    assert np.std(slow.measured.time[0]) / np.mean(slow.measured.time[0]) > 0.02


def test_a_budget_censors(tmp_path):
    outcome = results(run(replace(SMALL, budget=0.5), tmp_path, progress=False))
    assert (outcome.measured.status == PassageStatus.CENSORED).all()
    assert outcome.compared["flow"].censored == outcome.measured.time.size
    summary = write_report(RunFolder.existing(next(tmp_path.iterdir())))
    assert summary["cells"][0]["measured"] is None
    assert summary["predictors"]["flow"]["median_abs_error"] is None


def test_the_report_holds_what_was_measured(small):
    summary = write_report(small)
    written = json.loads((small.path / "report.json").read_text())
    assert written == summary and summary["nets"] == 8
    outcome = results(small)
    for cell, times in zip(summary["cells"], outcome.measured.time, strict=True):
        assert cell["measured"] == np.median(times)
        assert cell["interval"] == [times.min(), times.max()]
    page = (small.path / "report.md").read_text()
    assert f"{summary['cells'][0]['measured']:,.1f}" in page
    for name in ("predicted-measured", "loss-curves"):
        assert f"{name}.png" in page
        assert (small.path / f"{name}.png").stat().st_size > 10_000
        assert (small.path / f"{name}.pdf").stat().st_size > 5_000


def test_the_same_study_gives_the_same_files(small, tmp_path):
    again = run(SMALL, tmp_path, progress=False)
    assert _content(again.path) == _content(small.path)


def test_finished_cells_are_not_computed_again(small, monkeypatch):
    monkeypatch.setattr("validation.single_location._train_cell", None)
    assert run(SMALL, small.path.parent, progress=False).results == small.results


def test_a_killed_run_resumes_to_the_same_results(small, tmp_path):
    """SIGKILL once a cell is on disk; the second run must finish with an unbroken one's files."""
    command = [sys.executable, "-m", "onset", "validate", "single-location", "--out", str(tmp_path)]
    command += "--T 8 16 --d 4 --B 1 2 --seeds 2".split()
    environment = os.environ | {"ONSET_CACHE_DIR": str(tmp_path / "cache")}
    lines = tmp_path / small.path.name / "results.jsonl"
    process = subprocess.Popen(command, env=environment)
    while process.poll() is None and not (lines.exists() and lines.read_text().count("\n") >= 1):
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    first = lines.read_text().splitlines()[0]
    resumed = run(SMALL, tmp_path, progress=False)
    assert first in lines.read_text()
    assert resumed.path.name == small.path.name
    assert _content(resumed.path) == _content(small.path)


def test_unfinished_and_foreign_runs_are_named(tmp_path, small):
    unfinished = RunFolder(tmp_path, "single-location", SMALL)
    with pytest.raises(InputError, match="lacks 4 of 4 cells: run the same validate command"):
        results(unfinished)
    with pytest.raises(InputError, match="is not a run of single-location"):
        results(RunFolder(tmp_path, "other", SMALL))


@pytest.mark.parametrize(
    "damage", ['"time": 3', '"time": [1.0]', '"time": ["x", 1.0]', '"other": 1']
)
def test_a_result_without_its_numbers_is_named(small, tmp_path, damage):
    path = tmp_path / small.path.name
    shutil.copytree(small.path, path)
    lines = path / "results.jsonl"
    lines.write_text(re.sub(r'"time": \[[^]]*\]', damage, lines.read_text(), count=1))
    with pytest.raises(InputError, match="lacks 2 numbers of time for some cell: remove"):
        results(RunFolder.existing(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(T=()), r"T is \(\): give at least one value"),
        (dict(d=(4, 4)), "each once"),
        (dict(T=(1,)), "give T ≥ 2"),
        (dict(B=(16,)), "T = 8, B = 16: give B < T"),
        (dict(seeds=0), "seeds is 0: give 1 or more"),
        (dict(batch=-1), "batch is -1"),
        (dict(lr=0.0), "lr is 0.0: give a positive number"),
        (dict(lr=np.nan), "lr is nan"),
        (dict(weight_scale=-1.0), "weight_scale is -1.0"),
        (dict(ratio=1.0), "ratio is 1.0: give a number between 0 and 1"),
        (dict(budget=np.inf), "budget is inf"),
    ],
)
def test_bad_studies_are_named(change, message):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **change)


def _content(path):
    """The files that must not depend on how a run went; compressed arrays by their values."""
    content = {name: (path / name).read_text() for name in ("results.jsonl", "config.toml")}
    for file in sorted((path / "arrays").iterdir()):
        with np.load(file) as arrays:
            content[file.name] = {name: array.tolist() for name, array in arrays.items()}
    return content


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_full_batch_grid(scale, tmp_path):
    """T ∈ {64, 128}, d ∈ {16, 32}, 8 seeds: 0.1% at lr 0.1, 1% at lr 1, linear in lr."""
    study = replace(PRESETS["full-batch"], weight_scale=scale)
    slow = results(run(study, tmp_path, progress=False))
    fast = results(run(replace(study, lr=1.0), tmp_path, progress=False))
    assert slow.measured.reached.all() and fast.measured.reached.all()
    assert slow.compared["flow"].quantile(1.0) < 1e-3
    assert fast.compared["flow"].quantile(1.0) < 1e-2
    ratio = fast.compared["flow"].error / slow.compared["flow"].error
    np.testing.assert_allclose(ratio, 10, rtol=0.05)


@pytest.mark.long
def test_demo_grid(tmp_path):
    """Minibatch descent, 120 nets: median |error| ≤ 2%, 95th percentile ≤ 7%, cells ≤ 4%."""
    outcome = results(run(PRESETS["demo"], tmp_path, progress=False))
    flow = outcome.compared["flow"]
    assert outcome.measured.reached.all()
    assert flow.median < 0.02 and flow.quantile(0.95) < 0.07 and flow.worst_cell < 0.04
    repeated = outcome.settings["B"][:, 0] == 4
    assert (outcome.compared["shared"].cell_medians[repeated] < -0.3).all()
