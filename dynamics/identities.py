"""Algebra of expressions with exponentials: proofs that one is zero, and cancellation.

The reduced dynamics of softmax attention are rational functions of the parameters, of roots
and of exponentials of the scores. Sympy's general `simplify` takes minutes on them; writing
every exponential in powers of independent generators leaves polynomial algebra, which decides
them at once.
"""

from __future__ import annotations

from typing import Any

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
    rational, _ = _in_generators(sp.sympify(expression).rewrite(_EXPONENTIAL, sp.exp))
    numerator, _ = sp.fraction(sp.together(rational))
    return sp.expand(numerator) == 0


def cancelled(expression: sp.Expr) -> sp.Expr:
    """The same expression without common factors, exponentials among them.

    What tends to 0/0 where an exponential overflows or vanishes can then be evaluated there.

    ```python
    >>> x = sp.Symbol("x")
    >>> cancelled(sp.exp(-x) / (sp.exp(-2 * x) + sp.exp(-x)))
    1/(1 + exp(-x))

    ```
    """
    rational, generators = _in_generators(sp.sympify(expression))
    return sp.cancel(rational).xreplace(generators)


def _in_generators(expression: sp.Expr) -> tuple[sp.Expr, dict[sp.Symbol, sp.Expr]]:
    """Exponentials as powers of generators, and what each generator stands for."""
    generators: dict[sp.Expr, sp.Symbol] = {}
    decaying: set[sp.Expr] = set()

    def split(argument: sp.Expr) -> sp.Expr:
        """exp(argument) as a product of powers of generators, one per term of the exponent."""
        product = sp.S.One
        for term in sp.Add.make_args(sp.expand(argument)):
            number, rest = term.as_coeff_Mul(rational=True)
            if number < 0:
                decaying.add(rest)
            # Positive, so that its roots simplify; but not where the exponent may be complex.
            generator = sp.Dummy(positive=True) if rest.is_extended_real else sp.Dummy()
            product *= generators.setdefault(rest, generator) ** number
        return product

    rational: Any = expression.replace(sp.exp, split)
    # Powers of what decays, where anything does: it may vanish, but not overflow.
    inverted = {generators[rest]: 1 / generators[rest] for rest in decaying}
    meaning = {
        symbol: sp.exp(-rest if rest in decaying else rest) for rest, symbol in generators.items()
    }
    return rational.xreplace(inverted), meaning
