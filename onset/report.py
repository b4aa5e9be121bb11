"""`onset report FOLDER`: the report of a finished run, written again from its results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from validation import RunFolder, write_report
from validation.single_location_report import text_table

from .arguments import parse, set_up_jax


@dataclass(frozen=True)
class Report:
    """Write a finished run's report and pictures again, without training anything."""

    folder: tyro.conf.Positional[Path]
    """The run's folder."""
    json: bool = False
    """Print the report as one JSON object."""


def main(arguments: Sequence[str]) -> None:
    config = parse(Report, arguments, prog="onset report")
    folder = RunFolder.existing(config.folder)
    set_up_jax()
    summary = write_report(folder)
    print(json.dumps(summary) if config.json else text_table(summary))
