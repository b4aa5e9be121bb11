"""The escape time of the linear theory [Z, App. A.2] against the flow it speaks of, beside ours.

[Z] bounds the plateau by the time at which the linearised flow would have lost the part ε = 1 − ρ
of the loss, T_ε = (√d T/2B) ln(2ε√d T/B). The linear regime ends long before that, when attention
takes off: the formula overestimates the plateau of its own flow, one shared score, several-fold.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np
import sympy as sp
from jaxtyping import Float
from matplotlib.figure import Figure

from dynamics import enable_x64, grid
from surrogate_models import predict, single_location_shared
from surrogate_models.expected_loss import B, T, d
from validation.style import COLOURS, MARKERS, STYLE, save

RHO = 0.2
LENGTHS, DIMENSIONS = 4.0 ** np.arange(3, 10), np.array([16.0, 128, 1024, 16384])


def overestimates() -> dict[str, Float[np.ndarray, "T d"]]:
    """Formula and laws over the plateau of the shared-score flow, on the grid at B = 1."""
    model = single_location_shared()
    assert model.ledger is not None
    # The equation as the ledger holds it; ε = 1 − ρ is the part that the loss loses.
    printed = next(e for e in model.ledger(model) if e.text == "escape time, appendix")
    lost = next(s for s in printed.claim.claimed.free_symbols if s.name == "varepsilon")
    formula = printed.claim.claimed.subs({lost: 1 - RHO, B: 1})
    at = grid(T=LENGTHS, d=DIMENSIONS)
    prediction = predict(model, at, rho=RHO)
    times = {"escape formula": sp.lambdify((T, d), formula)(at["T"], at["d"]), **prediction.laws}
    return {name: time / prediction.passages.time for name, time in times.items()}


def draw(ratios: dict[str, Float[np.ndarray, "T d"]], path: Path) -> None:
    """The formula's overestimate, and in percent what our two laws miss."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.8, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        series = zip(DIMENSIONS, COLOURS, MARKERS, strict=False)
        for i, (dimension, colour, marker) in enumerate(series):
            options = {"color": colour, "marker": marker, "markersize": 4}
            left.plot(
                LENGTHS, ratios["escape formula"][:, i], label=f"d = {dimension:g}", **options
            )
            for name, line in (("plateau law", "-"), ("second-order law", ":")):
                right.plot(LENGTHS, 100 * np.abs(ratios[name][:, i] - 1), line, **options)
        left.axhline(1, color="0.4", linewidth=0.8)
        left.set(ylabel="formula / flow", title="linear escape time")
        left.legend()
        right.set(yscale="log", ylabel="|law / flow − 1| (%)", title="our laws")
        for line, name in (("-", "plateau law"), (":", "second-order law")):
            right.plot([], [], line, color="0.3", label=name)
        right.legend()
        for axes in (left, right):
            axes.set(xscale="log", xlabel="sequence length T")
        save(figure, path)


def main(folder: Path) -> None:
    """Write escape-formula.png, .pdf and .json to a folder."""
    enable_x64()
    folder.mkdir(parents=True, exist_ok=True)
    ratios = overestimates()
    path = folder / "escape-formula"
    draw(ratios, path)
    numbers = {name: values.tolist() for name, values in ratios.items()}
    numbers |= {"T": LENGTHS.tolist(), "d": DIMENSIONS.tolist()}
    path.with_suffix(".json").write_text(json.dumps(numbers, indent=1) + "\n")
    for name, values in ratios.items():
        print(f"{name} / flow: {values.min():.4g} to {values.max():.4g}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
