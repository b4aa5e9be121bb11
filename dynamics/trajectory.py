"""Trajectories: the state of a system at chosen times, over many settings at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .compilation import compile_system
from .errors import InputError
from .precision import require_x64
from .settings import Settings, settings
from .system import System


@dataclass(frozen=True)
class Trajectory:
    """States over time, for a batch of settings.

    - `time`: the k requested times, in units of t.
    - `state`: each state's values by name, shape (*lanes, k); infinite past a failure.
    - `succeeded`: per lane, whether the solver came to the last time.
    - `settings`: the parameters, by name.

    `trajectory["loss"]` reads any state or observable, shape (*lanes, k).
    """

    system: System
    time: Float[Array, " k"]
    state: dict[str, Float[Array, "*lanes k"]]
    succeeded: Bool[np.ndarray, "*lanes"]
    settings: Settings

    def __getitem__(self, name: str) -> Float[Array, "*lanes k"]:
        function = compile_system(self.system).observable(name)
        return function(
            tuple(self.state.values()),
            tuple(jnp.asarray(value)[..., None] for value in self.settings.values()),
        )


def solve(
    system: System,
    *,
    times: Any,
    at: Mapping[str, Any] | None = None,
    initial: Mapping[str, Any] | None = None,
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 65536,
) -> Trajectory:
    """The system's state at the given times, from its initial state at t = 0.

    Arguments:

    - `times`: k ≥ 1 non-negative times in increasing order, in units of t.
    - `at`: every parameter's value or values by name, of shapes that broadcast (see `grid`).
    - `initial`: values that replace the system's initial state, by state name, likewise.
    - `solver`: a diffrax solver; Tsit5 by default. Choose Kvaerno5 for a stiff system.
    - `rtol`, `atol`: the solver's tolerances per step.
    - `max_steps`: a lane that needs more has failed.

    Raises `InputError` on bad settings or times and `PrecisionError` unless JAX runs in float64.
    """
    require_x64()
    times = np.atleast_1d(np.asarray(times, float))
    if times.ndim != 1 or not times.size or not (np.isfinite(times).all() and (times >= 0).all()):
        raise InputError(f"times is {times}: give a flat list of finite times ≥ 0")
    if (np.diff(times) <= 0).any():
        raise InputError(f"times is {times}: give increasing times")
    values = settings(system, at)
    names = tuple(symbol.name for symbol in system.state)
    given = {str(name): np.asarray(value, float) for name, value in (initial or {}).items()}
    if unknown := [name for name in given if name not in names]:
        raise InputError(f"initial names {', '.join(unknown)}: the states are {', '.join(names)}")
    shape = np.broadcast_shapes(*(v.shape for v in (*values.values(), *given.values())))
    lanes = tuple(np.broadcast_to(v, shape).ravel() for v in values.values())
    start = {name: np.broadcast_to(v, shape).ravel() for name, v in given.items()}
    call = _batched(system, solver or diffrax.Tsit5(), max_steps)
    state, succeeded = call(lanes, start, times, rtol, atol, np.zeros(int(np.prod(shape))))
    return Trajectory(
        system=system,
        time=jnp.asarray(times),
        state={name: values.reshape(*shape, -1) for name, values in zip(names, state, strict=True)},
        succeeded=np.asarray(succeeded).reshape(shape),
        settings={name: np.broadcast_to(v, shape) for name, v in values.items()},
    )


@lru_cache(maxsize=128)
def _batched(system: System, solver: diffrax.AbstractSolver, max_steps: int):
    compiled = compile_system(system)
    names = [symbol.name for symbol in system.state]

    def rates(s, state, parameters):
        timescale = compiled.timescale(parameters)
        return tuple(timescale * velocity for velocity in compiled.rhs(state, parameters))

    def lane(parameters, start, times, rtol, atol, _):
        initial = compiled.initial(parameters)
        scaled = times / compiled.timescale(parameters)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            solver,
            t0=0.0,
            t1=scaled[-1],
            dt0=None,
            y0=tuple(start.get(name, y) for name, y in zip(names, initial, strict=True)),
            args=parameters,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            saveat=diffrax.SaveAt(ts=scaled),
            adjoint=diffrax.ForwardMode(),
            max_steps=max_steps,
            throw=False,
        )
        return solution.ys, solution.result == diffrax.RESULTS.successful

    return jax.jit(jax.vmap(lane, in_axes=(0, 0, None, None, None, 0)))
