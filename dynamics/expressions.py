"""Mathematics typed by users, read by a whitelist: nothing in it is ever evaluated as code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import sympy as sp

from .errors import InputError

FUNCTIONS: dict[str, Callable[..., sp.Expr]] = {
    "sqrt": sp.sqrt,
    "exp": sp.exp,
    "log": sp.log,
    "sin": sp.sin,
    "cos": sp.cos,
    "tan": sp.tan,
    "atan": sp.atan,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "tanh": sp.tanh,
    "asinh": sp.asinh,
    "erf": sp.erf,
    "erfc": sp.erfc,
    "E1": lambda x: sp.expint(1, x),
}
CONSTANTS: dict[str, sp.Expr] = {"pi": sp.pi}

_MAX_LENGTH = 5000
_MAX_DEPTH = 60
_MAX_POWER = 64
_MAX_DIGITS = 40
_MAX_BITS = 2048
_MAX_EXPONENT = 700
_GROWING = ("exp", "sinh", "cosh")
_PREFIXES = ("0x", "0o", "0b")

_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def parse(text: str, names: Mapping[str, sp.Expr], *, what: str = "expression") -> sp.Expr:
    """A sympy expression from text such as `1/(1 + (N - 1)*exp(-a))`.

    Admitted are the given names, numbers, `+ - * / **`, parentheses, `pi` and the functions of
    `FUNCTIONS`. Numbers are exact: 0.1 is one tenth.

    Arguments:

    - `names`: what each name stands for.
    - `what`: how messages call the text.

    Raises `InputError`, in one sentence, on anything else.

    ```python
    >>> x = sp.Symbol("x")
    >>> parse("sqrt(pi)*x**2/4", {"x": x})
    sqrt(pi)*x**2/4

    ```
    """

    def refuse(reason: str) -> InputError:
        shown = text if len(text) <= 60 else text[:57] + "…"
        return InputError(f"{what} is {shown!r}: {reason}")

    if not isinstance(text, str):
        raise InputError(f"{what} is {text!r}: give it as text")
    if len(text) > _MAX_LENGTH:
        raise refuse(f"give at most {_MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refuse("it is not a formula; write one such as sqrt(d)*exp(-a)/2") from None

    def read(node: ast.expr, depth: int) -> sp.Expr:
        if depth > _MAX_DEPTH:
            raise refuse("it is nested too deeply; name its parts")
        if isinstance(node, ast.Constant):
            return number(node)
        if isinstance(node, ast.Name):
            known = {**CONSTANTS, **names}
            if node.id in known:
                return known[node.id]
            if node.id in FUNCTIONS:
                raise refuse(f"{node.id} is a function; write {node.id}(…)")
            raise refuse(f"{node.id} is unknown; the names are {', '.join(known)}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = read(node.operand, depth + 1)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            # A long sum nests to the left only, which is no depth to a reader.
            left, right = read(node.left, depth), read(node.right, depth + 1)
            if isinstance(node.op, ast.Div) and right == 0:
                raise refuse("it divides by 0")
            if isinstance(node.op, ast.Pow):
                check_power(left, right)
            value = _OPERATIONS[type(node.op)](left, right)
            if any(max(abs(n.p), n.q).bit_length() > _MAX_BITS for n in value.atoms(sp.Rational)):
                raise refuse(f"numbers go up to {_MAX_BITS} bits")
            return value
        if isinstance(node, ast.Call):
            return call(node, depth)
        raise refuse("only names, numbers, + - * / **, parentheses and functions are understood")

    def number(node: ast.Constant) -> sp.Expr:
        literal = ast.get_source_segment(text.strip().replace("^", "**"), node) or ""
        decimal = type(node.value) in (int, float) and literal[:2].lower() not in _PREFIXES
        if not decimal or len(literal) > _MAX_DIGITS:
            raise refuse(f"write numbers in at most {_MAX_DIGITS} decimal digits")
        if isinstance(node.value, float) and not 1e-300 < abs(node.value) < 1e300:
            if node.value != 0:
                raise refuse(f"{literal} is beyond floating point")
        return sp.Rational(literal.replace("_", "")) if node.value else sp.S.Zero

    def check_power(base: sp.Expr, exponent: sp.Expr) -> None:
        if base.is_zero and exponent.is_negative:
            raise refuse("it divides by 0")
        if exponent.is_number and not sp.Abs(exponent) <= _MAX_POWER:
            raise refuse(f"powers go up to {_MAX_POWER}")
        if base.is_number and exponent.is_number and len(str(base)) > _MAX_DIGITS:
            raise refuse(f"powers of numbers longer than {_MAX_DIGITS} digits are not taken")

    def call(node: ast.Call, depth: int) -> sp.Expr:
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            name = getattr(node.func, "id", "that")
            raise refuse(f"{name} is no function here; use one of {', '.join(FUNCTIONS)}")
        if len(node.args) != 1 or node.keywords:
            raise refuse(f"{node.func.id} takes one argument")
        argument = read(node.args[0], depth + 1)
        # Beyond this a tower of exponentials, which no comparison with it would survive.
        if (
            node.func.id in _GROWING
            and argument.is_number
            and not sp.Abs(argument) <= _MAX_EXPONENT
        ):
            raise refuse(f"{node.func.id} is beyond floating point there")
        value = FUNCTIONS[node.func.id](argument)
        if value.has(sp.zoo, sp.oo, sp.nan):
            raise refuse(f"{node.func.id} is infinite there")
        return value

    try:
        return read(tree, 0)
    except RecursionError:
        raise refuse("it is nested too deeply; name its parts") from None
