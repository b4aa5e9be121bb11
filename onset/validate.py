"""`onset validate STUDY`: train nets, set them beside the theory, write the report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynamics import InputError
from validation.single_location import NAME, PRESETS, SingleLocationStudy, run
from validation.single_location_report import text_table, write_report

from .arguments import choose, parse, set_up_jax

USAGE = f"""\
usage: onset validate {NAME} [--preset {"|".join(PRESETS)}] [--out runs] [--json] …

Trains attention layers on single-location regression over a grid of T, d and B, and compares
each net's plateau length with its prediction. Interrupted, the same command takes it up again.
`onset validate {NAME} --help` lists the settings."""


@dataclass(frozen=True)
class Validate:
    """Train nets over a grid and compare each plateau length with its prediction."""

    study: SingleLocationStudy = PRESETS["demo"]
    preset: str = "demo"
    """Settings to start from; the other flags change them."""
    out: Path = Path("runs")
    """Folder that the run's folder lies in."""
    json: bool = False
    """Print the report as one JSON object."""


def main(arguments: Sequence[str]) -> None:
    study = choose(arguments, USAGE, [NAME], "study")
    if study is None:
        return
    # Lists may be spelled with commas, as in a sweep.
    arguments = [part for a in arguments for part in (a.split(",") if a[:1].isdigit() else [a])]
    preset = _preset(arguments)
    config = parse(
        Validate,
        arguments[1:],
        prog=f"onset validate {study}",
        default=Validate(PRESETS[preset], preset),
    )
    set_up_jax()
    folder = run(config.study, config.out)
    summary = write_report(folder)
    print(json.dumps(summary) if config.json else text_table(summary))
    print(f"report: {folder.path / 'report.md'}", file=sys.stderr)


def _preset(arguments: Sequence[str]) -> str:
    """The preset named among the arguments: it sets the other flags' defaults."""
    for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
        name = flag.removeprefix("--preset=") if flag.startswith("--preset=") else value
        if flag.startswith("--preset") and name not in PRESETS:
            raise InputError(f"preset {name!r} is unknown: use one of {', '.join(PRESETS)}")
        if flag.startswith("--preset"):
            return name
    return "demo"
