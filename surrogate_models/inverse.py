"""The inverse question: which values of one parameter end the plateau within a given time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp
from jaxtyping import Float

from dynamics import InputError, PassageStatus

from .model import Law, Parameter, SurrogateModel
from .prediction import predict

# Where a parameter ends that has no bound of its own.
_FURTHEST = 2.0**20
_COARSE, _FINE = 64, 4096
_MOST_STEPS = 80
_NEARLY = 1.2  # a local minimum this much too long is looked at more closely


@dataclass(frozen=True)
class Within:
    """An interval of values that end the plateau in time.

    - `low`, `high`: its ends; for a parameter that counts something, whole numbers.
    - `edges`: the real roots behind them, None where the interval ends with the range searched.
    - `times`: plateau lengths at `low` and `high`, in units of t.
    """

    low: float
    high: float
    edges: tuple[float | None, float | None]
    times: tuple[float, float]


@dataclass(frozen=True)
class Inverse:
    """What a law or a flow answers.

    - `within`: the intervals that end the plateau in time; empty where nothing does.
    - `searched`: the range of values that was looked at.
    - `fastest`: the value of the shortest plateau found, and that length in units of t (NaN if
      no plateau was seen to end).
    - `failed`: how many of the values looked at have no known plateau length.
    """

    within: tuple[Within, ...]
    searched: tuple[float, float]
    fastest: tuple[float, float]
    failed: int = 0


def invert_law(
    model: SurrogateModel,
    law: Law,
    unknown: str,
    time: float,
    at: Mapping[str, Any],
    *,
    rho: float = 0.2,
    between: tuple[float, float] | None = None,
) -> Inverse:
    """For which values of `unknown` the law's plateau length is at most `time`.

    Arguments and errors are those of `invert_flow`.
    """
    _check_time(time)
    parameter, grid = _grid(model, unknown, at, between, _FINE)

    def times(values: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        return model.law_times(law, model.settings({**at, unknown: values}), rho)

    def excess(x: float) -> tuple[float, float]:
        return float(np.log(times(np.array([x]))[0] / time)), np.nan

    return _intervals(parameter, grid, times, excess, time)


def invert_flow(
    model: SurrogateModel,
    unknown: str,
    time: float,
    at: Mapping[str, Any],
    *,
    rho: float = 0.2,
    between: tuple[float, float] | None = None,
) -> Inverse:
    """For which values of `unknown` the flow's plateau length is at most `time`.

    One batched call looks over the range; a root is refined by Newton steps on the passage time
    with its derivative, kept inside its bracket.

    Arguments:

    - `unknown`: the parameter to solve for.
    - `time`: in units of t.
    - `at`: the other parameters, scalars by name; defaults apply.
    - `rho`: the loss ratio at which the plateau ends.
    - `between`: the range to look in; by default the parameter's domain, up to 2²⁰.

    Raises `InputError` on an unknown parameter, an empty range, or a time that is not positive.
    """
    _check_time(time)
    parameter, grid = _grid(model, unknown, at, between, _COARSE)
    sources = _sources(model, parameter, at)

    # Whatever takes four times as long is too late, wherever exactly it ends.
    late = 4 * time

    def passages(values: Float[np.ndarray, " k"], horizon: float | None, *derivatives: str):
        settings = {**at, unknown: values}
        options: Any = {"horizon": horizon, "derivatives": derivatives}
        return predict(model, settings, rho=rho, **options).passages

    def times(
        values: Float[np.ndarray, " k"], horizon: float | None = late
    ) -> Float[np.ndarray, " k"]:
        found = passages(values, horizon)
        known = np.where(found.status == PassageStatus.CENSORED, np.inf, found.time)
        return np.where(found.status == PassageStatus.FAILED, np.nan, known)

    def excess(x: float) -> tuple[float, float]:
        found = passages(np.array([x]), late, *sources)
        if not found.reached[0]:
            return np.inf, np.nan
        slope = sum(found.derivatives[name][0] * weight(x) for name, weight in sources.items())
        return float(np.log(found.time[0] / time)), slope / found.time[0]

    answer = _intervals(parameter, grid, times, excess, time)
    if not answer.within:  # then how long the shortest takes is worth knowing
        answer = replace(answer, fastest=_shortest(grid, times(grid, None)))
    return answer


def _check_time(time: float) -> None:
    if not (np.isfinite(time) and time > 0):
        raise InputError(f"time is {time}: give a positive number")


def _grid(
    model: SurrogateModel,
    unknown: str,
    at: Mapping[str, Any],
    between: tuple[float, float] | None,
    count: int,
) -> tuple[Parameter, Float[np.ndarray, " k"]]:
    """The parameter, and admitted values of it from end to end of the range."""
    known = {parameter.name: parameter for parameter in model.parameters}
    if unknown not in known:
        raise InputError(f"{unknown!r} is no parameter of {model.name}: use {', '.join(known)}")
    if unknown in at:
        raise InputError(f"{unknown} is both given and asked for: leave it out")
    parameter = known[unknown]
    if between is None:
        between = _domain(parameter)
    low, high = map(float, between)
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"between is {low:g}, {high:g}: give two increasing finite numbers")
    parameter.check([low, high], integers=False)

    def admitted(values: Float[np.ndarray, " k"]) -> np.ndarray:
        return model.admits({**at, unknown: values})

    values = _spread(low, high, count)
    inside = values[admitted(values)]
    if not inside.size:
        raise InputError(f"no {unknown} between {low:g} and {high:g} is admitted: widen the range")
    low = _edge(admitted, inside[0], low)
    high = _edge(admitted, inside[-1], high)
    if parameter.integer:
        low, high = np.ceil(low), max(np.floor(high), np.ceil(low))
    values = _spread(low, high, count)
    return parameter, values[admitted(values)]


def _domain(parameter: Parameter) -> tuple[float, float]:
    """The range to look in: from the minimum, or a few standard units about 0."""
    if parameter.minimum is None:
        return -8.0, 8.0
    least = float(parameter.minimum)
    return (1e-6 if parameter.positive and least == 0 else least), _FURTHEST


def _spread(low: float, high: float, count: int) -> Float[np.ndarray, " k"]:
    """Values from low to high, even in the logarithm where they are positive; at 0 in both ways."""
    if low == high:
        return np.array([low])
    if low > 0:
        return np.geomspace(low, high, count)
    even = np.linspace(low, high, count)
    if low < 0:
        return even
    half = count // 2
    return np.unique([*np.linspace(0, high, half), *np.geomspace(1e-4 * high, high, half)])


def _edge(admitted: Callable[[np.ndarray], np.ndarray], inside: float, outside: float) -> float:
    """The last admitted value on the way from one inside to the range's end, to 1e-4 of it."""
    if admitted(np.array([outside]))[0]:
        return outside
    while abs(outside - inside) > 1e-4 * abs(inside):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if admitted(np.array([middle]))[0] else (inside, middle)
    return inside


def _sources(
    model: SurrogateModel, parameter: Parameter, at: Mapping[str, Any]
) -> dict[str, Callable[[float], float]]:
    """Which parameters move with the unknown, and how fast: itself, and defaults that hold it."""
    sources: dict[str, Callable[[float], float]] = {parameter.name: lambda x: 1.0}
    values: Any = {s: at[s.name] for s in model.flow.parameters if s.name in at}
    defaults: Any = {
        other.symbol: other.default
        for other in model.parameters
        if other.default is not None and other.name not in at and other is not parameter
    }
    for symbol, default in defaults.items():
        for _ in defaults:  # a default may name another parameter that is at its default
            default = default.subs(defaults)
        slope = sp.diff(default, parameter.symbol)
        if slope != 0:
            sources[symbol.name] = sp.lambdify(parameter.symbol, slope.subs(values), "numpy")
    return sources


def _intervals(
    parameter: Parameter,
    grid: Float[np.ndarray, " k"],
    times: Callable[[np.ndarray], np.ndarray],
    excess: Callable[[float], tuple[float, float]],
    time: float,
) -> Inverse:
    """The intervals where times ≤ time, between the roots of excess(x) = ln(time at x/time)."""
    grid, found = _with_minima(grid, times, time)
    unknown, soon = np.isnan(found), found <= time
    within = []
    # Values that could not be solved split no interval; how many they are is said.
    for first, last in _runs(soon | unknown):
        if not soon[first : last + 1].any():
            continue
        first, last = first + np.flatnonzero(soon[first : last + 1])[[0, -1]]
        # Beside a value that could not be solved no root can be told.
        ends = np.pad(found, 1, constant_values=np.nan)[[first, last + 2]]
        left, right = (
            None if np.isnan(end) else _root(excess, float(grid[beyond]), float(grid[here]))
            for end, beyond, here in zip(
                ends, (first - 1, min(last + 1, len(grid) - 1)), (first, last), strict=True
            )
        )
        low = grid[first] if left is None else left
        high = grid[last] if right is None else right
        if parameter.integer:
            low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
            if low > high:
                continue
        at_ends = times(np.array([low, high]))
        within.append(
            Within(float(low), float(high), (left, right), (float(at_ends[0]), float(at_ends[1])))
        )
    return Inverse(
        within=tuple(within),
        searched=(float(grid[0]), float(grid[-1])),
        fastest=_shortest(grid, found),
        failed=int(np.isnan(found).sum()),
    )


def _with_minima(
    grid: np.ndarray, times: Callable[[np.ndarray], np.ndarray], time: float
) -> tuple[np.ndarray, np.ndarray]:
    """The grid and its times, with what lies between its points where a minimum just misses."""
    from scipy.optimize import (
        minimize_scalar,  # a third of a second, which predicting can do without
    )

    found = times(grid)
    padded = np.pad(np.where(np.isnan(found), np.inf, found), 1, constant_values=np.inf)
    lowest = (padded[1:-1] < padded[:-2]) & (padded[1:-1] <= padded[2:]) & (found > time)
    for index in np.flatnonzero(lowest & (found <= _NEARLY * time))[::-1]:
        left, right = grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)]
        best = minimize_scalar(
            lambda x: times(np.array([x]))[0], bounds=(left, right), method="bounded"
        )
        if best.fun < found[index] and best.x not in grid:
            place = np.searchsorted(grid, best.x)
            grid, found = np.insert(grid, place, best.x), np.insert(found, place, best.fun)
    return grid, found


def _shortest(grid: np.ndarray, times: np.ndarray) -> tuple[float, float]:
    """The value of the shortest time, and that time; NaN if none is finite."""
    known = np.where(np.isfinite(times), times, np.inf)
    best = int(np.argmin(known))
    return float(grid[best]), float(known[best]) if np.isfinite(known[best]) else np.nan


def _runs(mask: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each unbroken run of True."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(a), int(b) - 1) for a, b in zip(steps[::2], steps[1::2], strict=True)]


def _root(excess: Callable[[float], tuple[float, float]], late: float, soon: float) -> float:
    """Newton's method on the excess, which is positive (or unknown) at `late`, not at `soon`.

    A step that leaves the bracket, or that has no slope to go by, halves it instead.
    """
    x = soon
    for _ in range(_MOST_STEPS):
        value, slope = excess(x)
        if value <= 0:
            soon = x
        else:  # a passage that failed counts as late
            late = x
        if abs(late - soon) <= 1e-10 * abs(soon) or abs(value) < 1e-9:
            break
        step = x - value / slope if np.isfinite(slope) and slope != 0 else np.nan
        between = min(late, soon) < step < max(late, soon)
        x = step if between else (late + soon) / 2
    return float(x if abs(value) < 1e-9 else soon)
