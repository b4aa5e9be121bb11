"""Predicted against measured plateau lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from dynamics import InputError, PassageTimes

from .plateau import PlateauLengths


@dataclass(frozen=True)
class Comparison:
    """Errors of a prediction, predicted/measured − 1, one row per cell and one column per net.

    - `error`: NaN where either side did not reach the threshold.
    - `censored`: nets that were still on their plateau when training ended.
    - `contradicted`: of these, the ones predicted to have left it before.
    """

    error: Float[np.ndarray, "cells nets"]
    censored: int
    contradicted: int

    @property
    def median(self) -> float:
        """Median |error| over all nets; NaN if none has one."""
        return self.quantile(0.5)

    def quantile(self, level: float) -> float:
        """A quantile of |error| over all nets; NaN if none has one."""
        known = np.abs(self.error[np.isfinite(self.error)])
        return float(np.quantile(known, level)) if known.size else np.nan

    @property
    def cell_medians(self) -> Float[np.ndarray, " cells"]:
        """Each cell's median error, signed; NaN where no net has one."""
        known = [row[np.isfinite(row)] for row in self.error]
        return np.array([np.median(row) if row.size else np.nan for row in known])

    @property
    def worst_cell(self) -> float:
        """The largest |median error| of a cell; NaN if none has one."""
        medians = np.abs(self.cell_medians)
        return float(np.nanmax(medians)) if np.isfinite(medians).any() else np.nan


def compare(
    predicted: PassageTimes | Float[np.ndarray, "cells nets"], measured: PlateauLengths
) -> Comparison:
    """Set a prediction beside the measurement, net by net. Both have shape (cells, nets).

    Arguments:

    - `predicted`: a flow's passage times, or a law's plateau lengths, in units of t.

    Raises `InputError` if the shapes differ.
    """
    if isinstance(predicted, PassageTimes):
        time, known = predicted.time, predicted.reached
    else:
        time, known = predicted, np.isfinite(predicted)
    if time.shape != measured.time.shape:
        raise InputError(
            f"predicted has shape {time.shape} and measured {measured.time.shape}: "
            "predict for exactly the nets measured"
        )
    both = known & measured.reached & (measured.time > 0)
    censored = np.isinf(measured.bounded)
    return Comparison(
        error=np.where(both, time / np.where(both, measured.time, 1) - 1, np.nan),
        censored=int(censored.sum()),
        contradicted=int((known & censored & (time < measured.time)).sum()),
    )
