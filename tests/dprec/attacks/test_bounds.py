"""What epsilon allows and chance adds: against known curves, and mechanisms that reach them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, norm

from dprec.accounting import NoisySum, PrivacyAccountant
from dprec.attacks.bounds import Roc, above_by_chance

EVERYBODY = np.ones(3, dtype=np.bool_)


@given(epsilon=st.floats(0, 5), delta=st.floats(0, 0.5), share=st.floats(0, 1))
def test_the_allowed_curve_is_its_two_lines(epsilon: float, delta: float, share: float) -> None:
    lines = math.exp(epsilon) * share + delta, 1 - (1 - delta - share) * math.exp(-epsilon), 1.0
    assert Roc.allowed(epsilon, delta).at(share) == pytest.approx(min(lines), abs=1e-12)


def test_area_is_the_chance_that_a_member_scores_above_another() -> None:
    scores = np.random.default_rng(1).integers(0, 9, 60).astype(np.float64)
    members = np.random.default_rng(2).random(60) < 0.4
    differences = np.subtract.outer(scores[members], scores[~members])
    expected = np.mean((differences > 0) + (differences == 0) / 2)
    assert Roc.of_scores(scores, members, ~members).auc == pytest.approx(expected)


def test_a_noisy_sum_allows_little_more_than_two_normal_distributions() -> None:
    accountant = PrivacyAccountant(EVERYBODY)
    accountant.step(1, EVERYBODY, np.inf, np.inf, NoisySum(0.5))  # two profiles are twice as far apart
    roc, shares = Roc.allowed_by(accountant), np.linspace(0.01, 0.99, 50)
    exact = norm.cdf(norm.ppf(shares) + 1.0)
    assert np.all(roc.at(shares) >= exact - 1e-12)
    assert norm.cdf(1 / math.sqrt(2)) <= roc.auc <= norm.cdf(1 / math.sqrt(2)) + 0.006


@pytest.mark.parametrize(("mean", "decisions"), [(0.0, 40), (0.01, 40), (0.5, 7), (0.7, 400)])
def test_what_chance_adds_is_above_the_binomial_tail_and_not_far(mean: float, decisions: int) -> None:
    for failure in (1e-6, 1e-2):
        bound = above_by_chance(mean, decisions, failure)
        assert binom.sf(np.floor(bound * decisions + 1e-6), decisions, mean) <= failure
        exact = binom.isf(failure, decisions, mean) / decisions
        assert exact - 1e-6 <= bound <= exact + 0.6 / np.sqrt(decisions)


@given(epsilon=st.floats(0, 4), delta=st.floats(0, 0.3), share=st.floats(0, 1))
def test_right_guesses_are_the_best_of_all_shares_of_yes(epsilon: float, delta: float, share: float) -> None:
    curve, yes = Roc.allowed(epsilon, delta), np.linspace(0, 1, 301)
    every = share * curve.at(yes) + (1 - share) * curve.at(1 - yes)
    assert every.max() <= curve.right_of(share) + 1e-12
    assert curve.right_of(share) <= every.max() + 0.2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.7])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_no_answer_about_either_of_two_who_answer_at_random_is_right_more_often(
    share: float, epsilon: float
) -> None:
    """All rules that read the bits of both, of whom one says the truth with 1 and the other with 0."""
    said = np.array([expit(-epsilon), expit(epsilon)])
    of_first, of_second = said, said[::-1]
    best = 0.0
    for yes in itertools.product((0.0, 1.0), repeat=4):
        rule = np.reshape(yes, (2, 2))
        first, second = of_first @ rule @ of_second, of_second @ rule @ of_first
        best = max(best, share * first + (1 - share) * (1 - second))
    allowed = Roc.allowed(epsilon).right_of(share)
    assert max(share, 1 - share) <= best <= allowed + 1e-12
    assert Roc.allowed(epsilon).auc <= best if share == 0.5 else best < 1
