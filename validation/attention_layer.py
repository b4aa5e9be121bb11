"""The attention layer of [Z, Eq. 2]: one score per position, one linear map, nothing else."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .single_location_task import SingleLocationTask


class AttentionLayer(eqx.Module):
    """y = W Σ_t α_t x_t with α = softmax(a).

    - `weight`: W, d × d.
    - `scores`: a, one per position.
    """

    weight: Float[Array, "d d"]
    scores: Float[Array, " T"]


def batch_loss(
    layer: AttentionLayer,
    target: Float[Array, "d d"],
    tokens: Float[Array, "batch distinct d"],
    task: SingleLocationTask,
) -> Float[Array, ""]:
    """½‖y − W* x_T‖², averaged over a batch of the task's distinct tokens."""
    attention = jax.nn.softmax(layer.scores)
    # The B copies share a token, and so their attention adds up.
    weights = jnp.append(attention[: task.others], attention[task.others :].sum())
    attended = jnp.einsum("t,btd->bd", weights, tokens)
    error = attended @ layer.weight.T - tokens[:, -1] @ target.T
    return jnp.mean(jnp.sum(error**2, axis=-1)) / 2


def expected_loss(
    layer: AttentionLayer, target: Float[Array, "d d"], task: SingleLocationTask
) -> Float[Array, ""]:
    """The same over all fresh data, exactly: tokens have covariance I/d and are independent."""
    attention = jax.nn.softmax(layer.scores)
    noise = jnp.sum(attention[: task.others] ** 2) * jnp.sum(layer.weight**2)
    signal = attention[task.others :].sum() * layer.weight - target
    return (noise + jnp.sum(signal**2)) / (2 * task.dimension)


def initial_overlap(
    layer: AttentionLayer, target: Float[Array, "d d"]
) -> dict[str, Float[Array, ""]]:
    """What the relaxed theory needs of a net: M = ‖W*‖, w0 along W*, r0 = ‖W‖ across it."""
    norm = jnp.linalg.norm(target)
    along = jnp.sum(layer.weight * target) / norm
    across = jnp.linalg.norm(layer.weight - along * target / norm)
    return {"M": norm, "w0": along, "r0": across}
