"""`onset solve MODEL --for NAME --within N`: which values make emergence fall within N steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import sympy as sp
import tyro

from dynamics import InputError, PassageStatus
from surrogate_models import (
    Inverse,
    Law,
    SurrogateModel,
    Validity,
    invert_flow,
    invert_law,
    predict,
)

from .arguments import PassageOptions, choose_model, number, parse_parameters, set_up_jax
from .laws import standing

USAGE = """\
usage: onset solve MODEL --for NAME --within N --PARAMETER VALUE … [--lr LR] [--ratio 0.2] [--json]

Which values of the parameter NAME, or of lr, make the plateau end within N: steps where --lr is
given or asked for, else units of t = lr × steps. The closed-form law answers at once, then the
model's flow."""


@dataclass(frozen=True)
class Solve(PassageOptions):
    """Which values of one parameter, or of lr, make the plateau end in time."""

    unknown: Annotated[str, tyro.conf.arg(name="for")] = ""
    """The parameter to solve for, or lr."""
    within: float = 0.0
    """Steps where lr is given or asked for, else units of t."""
    between: tuple[float, float] | None = None
    """The range to look in; the parameter's domain by default."""
    json: bool = False
    """Print one JSON object."""


def main(arguments: Sequence[str]) -> None:
    chosen = choose_model(arguments, USAGE)
    if chosen is None:
        return
    unknown = _named(arguments, [*(p.name for p in chosen.parameters), "lr"])
    given, config = parse_parameters(
        "solve", chosen, arguments, Solve, float, leave_out=() if unknown is None else (unknown,)
    )
    if unknown is None:
        raise InputError("--for is missing: name the parameter to solve for, or lr")
    if not (np.isfinite(config.within) and config.within > 0):
        raise InputError(f"within is {config.within:g}: give a positive number of steps or time")
    if unknown == "lr":
        _learning_rate(chosen, given, config)
    else:
        _parameter(chosen, unknown, given, config)


def _named(arguments: Sequence[str], known: Sequence[str]) -> str | None:
    """The parameter to solve for: it decides which flags there are."""
    for flag, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if flag == "--for" or flag.startswith("--for="):
            name = flag.removeprefix("--for=") if "=" in flag else value
            if name not in known:
                raise InputError(f"--for is {name!r}: use one of {', '.join(known)}")
            return name
    return None


def _learning_rate(chosen: SurrogateModel, given: dict[str, Any], config: Solve) -> None:
    """The plateau's length in t does not depend on lr, so steps = t/lr."""
    if config.lr is not None:
        raise InputError(f"lr is {config.lr} and asked for: leave --lr out")
    settings = chosen.settings(given, integers=True)
    say = _speaker(config)
    _header(say, settings, f"{config.within:,g} steps", config)
    answers: dict[str, Any] = {}
    ranges = [(law, chosen.law_validity(law, settings, config.ratio)) for law in chosen.laws]
    ranges.sort(key=lambda pair: pair[1] is None)
    for law, validity in ranges[:1]:
        time = float(chosen.law_times(law, settings, config.ratio))
        answers[law.name] = {"time": time, "lr": time / config.within}
        say(f"{law.name}: lr ≥ {time / config.within:.4g}, as t = {number(time)}")
        say(f"    {standing(law, validity, config.ratio)}", flush=True)
    set_up_jax()
    found = predict(chosen, settings, rho=config.ratio, horizon=config.horizon).passages
    time, status = float(found.time), int(found.status)
    reached = status == PassageStatus.REACHED
    answers["flow"] = {
        "time": time if reached else None,
        "lr": time / config.within if reached else None,
    }
    if reached:
        say(f"flow: lr ≥ {time / config.within:.4g}, as t = {number(time)}")
        say("    where steps that large still follow the flow")
    elif status == PassageStatus.CENSORED:
        say(f"flow: lr > {time / config.within:.4g}, as t is longer than {number(time)}")
    else:
        say("flow: unknown, the solver failed")
    if config.json:
        print(json.dumps({"for": "lr", "within": config.within, **answers}))


def _parameter(chosen: SurrogateModel, unknown: str, given: dict[str, Any], config: Solve) -> None:
    _check_given(chosen, unknown, given)
    say = _speaker(config)
    lr = config.lr or 1.0
    time = config.within * lr
    unit = "t" if config.lr is None else f"steps at lr {config.lr:g}"
    options: Any = {"rho": config.ratio, "between": config.between}
    answers: dict[str, Any] = {}
    by_law = [
        (law, invert_law(chosen, law, unknown, time, given, **options)) for law in chosen.laws
    ]
    defaults = {
        parameter.name: parameter.default
        for parameter in chosen.parameters
        if parameter.name not in given and parameter.name != unknown
    }
    _header(say, {**given, **defaults}, f"{config.within:,g} {unit}", config)

    def stated(law: Law, answer: Inverse) -> Validity | None:
        """The range of the law that holds its answer: its roots, else where it was looked for."""
        ends = [
            value
            for interval in answer.within
            for value, edge in zip((interval.low, interval.high), interval.edges, strict=True)
            if edge is not None
        ]
        there = chosen.settings({**given, unknown: np.array(ends or answer.searched)})
        return chosen.law_validity(law, there, config.ratio)

    # The first law that is stated where it answers; failing that, one that holds the unknown.
    symbol = next(p.symbol for p in chosen.parameters if p.name == unknown)
    by_law.sort(key=lambda pair: (stated(*pair) is None, not pair[0].time.has(symbol)))
    for law, answer in by_law[:1]:
        answers[law.name] = _as_json(answer, lr)
        _say(say, law.name, unknown, answer, lr)
        say(f"    {standing(law, stated(law, answer), config.ratio)}", flush=True)
    set_up_jax()
    answer = invert_flow(chosen, unknown, time, given, **options)
    answers["flow"] = _as_json(answer, lr)
    _say(say, "flow", unknown, answer, lr)
    if config.json:
        print(json.dumps({"for": unknown, "within": config.within, "lr": config.lr, **answers}))


def _check_given(chosen: SurrogateModel, unknown: str, given: dict[str, Any]) -> None:
    """The other parameters' values, before anything is searched."""
    for parameter in chosen.parameters:
        if parameter.name in given:
            parameter.check(given[parameter.name], integers=True)
        elif parameter.default is None and parameter.name != unknown:
            raise InputError(f"{parameter.name} ({parameter.meaning}) is missing: give it a value")


def _speaker(config: Solve) -> Any:
    return (lambda *_, **__: None) if config.json else print


def _header(say: Any, values: Any, limit: str, config: Solve) -> None:
    def spelled(value: Any) -> str:
        return f"{value}" if isinstance(value, sp.Basic) else f"{float(value):g}"

    at = "".join(f"{name} = {spelled(value)}, " for name, value in values.items()).rstrip(", ")
    end = f"the plateau is to end, at {config.ratio:g} of the initial loss, within {limit}"
    say(f"{at}; {end}" if at else end)


def _say(say: Any, name: str, unknown: str, answer: Inverse, lr: float) -> None:
    low, high = answer.searched
    looked = f"looking from {low:.6g} to {high:.6g}"
    if not answer.within:
        best, time = answer.fastest
        nearest = (
            "" if np.isnan(time) else f"; the shortest seen is {number(time / lr)} at {best:.6g}"
        )
        say(f"{name}: no {unknown} between {low:.6g} and {high:.6g} does{nearest}", flush=True)
    for interval in answer.within:
        ends = []
        for sign, value, edge, time, bound in zip(
            "≥≤",
            (interval.low, interval.high),
            interval.edges,
            interval.times,
            (low, high),
            strict=True,
        ):
            shown = f"{unknown} {sign} {_inward(value, sign)}"
            if edge is not None:
                root = f", root {edge:.6g}" if edge != value else ""
                ends.append(f"{shown} ({number(time / lr)}{root})")
            elif value != bound:
                ends.append(f"{shown} at least, beyond which it could not be solved")
        words = " and ".join(ends) or f"every {unknown}"
        say(f"{name}: {words}, {looked}", flush=True)
    if answer.failed:
        say(f"    of the values looked at, {answer.failed} could not be solved", flush=True)


def _inward(value: float, sign: str) -> str:
    """Six digits, rounded to the side that is in time."""
    if value == 0 or value == round(value):
        return f"{value:.12g}"
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 5)
    rounded = (np.ceil if sign == "≥" else np.floor)(value / unit) * unit
    return f"{rounded:.6g}"


def _as_json(answer: Inverse, lr: float) -> dict[str, Any]:
    best, time = answer.fastest
    return {
        "within": [
            {
                "low": interval.low,
                "high": interval.high,
                "edges": list(interval.edges),
                "times": [value / lr for value in interval.times],
            }
            for interval in answer.within
        ],
        "searched": list(answer.searched),
        "fastest": {"value": best, "time": None if np.isnan(time) else time / lr},
        "failed": answer.failed,
    }
