"""What epsilon allows: against linear programmes, known curves, and mechanisms that reach it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm

from dprec.accounting import ChannelDraws, NoisySum, PrivacyAccountant, dominating_channel
from dprec.arrays import Floats
from dprec.attacks.bounds import Roc, allowed_guess

EVERYBODY = np.ones(3, dtype=np.bool_)


def best_by_programme(shares: Floats, epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess over all (epsilon, delta)-private channels."""
    inputs = shares.size
    entries, pairs = inputs**2, list(itertools.permutations(range(inputs), 2))
    unknowns = entries + len(pairs) * inputs
    rows, limits = [], []
    for number, (one, other) in enumerate(pairs):
        excess = entries + number * inputs
        for symbol in range(inputs):
            row = np.zeros(unknowns)
            row[[one * inputs + symbol, other * inputs + symbol, excess + symbol]] = 1, -math.exp(epsilon), -1
            rows.append(row)
            limits.append(0.0)
        row = np.zeros(unknowns)
        row[excess : excess + inputs] = 1
        rows.append(row)
        limits.append(delta)
    whole = np.zeros((inputs, unknowns))
    whole[np.repeat(np.arange(inputs), inputs), np.arange(entries)] = 1
    gain = np.zeros(unknowns)
    gain[np.arange(inputs) * (inputs + 1)] = -shares
    found = linprog(gain, np.array(rows), limits, whole, np.ones(inputs), bounds=(0, 1))
    return -float(found.fun)


@settings(max_examples=15, deadline=None)
@given(
    weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=5),
    epsilon=st.floats(0, 4),
    delta=st.sampled_from([0.0, 0.01, 0.2]),
)
def test_no_channel_is_guessed_better(weights: list[float], epsilon: float, delta: float) -> None:
    shares = np.array(weights) / np.sum(weights)
    allowed = allowed_guess(shares[None, :], epsilon, delta)[0]
    assert allowed == pytest.approx(best_by_programme(shares, epsilon, delta), abs=1e-7)


def test_a_guess_without_and_with_every_loss() -> None:
    shares = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    np.testing.assert_allclose(allowed_guess(shares, 0.0), [0.5, 0.8])
    np.testing.assert_allclose(allowed_guess(shares, np.array([np.inf, 1.0])), [1.0, 0.8])
    np.testing.assert_allclose(allowed_guess(np.array([[0.5, 0.5]]), 1.0), 1 / (1 + math.exp(-1)))


def test_a_guess_judged_by_truth_is_in_the_mean_what_the_shares_promise() -> None:
    shares = np.array([[0.15, 0.5, 0.35]])
    judged = [allowed_guess(shares, 1.5, 0.1, np.array([level]))[0] for level in range(3)]
    assert shares[0] @ judged == pytest.approx(allowed_guess(shares, 1.5, 0.1)[0])
    assert judged[0] == pytest.approx(0.1)  # guessed only where delta tells it


@given(epsilon=st.floats(0, 5), delta=st.floats(0, 0.5), share=st.floats(0, 1))
def test_the_allowed_curve_is_its_two_lines(epsilon: float, delta: float, share: float) -> None:
    lines = math.exp(epsilon) * share + delta, 1 - (1 - delta - share) * math.exp(-epsilon), 1.0
    assert Roc.allowed(epsilon, delta).at(share) == pytest.approx(min(lines), abs=1e-12)


def test_areas_of_allowed_curves() -> None:
    assert Roc.allowed(0.0).auc == pytest.approx(0.5)
    assert Roc.allowed(2.0).auc == pytest.approx(1 / (1 + math.exp(-2)))
    assert Roc.allowed(2.0, 0.1).auc == pytest.approx(1 - 0.9**2 / (1 + math.exp(2)))
    assert Roc.allowed(math.inf).auc == 1.0


def test_equal_scores_are_ordered_by_chance() -> None:
    roc = Roc.of_scores(np.array([1.0, 1.0, 0.0]), np.array([1, 0, 1]), np.array([0, 1, 0]))
    assert roc.auc == pytest.approx(0.25)
    np.testing.assert_allclose(roc.at([0.0, 0.5, 1.0]), [0.0, 0.25, 1.0])


def test_area_is_the_chance_that_a_member_scores_above_another() -> None:
    scores = np.random.default_rng(1).integers(0, 9, 60).astype(np.float64)
    members = np.random.default_rng(2).random(60) < 0.4
    differences = np.subtract.outer(scores[members], scores[~members])
    expected = np.mean((differences > 0) + (differences == 0) / 2)
    assert Roc.of_scores(scores, members, ~members).auc == pytest.approx(expected)


def test_an_accountant_allows_what_its_events_do() -> None:
    accountant = PrivacyAccountant(EVERYBODY)
    accountant.step(1, EVERYBODY, 1.0, 1.0, ChannelDraws((dominating_channel(1.0),)))
    expected = Roc.allowed(1.0)
    np.testing.assert_allclose(Roc.allowed_by(accountant).at([0.0, 0.1, 0.5]), expected.at([0.0, 0.1, 0.5]))
    np.testing.assert_allclose(Roc.allowed_by(accountant, per="rating").auc, expected.auc)


def test_a_noisy_sum_allows_little_more_than_two_normal_distributions() -> None:
    accountant = PrivacyAccountant(EVERYBODY)
    accountant.step(1, EVERYBODY, np.inf, np.inf, NoisySum(1.0))
    roc, shares = Roc.allowed_by(accountant), np.linspace(0.01, 0.99, 50)
    exact = norm.cdf(norm.ppf(shares) + 1.0)
    assert np.all(roc.at(shares) >= exact - 1e-12)
    assert norm.cdf(1 / math.sqrt(2)) <= roc.auc <= norm.cdf(1 / math.sqrt(2)) + 0.006


def test_without_a_proof_everything_is_allowed() -> None:
    accountant = PrivacyAccountant(EVERYBODY)
    accountant.step(1, EVERYBODY, np.inf, np.inf)
    assert Roc.allowed_by(accountant).auc == 1.0
    assert Roc.allowed_by(accountant).at(0.0) == 1.0


@settings(deadline=None)
@given(epsilon=st.floats(0, 4), delta=st.sampled_from([0.0, 0.05]))
def test_priors_add_to_what_a_report_tells(epsilon: float, delta: float) -> None:
    log_odds = np.array([-2.0, 0.0, 1.5, -np.inf])
    members, others = np.array([1.0, 5.0, 8.0, 0.0]), np.array([8.0, 5.0, 2.0, 3.0])
    known = Roc.of_scores(log_odds, members, others)
    both = Roc.allowed_with_priors(log_odds, members, others, epsilon, delta)
    alone = Roc.allowed_with_priors(np.zeros(4), members, others, epsilon, delta)
    assert both.auc >= known.auc - 1e-12
    assert both.auc >= alone.auc - 1e-12
    assert alone.auc == pytest.approx(Roc.allowed(epsilon, delta).auc)
    assert Roc.allowed_with_priors(log_odds, members, others, np.inf).auc == 1.0
