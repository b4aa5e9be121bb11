import numpy as np
import pytest
import sympy as sp

from dynamics import GradientFlow, InputError, PassageStatus, first_passage
from validation import PlateauLengths, compare, median_interval, plateau_lengths

REACHED, CENSORED, FAILED = PassageStatus


def test_an_exponential_is_crossed_exactly():
    steps = np.arange(100)
    losses = np.exp(-np.outer([0.05, 0.1, 0.3], steps))
    measured = plateau_lengths(losses, ratio=0.2, lr=0.1)
    exact = 0.1 * np.log(5) / np.array([0.05, 0.1, 0.3])
    np.testing.assert_allclose(measured.time, exact, rtol=1e-12)
    assert measured.reached.all()


def test_censored_and_failed_are_told_apart():
    flat, falls = np.ones(11), np.exp(-np.arange(11.0))
    breaks, breaks_late = np.ones(11), falls.copy()
    breaks[5:], breaks_late[5:] = np.nan, np.inf
    measured = plateau_lengths(np.stack([flat, falls, breaks, breaks_late]), ratio=0.2, lr=2.0)
    assert measured.status.tolist() == [CENSORED, REACHED, FAILED, REACHED]
    np.testing.assert_allclose(measured.time, [20, 2 * np.log(5), np.nan, 2 * np.log(5)])
    assert np.isinf(measured.bounded[0]) and np.isnan(measured.bounded[2])


def test_losses_without_a_plateau_have_no_length():
    losses = np.array([[np.inf, 1, 0.1], [1, -np.inf, 0], [0, 0, 0], [1, 0.5, 0]])
    measured = plateau_lengths(losses, ratio=0.2, lr=1.0)
    assert measured.status.tolist() == [FAILED, FAILED, FAILED, REACHED]
    assert measured.time[3] == 2
    for bad, message in (
        (dict(ratio=2, lr=1), "ratio is 2"),
        (dict(ratio=np.nan, lr=1), "ratio is nan"),
        (dict(ratio=0.2, lr=-1), "lr is -1"),
    ):
        with pytest.raises(InputError, match=message):
            plateau_lengths(losses, **bad)
    with pytest.raises(InputError, match="losses has shape"):
        plateau_lengths(losses[0], ratio=0.2, lr=1)
    with pytest.raises(InputError, match="confidence is -1"):
        median_interval(np.ones(3), confidence=-1)


def test_median_interval_covers_as_often_as_it_says():
    median, low, high, coverage = median_interval(np.array([3.0, 1, 5, 2, 4]))
    assert (median, low, high, coverage) == (3, 1, 5, 0.9375)
    assert median_interval(np.arange(10.0))[1:3] == (1, 8)
    random = np.random.default_rng(0)
    for n in (5, 12, 30):
        samples = random.exponential(size=(4000, n))
        results = np.array([median_interval(sample) for sample in samples])
        covered = (results[:, 1] <= np.log(2)) & (np.log(2) <= results[:, 2])
        assert abs(covered.mean() - results[0, 3]) < 4 * np.sqrt(0.05 / 4000)


def test_censored_times_enter_the_median_as_longest():
    median, low, high, _ = median_interval(np.array([1.0, np.inf, 2, np.inf, 3]))
    assert (median, low, high) == (3, 1, np.inf)
    assert np.isnan(median_interval(np.array([np.nan]))).all()
    assert median_interval(np.array([np.nan, 2.0]))[0] == 2


def test_comparison_counts_what_it_cannot_measure():
    x = sp.Symbol("x")
    k = sp.Symbol("k", positive=True)
    decay = GradientFlow(k * x**2 / 2, state=(x,), parameters=(k,), initial=(1,))
    predicted = first_passage(decay, loss_ratio=0.2, at={"k": [[1.0, 2.0], [4.0, 8.0]]})
    exact = predicted.time
    measured = PlateauLengths(
        exact * [[1.1, 0.9], [0.5, 2.0]],
        np.array([[REACHED, REACHED], [CENSORED, CENSORED]]),
    )
    result = compare(predicted, measured)
    np.testing.assert_allclose(result.error[0], [1 / 1.1 - 1, 1 / 0.9 - 1])
    assert np.isnan(result.error[1]).all()
    assert (result.censored, result.contradicted) == (2, 1)
    np.testing.assert_allclose(result.median, (0.1 / 1.1 + 0.1 / 0.9) / 2)
    np.testing.assert_allclose(result.cell_medians[0], (1 / 1.1 + 1 / 0.9) / 2 - 1)
    assert np.isnan(result.cell_medians[1]) and result.worst_cell == abs(result.cell_medians[0])
    np.testing.assert_array_equal(compare(exact, measured).error, result.error)
    with pytest.raises(InputError, match="predict for exactly the nets measured"):
        compare(exact[:1], measured)
