"""Pictures of a single-location run: theory as lines, nets as points."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics import solve
from surrogate_models import relaxed_initialisation

from .run_folder import RunFolder
from .single_location import StudyResults
from .style import COLOURS, MARKERS, STYLE, save


def draw_parity(outcome: StudyResults, path: Path) -> None:
    """Predicted against measured steps, net by net, and the errors beneath; PNG and PDF."""
    lr = outcome.study.lr
    shown = {"flow": 1.0, **({"shared": 0.25} if "shared" in outcome.compared else {})}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 5.6), layout="constrained")
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.6))
        for number, B in enumerate(outcome.study.B):
            chosen = (outcome.settings["B"] == B) & outcome.measured.reached
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKERS[number % len(MARKERS)],
                "markersize": 4,
                "linestyle": "none",
            }
            measured = outcome.measured.time[chosen] / lr
            for name, alpha in shown.items():
                predicted = outcome.predicted[name][chosen] / lr
                # Where B = 1 the two scores hardly differ: the second would only hide the first.
                if name == "shared" and B == 1:
                    continue
                label = f"B = {B}" if name == "flow" else f"B = {B}, one shared score"
                top.plot(measured, predicted, alpha=alpha, label=label, **style)
            error = outcome.compared["flow"].error[chosen]
            bottom.plot(measured, 100 * error, **style)
        ends = np.array(top.get_xlim())
        ends[0] = max(ends[0], np.nanmin(outcome.measured.time) / lr * 0.8)
        top.plot(ends, ends, color="0.3", linewidth=0.8, zorder=0, label="predicted = measured")
        top.set(xscale="log", yscale="log", ylabel="plateau predicted by the flow (steps)")
        top.set_title(f"time to {outcome.study.ratio:g} of the initial loss")
        top.legend()
        bottom.axhline(0, color="0.3", linewidth=0.8, zorder=0)
        bottom.set(xlabel="measured plateau (steps)", ylabel="predicted/measured − 1 (%)")
        save(figure, path)


def draw_curves(outcome: StudyResults, folder: RunFolder, path: Path) -> None:
    """Loss curves of the longest sequences' nets over the theory's; PNG and PDF."""
    study = outcome.study
    longest = outcome.settings["T"][:, 0] == max(study.T)
    middle = sorted(study.d)[len(study.d) // 2]
    rows = np.flatnonzero(longest & (outcome.settings["d"][:, 0] == middle))
    model = relaxed_initialisation()
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, row in enumerate(rows):
            colour = COLOURS[number % len(COLOURS)]
            arrays = folder.arrays(outcome.cells[row])
            at = model.settings({name: values[row] for name, values in outcome.settings.items()})
            theory = solve(model.flow, times=arrays["steps"] * study.lr, at=at)["loss"]
            for curve, line in zip(arrays["losses"], np.asarray(theory), strict=True):
                net = {"color": colour, "alpha": 0.35, "linewidth": 1.6}
                axes.plot(arrays["steps"], curve / curve[0], **net)
                axes.plot(arrays["steps"], line / line[0], "--", color=colour, linewidth=0.9)
        axes.axhline(study.ratio, color="0.4", linewidth=0.8, linestyle=":")
        axes.set(
            xlabel="steps",
            ylabel="loss / initial loss",
            ylim=(0, None),
            title=f"T = {max(study.T)}, d = {middle}",
        )
        handles = [
            Line2D([], [], color=COLOURS[number % len(COLOURS)], linewidth=2)
            for number in range(len(rows))
        ]
        labels = [f"B = {outcome.settings['B'][row, 0]:g}" for row in rows]
        handles += [
            Line2D([], [], color="0.3", alpha=0.4, linewidth=2),
            Line2D([], [], color="0.3", linestyle="--", linewidth=0.9),
        ]
        axes.legend(handles, [*labels, "trained nets", "theory, net by net"])
        save(figure, path)
