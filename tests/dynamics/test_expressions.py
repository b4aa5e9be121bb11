"""What users type: formulas are read exactly, anything else gets one sentence."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from dynamics import FUNCTIONS, InputError, parse

x, d = sp.symbols("x d", positive=True)
NAMES = {"x": x, "d": d}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x + 2*d - 1", x + 2 * d - 1),
        ("-x**2/(d + 1)", -(x**2) / (d + 1)),
        ("+x^2", x**2),
        ("0.1", sp.Rational(1, 10)),
        ("1e-3*x", x / 1000),
        ("1_000", sp.Integer(1000)),
        ("sqrt(pi*d/2)", sp.sqrt(sp.pi * d / 2)),
        ("1/(1 + (d - 1)*exp(-x))", 1 / (1 + (d - 1) * sp.exp(-x))),
        ("E1(x) + erfc(x)", sp.expint(1, x) + sp.erfc(x)),
        (" x ", x),
        ("x**d", x**d),
        ("2**-3", sp.Rational(1, 8)),
        ("0**2", sp.S.Zero),
        ("+".join(["x"] * 200), 200 * x),
    ],
)
def test_formulas(text, value):
    assert parse(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not a formula"),
        ("x +", "it is not a formula"),
        ("x = 1", "it is not a formula"),
        ("y", "y is unknown; the names are pi, x, d"),
        ("__import__('os')", "__import__ is no function here"),
        ("__import__('os').system('true')", "that is no function here"),
        ("x.__class__", "only names, numbers"),
        ("x[0]", "only names, numbers"),
        ("(lambda: x)()", "that is no function here"),
        ("[x]", "only names, numbers"),
        ("x if x else d", "only names, numbers"),
        ("x < d", "only names, numbers"),
        ("x // 2", "only names, numbers"),
        ("x % 2", "only names, numbers"),
        ("'x'", "write numbers in at most 40 decimal digits"),
        ("True", "write numbers"),
        ("1j", "write numbers"),
        ("None", "write numbers"),
        ("f'{x}'", "only names, numbers"),
        ("exp", "exp is a function; write exp"),
        ("exp(x, d)", "exp takes one argument"),
        ("exp(*x)", "only names, numbers"),
        ("exp(x=1)", "exp takes one argument"),
        ("eval(x)", "eval is no function here"),
        ("9**9**9", "powers go up to 64"),
        ("x**1000", "powers go up to 64"),
        ("x**-65", "powers go up to 64"),
        ("((9**64)**64)", "powers of numbers longer than 40 digits"),
        ("*".join(["9**64"] * 20), "numbers go up to 2048 bits"),
        ("*".join(["x", *["9**64"] * 20]), "numbers go up to 2048 bits"),
        ("1/0", "it divides by 0"),
        ("x/(1 - 1)", "it divides by 0"),
        ("0**-1", "it divides by 0"),
        ("log(0)", "log is infinite there"),
        ("exp(exp(9))", "exp is beyond floating point there"),
        ("2**exp(exp(exp(99)))", "exp is beyond floating point there"),
        ("cosh(1000)", "cosh is beyond floating point there"),
        ("1" * 41, "write numbers in at most 40"),
        ("0x10", "write numbers"),
        ("1e999", "is beyond floating point"),
        ("exp(" * 70 + "x" + ")" * 70, "nested too deeply"),
        ("-" * 70 + "x", "nested too deeply"),
        ("x" + "+x" * 2000, "nested too deeply"),
        ("x" + "+x" * 5000, "give at most 5000 characters"),
        ("x\n+ d; import os", "it is not a formula"),
        ("x\0", "it is not a formula"),
    ],
)
def test_anything_else_gets_one_sentence(text, reason):
    with pytest.raises(InputError, match="^loss is ") as error:
        parse(text, NAMES, what="loss")
    assert reason in str(error.value) and "\n" not in str(error.value)


def test_text_is_asked_for():
    with pytest.raises(InputError, match="expression is 3: give it as text"):
        parse(3, NAMES)


@given(st.text(alphabet="xd01.*/+-()^ePi_sqrtlog,'[]{}:=", max_size=25))
def test_no_text_does_anything_but_answer_or_refuse(text):
    try:
        assert isinstance(parse(text, NAMES), sp.Expr)
    except InputError as error:
        assert "\n" not in str(error)


def test_every_function_is_readable():
    for name, function in FUNCTIONS.items():
        assert parse(f"{name}(x)", NAMES) == function(x)
