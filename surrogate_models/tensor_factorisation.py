"""Attention heads as a tensor factorisation: G ≈ P = Σ_h V_h s_hᵀ, s_h = softmax(a_h).

[Y, §3] A target G = Σ_j m_j e_j p_jᵀ holds J patterns p_j of strengths m_j, each spread evenly over
a block of n_j of the T positions and read into a feature of its own. The H heads descend
L = ½‖G − P‖² from V = 0. Two geometries of the attention are in use:

- "logit": gradient flow in the scores a_h, ȧ_h = J(s_h)(G − P)ᵀV_h, J(s) = diag(s) − ssᵀ;
- "replicator": natural gradient on the simplex, ȧ_h = (G − P)ᵀV_h, that is
  ṡ_h = J(s_h)(G − P)ᵀV_h. It is gradient flow in x_h on the sphere, s_h = x_h², at four times
  the Euclidean metric.

Here they stand at full size, for any H, K and T, and reduced by symmetry: the n_j positions of a
block move as one, so do all positions outside the blocks, and features without a target stay 0.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
import sympy as sp
from jaxtyping import Array, Float

from dynamics import InputError, VectorField

Geometry = Literal["logit", "replicator"]

T = sp.Symbol("T", positive=True)


def factorisation_loss(
    values: Float[Array, "H K"], scores: Float[Array, "H T"], target: Float[Array, "K T"]
) -> Float[Array, ""]:
    """½‖G − Σ_h V_h softmax(a_h)ᵀ‖² [Y, §3]."""
    return jnp.sum(_residual(values, _softmax(scores), target) ** 2) / 2


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
    _check(geometry)
    attention = _softmax(scores)
    residual = _residual(values, attention, target)
    drive = jnp.einsum("kt,hk->ht", residual, values)
    if geometry == "logit":
        mean = jnp.einsum("ht,ht->h", attention, drive)
        rates = attention * (drive - mean[:, None])
    else:
        rates = drive - jnp.mean(drive, axis=1, keepdims=True)
    return jnp.einsum("kt,ht->hk", residual, attention), rates


def _softmax(scores: Float[Array, "H T"]) -> Float[Array, "H T"]:
    weights = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
    return weights / jnp.sum(weights, axis=1, keepdims=True)


def _residual(values, attention, target):
    return target - jnp.einsum("hk,ht->kt", values, attention)


def factorisation_flow(heads: int, patterns: int, geometry: Geometry) -> VectorField:
    """The flow reduced by symmetry, for H heads and J patterns.

    States are `V{h}_{j}`, head h's value on pattern j's feature, and `g{h}_{j}`, its score on
    block j less that on the positions outside all blocks. Parameters are T, the strengths
    `m{j}` and the block sizes `n{j}` (Σ n_j < T). Observables are "loss", "residual{j}" (the
    part of pattern j not yet learned, 1 at the start) and "alpha{h}_{j}", the attention of head h
    per position of block j. All heads start at V = 0 and uniform attention: start them apart,
    by `initial` of `dynamics.solve`, to break their symmetry.

    Raises `InputError` on an unknown geometry, and unless there is a head and a pattern.
    """
    _check(geometry)
    for name, count in (("heads", heads), ("patterns", patterns)):
        if not isinstance(count, int) or count < 1:
            raise InputError(f"{name} is {count!r}: give a positive whole number")
    H, J = range(heads), range(patterns)
    V = [[sp.Symbol(f"V{h + 1}_{j + 1}", real=True) for j in J] for h in H]
    g = [[sp.Symbol(f"g{h + 1}_{j + 1}", real=True) for j in J] for h in H]
    m = [sp.Symbol(f"m{j + 1}", positive=True) for j in J]
    n = [sp.Symbol(f"n{j + 1}", positive=True) for j in J]
    outside = T - sum(n)
    # One column per block and one for the positions outside; their sizes.
    sizes = [*n, outside]
    attention = []
    for h in H:
        weights = [*map(sp.exp, g[h]), sp.S.One]
        total = sum(size * weight for size, weight in zip(sizes, weights, strict=True))
        attention.append([weight / total for weight in weights])
    residual = [
        [
            (m[k] / n[k] if block == k else 0) - sum(V[h][k] * attention[h][block] for h in H)
            for block in range(patterns + 1)
        ]
        for k in J
    ]
    value_rates, gap_rates = [], []
    for h in H:
        drive = [sum(residual[k][b] * V[h][k] for k in J) for b in range(patterns + 1)]
        value_rates += [
            sum(size * residual[k][b] * attention[h][b] for b, size in enumerate(sizes)) for k in J
        ]
        if geometry == "logit":
            mean = sum(size * attention[h][b] * drive[b] for b, size in enumerate(sizes))
            drive = [attention[h][b] * (drive[b] - mean) for b in range(patterns + 1)]
        gap_rates += [drive[j] - drive[-1] for j in J]
    loss = sum(size * residual[k][b] ** 2 for k in J for b, size in enumerate(sizes)) / 2
    observables = {"loss": loss}
    observables |= {f"residual{j + 1}": residual[j][j] * n[j] / m[j] for j in J}
    observables |= {f"alpha{h + 1}_{j + 1}": attention[h][j] for h in H for j in J}
    root = sp.sqrt(T) if geometry == "replicator" else T
    return VectorField(
        field=tuple(value_rates + gap_rates),
        state=tuple(symbol for rows in (V, g) for row in rows for symbol in row),
        parameters=(T, *m, *n),
        observables=observables,
        timescale=root * sp.sqrt(n[0]) / m[0],
    )


def _check(geometry: str) -> None:
    if geometry not in get_args(Geometry):
        raise InputError(f"geometry is {geometry!r}: use one of {', '.join(get_args(Geometry))}")
