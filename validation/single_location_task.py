"""The single-location regression task [Z, §2]: copy, through a linear map, the last token."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from dynamics import InputError


@dataclass(frozen=True)
class SingleLocationTask:
    """Tokens x_t ~ N(0, I_d/d), t = 1…T, the last B of them equal; the target is W* x_T.

    Arguments:

    - `sequence_length`: T.
    - `dimension`: d.
    - `repetition`: B, in 1 … T − 1.
    """

    sequence_length: int
    dimension: int
    repetition: int = 1

    def __post_init__(self) -> None:
        T, d, B = self.sequence_length, self.dimension, self.repetition
        if T < 2 or d < 1 or B < 1:
            raise InputError(f"T = {T}, d = {d}, B = {B}: give T ≥ 2, d ≥ 1 and B ≥ 1")
        if B >= T:
            raise InputError(f"T = {T}, B = {B}: give B < T, so that one token is not relevant")

    @property
    def others(self) -> int:
        """How many tokens are not relevant, T − B."""
        return self.sequence_length - self.repetition

    def target_map(self, key: Key[Array, ""], dtype=jnp.float32) -> Float[Array, "d d"]:
        """W*, entries i.i.d. N(0, 1/d)."""
        d = self.dimension
        return jax.random.normal(key, (d, d), dtype) / jnp.sqrt(d).astype(dtype)

    def tokens(
        self, key: Key[Array, ""], batch: int, dtype=jnp.float32
    ) -> Float[Array, "batch distinct d"]:
        """The distinct tokens of fresh sequences: T − B others, then the relevant one."""
        shape = (batch, self.others + 1, self.dimension)
        return jax.random.normal(key, shape, dtype) / jnp.sqrt(self.dimension).astype(dtype)
