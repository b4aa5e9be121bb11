"""One look for every picture: legible at column width, and to colour-blind readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

# Okabe and Ito's palette.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}


def save(figure: Figure, path: Path) -> None:
    """Write the figure as PNG and PDF, the same bytes for the same content."""
    figure.savefig(path.with_suffix(".png"), dpi=200, metadata={"Software": None})
    figure.savefig(path.with_suffix(".pdf"), metadata={"CreationDate": None})
