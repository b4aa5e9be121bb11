"""Traced kernels on disk, so that a fresh process neither traces nor compiles them again.

JAX's persistent cache spares a new process the compilation, but not the tracing, which for
an adaptive solver takes as long, nor the import of the solver. A kernel exported as StableHLO
spares both. Files lie beside JAX's cache, and only where the user has enabled that.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import sympy as sp

from .files import atomic
from .system import System


def exported(
    build: Callable[[], Callable[..., Any]], arguments: Any, *, key: tuple[object, ...]
) -> Callable[..., Any]:
    """The jitted function that `build` makes, from disk if it was exported before.

    Arguments:

    - `build`: makes the function of positional arguments; called only when the disk has none.
    - `arguments`: arrays or shapes that the function is traced for.
    - `key`: all that the function depends on besides their shapes. A `System` counts by its
      expressions, anything else by its `repr`.

    Returns the function, jitted. Where JAX's compilation cache is not enabled it is simply
    that, and so it is where it calls back to Python (a passage time's derivatives do, unless
    equinox was told not to raise, by EQX_ON_ERROR=nan). An unreadable file is traced anew and
    overwritten.
    """
    directory: str | None = jax.config.jax_compilation_cache_dir  # pyright: ignore
    if not directory:
        return jax.jit(build())
    shapes = [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(arguments)]
    versions = [version(name) for name in ("jax", "diffrax", "sympy", "attention-onset")]
    parts = [_content(k) if isinstance(k, System) else repr(k) for k in key]
    digest = hashlib.sha256(repr((shapes, versions, parts, _source())).encode()).hexdigest()
    path = Path(directory) / f"onset-{digest[:32]}.stablehlo"
    try:
        return jax.jit(jax.export.deserialize(bytearray(path.read_bytes())).call)
    except Exception:  # absent, truncated, or written by another JAX: none is an error
        pass
    try:
        function = jax.export.export(jax.jit(build()))(*arguments)
    except NotImplementedError:  # it calls back to Python, to raise errors, and cannot be stored
        return jax.jit(build())
    blob = function.serialize(vjp_order=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as file:
        file.write(blob)
    return jax.jit(function.call)


@cache
def _source() -> bytes:
    """This package's code: a kernel traced by other code is another kernel."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _content(system: System) -> str:
    """All that a system computes with. Unlike `repr`, srepr tells apart symbols of one name."""
    values = (getattr(system, field.name) for field in dataclasses.fields(system))
    return repr([type(system).__name__, *map(sp.srepr, values)])
