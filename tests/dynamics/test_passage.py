"""First passages against exact answers, and each pitfall of event location."""

from dataclasses import replace

import jax
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dynamics
from dynamics import (
    GradientFlow,
    InputError,
    PassageStatus,
    PrecisionError,
    Threshold,
    VectorField,
    first_passage,
    grid,
    passage,
    passage_time,
)

x, y = sp.symbols("x y", real=True)
k = sp.Symbol("k", positive=True)
DECAY = GradientFlow(k * x**2 / 2, state=(x,), parameters=(k,), initial=(1,))  # loss ∝ exp(−2kt)
SADDLE = VectorField((k * y, k * x), state=(x, y), parameters=(k,), initial={y: 1})
BLOW_UP = VectorField((k * x**2,), state=(x,), parameters=(k,), initial=(1,))  # 1/(1 − kt)
REACHED, CENSORED, FAILED = PassageStatus


@given(rate=st.floats(1e-4, 1e4), ratio=st.floats(1e-6, 0.99))
@settings(max_examples=40, deadline=None)
def test_decay(rate, ratio):
    times = first_passage(DECAY, loss_ratio=ratio, at={"k": rate})
    np.testing.assert_allclose(times.time, -np.log(ratio) / (2 * rate), rtol=1e-7, atol=1e-9 / rate)
    assert times.status == REACHED
    np.testing.assert_allclose(times.state["x"], np.sqrt(ratio), rtol=1e-7)


@given(level=st.floats(1.01, 1e6))
@settings(max_examples=20, deadline=None)
def test_linear_saddle_rises_to_a_level(level):
    times = first_passage(SADDLE, Threshold("y", level=level), at={"k": 2.0})
    np.testing.assert_allclose(times.time, np.arccosh(level) / 2, rtol=3e-7)


@pytest.mark.parametrize(
    ("clock", "timescale"), [(1 + x**2, 1 / k), (1 / (1 + x**2), None), (1000, 100 / k)]
)
def test_the_clock_and_the_timescale_change_nothing_but_the_steps(clock, timescale):
    system = replace(SADDLE, clock=clock, timescale=timescale)
    times = first_passage(system, Threshold("y", level=50), at={"k": 3.0}, horizon=10.0)
    np.testing.assert_allclose(times.time, np.arccosh(50) / 3, rtol=1e-7)


def test_lanes_keep_their_shape_and_order_in_any_chunk():
    at = grid(k=[1, 2, 4, 5, 8])
    for chunk in (2, 3, 64):
        times = first_passage(DECAY, loss_ratio=0.2, at=at, chunk=chunk)
        np.testing.assert_allclose(times.time, np.log(5) / (2 * at["k"]), rtol=1e-7)
    square = first_passage(DECAY, loss_ratio=0.2, at={"k": [[1.0, 2.0], [3.0, 4.0]]})
    assert square.time.shape == (2, 2)
    assert first_passage(DECAY, loss_ratio=0.2, at={"k": 1.0}).time.shape == ()


def test_never_reached_is_censored_at_the_horizon():
    """A never-firing event would end a bare solve as if successful."""
    times = first_passage(DECAY, Threshold("loss", level=-1), at={"k": [1.0, 2]}, horizon=[7, 9])
    assert (times.status == CENSORED).all()
    np.testing.assert_array_equal(times.time, [7, 9])
    by_default = first_passage(DECAY, Threshold("loss", level=-1), at={"k": 2.0})
    assert by_default.status == CENSORED
    np.testing.assert_allclose(by_default.time, 1e4 / 2, rtol=1e-12)


def test_the_earlier_of_level_and_horizon_wins_within_one_step():
    exact = np.log(5) / 2
    for factor, status in ((1 + 1e-7, REACHED), (1 - 1e-7, CENSORED)):
        times = first_passage(DECAY, loss_ratio=0.2, at={"k": 1.0}, horizon=exact * factor)
        assert times.status == status
        np.testing.assert_allclose(times.time, exact, rtol=2e-7)


def test_already_at_the_level_takes_no_time():
    times = first_passage(DECAY, Threshold("x", level=1.0), at={"k": 1.0})
    assert (times.time, times.status) == (0, REACHED)


def test_too_few_steps_is_a_failure_not_a_wrong_time():
    times = first_passage(SADDLE, Threshold("y", level=1e6), at={"k": 1.0}, max_steps=5)
    assert times.status == FAILED and np.isnan(times.time)


def test_failed_and_censored_lanes_spoil_no_other():
    """The second state turns one lane to NaN on its way."""
    c = sp.Symbol("c", real=True)
    rates = (c * x, sp.log(3 - y - c))
    system = VectorField(rates, state=(x, y), parameters=(c,), initial=(1, 0))
    options = dict(threshold=Threshold("x", level=1.5), horizon=20.0, max_steps=500)
    values = np.array([1.0, -1.0, 0.5, 5.0, 0.25])
    together = first_passage(system, at={"c": values}, **options)
    assert together.status.tolist() == [REACHED, CENSORED, REACHED, FAILED, REACHED]
    alone = [first_passage(system, at={"c": [value] * 5}, **options).time[0] for value in values]
    np.testing.assert_array_equal(together.time, alone)
    passed = values[together.reached]
    np.testing.assert_allclose(together.time[together.reached], np.log(1.5) / passed, rtol=1e-7)


def test_a_level_reached_in_finite_time_before_blow_up():
    times = first_passage(BLOW_UP, Threshold("x", level=100), at={"k": [1.0, 2.0]})
    np.testing.assert_allclose(times.time, [0.99, 0.495], rtol=1e-7)


def test_location_is_much_finer_than_a_step():
    """Without root finding the end of the step would come back, errors to 5%."""
    times = first_passage(DECAY, loss_ratio=0.2, at={"k": 1.0}, rtol=1e-5, atol=1e-7)
    assert times.steps < 15
    np.testing.assert_allclose(times.time, np.log(5) / 2, rtol=1e-4)


def test_derivatives_are_exact_and_unknown_where_nothing_was_reached():
    at, level = {"k": [0.5, 3.0]}, Threshold("x", ratio=0.2)
    times = first_passage(DECAY, level, at=at, derivatives=("k",))
    np.testing.assert_allclose(times.derivatives["k"], -np.log(5) / np.square([0.5, 3]), rtol=1e-6)
    late = first_passage(DECAY, level, at=at, derivatives=("k",), horizon=[1e-3, 10])
    assert np.isnan(late.derivatives["k"][0]) and np.isfinite(late.derivatives["k"][1])


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_passage_time_as_a_function(mode):
    differentiate = {"forward": jax.jacfwd, "reverse": jax.grad}[mode]
    time = passage_time(DECAY, loss_ratio=0.2, mode=mode)
    np.testing.assert_allclose(time({"k": 2.0}), np.log(5) / 4, rtol=1e-7)
    np.testing.assert_allclose(differentiate(time)({"k": 2.0})["k"], -np.log(5) / 8, rtol=1e-6)
    never = passage_time(DECAY, loss_ratio=0.2, mode=mode, horizon=1e-3)
    assert np.isnan(never({"k": 2.0})) and np.isnan(differentiate(never)({"k": 2.0})["k"])


def test_second_derivatives():
    time = passage_time(DECAY, loss_ratio=0.2)
    second = jax.jacfwd(jax.jacfwd(lambda rate: time({"k": rate})))(2.0)
    np.testing.assert_allclose(second, np.log(5) / 8, rtol=1e-5)


def test_float32_is_refused():
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(PrecisionError, match="enable_x64"):
            first_passage(DECAY, loss_ratio=0.2, at={"k": 1.0})
    finally:
        dynamics.enable_x64()


def test_compiled_kernels_are_kept_on_disk_and_reused(cache, monkeypatch):
    """A host callback in the kernel would silently keep JAX from writing its entry."""
    system = replace(DECAY, observables={"square": x**2})
    first = first_passage(system, loss_ratio=0.3, at={"k": [1.0, 2.0]})
    assert list(cache.glob("onset-*.stablehlo"))
    assert list(cache.glob("jit_call-*-cache"))
    passage._compiled.cache_clear()
    monkeypatch.setattr(passage, "_batched", None)  # nothing may be traced again
    again = first_passage(system, loss_ratio=0.3, at={"k": [1.0, 2.0]})
    np.testing.assert_array_equal(first.time, again.time)


def test_an_unreadable_kernel_on_disk_is_made_anew(cache):
    system = replace(DECAY, observables={"cube": x**3})
    first = first_passage(system, loss_ratio=0.3, at={"k": 1.0})
    (file,) = cache.glob("onset-*.stablehlo")
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    passage._compiled.cache_clear()
    again = first_passage(system, loss_ratio=0.3, at={"k": 1.0})
    np.testing.assert_array_equal(first.time, again.time)
    assert len(file.read_bytes()) == len(whole)


def test_extreme_rates_need_no_scale_of_their_own():
    rates = np.array([1e-280, 1e-100, 1e100, 1e280])
    times = first_passage(DECAY, Threshold("x", ratio=0.2), at={"k": rates})
    np.testing.assert_allclose(times.time, np.log(5) / rates, rtol=1e-7)


def test_beyond_floating_point_is_a_failure():
    """A loss that overflows or vanishes has no fraction to fall to."""
    start = replace(DECAY, initial=(k,), loss=x**2 / 2, observables={"loss": x**2 / 2})
    times = first_passage(start, loss_ratio=0.2, at={"k": [1.0, 1e200, 1e-200, 1e-4]})
    assert times.status.tolist() == [REACHED, FAILED, FAILED, REACHED]
    np.testing.assert_allclose(times.time[[0, 3]], np.log(5) / 2, rtol=1e-5)


@pytest.mark.parametrize("ratio", [1e-20, 1e-24, 1e-30])
def test_the_solvers_noise_is_no_crossing(ratio):
    """Below the tolerance nothing is known; a smaller one finds the crossing."""
    assert first_passage(DECAY, loss_ratio=ratio, at={"k": 1.0}).status == FAILED
    finer = first_passage(DECAY, loss_ratio=ratio, at={"k": 1.0}, atol=1e-22)
    np.testing.assert_allclose(finer.time, -np.log(ratio) / 2, rtol=1e-7)


def test_a_level_that_is_never_reached_but_approached_is_a_failure():
    assert first_passage(DECAY, Threshold("x", level=0.0), at={"k": 1.0}).status == FAILED


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-6])
def test_a_level_close_to_the_start(gap):
    times = first_passage(DECAY, loss_ratio=1 - gap, at={"k": 1.0})
    np.testing.assert_allclose(times.time, -np.log1p(-gap) / 2, rtol=1e-6, atol=1e-12)


def test_kernels_of_other_code_are_not_reused(cache, monkeypatch):
    system = replace(DECAY, observables={"fourth": x**4})
    for source in (b"one", b"two"):
        monkeypatch.setattr("dynamics.exported._source", lambda source=source: source)
        passage._compiled.cache_clear()
        first_passage(system, loss_ratio=0.3, at={"k": 1.0})
    assert len(list(cache.glob("onset-*.stablehlo"))) == 2


def test_the_table_names_every_lane():
    table = first_passage(DECAY, loss_ratio=0.2, at={"k": [1.0, 2.0]}).table().splitlines()
    assert table[0].split() == ["k", "time", "status"]
    assert table[2].split() == ["2", f"{np.log(5) / 4:.6g}", "reached"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(at={"k": 1.0}), "either a threshold or a loss_ratio"),
        (dict(loss_ratio=1.0, at={"k": 1.0}), "loss ratio is 1.0: give a number between 0 and 1"),
        (dict(loss_ratio=np.nan, at={"k": 1.0}), "loss ratio is nan"),
        (dict(loss_ratio=0.2, at={"k": np.inf}), "k is inf: give finite numbers"),
        (dict(loss_ratio=0.2, at={"k": []}), "give at least one setting"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, horizon=-1), "horizon is -1: give positive"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, horizon=np.nan), "horizon is nan: give positive"),
        (dict(loss_ratio=0.2, at={"k": [1.0, 2]}, horizon=[1, 2, 3]), r"horizon has shape \(3,\)"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, chunk=0), "chunk is 0: give a positive whole number"),
        (dict(loss_ratio="0.2", at={"k": 1.0}), "loss ratio is '0.2'"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, horizon="late"), "horizon is 'late'"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, rtol=-1), "rtol is -1: give a number above 0"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, atol=10), "atol is 10: give a number above 0"),
        (dict(threshold=0.2, at={"k": 1.0}), "threshold is 0.2: give a Threshold"),
        (dict(loss_ratio=0.2, at={"k": 1.0}, derivatives=("q",)), "derivatives names q"),
    ],
)
def test_bad_requests_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        first_passage(DECAY, **arguments)


def test_bad_thresholds_are_named():
    with pytest.raises(InputError, match="give one of the two"):
        Threshold("x")
    with pytest.raises(InputError, match="observable 'z' is unknown"):
        first_passage(DECAY, Threshold("z", level=1), at={"k": 1.0})
    with pytest.raises(InputError, match="mode is 'sideways'"):
        passage_time(DECAY, loss_ratio=0.2, mode="sideways")
