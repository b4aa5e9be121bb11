import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from dynamics import GradientFlow, VectorField, compile_system, symbolic_function
from dynamics.compilation import hoisted_function

x, y = sp.symbols("x y", real=True)
k = sp.Symbol("k", positive=True)


def test_functions_agree_with_sympy_and_batch():
    flow = GradientFlow(k * sp.exp(x) * y**2, state=(x, y), parameters=(k,), initial=(k, 1))
    compiled = compile_system(flow)
    state = (jnp.linspace(-1, 1, 5), jnp.linspace(0, 2, 5))
    values = (jnp.full(5, 3.0),)
    for i in range(5):
        at = {x: state[0][i], y: state[1][i], k: 3}
        for got, expected in zip(compiled.rhs(state, values), flow.rhs, strict=True):
            np.testing.assert_allclose(got[i], float(expected.subs(at)), rtol=1e-14)
        jacobian = [[entry[i] for entry in row] for row in compiled.jacobian(state, values)]
        expected = np.array(flow.jacobian().subs(at), float)
        np.testing.assert_allclose(jacobian, expected, rtol=1e-14, atol=1e-15)
    assert [float(v) for v in compiled.initial((3.0,))] == [3, 1]
    assert compiled is compile_system(flow)


def test_jacobian_agrees_with_automatic_differentiation():
    field = VectorField((x * y - k, sp.tanh(x) / (1 + y**2)), state=(x, y), parameters=(k,))
    compiled = compile_system(field)
    automatic = jax.jacfwd(lambda s: compiled.rhs(s, (0.7,)))((0.3, -1.2))
    np.testing.assert_allclose(compiled.jacobian((0.3, -1.2), (0.7,)), automatic, rtol=1e-13)


def test_constant_components_are_broadcast():
    function = symbolic_function((sp.S.One, x, sp.pi), (x, y))
    one, same, pi = function(jnp.arange(4.0), jnp.zeros(4))
    assert one.shape == same.shape == pi.shape == (4,)
    assert (one == 1).all() and (pi == np.pi).all()


def test_guarded_points_have_finite_derivatives_of_every_order():
    """sin(x)/x at 0: JAX alone would answer NaN for the derivative."""
    sinc = sp.Piecewise((sp.sin(x) / x, sp.Ne(x, 0)), (1, True))

    def value(at):
        return symbolic_function((sinc,), (x,))(at)[0]

    assert np.isnan(jax.grad(lambda a: jnp.where(a != 0, jnp.sin(a) / a, 1.0))(0.0))
    assert value(0.0) == 1
    assert jax.grad(value)(0.0) == 0
    assert jax.jacfwd(value)(0.0) == 0
    np.testing.assert_allclose(jax.grad(value)(0.5), (0.5 * np.cos(0.5) - np.sin(0.5)) / 0.25)
    assert np.isfinite(jax.grad(jax.grad(value))(0.0))


def test_common_subexpressions_are_shared():
    scores = sp.symbols("a0:12", real=True)
    total = sum(map(sp.exp, scores))
    loss = sum((sp.exp(a) / total) ** 2 for a in scores)
    flow = GradientFlow(loss, state=scores)
    jaxpr = jax.make_jaxpr(lambda s: compile_system(flow).rhs(s, ()))((0.0,) * 12)
    written_out = sum(rate.count(sp.exp) for rate in flow.rhs)
    assert str(jaxpr).count(" exp ") <= 3 * len(scores) < written_out / 50


def test_what_never_changes_is_hoisted_out_of_the_function():
    c = sp.Symbol("c", real=True)
    guarded = sp.Piecewise((x / c, sp.Ne(c, 0) & (x > 0)), (sp.exp(c) * x, True))
    expressions = (sp.exp(k) * x / (1 + k**2) + k * c, guarded, sp.pi * k, sp.S.One)
    constants, function = hoisted_function(expressions, (x,), (k, c))
    whole = symbolic_function(expressions, (x, k, c))
    for values in ((0.5, 2.0, 3.0), (-0.5, 2.0, 0.0)):
        split = function(values[0], *constants(*values[1:]))
        np.testing.assert_allclose(split, whole(*values), rtol=1e-15)
    fixed = constants(2.0, 3.0)
    jaxpr = jax.make_jaxpr(lambda at: function(at, *fixed))(0.5)
    assert str(jaxpr).count(" exp ") == 0


def test_parameters_are_arguments():
    """One trace serves every value of the parameters."""
    compiled = compile_system(VectorField((-k * x,), state=(x,), parameters=(k,)))
    traces = []

    @jax.jit
    def rhs(state, parameters):
        traces.append(1)
        return compiled.rhs(state, parameters)

    assert [float(rhs((1.0,), (value,))[0]) for value in (1.0, 2.0, 5.0)] == [-1, -2, -5]
    assert len(traces) == 1


@pytest.mark.parametrize(("rhs", "scale"), [((y, 4 * x), 0.25), ((x**2, y**2), 1.0)])
def test_default_timescale_comes_from_the_initial_jacobian(rhs, scale):
    compiled = compile_system(VectorField(rhs, state=(x, y)))
    np.testing.assert_allclose(compiled.timescale(()), scale, rtol=1e-15)
