"""The picture of a sweep: flow as lines, law dashed, along the axis with most values."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from surrogate_models import SurrogateModel
from validation.style import COLOURS, STYLE, save


def draw_sweep(
    model: SurrogateModel,
    axes: dict[str, np.ndarray],
    result: dict[str, np.ndarray],
    unit: str,
    path: Path,
) -> None:
    """One line per value of the second longest axis (six at most), all others at their first.

    Arguments:

    - `axes`: values by parameter, in the order that the lanes of `result` follow.
    - `result`: "law", "flow" and "status", flat.
    """
    meanings = {parameter.name: parameter.meaning for parameter in model.parameters}
    by_length = sorted(axes, key=lambda name: -len(axes[name]))
    x, lines = by_length[0], by_length[1] if len(by_length) > 1 else None
    shape = tuple(len(values) for values in axes.values())
    reached = result["status"].reshape(shape) == 0
    series = {
        "flow": np.where(reached, result["flow"].reshape(shape), np.nan),
        "law": result["law"].reshape(shape),
    }
    count = len(axes[lines]) if lines else 1
    chosen = np.unique(np.linspace(0, count - 1, min(count, len(COLOURS))).astype(int))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.6), layout="constrained")
        plot = figure.subplots()
        for colour, row in zip(COLOURS, chosen, strict=False):
            index = tuple(
                slice(None) if name == x else int(row) if name == lines else 0 for name in axes
            )
            label = f"{lines} = {axes[lines][row]:g}" if lines else "flow"
            marker = "o" if len(axes[x]) < 30 else "None"
            flow, law = series["flow"][index], series["law"][index]
            plot.plot(axes[x], flow, color=colour, marker=marker, markersize=3, label=label)
            plot.plot(axes[x], law, "--", color=colour, linewidth=0.9, alpha=0.7)
        plot.plot([], [], "--", color="0.4", linewidth=0.9, label=f"{model.laws[0].name}")
        if (axes[x] > 0).all():
            plot.set_xscale("log")
        plot.set_yscale("log")
        rest = ", ".join(
            f"{name} = {values[0]:g}" for name, values in axes.items() if name not in (x, lines)
        )
        plot.set(xlabel=f"{meanings[x]} {x}", ylabel=f"plateau length ({unit})", title=rest)
        plot.legend()
        save(figure, path)
