"""Proofs that an expression is identically zero.

The reduced dynamics of softmax attention are rational functions of the parameters, of roots
and of exponentials of the scores. Sympy's general `simplify` takes minutes on them; writing
every exponential in powers of independent generators leaves polynomial algebra, which decides
them at once.
"""

from __future__ import annotations

import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction
from sympy.functions.elementary.trigonometric import TrigonometricFunction

_EXPONENTIAL = (TrigonometricFunction, HyperbolicFunction)


def is_zero(expression: sp.Expr) -> bool:
    """Whether `expression` is proved to vanish identically.

    Roots and exponentials count as generators of a field of rational functions; trigonometric
    and hyperbolic functions are written in exponentials. True is a proof. False means that no
    proof was found: the expression is not zero, or its zero rests on more than field arithmetic.

    ```python
    >>> x, y = sp.symbols("x y")
    >>> is_zero(sp.exp(2 * x + y) - sp.exp(x) ** 2 * sp.exp(y))
    True

    ```
    """
    generators: dict[sp.Expr, sp.Symbol] = {}

    def split(argument: sp.Expr) -> sp.Expr:
        """exp(argument) as a product of powers of generators, one per term of the exponent."""
        product = sp.S.One
        for term in sp.Add.make_args(sp.expand(argument)):
            number, rest = term.as_coeff_Mul(rational=True)
            product *= generators.setdefault(rest, sp.Dummy(positive=True)) ** number
        return product

    exponential = sp.sympify(expression).rewrite(_EXPONENTIAL, sp.exp)
    numerator, _ = sp.fraction(sp.together(exponential.replace(sp.exp, split)))
    return sp.expand(numerator) == 0
