"""Parameter settings: the lanes of a batched call, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from .errors import InputError
from .system import System

Settings = dict[str, Float[np.ndarray, "*lanes"]]


def grid(**axes: Any) -> Settings:
    """Every combination of the axes' values, as arrays of one axis each, in their order.

    ```python
    >>> {name: values.shape for name, values in grid(T=[64, 256, 1024], d=[16, 64]).items()}
    {'T': (3, 2), 'd': (3, 2)}

    ```
    """
    arrays = []
    for name, values in axes.items():
        try:
            arrays.append(np.atleast_1d(np.asarray(values, float)))
        except (TypeError, ValueError):
            arrays.append(np.empty(0))
        if arrays[-1].ndim != 1 or not arrays[-1].size:
            raise InputError(f"{name} is {values!r}: give a number or a flat list of numbers")
    return dict(zip(axes, np.meshgrid(*arrays, indexing="ij"), strict=True))


def settings(system: System, at: Mapping[str, Any] | None) -> Settings:
    """The named values, broadcast to one shape, one entry per parameter of the system.

    Raises `InputError` on a missing or unknown name, a non-number, NaN or infinity, and on
    shapes that do not broadcast.
    """
    at = {str(name): value for name, value in (at or {}).items()}
    names = system.names
    if unknown := [name for name in at if name not in names]:
        raise InputError(
            f"at names {', '.join(unknown)}, which is no parameter: "
            f"the parameters are {', '.join(names) or 'none'}"
        )
    if missing := [name for name in names if name not in at]:
        raise InputError(f"at lacks {', '.join(missing)}: give every parameter a value")
    values = {}
    for name in names:
        try:
            values[name] = np.asarray(at[name], float)
        except (TypeError, ValueError):
            raise InputError(f"{name} is {at[name]!r}: give numbers") from None
        if not np.isfinite(values[name]).all():
            raise InputError(f"{name} is {at[name]}: give finite numbers")
    try:
        arrays = np.broadcast_arrays(*values.values()) if values else ()
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in values.items())
        raise InputError(f"the settings' shapes do not broadcast ({shapes})") from None
    return dict(zip(names, arrays, strict=True))
