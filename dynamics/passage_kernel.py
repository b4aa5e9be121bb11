"""One lane of a first-passage solve, in JAX: where diffrax meets the pitfalls of events.

The state is integrated together with τ = t/timescale in the Sundman variable s, ds = c dτ.
One continuous event function is positive until either the observable reaches its level or τ
the horizon: diffrax reports only one of two events that fall in one step, and not the earlier.
A bisection locates it, since Newton can miss a brief crossing; `flip` is stated because its
detection embeds a host callback that keeps JAX from writing its compilation cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import optimistix
from jaxtyping import Array, Float, Int

from .compilation import compile_system, hoisted_function
from .system import System


class Passage(NamedTuple):
    """A lane's outcome. `status` holds a `PassageStatus`; a failed lane's time is NaN."""

    time: Float[Array, ""]
    status: Int[Array, ""]
    state: tuple[Float[Array, ""], ...]
    steps: Int[Array, ""]


# The clock may run through many decades more than τ does; the solve ends by its events.
_END = 1e15

# A crossing that the tolerance leaves uncertain by more than this fraction of its time, or of the
# timescale, is the solver's noise, and counts as a failure.
_BLUR = 1e-2


def passage_kernel(
    system: System,
    observable: str,
    *,
    relative: bool,
    solver: diffrax.AbstractSolver | None,
    max_steps: int,
    reverse: bool = False,
) -> Callable[..., Passage]:
    """A function `(parameters, value, horizon, rtol, atol) -> Passage` of scalars.

    `parameters` is a tuple in the system's order; `value` the level, or if `relative` the
    fraction of the observable's initial value; `horizon` is in units of t, and NaN stands for
    the default of 10⁴ timescales.
    """
    compiled = compile_system(system)
    observed = compiled.observable(observable)

    # One function for all rates, so that they share what clock and velocity have in common.
    constants, per_clock = hoisted_function(
        [*(rate / system.clock for rate in system.rhs), 1 / system.clock],
        system.state,
        system.parameters,
    )

    def rates(s, y, args):
        fixed, timescale = args
        *state, _ = y
        *velocity, dtau = per_clock(*state, *fixed)
        return *(timescale * rate for rate in velocity), dtau

    def blur(state, off, parameters):
        """By how much time the crossing moves if the state is off by so much."""
        slopes = jax.grad(observed)(state, parameters)
        speed = sum(map(jnp.multiply, slopes, compiled.rhs(state, parameters)))
        return sum(jnp.abs(g) * o for g, o in zip(slopes, off, strict=True)) / jnp.abs(speed)

    def shift(state, off, parameters):
        """By how much the observable moves if one coordinate is off by so much."""
        here = observed(state, parameters)
        moves = [
            observed((*state[:i], state[i] + off[i], *state[i + 1 :]), parameters) - here
            for i in range(len(state))
        ]
        return jnp.max(jnp.abs(jnp.stack(moves)))

    def passage(parameters, value, horizon, rtol, atol) -> Passage:
        start = compiled.initial(parameters)
        timescale = compiled.timescale(parameters)
        horizon = jnp.where(jnp.isnan(horizon), 1e4 * timescale, horizon)
        initially = observed(start, parameters)
        level = value * initially if relative else value
        # A fraction of nothing, or of an overflow, is no level to arrive at.
        defined = jnp.isfinite(initially) & ~(relative & (initially == 0))
        arrived = defined & (initially == level)
        # Not finer than what rounding leaves of the observable, or no root would be accepted.
        gap = initially - level
        distance = jnp.sign(gap) * jnp.maximum(jnp.abs(gap), 1e-3 * jnp.abs(initially))
        distance = jnp.where(gap == 0, 1.0, distance)

        def remaining(t, y, args, **kwargs):
            """How far the level and the horizon still are, as fractions; positive at the start."""
            *state, tau = y
            to_level = (observed(state, parameters) - level) / distance
            return jnp.minimum(to_level, 1 - tau * timescale / horizon)

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            solver or diffrax.Tsit5(),
            t0=0.0,
            t1=_END,
            dt0=None,
            y0=(*start, jnp.zeros_like(timescale)),
            args=(constants(*parameters), timescale),
            event=diffrax.Event(
                remaining, optimistix.Bisection(rtol=1e-9, atol=1e-10, flip=True), direction=False
            ),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.RecursiveCheckpointAdjoint() if reverse else diffrax.ForwardMode(),
            max_steps=max_steps,
            throw=False,
        )
        assert solution.ys is not None
        *state, tau = (y[-1] for y in solution.ys)
        time = tau * timescale
        state = tuple(state)
        beyond = observed(state, parameters) - level
        late = beyond / distance > 1 - time / horizon
        fired = solution.result == diffrax.RESULTS.event_occurred
        known = fired & jnp.isfinite(time) & defined
        # What the solver may be off by: a part of the state, or of how far it has come.
        sizes = (jnp.minimum(abs(z), abs(z - z0)) for z, z0 in zip(state, start, strict=True))
        off = tuple(atol + rtol * size for size in sizes)
        blurred = blur(state, off, parameters) > _BLUR * jnp.minimum(time, timescale)
        undecided = shift(state, off, parameters) >= jnp.abs(beyond)
        status = jnp.where(late, jnp.where(undecided, 2, 1), jnp.where(blurred, 2, 0))
        status = jnp.where(known, status, 2)
        status = jnp.where(arrived, 0, status)
        time = jnp.where(arrived, 0.0, jnp.where(status == 1, horizon, time))
        # A factor, not a selection, so that the derivatives of a failed lane are NaN too.
        time = time * jnp.where(status == 2, jnp.nan, 1.0)
        state = tuple(jnp.where(arrived, a, b) for a, b in zip(start, state, strict=True))
        return Passage(time, status, state, solution.stats["num_steps"])

    return passage
