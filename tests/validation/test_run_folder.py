import json
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dynamics import InputError
from validation import RunFolder


@dataclass(frozen=True)
class Config:
    sizes: tuple[int, ...] = (1, 2)
    rate: float = 0.5


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path, "test", Config())
    for number, cell in enumerate("ba"):
        folder.add(cell, {"value": number}, {"curve": np.arange(3.0) + number})
    return folder


def reopen(folder):
    return RunFolder(folder.path.parent, "test", Config())


def test_results_are_found_again(folder):
    again = reopen(folder)
    assert (
        again.results
        == folder.results
        == {
            "b": {"cell": "b", "value": 0},
            "a": {"cell": "a", "value": 1},
        }
    )
    np.testing.assert_array_equal(again.arrays("a")["curve"], [1, 2, 3])
    assert RunFolder.existing(folder.path).config == {"run": "test", "sizes": [1, 2], "rate": 0.5}


def test_the_name_is_the_content(folder, tmp_path):
    assert reopen(folder).path == folder.path
    for other in (replace(Config(), rate=0.6), replace(Config(), sizes=(1,))):
        assert RunFolder(tmp_path, "test", other).path != folder.path


def test_finishing_orders_the_lines(folder):
    folder.finish(["a", "b"])
    lines = (folder.path / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["cell"] for line in lines] == ["a", "b"]
    assert reopen(folder).results == folder.results


def test_half_a_line_is_dropped_and_nothing_else(folder):
    file = folder.path / "results.jsonl"
    file.write_text(file.read_text()[:-7])
    again = reopen(folder)
    assert list(again.results) == ["b"]
    again.add("a", {"value": 9}, {"curve": np.zeros(1)})
    assert reopen(folder).results["a"]["value"] == 9


def test_a_cell_without_its_arrays_is_unfinished(folder):
    (folder.path / "arrays" / "a.npz").unlink()
    assert list(reopen(folder).results) == ["b"]


def _spoil_config(path):
    (path / "config.toml").write_text("rate = ")


def _change_config(path):
    file = path / "config.toml"
    file.write_text(file.read_text().replace("0.5", "0.6"))


def _remove_config(path):
    (path / "config.toml").unlink()


def _spoil_line(path):
    file = path / "results.jsonl"
    file.write_text("{not json}\n" + file.read_text())


def _other_line(path):
    file = path / "results.jsonl"
    file.write_text("[1]\n" + file.read_text())


def _binary_lines(path):
    (path / "results.jsonl").write_bytes(b"\xff\xfe\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_spoil_config, "config.toml is unreadable"),
        (_change_config, "does not hold the config that names its folder"),
        (_remove_config, "holds files but no config.toml"),
        (_spoil_line, "line 1 of .* is not a result: remove it"),
        (_other_line, "line 1 of .* is not a result: remove it"),
        (_binary_lines, "results.jsonl is unreadable"),
    ],
)
def test_damage_is_named_and_nothing_is_lost(folder, damage, message):
    damage(folder.path)
    before = {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}
    with pytest.raises(InputError, match=message):
        reopen(folder)
    assert before == {file: file.read_bytes() for file in folder.path.rglob("*") if file.is_file()}


def test_unreadable_arrays_are_named(folder):
    (folder.path / "arrays" / "a.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match="a.npz is unreadable: remove it"):
        reopen(folder).arrays("a")


def test_a_folder_whose_config_was_edited_is_not_reported_on(folder):
    _change_config(folder.path)
    with pytest.raises(InputError, match="does not hold the config that names its folder"):
        RunFolder.existing(folder.path)


def test_a_run_killed_before_its_config_can_begin_again(tmp_path):
    path = RunFolder(tmp_path, "test", Config()).path
    (path / "config.toml").rename(path / "config.toml.1-2.partial")
    assert RunFolder(tmp_path, "test", Config()).results == {}


def test_an_absent_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        RunFolder.existing(tmp_path / "nowhere")


def test_a_folder_in_use_by_another_process_is_named(folder):
    """The lock goes with its process, so that a killed run leaves none behind."""
    script = (
        "import sys; from filelock import FileLock; "
        f"lock = FileLock({str(folder.path / '.lock')!r}); lock.acquire(timeout=5); "
        "print('held', flush=True); sys.stdin.read()"
    )
    folder._file_lock.release()
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="is being written by another process: wait"):
            reopen(folder)
        other.kill()
        other.wait()
        assert reopen(folder).results == folder.results


def test_places_that_cannot_hold_a_folder_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used .*: choose another --out"):
        RunFolder(tmp_path / "file", "test", Config())
