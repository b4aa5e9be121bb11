"""`onset laws`: the closed-form laws with range and error, and which of them a setting admits."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

from dynamics import InputError
from surrogate_models import MODELS, RHO, Law, SurrogateModel, Validity, model

from .arguments import QuestionOptions, choose_model, number, parse, parse_parameters

USAGE = """\
usage: onset laws [--json]
       onset laws MODEL [--json]
       onset laws MODEL --PARAMETER VALUE … [--ratio 0.2] [--lr LR] [--json]

Every closed-form law, where its error against its model's flow was measured, and that error; or,
for a setting, each law's plateau length and whether it is stated there."""


@dataclass(frozen=True)
class Laws:
    """The closed-form laws, their ranges and errors."""

    json: bool = False
    """Print one JSON object."""


@dataclass(frozen=True)
class LawsAt(QuestionOptions):
    """The laws' plateau lengths at a setting, and which of them are stated there."""

    json: bool = False
    """Print one JSON object."""


def main(arguments: Sequence[str]) -> None:
    flags = [argument for argument in arguments if argument.startswith("-")]
    if flags and set(flags) & {"-h", "--help"} and arguments[0].startswith("-"):
        choose_model([], USAGE)
        return
    if not arguments or arguments[0].startswith("-"):
        config = parse(Laws, arguments, prog="onset laws")
        _show([build() for build in MODELS.values()], config)
        return
    chosen = model(arguments[0])
    if not chosen.laws:
        raise InputError(f"{chosen.name} has no closed-form law: use onset predict for its flow")
    if set(flags) <= {"--json"}:
        _show([chosen], parse(Laws, arguments[1:], prog=f"onset laws {arguments[0]}"))
        return
    given, config = parse_parameters("laws", chosen, arguments, LawsAt, float)
    _show_at(chosen, given, config)


def standing(law: Law, validity: Validity | None, ratio: float) -> str:
    """In words: the range that holds a setting, or that none does."""
    if validity is not None:
        return f"stated for {validity} ({law.measured})"
    if not law.validity:
        return f"its error was not measured ({law.measured})"
    of_ratio = [part for part in law.limits.atoms(Relational) if part.free_symbols == {RHO}]
    if any(part.subs(RHO, ratio) == sp.false for part in of_ratio):
        return f"not stated at the loss ratio {ratio:g} ({law.measured}); choose it by --ratio"
    return f"outside its stated range; the widest is {law.validity[-1]} ({law.measured})"


def _show(models: Sequence[SurrogateModel], config: Laws) -> None:
    if config.json:
        laws = {each.name: [_as_json(law) for law in each.laws] for each in models}
        print(json.dumps(laws))
        return
    rows = [
        (each.name, law.name, *row)
        for each in models
        for law in each.laws
        for row in [_range(validity) for validity in law.validity] or [("not measured", "")]
    ]
    rows.insert(0, ("model", "law", "stated for", "error"))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    before = ("", "")
    for row in rows:
        shown = ["" if row[i] == before[i] and row[0] == before[0] else row[i] for i in (0, 1)]
        cells = zip([*shown, *row[2:]], widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
        before = row[:2]
    print("\nerror = law/flow − 1. Beyond these ranges nothing is claimed, nor beyond")
    for measured in dict.fromkeys(law.measured for each in models for law in each.laws):
        names = dict.fromkeys(
            each.name for each in models if any(law.measured == measured for law in each.laws)
        )
        print(f"  {measured}: {', '.join(names)}")
    if len(models) == 1:
        for law in models[0].laws:
            print(f"\n{law.name}: t = {law.time}\n    {law.derivation}.")
        if all(law.proof for law in models[0].laws):
            print(f"\n`onset derive {models[0].name}` proves them.")


def _range(validity: Validity) -> tuple[str, str]:
    condition, error = str(validity).rsplit(": error ", 1)
    return condition, error


def _show_at(chosen: SurrogateModel, given: dict[str, Any], config: LawsAt) -> None:
    settings = chosen.settings(given, integers=True)
    answers = []
    for law in chosen.laws:
        time = float(chosen.law_times(law, settings, config.ratio))
        known = time if math.isfinite(time) else None
        validity = chosen.law_validity(law, settings, config.ratio)
        answers.append({**_as_json(law), "time": known, "applies": validity and str(validity)})
        if config.lr is not None:
            answers[-1]["steps"] = known and known / config.lr
        if not config.json:
            steps = "" if config.lr is None else f"  ({time / config.lr:,.1f} steps)"
            print(f"{law.name:24}{number(time):>16}{steps}")
            print(f"    {standing(law, validity, config.ratio)}")
    if config.json:
        at = {name: float(value) for name, value in settings.items()}
        print(json.dumps({"settings": at, "ratio": config.ratio, "laws": answers}))


def _as_json(law: Law) -> dict[str, Any]:
    return {
        "law": law.name,
        "expression": str(law.time),
        "derivation": law.derivation,
        "measured": law.measured,
        "validity": [
            {"condition": _range(validity)[0], "error": list(validity.error)}
            for validity in law.validity
        ],
    }
