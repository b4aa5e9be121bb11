"""The polylogarithm Li_s(z) = Σ z^k/k^s in numpy, which scipy does not have."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from jaxtyping import Float

_TERMS = 40


def expansion(order: sp.Expr, mu: sp.Expr, terms: int) -> sp.Expr:
    """Li_s(e^{−μ}) = Γ(1 − s) μ^{s−1} + Σ_k ζ(s − k)(−μ)^k/k!, cut after `terms` of the sum.

    It holds for s not a positive integer, and converges for |μ| < 2π (DLMF 25.12.12).
    """
    series = (sp.zeta(order - k) * (-mu) ** k / sp.factorial(k) for k in range(terms))
    return sp.gamma(1 - order) * mu ** (order - 1) + sp.Add(*series)


def polylogarithm(order: float, z: Any) -> Float[np.ndarray, "*lanes"]:
    """Li_s(z) for 0.02 < z < 1 and s as in `expansion`; NaN elsewhere."""
    z = np.asarray(z, float)
    inside = (z > 0.02) & (z < 1)
    return _expansion(order)(-np.log(np.where(inside, z, np.nan)))


@cache
def _expansion(order: float):
    mu = sp.Symbol("mu", positive=True)
    return sp.lambdify(mu, expansion(sp.Rational(order), mu, _TERMS).evalf(20), "numpy")
