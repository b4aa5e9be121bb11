import diffrax
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import InputError, VectorField, grid, solve

x, y = sp.symbols("x y", real=True)
k, c = sp.symbols("k c", positive=True)
SADDLE = VectorField(
    (k * y, k * x),
    state=(x, y),
    parameters=(k,),
    initial={y: 1},
    observables={"invariant": y**2 - x**2},
)
LOGISTIC = VectorField((k * x * (1 - x / c),), state=(x,), parameters=(k, c), initial=(c / 100,))


@given(rate=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_linear_saddle(rate):
    """x = sinh kt, y = cosh kt, the error in units of the tolerance."""
    times = np.linspace(0, 3, 7) / rate
    path = solve(SADDLE, times=times, at={"k": rate}, rtol=1e-9, atol=1e-11)
    for name, exact in (("x", np.sinh(rate * times)), ("y", np.cosh(rate * times))):
        error = np.abs(path[name] - exact) / (1e-11 + 1e-9 * np.abs(exact))
        assert error.max() < 30
    np.testing.assert_allclose(path["invariant"], 1, rtol=0, atol=3e-7)


def test_logistic_growth_over_a_grid():
    at = grid(k=[0.1, 1, 10], c=[1, 50])
    times = np.array([0.5, 1, 5])
    path = solve(LOGISTIC, times=times, at=at, rtol=1e-9, atol=1e-12)
    rate, capacity = at["k"][..., None], at["c"][..., None]
    exact = capacity / (1 + 99 * np.exp(-rate * times))
    assert path["x"].shape == (3, 2, 3)
    np.testing.assert_allclose(path["x"], exact, rtol=3e-8)
    assert path.succeeded.all()


def test_initial_values_may_be_given_per_lane():
    path = solve(SADDLE, times=[1.0], at={"k": 1.0}, initial={"x": [0.0, 1.0]})
    np.testing.assert_allclose(path["x"][:, 0], [np.sinh(1), np.sinh(1) + np.cosh(1)], rtol=1e-7)


def test_a_lane_that_blows_up_is_told_and_spoils_no_other():
    field = VectorField((k * x**2,), state=(x,), parameters=(k,), initial=(1,))
    path = solve(field, times=[0.5, 1.5], at={"k": [0.1, 1.0, 0.2]}, max_steps=2000)
    assert path.succeeded.tolist() == [True, False, True]
    alone = solve(field, times=[0.5, 1.5], at={"k": [0.1, 0.2]}, max_steps=2000)
    np.testing.assert_array_equal(np.asarray(path["x"])[[0, 2]], alone["x"])
    np.testing.assert_allclose(alone["x"][:, 1], [1 / 0.85, 1 / 0.7], rtol=1e-7)


def test_another_solver_agrees():
    explicit = solve(LOGISTIC, times=[2.0], at={"k": 1, "c": 3})
    implicit = solve(LOGISTIC, times=[2.0], at={"k": 1, "c": 3}, solver=diffrax.Kvaerno5())
    np.testing.assert_allclose(explicit["x"], implicit["x"], rtol=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(times=[1.0]), "at lacks k"),
        (dict(times=[1.0], at={"k": np.nan}), "k is nan: give finite numbers"),
        (dict(times=[1.0], at={"k": "fast"}), "k is 'fast': give numbers"),
        (dict(times=[1.0], at={"k": 1, "j": 2}), "at names j, which is no parameter"),
        (dict(times=[2.0, 1.0], at={"k": 1}), "give increasing times"),
        (dict(times=[-1.0], at={"k": 1}), "give a flat list of finite times"),
        (dict(times=[1.0], at={"k": 1}, initial={"z": 1}), "initial names z"),
    ],
)
def test_bad_requests_are_named(options, message):
    with pytest.raises(InputError, match=message):
        solve(SADDLE, **options)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(InputError, match="do not broadcast"):
        solve(LOGISTIC, times=[1.0], at={"k": [1, 2], "c": [1, 2, 3]})
    with pytest.raises(InputError, match="k is"):
        grid(k=[[1, 2]])
