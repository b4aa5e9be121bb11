"""The tensor factorisation of `tensor_factorisation` at full size, for any H, K and T, in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .tensor_factorisation import Geometry, check_geometry


def factorisation_loss(
    values: Float[Array, "H K"], scores: Float[Array, "H T"], target: Float[Array, "K T"]
) -> Float[Array, ""]:
    """½‖G − Σ_h V_h softmax(a_h)ᵀ‖² [Y, §3]."""
    return jnp.sum(_residual(values, jax.nn.softmax(scores, axis=1), target) ** 2) / 2


def factorisation_rates(
    values: Float[Array, "H K"],
    scores: Float[Array, "H T"],
    target: Float[Array, "K T"],
    geometry: Geometry,
) -> tuple[Float[Array, "H K"], Float[Array, "H T"]]:
    """dV/dt and da/dt of the full flow, in units of 1/t [Y, §3].

    The softmax ignores what all scores of a head share; of the replicator's rates that part is
    taken out, so that scores keep their mean in either geometry. Raises `InputError` on an
    unknown geometry.
    """
    check_geometry(geometry)
    attention = jax.nn.softmax(scores, axis=1)
    residual = _residual(values, attention, target)
    drive = jnp.einsum("kt,hk->ht", residual, values)
    if geometry == "logit":
        mean = jnp.einsum("ht,ht->h", attention, drive)
        rates = attention * (drive - mean[:, None])
    else:
        rates = drive - jnp.mean(drive, axis=1, keepdims=True)
    return jnp.einsum("kt,ht->hk", residual, attention), rates


def _residual(values, attention, target):
    return target - jnp.einsum("hk,ht->kt", values, attention)
