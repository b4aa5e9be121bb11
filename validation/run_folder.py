"""A run on disk: named by what it computes, resumable, never half-read.

    <root>/<name>-<hash of config>/
        config.toml      what is computed; written first, never changed
        results.jsonl    one finished cell a line, appended as cells finish
        arrays/*.npz     a finished cell's arrays, written before its line

A process may be killed at any moment. Files appear under their names only when complete, and
a last line without its end is dropped, so that a cell is either finished or computed again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from filelock import FileLock, Timeout

from dynamics import InputError
from dynamics.files import atomic


class RunFolder:
    """A folder of results for one frozen config dataclass.

    Arguments:

    - `root`: the folder that runs lie in; created if need be.
    - `name`: what kind of run it is.
    - `config`: a dataclass of plain values. Its content names the folder.

    Raises `InputError` if the folder exists and cannot be trusted.
    """

    def __init__(self, root: Path, name: str, config: Any):
        values = json.loads(json.dumps({"run": name, **dataclasses.asdict(config)}))
        self._open(Path(root) / _name(values), values)

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """A folder written before; `config` and `results` are what it holds."""
        folder = cls.__new__(cls)
        folder._open(Path(path), None)
        return folder

    def _open(self, path: Path, config: dict[str, Any] | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        file = path / "config.toml"
        try:
            if config is not None:
                self._reserve()
            if config is not None and not file.exists():
                if any(child.is_file() and _kept(child) for child in path.rglob("*")):
                    raise InputError(
                        f"run folder {path} holds files but no config.toml: "
                        "move it away, or choose another --out"
                    )
                (path / "arrays").mkdir(parents=True, exist_ok=True)
                write(file, tomli_w.dumps(config))
            if config is None and not file.exists():
                runs = sorted(child.parent.name for child in path.glob("*/config.toml"))
                remedy = f"one of the runs in it, {', '.join(runs)}" if runs else "a run's folder"
                raise InputError(f"{path} holds no config.toml: name {remedy}")
            found = tomllib.loads(file.read_text())
        except OSError as error:
            raise InputError(f"{path} cannot be used ({error}): choose another --out") from None
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(
                f"{file} is unreadable ({error}): move the run folder away, or name another"
            ) from None
        if found != (config or found) or _name(found) != path.resolve().name:
            raise InputError(
                f"{file} does not hold the config that names its folder: move the folder away"
            )
        self.config = found
        (path / "arrays").mkdir(exist_ok=True)
        self.results = self._read_results()

    def _reserve(self) -> None:
        """Keep other processes from writing here until this one ends, however it ends."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._file_lock = FileLock(self.path / ".lock", is_singleton=True)
        try:
            self._file_lock.acquire(timeout=0)
        except Timeout:
            raise InputError(
                f"run folder {self.path} is being written by another process: "
                "wait until that ends, or choose another --out"
            ) from None

    def _read_results(self) -> dict[str, dict[str, Any]]:
        """Finished cells by name: those with a whole line and readable arrays."""
        file = self.path / "results.jsonl"
        if not file.exists():
            return {}
        try:
            text = file.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{file} is unreadable ({error}): move it away") from None
        whole, _, half = text.rpartition("\n")
        results = {}
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                cell = json.loads(line)
                results[cell["cell"]] = cell
            except (ValueError, TypeError, KeyError):
                raise InputError(
                    f"line {number} of {file} is not a result: remove it to compute its cell again"
                ) from None
        if half:
            write(file, whole and whole + "\n")
        for name in results:
            if self._array(name).exists() and not zipfile.is_zipfile(self._array(name)):
                raise InputError(
                    f"{self._array(name)} is unreadable: remove it to compute its cell again"
                )
        return {name: cell for name, cell in results.items() if self._array(name).exists()}

    def _array(self, cell: str) -> Path:
        return self.path / "arrays" / f"{cell}.npz"

    def arrays(self, cell: str) -> dict[str, np.ndarray]:
        """A finished cell's arrays."""
        file = self._array(cell)
        try:
            with np.load(file, allow_pickle=False) as arrays:
                return dict(arrays)
        except Exception as error:
            raise InputError(
                f"{file} is unreadable ({error}): remove it to compute its cell again"
            ) from None

    def add(self, cell: str, result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Record a finished cell. Safe to call from several threads."""
        with atomic(self._array(cell)) as file:
            np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
        record = {"cell": cell, **result}
        with self._lock, open(self.path / "results.jsonl", "a") as lines:
            lines.write(json.dumps(record) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
            self.results[cell] = record

    def finish(self, cells: list[str]) -> None:
        """Put the results in the cells' order, so that an interrupted run ends as any other."""
        ordered = {cell: self.results[cell] for cell in cells}
        lines = (json.dumps(record) + "\n" for record in ordered.values())
        write(self.path / "results.jsonl", "".join(lines))
        for stray in (self.path / "arrays").glob("*.partial"):
            stray.unlink()
        self.results = ordered


def _name(config: Mapping[str, Any]) -> str:
    """The folder's name: what is run, and a hash of all that it is run with."""
    text = json.dumps(config, sort_keys=True)
    return f"{config.get('run')}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _kept(file: Path) -> bool:
    """Whether a file is more than a leftover of a process killed before it began."""
    return file.name != ".lock" and not file.name.endswith(".partial")


def write(path: Path, text: str) -> None:
    """Write a file that is never seen half-written."""
    with atomic(path) as file:
        file.write(text.encode())
