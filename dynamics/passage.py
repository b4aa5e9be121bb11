"""First-passage times: when does an observable reach a level, over many settings at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float, Int

from .errors import InputError
from .parallel import on_all_cores
from .precision import require_x64
from .settings import Settings, settings
from .system import System

if TYPE_CHECKING:
    import diffrax
    from jaxtyping import Array


class PassageStatus(IntEnum):
    """What became of a lane."""

    REACHED = 0
    CENSORED = 1  # still short of the level at the horizon: its passage time is longer
    FAILED = 2  # the solver gave up; nothing is known


@dataclass(frozen=True)
class Threshold:
    """The first time an observable reaches a level, from whichever side it starts on.

    Arguments:

    - `observable`: name of an observable or state of the system.
    - `ratio`: the level as a fraction of the observable's initial value.
    - `level`: the level itself. Give one of the two.
    """

    observable: str
    ratio: float | None = field(default=None, kw_only=True)
    level: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.ratio is None) == (self.level is None):
            raise InputError(
                f"threshold has ratio {self.ratio} and level {self.level}: give one of the two"
            )
        if not (isinstance(self.value, Real) and np.isfinite(self.value)):
            raise InputError(f"threshold is {self.value!r}: give a finite number")

    @property
    def value(self) -> float:
        """The ratio or the level, whichever was given."""
        value = self.level if self.ratio is None else self.ratio
        assert value is not None
        return value

    @staticmethod
    def loss_ratio(ratio: float) -> Threshold:
        """The plateau's end: the loss at a fraction of its initial value, within (0, 1)."""
        if not (isinstance(ratio, Real) and 0 < ratio < 1):
            raise InputError(f"loss ratio is {ratio!r}: give a number between 0 and 1")
        return Threshold("loss", ratio=ratio)


@dataclass(frozen=True)
class PassageTimes:
    """First-passage times of a batch of settings, in the shape the settings broadcast to.

    - `time`: in units of t; the horizon where censored, NaN where failed.
    - `status`: a `PassageStatus` per lane.
    - `settings`: the parameters, by name.
    - `state`: each state's value at that time, by name.
    - `derivatives`: ∂time/∂parameter by name, where asked for; NaN unless reached.
    - `steps`: solver steps taken.
    """

    time: Float[np.ndarray, "*lanes"]
    status: Int[np.ndarray, "*lanes"]
    settings: Settings
    threshold: Threshold
    state: dict[str, Float[np.ndarray, "*lanes"]]
    derivatives: dict[str, Float[np.ndarray, "*lanes"]]
    steps: Int[np.ndarray, "*lanes"]

    @property
    def reached(self) -> np.ndarray:
        """True where the level was reached."""
        return self.status == PassageStatus.REACHED

    def table(self) -> str:
        """One line per lane: settings, time, status."""
        names = [*self.settings, "time", "status"]
        columns = [
            *([f"{v:g}" for v in values.ravel()] for values in self.settings.values()),
            [
                f"{'> ' if status == PassageStatus.CENSORED else ''}{time:.6g}"
                for time, status in zip(self.time.ravel(), self.status.ravel(), strict=True)
            ],
            [PassageStatus(status).name.lower() for status in self.status.ravel()],
        ]
        widths = [max(map(len, [n, *c])) for n, c in zip(names, columns, strict=True)]
        rows = [names, *zip(*columns, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        )


def first_passage(
    system: System,
    threshold: Threshold | None = None,
    *,
    loss_ratio: float | None = None,
    at: Mapping[str, Any] | None = None,
    horizon: Any = None,
    derivatives: Sequence[str] = (),
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 65536,
    chunk: int = 1024,
    progress: bool = False,
) -> PassageTimes:
    """When each setting of the parameters first brings the observable to its level.

    All settings are solved in equal batches by one compiled function, several batches at a
    time where there are several cores. A lane that fails or is censored leaves the others as
    they would be without it.

    A crossing that the tolerances cannot resolve is a failure, to be cured by a smaller `atol`.
    The level is looked for at the ends of the solver's steps: if it is crossed and crossed back
    within one step, that is not seen (a smaller `rtol` shortens the steps).

    Arguments:

    - `system`: any `System`, started at its `initial`.
    - `threshold`: what to wait for; or `loss_ratio`, short for `Threshold.loss_ratio`.
    - `at`: every parameter's value or values by name, of shapes that broadcast (see `grid`).
    - `horizon`: the time, in units of t, at which a lane is censored; 10⁴ timescales by default.
    - `derivatives`: names of parameters to differentiate the passage time by.
    - `solver`: a diffrax solver; Tsit5 by default. Choose Kvaerno5 for a stiff system.
    - `rtol`, `atol`: the solver's tolerances per step.
    - `max_steps`: a lane that needs more has failed.
    - `chunk`: lanes per batch.
    - `progress`: show a bar.

    Raises `InputError` on bad settings and `PrecisionError` unless JAX runs in float64.
    """
    import jax

    require_x64()
    threshold = _one_threshold(threshold, loss_ratio)
    system.observable(threshold.observable)
    values = settings(system, at)
    if unknown := [name for name in derivatives if name not in values]:
        raise InputError(
            f"derivatives names {', '.join(unknown)}: the parameters are {', '.join(values)}"
        )
    shape = np.broadcast_shapes(*(value.shape for value in values.values()))
    horizons = _horizons(horizon, shape)
    lanes = int(np.prod(shape))
    _check_tolerances(rtol, atol)
    for name, count in (("chunk", chunk), ("max_steps", max_steps)):
        if not isinstance(count, int) or count < 1:
            raise InputError(f"{name} is {count!r}: give a positive whole number")
    if not lanes:
        raise InputError(f"at has shape {shape}: give at least one setting")

    size = min(chunk, 1 << (lanes - 1).bit_length())
    columns = [np.broadcast_to(v, shape).ravel() for v in (*values.values(), horizons)]
    padding = -lanes % size
    columns = [np.pad(c, (0, padding), mode="edge").reshape(-1, size) for c in columns]
    scalars = tuple(np.float64(v) for v in (threshold.value, rtol, atol))
    differentiated = tuple(derivatives)
    call = _compiled(
        system,
        threshold.observable,
        threshold.ratio is not None,
        differentiated,
        solver,
        max_steps,
        size,
    )

    def solve(index: int) -> Any:
        batch = tuple(c[index] for c in columns)
        return jax.tree.map(np.asarray, call(batch, *scalars))

    batches = range(len(columns[0]))
    results = [solve(batches[0])]  # compiles before the threads start
    rest = on_all_cores(solve, batches[1:])
    if progress:
        from tqdm import tqdm

        rest = tqdm(rest, total=len(batches), initial=1, unit="batch", disable=None)
    results += rest

    def gather(*parts: np.ndarray) -> np.ndarray:
        return np.concatenate(parts)[:lanes].reshape(shape)

    time, status, state, steps, slopes = jax.tree.map(gather, *results)
    reached = status == PassageStatus.REACHED
    return PassageTimes(
        time=time,
        status=status,
        settings=values,
        threshold=threshold,
        state=dict(zip((s.name for s in system.state), state, strict=True)),
        derivatives={
            name: np.where(reached, slope, np.nan)
            for name, slope in zip(differentiated, slopes, strict=True)
        },
        steps=steps,
    )


def passage_time(
    system: System,
    threshold: Threshold | None = None,
    *,
    loss_ratio: float | None = None,
    horizon: float | None = None,
    mode: Literal["forward", "reverse"] = "forward",
    solver: diffrax.AbstractSolver | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 4096,
) -> Callable[[Mapping[str, Array]], Array]:
    """One setting's passage time as a JAX function, to be jitted, batched and differentiated.

    Arguments are those of `first_passage`, and

    - `mode`: which automatic derivatives the function admits: "forward" (`jax.jvp`, `jacfwd`)
      or "reverse" (`jax.grad`). Second derivatives take "forward".

    Returns a function, best called under `jax.jit`, from a mapping of every parameter to a
    scalar, to the time in units of t; the time and all its derivatives are NaN unless the level
    is reached.
    """
    import jax.numpy as jnp

    from .passage_kernel import passage_kernel

    require_x64()
    threshold = _one_threshold(threshold, loss_ratio)
    if mode not in ("forward", "reverse"):
        raise InputError(f"mode is {mode!r}: use one of forward, reverse")
    _check_tolerances(rtol, atol)
    _horizons(horizon, ())
    relative, reverse = threshold.ratio is not None, mode == "reverse"
    kernel = passage_kernel(
        system,
        threshold.observable,
        relative=relative,
        solver=solver,
        max_steps=max_steps,
        reverse=reverse,
    )

    def time(at: Mapping[str, Array]) -> Array:
        if missing := [name for name in system.names if name not in at]:
            raise InputError(f"at lacks {', '.join(missing)}: give every parameter a value")
        if unknown := [name for name in at if name not in system.names]:
            raise InputError(f"at names {', '.join(unknown)}, which is no parameter")
        values = tuple(jnp.asarray(at[name], float) for name in system.names)
        limit = jnp.nan if horizon is None else horizon
        passage = kernel(values, threshold.value, limit, rtol, atol)
        # Selecting NaN would leave a silent zero in the derivatives; this leaves NaN in all.
        reached = jnp.where(passage.status == PassageStatus.REACHED, 1.0, jnp.nan)
        return passage.time * reached + sum(values) * (reached - 1)

    return time


@lru_cache(maxsize=128)
def _compiled(
    system: System,
    observable: str,
    relative: bool,
    derivatives: tuple[str, ...],
    solver: diffrax.AbstractSolver | None,
    max_steps: int,
    size: int,
) -> Callable[..., Any]:
    """The kernel over a batch of `size` lanes, jitted: from disk, or traced."""
    import jax

    from .exported import exported

    key = (system, observable, relative, derivatives, solver, max_steps)
    lane, scalar = jax.ShapeDtypeStruct((size,), float), jax.ShapeDtypeStruct((), float)
    shapes = ((lane,) * (len(system.parameters) + 1), scalar, scalar, scalar)
    return exported(lambda: _batched(*key), shapes, key=key)


def _batched(
    system: System,
    observable: str,
    relative: bool,
    derivatives: tuple[str, ...],
    solver: diffrax.AbstractSolver | None,
    max_steps: int,
) -> Callable[..., Any]:
    """The kernel over a batch of lanes, with the time's slopes along the named parameters."""
    import jax

    from .passage_kernel import passage_kernel

    kernel = passage_kernel(
        system, observable, relative=relative, solver=solver, max_steps=max_steps
    )
    chosen = [system.names.index(name) for name in derivatives]

    def lane(values, value, rtol, atol):
        *parameters, horizon = values

        def solve(varied):
            point = list(parameters)
            for index, parameter in zip(chosen, varied, strict=True):
                point[index] = parameter
            passage = kernel(tuple(point), value, horizon, rtol, atol)
            return passage.time, passage

        varied = tuple(parameters[index] for index in chosen)
        if not varied:
            return *solve(varied)[1], ()
        slopes, passage = jax.jacfwd(solve, has_aux=True)(varied)
        return *passage, slopes  # a plain tuple, which the exported kernel can carry

    return jax.vmap(lane, in_axes=(0, None, None, None))


def _one_threshold(threshold: Threshold | None, loss_ratio: float | None) -> Threshold:
    if (threshold is None) == (loss_ratio is None):
        raise InputError("give either a threshold or a loss_ratio")
    if not isinstance(threshold, Threshold | None):
        raise InputError(f"threshold is {threshold!r}: give a Threshold, or loss_ratio={threshold}")
    return threshold or Threshold.loss_ratio(loss_ratio)  # pyright: ignore[reportArgumentType]


def _check_tolerances(rtol: float, atol: float) -> None:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not 0 < value <= 0.1:
            raise InputError(f"{name} is {value}: give a number above 0, at most 0.1")


def _horizons(horizon: Any, shape: tuple[int, ...]) -> Float[np.ndarray, "*lanes"]:
    """The horizon of every lane; NaN stands for the default, which the kernel knows."""
    if horizon is None:
        return np.full(shape, np.nan)
    try:
        horizons = np.asarray(horizon, float)
    except (TypeError, ValueError):
        horizons = np.zeros(())
    if not (horizons > 0).all():
        raise InputError(f"horizon is {horizon!r}: give positive times")
    try:
        return np.broadcast_to(horizons, shape)
    except ValueError:
        raise InputError(
            f"horizon has shape {horizons.shape}, the settings {shape}: give shapes that broadcast"
        ) from None
