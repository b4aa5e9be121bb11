"""First-passage sweep against scipy, in one run: medians of interleaved repeats, and ratios.

100 × 100 settings, T ∈ [16, 4096] × d ∈ [16, 1024], all solved by `first_passage`; scipy's LSODA
solves a random sample of them at the same tolerances. Both are checked against LSODA at 1e-11.

    python benchmarks/sweep.py [--json]
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

import dynamics
from surrogate_models import predict, single_location

REPEATS = 7
SAMPLE = 40


def scipy_passages(lanes: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Passage times of rows (T, d, B, M), one LSODA call with an event each."""
    flow = single_location().flow
    symbols = [*flow.state, *flow.parameters]
    rhs = sp.lambdify(symbols, flow.rhs, "math", cse=True)
    loss = sp.lambdify(symbols, flow.loss, "math", cse=True)
    times = []
    for values in lanes.tolist():

        def event(t, z, values=values):
            return loss(*z, *values) - 0.2 * loss(0, 0, *values)

        event.terminal = True  # pyright: ignore[reportFunctionMemberAccess]
        length, dimension = values[:2]
        solution = solve_ivp(
            lambda t, z, values=values: rhs(*z, *values),
            (0, 10 * dimension**0.5 * (length + dimension)),
            [0.0, 0.0],
            method="LSODA",
            rtol=rtol,
            atol=atol,
            events=event,
        )
        times.append(solution.t_events[0][0])
    return np.array(times)


def main() -> None:
    dynamics.enable_x64()
    model = single_location()
    at = dynamics.grid(T=np.geomspace(16, 4096, 100), d=np.geomspace(16, 1024, 100))
    started = time.perf_counter()
    predict(model, at)
    first = time.perf_counter() - started

    settings = model.settings(at)
    lanes = np.stack([values.ravel() for values in settings.values()], axis=1)
    sample = np.random.default_rng(0).choice(len(lanes), SAMPLE, replace=False)
    ours, theirs = [], []
    for _ in range(REPEATS):
        started = time.perf_counter()
        passages = predict(model, settings).passages
        ours.append((time.perf_counter() - started) / len(lanes))
        started = time.perf_counter()
        loop = scipy_passages(lanes[sample], 1e-8, 1e-10)
        theirs.append((time.perf_counter() - started) / SAMPLE)
    reference = scipy_passages(lanes[sample], 1e-11, 1e-13)
    error = np.abs(passages.time.ravel()[sample] / reference - 1).max()
    result = {
        "lanes": len(lanes),
        "reached": int(passages.reached.sum()),
        "sweep_s": float(np.median(ours) * len(lanes)),
        "ours_us_per_lane": float(np.median(ours) * 1e6),
        "scipy_lsoda_us_per_lane": float(np.median(theirs) * 1e6),
        "ratio": float(np.median(np.array(theirs) / ours)),
        "our_max_error": float(error),
        "scipy_max_error": float(np.abs(loop / reference - 1).max()),
        "first_call_s": first,
    }
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:26}{value:.4g}")


if __name__ == "__main__":
    main()
