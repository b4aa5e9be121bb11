"""Which value ends the plateau in time: found, verified on the flow, and told when none does."""

import numpy as np
import pytest

from dynamics import InputError
from surrogate_models import (
    attention_chain,
    cross_sample_repetition,
    invert_flow,
    invert_law,
    predict,
    relaxed_initialisation,
    single_location,
)


def _time(surrogate, at):
    return float(predict(surrogate, at, rtol=1e-10, atol=1e-12).passages.time)


def test_the_root_is_where_the_flow_takes_that_long():
    surrogate, at = single_location(), {"T": 512.0, "d": 64.0}
    answer = invert_flow(surrogate, "B", 2000.0, at)
    (interval,) = answer.within
    root, end = interval.edges
    assert end is None and answer.searched == (1.0, 511.0) and answer.failed == 0
    np.testing.assert_allclose(_time(surrogate, {**at, "B": root}), 2000, rtol=1e-7)
    assert (interval.low, interval.high) == (np.ceil(root), 511)
    assert _time(surrogate, {**at, "B": interval.low}) < 2000
    assert _time(surrogate, {**at, "B": interval.low - 1}) > 2000


def test_a_default_that_follows_the_unknown_is_followed():
    """d moves M = √d with it; the derivative that Newton takes must know."""
    surrogate, at = single_location(), {"T": 512.0}
    (interval,) = invert_flow(surrogate, "d", 2000.0, at).within
    np.testing.assert_allclose(_time(surrogate, {**at, "d": interval.edges[1]}), 2000, rtol=1e-7)
    assert interval.low == 1 and interval.high == np.floor(interval.edges[1])


def test_two_roots_bound_an_interval():
    """Repeating a token helps until fresh ones are too rare."""
    surrogate, at = cross_sample_repetition(), {"T": 512.0, "d": 64.0}
    (interval,) = invert_flow(surrogate, "p", 3000.0, at).within
    for edge in interval.edges:
        np.testing.assert_allclose(_time(surrogate, {**at, "p": edge}), 3000, rtol=1e-7)
    inside = np.linspace(interval.low, interval.high, 9)[1:-1]
    assert (predict(surrogate, {**at, "p": inside}).passages.time < 3000).all()


def test_a_parameter_of_either_sign():
    surrogate, at = relaxed_initialisation(), {"T": 512.0, "d": 64.0}
    (interval,) = invert_flow(surrogate, "w0", 3000.0, at).within
    np.testing.assert_allclose(_time(surrogate, {**at, "w0": interval.low}), 3000, rtol=1e-7)
    assert interval.high == 8 and interval.edges[1] is None


def test_the_law_is_inverted_by_itself():
    surrogate, at = attention_chain(), {"d": 64.0, "k": 1.0}
    law = surrogate.laws[0]
    (interval,) = invert_law(surrogate, law, "N", 1000.0, at).within
    exact = (1000 - 32 * np.log(5)) / (np.sqrt(np.pi / 2) * 8)
    np.testing.assert_allclose(interval.edges[1], exact, rtol=1e-8)
    assert interval.high == np.floor(exact)


def test_nothing_does():
    surrogate, at = cross_sample_repetition(), {"T": 512.0, "d": 64.0}
    answer = invert_flow(surrogate, "p", 300.0, at)
    assert answer.within == ()
    value, shortest = answer.fastest
    np.testing.assert_allclose(_time(surrogate, {**at, "p": value}), shortest, rtol=1e-6)
    assert invert_law(surrogate, surrogate.laws[0], "p", 300.0, at).within == ()


def test_an_interval_narrower_than_the_search_is_found():
    """The best p, between two values that were looked at, is 0.01% faster than asked for."""
    surrogate, at = cross_sample_repetition(), {"T": 512.0, "d": 64.0}
    p = np.linspace(0.6, 0.8, 2001)
    best = predict(surrogate, {**at, "p": p}).passages.time.min()
    (interval,) = invert_flow(surrogate, "p", 1.0001 * best, at).within
    assert 0.6 < interval.low < interval.high < 0.8
    for edge in interval.edges:
        np.testing.assert_allclose(_time(surrogate, {**at, "p": edge}), 1.0001 * best, rtol=1e-6)


def test_everything_does():
    (interval,) = invert_flow(single_location(), "B", 1e6, {"T": 64.0, "d": 16.0}).within
    assert interval.edges == (None, None) and (interval.low, interval.high) == (1, 63)


def test_between_limits_the_search():
    at = {"T": 512.0, "d": 64.0}
    answer = invert_flow(single_location(), "B", 2000.0, at, between=(2, 6))
    assert answer.within == () and answer.searched == (2, 6) and answer.fastest[0] == 6


@pytest.mark.parametrize(
    ("unknown", "time", "at", "options", "message"),
    [
        ("q", 1.0, {"T": 8, "d": 4}, {}, "'q' is no parameter of single-location: use T, d"),
        ("T", 1.0, {"T": 8, "d": 4}, {}, "T is both given and asked for"),
        ("B", 0.0, {"T": 8, "d": 4}, {}, "time is 0.0: give a positive number"),
        ("B", np.nan, {"T": 8, "d": 4}, {}, "time is nan"),
        ("B", 1.0, {"T": 8}, {}, r"d \(token dimension\) is missing"),
        ("B", 1.0, {"T": 8, "d": 4}, {"between": (3, 2)}, "between is 3, 2: give two increasing"),
        ("B", 1.0, {"T": 8, "d": 4}, {"between": (0, 2)}, "B .* is 0: give B ≥ 1"),
        ("B", 1.0, {"T": 8, "d": 4}, {"between": (9, 12)}, "no B between 9 and 12 is admitted"),
    ],
)
def test_bad_questions_are_named(unknown, time, at, options, message):
    for ask in (
        lambda: invert_flow(single_location(), unknown, time, at, **options),
        lambda: invert_law(
            single_location(), single_location().laws[0], unknown, time, at, **options
        ),
    ):
        with pytest.raises(InputError, match=message):
            ask()
