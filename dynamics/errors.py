"""The exceptions users meet. Each message names the argument, its value and the remedy."""


class InputError(ValueError):
    """An argument is outside what the called function can answer for."""


class InvarianceError(ValueError):
    """A gradient flow leaves the embedding it was to be reduced to."""


class PrecisionError(RuntimeError):
    """A float64 computation was asked for while JAX runs in float32."""


class ContradictionError(Exception):
    """A proof and a numerical witness contradict each other: one of them is a bug."""
