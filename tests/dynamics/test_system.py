import numpy as np
import pytest
import sympy as sp

from dynamics import GradientFlow, InputError, VectorField

x, y = sp.symbols("x y", real=True)
k, h = sp.symbols("k h", positive=True)


def test_gradient_flow_descends_in_its_metric():
    loss = k * x**2 * y
    flow = GradientFlow(loss, state=(x, y), parameters=(k,), metric={y: 4})
    assert flow.rhs == (-2 * k * x * y, -k * x**2 / 4)
    assert flow.hessian() == sp.Matrix([[2 * k * y, 2 * k * x], [2 * k * x, 0]])
    assert flow.jacobian() == sp.Matrix([[-2 * k * y, -2 * k * x], [-k * x / 2, 0]])
    assert flow.observable("loss") == loss


def test_a_full_metric_is_inverted():
    metric = sp.Matrix([[2, 1], [1, 2]])
    flow = GradientFlow(x, state=(x, y), metric=metric)
    assert flow.rhs == tuple(-metric.inv() * sp.Matrix([1, 0]))


def test_linearisation_is_exact_to_first_order():
    field = VectorField((sp.sin(x) + y**2, k * x * y), state=(x, y), parameters=(k,))
    line = field.linearise({x: sp.pi / 3, y: 2})
    for f, g in zip(field.rhs, line.rhs, strict=True):
        for point in (f - g, *(sp.diff(f - g, s) for s in (x, y))):
            assert sp.simplify(point.subs({x: sp.pi / 3, y: 2})) == 0
        assert all(sp.diff(g, s, u) == 0 for s in (x, y) for u in (x, y))


def test_substitution_redeclares_parameters():
    flow = GradientFlow(k * x**2, state=(x,), parameters=(k,), initial={x: k}, metric={x: k})
    new = flow.substitute({k: h**2})
    assert (new.parameters, new.loss, new.initial) == ((h,), h**2 * x**2, (h**2,))
    assert new.metric == sp.Matrix([[h**2]])
    assert new.observable("loss") == new.loss
    assert flow.substitute({k: 3}).parameters == ()


def test_modified_flow_is_gradient_descent_to_second_order():
    """On a parabola, n steps multiply by (1 − hk)^n; the modified rate is k + hk²/2."""
    flow = GradientFlow(k * x**2 / 2, state=(x,), parameters=(k,)).modified(h)
    assert sp.expand(flow.rhs[0] / x) == -k - h * k**2 / 2
    assert flow.parameters == (k, h)
    assert flow.observable("loss") == k * x**2 / 2
    exact = sp.series(sp.log(1 - h * k) / h, h, 0, 2).removeO()
    assert sp.expand(exact - flow.rhs[0] / x) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(state=(x,)), "loss holds k"),
        (dict(state=(x,), parameters=(k, k)), "parameters names k twice"),
        (dict(state=("x",), parameters=(k,)), "state is"),
        (dict(state=(x,), parameters=(k,), initial=(1, 2)), "initial has 2 values"),
        (dict(state=(x,), parameters=(k,), initial={x: y}), "initial holds y"),
        (dict(state=(x,), parameters=(k,), timescale=x), "timescale holds x"),
        (dict(state=(x,), parameters=(k,), observables={"o": y}), "observables holds y"),
        (dict(state=(x,), parameters=(k,), metric=sp.eye(2)), "metric is"),
        (dict(state=(x,), parameters=(k,), metric=sp.zeros(1)), "is singular"),
        (dict(state=(x,), parameters=(k,), metric={y: 7}), "metric names y, which is no state"),
        (dict(state=(x,), parameters=(k,), initial={sp.Symbol("x"): 2}), "same assumptions"),
        (dict(state=(x,), parameters=(k,), clock=0), "clock is 0"),
    ],
)
def test_bad_declarations_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        GradientFlow(k * x**2, **arguments)


def test_other_bad_requests_are_named():
    field = VectorField((x,), state=(x,))
    with pytest.raises(InputError, match="field has 2 components"):
        VectorField((x, x), state=(x,))
    with pytest.raises(InputError, match="observable 'z' is unknown"):
        field.observable("z")
    with pytest.raises(InputError, match="may not replace the state x"):
        field.substitute({x: 1})
    with pytest.raises(InputError, match="at lacks x"):
        field.linearise({})


def test_equal_systems_are_equal():
    """Compilations are shared between equal systems, and only between those."""
    one, two = (GradientFlow(k * x**2, state=(x,), parameters=(k,)) for _ in range(2))
    assert one == two and hash(one) == hash(two)
    assert one != GradientFlow(k * x**2, state=(x,), parameters=(k,), metric={x: 2})
    assert np.all([one.names == ("k",), one.initial == (0,)])
