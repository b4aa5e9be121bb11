"""`onset sweep MODEL`: plateau lengths over a grid of settings, the law beside the flow."""

from __future__ import annotations

import codecs
import csv
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from dynamics import InputError, PassageStatus, Settings, grid
from dynamics.files import atomic
from surrogate_models import SurrogateModel, predict
from validation import RunFolder

from .arguments import PassageOptions, axis, number, parse_question, set_up_jax

USAGE = """\
usage: onset sweep MODEL --PARAMETER VALUES … [--ratio 0.2] [--lr LR] [--out FOLDER] [--json]

The model's plateau lengths over every combination of values: a number, a list like 16,64,256,
or low:high:count like 16:4096:100, even in the logarithm where both ends are positive. Values
need not be whole numbers: the flow is defined for real ones. With --out, a folder with
all lanes as CSV and a picture; interrupted, the same command takes it up again.
`onset sweep MODEL --help` lists the parameters."""

# Lanes solved between two entries in a run folder: some seconds' work.
BLOCK = 1 << 17
SHOWN = 24


@dataclass(frozen=True)
class Sweep(PassageOptions):
    """Plateau lengths over every combination of parameter values, in units of t = lr × steps."""

    out: Path | None = None
    """Folder that the sweep's folder lies in; nothing is written by default."""
    json: bool = False
    """Print one JSON object with all lanes."""


@dataclass(frozen=True)
class SweepConfig:
    """What a sweep's folder holds: it names the folder."""

    model: str
    axes: dict[str, list[float]]
    ratio: float
    horizon: float
    """0 stands for the model's default."""


def main(arguments: Sequence[str]) -> None:
    question = parse_question("sweep", arguments, Sweep, str, usage=USAGE)
    if question is None:
        return
    chosen, given, options = question
    axes = {name: axis(name, text) for name, text in given.items()}
    if (lanes := np.prod([float(len(values)) for values in axes.values()])) > 1e8:
        raise InputError(f"the grid holds {lanes:.3g} settings: give 100 million at most")
    settings = chosen.settings(grid(**axes))
    set_up_jax()

    started = time.perf_counter()
    folder = None
    if options.out is not None:
        values = {name: array.tolist() for name, array in axes.items()}
        config = SweepConfig(chosen.name, values, options.ratio, options.horizon or 0.0)
        folder = RunFolder(options.out, "sweep", config)
    result = _solve(chosen, settings, options, folder)
    seconds = time.perf_counter() - started

    unit = "t" if options.lr is None else "steps"
    if options.lr is not None:
        result |= {name: result[name] / options.lr for name in ("law", "flow")}
    if folder is not None:
        _write_csv(folder.path / "sweep.csv", settings, result)
        if drawn := any(len(values) > 1 for values in axes.values()):
            from .sweep_picture import draw_sweep

            draw_sweep(chosen, axes, result, unit, folder.path / "sweep")
    if options.json:
        print(json.dumps(_as_json(settings, result, unit)))
    else:
        _print(settings, result, unit, seconds)
        for law in (law for law in chosen.laws[:1] if law.validity):
            held = chosen.law_holds(law, law.validity[-1], settings, options.ratio)
            print(f"{law.name}: {held.sum():,} of {held.size:,} settings within its widest range")
            print(f"    {law.validity[-1]} ({law.measured})")
        if folder is not None:
            files = "sweep.csv, sweep.png, sweep.pdf" if drawn else "sweep.csv"
            print(f"written to {folder.path}: {files}")


def _solve(
    chosen: SurrogateModel, settings: Settings, options: Sweep, folder: RunFolder | None
) -> dict[str, np.ndarray]:
    """Law, flow and status of every lane, flat. Blocks that the folder holds are read from it."""
    flat = {name: values.ravel() for name, values in settings.items()}
    lanes = len(next(iter(flat.values())))
    starts = range(0, lanes, BLOCK)
    blocks = {f"block-{number:05d}": start for number, start in enumerate(starts)}
    parts = []
    for name, start in tqdm(blocks.items(), unit="block", disable=len(blocks) == 1 or None):
        if folder is not None and name in folder.results:
            parts.append(folder.arrays(name))
            continue
        at = {key: values[start : start + BLOCK] for key, values in flat.items()}
        prediction = predict(chosen, at, rho=options.ratio, horizon=options.horizon)
        passages = prediction.passages
        law = next(iter(prediction.laws.values()), np.full(passages.time.shape, np.nan))
        part = {"law": law, "flow": passages.time, "status": passages.status}
        parts.append(part)
        if folder is not None:
            folder.add(name, {"reached": int(passages.reached.sum())}, part)
    if folder is not None:
        folder.finish(list(blocks))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _rows(settings: Settings, result: dict[str, np.ndarray]) -> Iterator[list[Any]]:
    columns = [values.ravel() for values in (*settings.values(), *result.values())]
    for *values, status in zip(*columns, strict=True):
        yield [*map(float, values), PassageStatus(int(status)).name.lower()]


def _write_csv(path: Path, settings: Settings, result: dict[str, np.ndarray]) -> None:
    with atomic(path) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file))
        writer.writerow([*settings, *result])
        writer.writerows(_rows(settings, result))


def _as_json(settings: Settings, result: dict[str, np.ndarray], unit: str) -> dict[str, Any]:
    status = [PassageStatus(int(s)).name.lower() for s in result["status"]]
    return {
        "unit": unit,
        **{name: values.ravel().tolist() for name, values in settings.items()},
        **{
            name: [float(v) if np.isfinite(v) else None for v in result[name]]
            for name in ("law", "flow")
        },
        "status": status,
    }


def _print(settings: Settings, result: dict[str, np.ndarray], unit: str, seconds: float) -> None:
    header = [*settings, f"law ({unit})", f"flow ({unit})", "law/flow − 1", "status"]
    lines = [header]
    for row, *_ in zip(_rows(settings, result), range(SHOWN), strict=False):
        *values, law, flow, status = row
        error = f"{law / flow - 1:+.2%}" if status == "reached" else "–"
        bound = {"reached": "", "censored": "> ", "failed": ""}[status]
        cells = [number(law), f"{bound}{number(flow)}", error, status]
        lines.append([*(f"{value:g}" for value in values), *cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    lanes = len(result["status"])
    if lanes > SHOWN:
        print(f"… and {lanes - SHOWN:,} more: --out FOLDER or --json gives all")
    counts = ", ".join(f"{np.sum(result['status'] == s):,} {s.name.lower()}" for s in PassageStatus)
    print(f"{lanes:,} settings: {counts}; {seconds:.2f} s")
