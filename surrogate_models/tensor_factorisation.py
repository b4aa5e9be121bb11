"""Attention heads as a tensor factorisation: G ≈ P = Σ_h V_h s_hᵀ, s_h = softmax(a_h).

[Y, §3] A target G = Σ_j m_j e_j p_jᵀ holds J patterns p_j of strengths m_j, each spread evenly over
a block of n_j of the T positions and read into a feature of its own. The H heads descend
L = ½‖G − P‖² from V = 0. Two geometries of the attention are in use:

- "logit": gradient flow in the scores a_h, ȧ_h = J(s_h)(G − P)ᵀV_h, J(s) = diag(s) − ssᵀ;
- "replicator": natural gradient on the simplex, ȧ_h = (G − P)ᵀV_h, that is
  ṡ_h = J(s_h)(G − P)ᵀV_h. It is gradient flow in x_h on the sphere, s_h = x_h², at four times
  the Euclidean metric.

Here they are reduced by symmetry: the n_j positions of a block move as one, so do all positions
outside the blocks, and features without a target stay 0. `full_factorisation` has them at full
size.
"""

from __future__ import annotations

from typing import Literal, get_args

import sympy as sp

from dynamics import InputError, VectorField

Geometry = Literal["logit", "replicator"]

T = sp.Symbol("T", positive=True)


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
    check_geometry(geometry)
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


def check_geometry(geometry: str) -> None:
    """Raise `InputError` unless it is one of the two."""
    if geometry not in get_args(Geometry):
        raise InputError(f"geometry is {geometry!r}: use one of {', '.join(get_args(Geometry))}")
