"""Private neighbour selection and similarities, and Theorems 3 and 4 in simulation.

Item-based prediction on numbers worked out by hand.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dprec.crossdomain import ItemBasedRecommender, RatedItems, RecommendationOptions, SimilarityNoise
from dprec.crossdomain.recommender import (
    select_neighbors,
    selection_width,
    truncated_similarities,
)
from dprec.randomness import generator
from tests import make

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
    assert nearest - -1.0 > width, "the limit does not bind"
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


def test_the_noise_of_similarities_is_laplace() -> None:
    noise = SimilarityNoise.of(0.6)
    steps = noise.unit.noise(2, "noise", np.arange(200_000))[None, :]
    noisy = noise.added(np.full((1, 200_000), 0.25), np.array([0.9]), steps)[0]
    # The Kolmogorov-Smirnov test fails by chance once in ten million runs.
    test = scipy.stats.kstest(noisy, scipy.stats.laplace(0.25, 0.9 / 0.3).cdf)
    assert test.pvalue > FALSE_ALARM


@given(
    sensitivity=st.floats(1e-9, 2.0),
    similarity=st.floats(-1.0, 1.0),
    moved=st.floats(-1.0, 1.0),
    epsilon=st.floats(0.01, 20.0),
)
def test_a_similarity_moves_by_no_more_steps_than_the_noise_covers(
    sensitivity: float, similarity: float, moved: float, epsilon: float
) -> None:
    other = min(1.0, max(-1.0, similarity + moved * sensitivity))
    noise = SimilarityNoise.of(epsilon)
    without = np.zeros((1, 2), dtype=np.int64)
    values = noise.added(np.array([[similarity, other]]), np.array([sensitivity]), without)
    one = noise.added(np.zeros((1, 1)), np.array([sensitivity]), np.ones((1, 1), dtype=np.int64))[0, 0]
    first, second = np.rint(values[0] / one)
    assert np.array_equal(values[0], np.array([first, second]) * one), "an integer of steps"
    assert Fraction(abs(second - first)) / 2**noise.unit.bits <= Fraction(epsilon) / 2
    assert 2**noise.unit.bits * one == pytest.approx(max(sensitivity, 2.0**-16) / (epsilon / 2), rel=1e-6)


@pytest.mark.parametrize("epsilon", [None, 0.8])
def test_a_prediction_does_not_depend_on_what_else_is_asked_for(epsilon: float | None) -> None:
    ratings = make.random_ratings(30, 12).to_sparse()
    items = RatedItems.of(ratings, "adjusted-cosine")
    options = RecommendationOptions(neighbors=3, epsilon=epsilon)
    recommender = ItemBasedRecommender(options, "adjusted-cosine", items, ratings, 7)
    users, wanted = np.repeat(np.arange(30), 12), np.tile(np.arange(12), 30)
    together = recommender.predict(users, wanted)
    some = np.array([300, 17, 4, 299, 301])
    assert recommender.predict(users[some], wanted[some]).tolist() == together[some].tolist()
