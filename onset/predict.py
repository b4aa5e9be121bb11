"""`onset predict MODEL`: one setting's plateau length, the law first and then the flow."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynamics import PassageStatus, Settings
from surrogate_models import SurrogateModel, model, predict

from .arguments import PassageOptions, number, parse_question, set_up_jax
from .laws import standing

USAGE = """\
usage: onset predict MODEL --PARAMETER VALUE … [--ratio 0.2] [--lr LR] [--json]

When the model's loss first falls to a fraction of its start: the closed-form law at once,
then the model's flow. `onset predict MODEL --help` lists the parameters."""


@dataclass(frozen=True)
class Predict(PassageOptions):
    """When the model's loss first falls to a fraction of its start, in units of t = lr × steps."""

    json: bool = False
    """Print one JSON object."""


def main(arguments: Sequence[str]) -> None:
    question = parse_question("predict", arguments, Predict, float, usage=USAGE)
    if question is None:
        return
    chosen, given, config = question
    settings = chosen.settings(given, integers=True)
    models = [chosen, *map(model, chosen.beside)]
    say = (lambda *_, **__: None) if config.json else print
    values = ", ".join(f"{name} = {value:g}" for name, value in settings.items())
    say(f"{values}; the plateau ends at {config.ratio:g} of the initial loss")
    say(_line("", "time", "" if config.lr is None else f"steps at lr {config.lr:g}"))
    answers = {}
    for each in models:
        answers[each.name] = {"laws": _laws(each, settings, config, say)}
    set_up_jax()
    for each in models:
        answers[each.name]["flow"] = _flow(each, settings, config, answers[each.name], say)
    if config.json:
        at = {name: float(value) for name, value in settings.items()}
        print(json.dumps({"settings": at, "ratio": config.ratio, "lr": config.lr, **answers}))


def _laws(each: SurrogateModel, settings: Settings, config: Predict, say: Any) -> dict[str, Any]:
    laws = {}
    for law in each.laws:
        time = float(each.law_times(law, settings, config.ratio))
        validity = each.law_validity(law, settings, config.ratio)
        say(_line(f"{each.name}: {law.name}", number(time), _steps(time, config.lr)))
        say(f"    t = {law.time}")
        say(f"    {standing(law, validity, config.ratio)}", flush=True)
        laws[law.name] = {
            **_answer(time, config.lr),
            "expression": str(law.time),
            "validity": validity and str(validity),
            "measured": law.measured,
        }
    return laws


def _flow(
    each: SurrogateModel, settings: Settings, config: Predict, answer: dict[str, Any], say: Any
) -> dict[str, Any]:
    passages = predict(each, settings, rho=config.ratio, horizon=config.horizon).passages
    time, status = float(passages.time), PassageStatus(int(passages.status))
    if status is not PassageStatus.REACHED:
        late = status is PassageStatus.CENSORED
        reason = f"longer than {time:,.6g}" if late else "unknown: the solver failed"
        say(_line(f"{each.name}: flow", reason))
        return {"status": status.name.lower(), "time": None, "horizon": config.horizon}
    say(_line(f"{each.name}: flow", number(time), _steps(time, config.lr)))
    for name, law in answer["laws"].items():
        if law["time"] is None:
            continue
        law["error"] = law["time"] / time - 1
        say(f"    {name} − flow: {_difference(law['time'], time)} ({law['error']:+.2%})")
    return {"status": "reached", **_answer(time, config.lr)}


def _line(label: str, time: str, steps: str = "") -> str:
    return f"{label:50}{time:>14}{steps:>20}".rstrip()


def _difference(law: float, flow: float) -> str:
    return f"{law - flow:+,.2f}" if abs(flow) >= 1000 else f"{law - flow:+.3g}"


def _steps(time: float, lr: float | None) -> str:
    return "" if lr is None else f"{time / lr:,.1f}"


def _answer(time: float, lr: float | None) -> dict[str, float | None]:
    """The time, and the steps where lr says them; None beyond floating point, as JSON needs."""
    known = time if math.isfinite(time) else None
    return {"time": known} if lr is None else {"time": known, "steps": known and known / lr}
