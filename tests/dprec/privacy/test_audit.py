"""Bounds from below: below the true loss, near it, and 0 where there is none."""

import numpy as np
import pytest
import scipy.stats

from dprec.auditing import Sent, loss_at_least, measured, proportion_above, proportion_below
from dprec.mechanisms import BoundedLaplace, RandomizedResponse
from dprec.randomness import words
from dprec.ratings import RatingScale

CONFIDENCE = 1 - 1e-7
"""A bound above the loss is found by chance less than once in ten million runs; that it comes near the loss
holds for the seeds here."""

STARS = RatingScale.evenly(1, 5, 1)


def sent(mechanism, level: int, epsilon: float, people: int, purpose: str) -> np.ndarray:
    channel = mechanism.channel(STARS, epsilon)
    levels = np.full(people, level, dtype=np.uint8)
    return channel.sample(levels, words(1, purpose, 0, people)).astype(np.int64)


@pytest.mark.parametrize("mechanism", [RandomizedResponse(), BoundedLaplace()], ids=lambda one: one.kind)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_is_below_the_loss_and_near_it(mechanism, epsilon: float) -> None:
    reports = [[sent(mechanism, level, epsilon, 200_000, f"{level}")] for level in (1, 5)]
    bound = loss_at_least(*reports, CONFIDENCE)
    assert 0.6 * epsilon <= bound <= epsilon


def test_rounds_are_judged_together() -> None:
    mechanism = RandomizedResponse()
    rounds = [
        [sent(mechanism, level, 0.5, 200_000, f"{level} {turn}") for turn in range(3)] for level in (1, 5)
    ]
    assert 1.1 <= loss_at_least(*rounds, CONFIDENCE) <= 1.5


def test_a_round_that_repeats_another_adds_nothing() -> None:
    mechanism = RandomizedResponse()
    once = [sent(mechanism, level, 0.5, 200_000, f"{level}") for level in (1, 5)]
    assert loss_at_least([once[0]] * 4, [once[1]] * 4, CONFIDENCE) <= 0.5


def test_the_same_profile_loses_nothing() -> None:
    mechanism = BoundedLaplace()
    reports = [[sent(mechanism, 3, 1.0, 100_000, purpose)] for purpose in ("a", "b")]
    assert loss_at_least(*reports, CONFIDENCE) == 0.0


def test_either_direction_is_found() -> None:
    rare, never = np.zeros(10_000, dtype=np.int64), np.zeros(10_000, dtype=np.int64)
    rare[::10] = rare[1::10] = 1  # A fifth of either half.
    one, other = loss_at_least([rare], [never], 0.99), loss_at_least([never], [rare], 0.99)
    assert one == other > 3


def test_nothing_sent_tells_nothing() -> None:
    assert loss_at_least([], [], 0.99) == 0.0
    nothing = np.zeros(0, dtype=np.int64)
    assert loss_at_least([nothing], [nothing], 0.99) == 0.0


@pytest.mark.parametrize("probability", [0.001, 0.3, 0.999])
def test_proportions_are_exact_binomial_bounds(probability: float) -> None:
    failure, trials = 0.05, 200
    counts = np.arange(trials + 1)
    shares = scipy.stats.binom.pmf(counts, trials, probability)
    assert shares[proportion_below(counts, trials, failure) > probability].sum() <= failure
    assert shares[proportion_above(counts, trials, failure) < probability].sum() <= failure
    assert proportion_below(0, trials, failure) == 0
    assert proportion_above(trials, trials, failure) == 1


def test_delta_is_subtracted_from_what_favours_a_profile() -> None:
    """One in five says for certain who it is: a loss without bound, but nothing beyond a delta of 0.25."""
    random = np.random.default_rng(5)
    certain = Sent.of_rounds([random.integers(0, 5, 10_000)])
    never = Sent.of_rounds([random.integers(1, 5, 10_000)])
    assert measured([(certain, never)], 0.01).at_least > 3
    assert measured([(certain, never)], 0.01, delta=0.25).at_least < 0.5


@pytest.mark.parametrize("people", [400, 3_200, 12_800])
def test_no_more_power_is_promised_than_there_is(people: int) -> None:
    """Of 20 audits of a channel with twice the loss; the seeds are fixed."""

    def measurement(epsilon: float, run: int):
        sides = (
            Sent.of_rounds([sent(BoundedLaplace(), level, epsilon, people, f"{run} {level}")])
            for level in (1, 5)
        )
        return measured([tuple(sides)], 0.01)

    promised = np.mean([measurement(1.0, run).power(1.0) for run in range(20)])
    detected = np.mean([measurement(2.0, run).at_least > 1.0 for run in range(20)])
    assert promised <= detected + 0.01
    assert promised > 0.8 or people < 12_800
