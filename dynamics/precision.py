"""The one global switch of the project: JAX in float64.

Without it JAX would silently run in float32, and a relative tolerance of 1e-8 would
mean nothing (errors of 3e-7 were measured); everything in `dynamics` asks for it.
"""

from .errors import PrecisionError


def enable_x64() -> None:
    """Run JAX in float64 from here on. Call it once, before the first solve."""
    import jax

    jax.config.update("jax_enable_x64", True)


def require_x64() -> None:
    """Raise `PrecisionError` unless JAX runs in float64."""
    import jax

    if not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise PrecisionError(
            "JAX runs in float32, which cannot hold the solver tolerances: "
            "call dynamics.enable_x64() first"
        )
