"""Claims that two expressions agree, and the verdicts that computation reaches on them.

A verdict rests on a proof, by simplification or by a limit that sympy takes. Values at random
points, to 50 digits, are a second witness: they can contradict a proof, never replace one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

import sympy as sp

from .errors import ContradictionError, InputError
from .identities import is_zero

# What tends to 0 in a claim to leading order.
SMALL = sp.Symbol("epsilon", positive=True)

_DIGITS = 50
_LONG = 60
_POINTS = 4


class Verdict(StrEnum):
    """What became of a claim."""

    PROVED = "identity proved"
    LEADING = "holds to leading order"
    DIFFERS = "differs"
    UNDECIDED = "not decided"  # equal wherever it was looked at, but not proved


@dataclass(frozen=True)
class Claim:
    """That an expression equals what was derived, exactly or in a limit.

    Arguments:

    - `claimed`, `derived`: the two expressions.
    - `limit`: for a claim to leading order, how symbols depend on `SMALL`, which tends to 0.
      The claim holds if claimed − derived, measured against `scale`, falls as a power of it.
    - `scale`: what the error is measured against; by default what was derived.
    - `domain`: intervals to draw random points from, by symbol; by default (1, 2) for positive
      symbols and (−1, 1) for others.
    """

    claimed: Any  # kept as an expression
    derived: Any  # likewise
    limit: Any = ()  # a mapping, kept as a tuple of (symbol, expression) pairs
    scale: Any = None
    domain: Any = ()  # likewise

    def __post_init__(self) -> None:
        for name in ("claimed", "derived"):
            object.__setattr__(self, name, sp.sympify(getattr(self, name)))
        for name in ("limit", "domain"):
            pairs = getattr(self, name)
            pairs = pairs.items() if isinstance(pairs, Mapping) else pairs
            object.__setattr__(self, name, tuple(pairs))
        scale = self.derived if self.scale is None else sp.sympify(self.scale)
        object.__setattr__(self, "scale", scale)
        if self.limit and self.scale == 0:
            raise InputError("scale is 0: say what the error is to be measured against")


@dataclass(frozen=True)
class Witness:
    """Both sides of a claim at a random point, to 50 digits."""

    point: dict[sp.Symbol, sp.Rational]
    claimed: sp.Expr
    derived: sp.Expr

    def __str__(self) -> str:
        at = ", ".join(f"{symbol} = {float(value):.4g}" for symbol, value in self.point.items())
        return f"at {at or 'no symbols'}: {_short(self.claimed)} against {_short(self.derived)}"

    @property
    def agrees(self) -> bool:
        """Whether the two values are equal, but for their last digits."""
        # Where everything cancels there is no size to compare with: then 1e-10 counts as one.
        size = sp.Abs(self.claimed) + sp.Abs(self.derived) + sp.Float("1e-10", _DIGITS)
        return bool(sp.Abs(self.claimed - self.derived) <= size * sp.Float(10) ** (6 - _DIGITS))


@dataclass(frozen=True)
class Judgement:
    """A verdict with its grounds.

    - `error`: to leading order, (claimed − derived)/scale, in the claim's own symbols.
    - `order`: the power of `SMALL` that it falls with.
    - `witness`: where the two sides differ, or one of the points where they agree.
    """

    claim: Claim
    verdict: Verdict
    witness: Witness
    error: sp.Expr | None = None
    order: sp.Expr | None = None

    def __str__(self) -> str:
        if self.verdict is Verdict.LEADING:
            return f"{self.verdict}, {self.size}"
        if self.verdict is Verdict.DIFFERS:
            return f"{self.verdict} ({self.witness})"
        return str(self.verdict)

    @property
    def size(self) -> str:
        """To leading order, how large the error is, and relative to what."""
        text = str(self.error)
        if len(text) > _LONG:
            limit = ", ".join(f"{symbol} → {value}" for symbol, value in self.claim.limit)
            text = f"O({SMALL if self.order is None else SMALL**self.order}) with {limit}"
        else:
            text = f"≈ {text}"
        if self.claim.scale == self.claim.derived:
            return f"relative error {text}"
        scale = str(self.claim.scale)
        return f"error {text}, in units of {scale if len(scale) <= _LONG else 'its scale'}"


def judge(claim: Claim) -> Judgement:
    """Decide a claim.

    Identity is tried first, by `is_zero`; then, where the claim names a limit, the leading term
    of its error. Whatever was proved is checked at random points to 50 digits.

    Raises `ContradictionError` when those points contradict a proof: one of the two is a bug.

    ```python
    >>> x = sp.Symbol("x", positive=True)
    >>> judge(Claim(sp.sinh(2 * x), 2 * sp.sinh(x) * sp.cosh(x))).verdict.value
    'identity proved'
    >>> print(judge(Claim(x, sp.sin(x), limit={x: x * SMALL})))
    holds to leading order, relative error ≈ x**2/6

    ```
    """
    witnesses = [_witness(claim, seed) for seed in range(_POINTS)]
    apart = next((witness for witness in witnesses if not witness.agrees), None)
    if is_zero(claim.claimed - claim.derived):
        if apart is not None:
            raise ContradictionError(f"{claim.claimed} = {claim.derived} was proved, but {apart}")
        return Judgement(claim, Verdict.PROVED, witnesses[0])
    if apart is None:
        return Judgement(claim, Verdict.UNDECIDED, witnesses[0])
    if claim.limit:
        error = (claim.claimed - claim.derived) / claim.scale
        coefficient, order = _leading_term(error.subs(dict(claim.limit), simultaneous=True))
        if order.is_positive:
            _check_order(claim, error, coefficient, order)
            # At SMALL = 1 the scaled symbols are the claim's own.
            leading: Any = sp.factor(coefficient)
            return Judgement(claim, Verdict.LEADING, apart, leading, order)
        apart = _witness(claim, 0, within_limit=True)
    return Judgement(claim, Verdict.DIFFERS, apart)


def _leading_term(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Coefficient and exponent of the leading power of SMALL; exponent 0 if there is no power."""
    numerator, denominator = sp.fraction(sp.together(expression))
    coefficient, order = sp.S.One, sp.S.Zero
    for part, sign in ((numerator, 1), (denominator, -1)):
        factor, exponent = _leading(sp.expand(part))
        coefficient *= factor**sign
        order += sign * exponent
    if coefficient.has(SMALL):  # a logarithm, say: no power law
        return coefficient, sp.S.Zero
    return sp.simplify(coefficient), sp.simplify(order)


def _leading(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """The same of a sum. A sum of plain powers is read off; sympy expands anything else."""
    powers: dict[sp.Expr, list[sp.Expr]] = {}
    for term in sp.Add.make_args(expression):
        rest, exponent = term.as_coeff_exponent(SMALL)
        if rest.has(SMALL):
            break
        powers.setdefault(exponent, []).append(rest)
    else:
        for exponent in sorted(powers):
            if not is_zero(total := sp.Add(*powers[exponent])):
                return total, exponent
    return expression.rewrite([sp.asinh, sp.acosh, sp.atanh], sp.log).leadterm(SMALL)


def _check_order(claim: Claim, error: sp.Expr, coefficient: sp.Expr, order: sp.Expr) -> None:
    """The leading term against the error itself, where SMALL is small, to 50 digits."""
    point = _point(claim, seed=0)
    scaled = error.subs(dict(claim.limit), simultaneous=True)
    small = sp.Rational(1, 10**6)
    here = sp.N(scaled.xreplace({**point, SMALL: small}), _DIGITS)
    expected = sp.N((coefficient * small**order).xreplace(point), _DIGITS)
    if not sp.Abs(here / expected - 1) < sp.Rational(1, 20):
        raise ContradictionError(
            f"{claim.claimed} was found to differ from {claim.derived} by a relative "
            f"{coefficient} at order {order}, but is off by {_short(here)}, not {_short(expected)}"
        )


def _point(claim: Claim, seed: int) -> dict[sp.Symbol, sp.Rational]:
    random = Random(seed)
    domain = dict(claim.domain)
    symbols = claim.claimed.free_symbols | claim.derived.free_symbols | claim.scale.free_symbols
    point = {}
    for symbol in sorted(symbols, key=str):
        low, high = domain.get(symbol, (1, 2) if symbol.is_positive else (-1, 1))
        low, high = map(sp.Rational, (low, high))
        point[symbol] = low + (high - low) * sp.Rational(random.randint(1, 9999), 10000)
    return point


def _witness(claim: Claim, seed: int, *, within_limit: bool = False) -> Witness:
    """Both sides at a random point; of a claim in a limit, at one where SMALL is 1/1000."""
    point = _point(claim, seed)
    if within_limit:
        near = {symbol: sp.sympify(value) for symbol, value in claim.limit}
        scaled = {s: v.xreplace({**point, SMALL: sp.Rational(1, 1000)}) for s, v in near.items()}
        point |= {symbol: value for symbol, value in scaled.items() if symbol in point}
    sides = (sp.N(side.xreplace(point), _DIGITS) for side in (claim.claimed, claim.derived))
    return Witness(point, *sides)


def _short(value: sp.Expr) -> str:
    return str(sp.N(value, 6))
