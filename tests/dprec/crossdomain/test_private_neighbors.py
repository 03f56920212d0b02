"""Private neighbour selection and similarities, and Theorems 3 and 4 in simulation."""

import numpy as np
import pytest
import scipy.stats

from dprec.crossdomain.bounds import limited_width, selection_width
from dprec.crossdomain.private_neighbors import (
    noisy_similarities,
    select_neighbors,
    truncated_similarities,
)
from dprec.randomness import generator

FALSE_ALARM = 1e-7
TRIALS = 20_000


def selections(similarities, k, sensitivity, epsilon, failure, trials, lowest=-1.0):
    draws = generator(3, "selection").random((trials, k))
    rows = np.tile(similarities, (trials, 1))
    chosen = select_neighbors(rows, k, np.full(trials, sensitivity), epsilon, failure, lowest, draws)
    assert all(np.unique(chosen[row]).size == k for row in range(0, trials, trials // 50))
    return chosen


@pytest.mark.parametrize("failure", [0.05, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("sensitivity", [0.0005, 0.002, 0.006])
def test_theorems_3_and_4(failure: float, sensitivity: float) -> None:
    k, epsilon = 4, 1.0
    similarities = generator(1, "similarities").uniform(-0.2, 0.9, 40)
    nearest = np.sort(similarities)[-k]
    width = selection_width(k, 40, sensitivity, epsilon, failure)
    assert limited_width(np.array([width]), np.array([nearest]), -1.0)[0] == width, "the limit does not bind"
    chosen = selections(similarities, k, sensitivity, epsilon, failure, TRIALS)
    # Hoeffding's inequality: fails by chance less than once in ten million runs.
    slack = np.sqrt(np.log(1 / FALSE_ALARM) / (2 * TRIALS))
    too_far = (similarities[chosen] <= nearest - width).any(axis=1)
    assert too_far.mean() <= failure + slack
    wanted = np.flatnonzero(similarities > nearest + width)
    missed = (~(chosen[:, :, None] == wanted).any(axis=1)).any(axis=1)
    assert missed.mean() <= failure + slack


def test_draws_follow_the_exponential_mechanism() -> None:
    similarities, k, sensitivity, epsilon = np.array([0.9, 0.5, 0.1, -0.4]), 2, 0.25, 4.0
    chosen = selections(similarities, k, sensitivity, epsilon, 0.1, 200_000)
    weights = np.exp(epsilon * similarities / (4 * k * sensitivity))
    expected, observed = [], []
    for first in range(4):
        for second in set(range(4)) - {first}:
            share = weights[first] / weights.sum() * weights[second] / (weights.sum() - weights[first])
            expected.append(share * len(chosen))
            observed.append(int(((chosen[:, 0] == first) & (chosen[:, 1] == second)).sum()))
    statistic = ((np.array(observed) - expected) ** 2 / expected).sum()
    # Fails by chance once in ten million runs.
    assert statistic < scipy.stats.chi2.isf(FALSE_ALARM, 11)


def test_truncation_lifts_what_is_too_far() -> None:
    similarities = np.array([[0.9, 0.8, 0.5, -0.9]])
    for sensitivity in (1e-4, 1e-3):
        width = selection_width(2, 4, sensitivity, 1.0, 0.1)
        found = truncated_similarities(similarities, 2, np.array([sensitivity]), 1.0, 0.1, -1.0)
        np.testing.assert_allclose(found, np.maximum(similarities, 0.8 - width))
    untouched = truncated_similarities(similarities, 2, np.array([1.0]), 0.6, 0.1, -1.0)
    np.testing.assert_array_equal(untouched, similarities)


def test_the_limit_is_the_range_of_the_similarity() -> None:
    nearest = np.array([0.3, -0.2])
    np.testing.assert_allclose(limited_width(np.array([9.0, 9.0]), nearest, -1.0), [1.3, 0.8])
    np.testing.assert_allclose(limited_width(np.array([0.1, 0.1]), nearest, -1.0), [0.1, 0.1])
    assert selection_width(10, 10, 1.0, 0.6, 0.1) == 0
    assert selection_width(10, 110, 0.5, 0.6, 0.1) == pytest.approx(40 * 0.5 / 0.6 * np.log(10_000))


def test_no_more_candidates_than_neighbours_takes_them_all() -> None:
    similarities = np.array([[0.1, -0.2, 0.4]])
    chosen = select_neighbors(similarities, 5, np.array([1.0]), 0.6, 0.1, -1.0, np.zeros((1, 5)))
    assert chosen.tolist() == [[0, 1, 2]]


def test_no_sensitivity_takes_the_nearest() -> None:
    similarities = np.array([[0.1, 0.3, -0.2, 0.4]])
    chosen = select_neighbors(similarities, 2, np.zeros(1), 0.6, 0.1, -1.0, np.array([[0.999, 0.999]]))
    assert set(chosen[0]) == {1, 3}


def test_the_noise_of_similarities_is_laplace() -> None:
    draws = generator(2, "noise").random((1, 200_000))
    noisy = noisy_similarities(np.full((1, 200_000), 0.25), np.array([0.9]), 0.6, draws)[0]
    # The Kolmogorov-Smirnov test fails by chance once in ten million runs.
    test = scipy.stats.kstest(noisy, scipy.stats.laplace(0.25, 0.9 / 0.3).cdf)
    assert test.pvalue > FALSE_ALARM
    assert np.isfinite(noisy_similarities(np.zeros((1, 1)), np.ones(1), 0.1, np.zeros((1, 1)))).all()
