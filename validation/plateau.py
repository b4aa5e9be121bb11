"""Plateau lengths measured on loss curves, censored where training ended first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binom

from dynamics import InputError, PassageStatus


@dataclass(frozen=True)
class PlateauLengths:
    """Measured plateau lengths, in units of t = lr × steps, of any shape.

    - `time`: the plateau length; where censored the time trained; NaN where failed.
    - `status`: a `PassageStatus` each: reached, censored by the budget, or failed (the loss
      became infinite or NaN).
    """

    time: Float[np.ndarray, ...]
    status: Int[np.ndarray, ...]

    @property
    def reached(self) -> np.ndarray:
        """True where the plateau ended within the budget."""
        return self.status == PassageStatus.REACHED

    @property
    def bounded(self) -> Float[np.ndarray, ...]:
        """Times for rank statistics: a censored one is longer than any, a failed one NaN."""
        return np.where(self.status == PassageStatus.CENSORED, np.inf, self.time)


def plateau_lengths(
    losses: Float[np.ndarray, "seeds steps"], *, ratio: float, lr: float
) -> PlateauLengths:
    """When each curve first falls to ratio × its first value.

    The crossing is interpolated between steps, linearly in the logarithm of the loss.
    """
    losses = np.asarray(losses, float)
    if losses.ndim != 2 or not losses.size:
        raise InputError(f"losses has shape {losses.shape}: give one row per net")
    if not 0 < ratio < 1:
        raise InputError(f"ratio is {ratio}: give a number between 0 and 1")
    if not 0 < lr < np.inf:
        raise InputError(f"lr is {lr}: give a positive number")
    level = ratio * losses[:, 0]
    below, broken = losses <= level[:, None], ~np.isfinite(losses)
    ended = below.any(axis=1)
    step = np.argmax(below, axis=1)
    # Whatever happens after the plateau has ended does not count against it.
    failed = broken.any(axis=1) & (~ended | (np.argmax(broken, axis=1) <= step))
    failed |= losses[:, 0] <= 0  # no plateau to leave
    rows = np.arange(len(losses))
    with np.errstate(all="ignore"):  # curves without a crossing divide by nothing useful
        above, under = np.log(losses[rows, step - 1]), np.log(losses[rows, step])
        crossing = step - (np.log(level) - under) / (above - under)
    crossing = np.where(np.isfinite(under), crossing, step)  # a loss that fell to 0 outright
    time = lr * np.where(ended, crossing, losses.shape[1] - 1)
    status = np.where(ended, PassageStatus.REACHED, PassageStatus.CENSORED)
    return PlateauLengths(
        time=np.where(failed, np.nan, time), status=np.where(failed, PassageStatus.FAILED, status)
    )


def median_interval(
    times: Float[np.ndarray, " seeds"], confidence: float = 0.95
) -> tuple[float, float, float, float]:
    """The median, a distribution-free interval for it, and the interval's exact coverage.

    The interval runs between two order statistics, so that a censored time may enter as
    infinity; it is the narrowest symmetric one of at least the wished confidence, and the
    full range where the sample is too small for that (93.75% for 5 seeds). NaNs are left out;
    of nothing, everything is NaN.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}: give a number between 0 and 1")
    ordered = np.sort(times[~np.isnan(times)])
    n = len(ordered)
    if not n:
        return np.nan, np.nan, np.nan, np.nan
    rank = max(int(binom.ppf((1 - confidence) / 2, n, 0.5)), 1)
    coverage = 1 - 2 * binom.cdf(rank - 1, n, 0.5)
    middle = ordered[(n - 1) // 2], ordered[n // 2]
    return float(np.mean(middle)), ordered[rank - 1], ordered[n - rank], float(coverage)
