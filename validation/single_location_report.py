"""The report of a single-location run: table, JSON, pictures, and the page that holds them."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from .plateau import median_interval
from .run_folder import RunFolder, write
from .single_location import PREDICTORS, StudyResults, results
from .single_location_pictures import draw_curves, draw_parity


def write_report(folder: RunFolder) -> dict[str, Any]:
    """Write report.md, report.json and the pictures of a finished run into its folder.

    Returns what report.json holds. Raises `InputError` if the run is not finished.
    """
    outcome = results(folder)
    summary = summarise(outcome)
    write(folder.path / "report.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
    draw_parity(outcome, folder.path / "predicted-measured")
    draw_curves(outcome, folder, folder.path / "loss-curves")
    write(folder.path / "report.md", _markdown(summary))
    return summary


def summarise(outcome: StudyResults) -> dict[str, Any]:
    """The study's numbers: per cell medians in steps, per predictor its errors.

    Medians are over nets; a number that is infinite or unknown (a censored median) is None.
    """
    lr = outcome.study.lr
    cells = []
    for index in range(len(outcome.cells)):
        times = outcome.measured.bounded[index] / lr
        median, low, high, coverage = median_interval(times)
        cells.append(
            {
                **{name: int(outcome.settings[name][index, 0]) for name in ("T", "d", "B")},
                "predicted": {
                    name: _number(np.median(times[index]) / lr)
                    for name, times in outcome.predicted.items()
                },
                "measured": _number(median),
                "interval": [_number(low), _number(high)],
                "coverage": _number(coverage),
                "error": {
                    name: _number(comparison.cell_medians[index])
                    for name, comparison in outcome.compared.items()
                },
            }
        )
    return {
        "study": json.loads(json.dumps(dataclasses.asdict(outcome.study))),
        "law": {"name": outcome.law.name, "time": str(outcome.law.time)},
        "nets": int(outcome.measured.time.size),
        "censored": int(np.isinf(outcome.measured.bounded).sum()),
        "failed": int(np.isnan(outcome.measured.time).sum()),
        "predictors": {
            name: {
                "meaning": PREDICTORS[name],
                "median_abs_error": _number(comparison.median),
                "p95_abs_error": _number(comparison.quantile(0.95)),
                "max_abs_error": _number(comparison.quantile(1.0)),
                "worst_cell_median": _number(comparison.worst_cell),
                "contradicted": comparison.contradicted,
            }
            for name, comparison in outcome.compared.items()
        },
        "cells": cells,
    }


def text_table(summary: dict[str, Any]) -> str:
    """The per-cell table and the errors beneath it, for a terminal."""
    header, rows = _table(summary)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = ["  ".join(c.rjust(w) for c, w in zip(r, widths, strict=True)) for r in [header, *rows]]
    return "\n".join([_title(summary), "", *lines, "", *_errors(summary)])


def _title(summary: dict[str, Any]) -> str:
    study = summary["study"]
    how = f"SGD on batches of {study['batch']}" if study["batch"] else "full-batch descent"
    start = f"W of scale {study['weight_scale']:g}/√d" if study["weight_scale"] else "W = 0"
    last = study["seed"] + study["seeds"] - 1
    return (
        f"plateau lengths in steps, loss ratio {study['ratio']:g}: {how}, lr {study['lr']:g}, "
        f"from {start}, seeds {study['seed']}–{last} per cell"
    )


def _table(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    coverage = summary["cells"][0]["coverage"]
    interval = "interval" if coverage is None else f"{100 * coverage:.4g}% interval"
    names = list(summary["predictors"])
    header = ["T", "d", "B", "law", "flow", "measured", interval]
    header += [f"{name} error" for name in names]
    rows = []
    for cell in summary["cells"]:
        low, high = (_steps(value) for value in cell["interval"])
        errors = [cell["error"][name] for name in names]
        rows.append(
            [
                *(str(cell[name]) for name in ("T", "d", "B")),
                *(_steps(cell["predicted"][name]) for name in ("law", "flow")),
                _steps(cell["measured"]),
                f"{low} … {high}",
                *("–" if error is None else f"{error:+.2%}" for error in errors),
            ]
        )
    return header, rows


def _errors(summary: dict[str, Any]) -> list[str]:
    lines = [
        f"{name}: {entry['meaning']}\n"
        f"    |error| per net: median {_percent(entry['median_abs_error'])}, "
        f"95th percentile {_percent(entry['p95_abs_error'])}, "
        f"largest {_percent(entry['max_abs_error'])}; "
        f"worst cell's median {_percent(entry['worst_cell_median'])}"
        for name, entry in summary["predictors"].items()
    ]
    lines.append(
        f"{summary['nets']} nets, {summary['censored']} censored, {summary['failed']} failed; "
        "nothing in any prediction is fitted"
    )
    return lines


def _markdown(summary: dict[str, Any]) -> str:
    header, rows = _table(summary)
    table = [header, ["---:"] * len(header), *rows]
    lines = "\n".join("| " + " | ".join(row) + " |" for row in table)
    errors = "\n".join(f"- {' '.join(line.split())}" for line in _errors(summary))
    settings = "\n".join(f"| {name} | {value} |" for name, value in summary["study"].items())
    return f"""# Single location: predicted and measured plateau lengths

{_title(summary)[0].upper()}{_title(summary)[1:]}.

Law: {summary["law"]["name"]}, t = `{summary["law"]["time"]}`, steps = t/lr. Law and flow, the
ODE, start from each net's own ‖W*‖ and initial weights; shown are medians over nets. The
interval is that of the measured median, between two order statistics, with its exact coverage.
Errors are medians over nets of predicted/measured − 1.

{errors}

![Predicted against measured](predicted-measured.png)

![Loss curves](loss-curves.png)

{lines}

| setting | value |
| --- | --- |
{settings}
"""


def _steps(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2%}" if value >= 1e-4 else f"{value:.1e}"


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
