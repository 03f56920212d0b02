"""Lower bounds on privacy losses from samples: how often they hold, and how likely they detect a leak."""

import numpy as np
import pytest
import scipy.stats

from dprec.auditing import (
    Sent,
    bounding,
    choosing,
    detection,
    doubled,
    learning,
    log_odds,
    measured,
    proportion_above,
    proportion_below,
)
from dprec.mechanisms import BoundedLaplace, RandomizedResponse
from dprec.randomness import words
from tests.make import STARS

FAILURE = 1e-7
"""A bound above the loss is found by chance less than once in ten million runs; that it comes near the loss
holds for the seeds here."""


def sent(mechanism, level: int, epsilon: float, people: int, purpose: str) -> np.ndarray:
    channel = mechanism.channel(STARS, epsilon)
    levels = np.full(people, level, dtype=np.uint8)
    return channel.sample(levels, words(1, purpose, 0, people)).astype(np.int64)


def loss_at_least(one: list[np.ndarray], other: list[np.ndarray], failure: float) -> float:
    """Return what the reports of two profiles show of a loss, by round."""
    return measured([(Sent.of_rounds(one), Sent.of_rounds(other))], failure).at_least


@pytest.mark.parametrize("mechanism", [RandomizedResponse(), BoundedLaplace()], ids=lambda one: one.kind)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_is_below_the_loss_and_near_it(mechanism, epsilon: float) -> None:
    reports = [[sent(mechanism, level, epsilon, 200_000, f"{level}")] for level in (1, 5)]
    bound = loss_at_least(*reports, FAILURE)
    assert 0.6 * epsilon <= bound <= epsilon


def test_rounds_are_judged_together() -> None:
    mechanism = RandomizedResponse()
    rounds = [
        [sent(mechanism, level, 0.5, 200_000, f"{level} {turn}") for turn in range(3)] for level in (1, 5)
    ]
    assert 1.1 <= loss_at_least(*rounds, FAILURE) <= 1.5


def test_a_round_that_repeats_another_adds_nothing() -> None:
    mechanism = RandomizedResponse()
    once = [sent(mechanism, level, 0.5, 200_000, f"{level}") for level in (1, 5)]
    assert loss_at_least([once[0]] * 4, [once[1]] * 4, FAILURE) <= 0.5


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


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_a_binary_channel_at_twice_its_budget(epsilon: float) -> None:
    truthful = np.exp(epsilon) / (1 + np.exp(epsilon))
    twice = np.exp(2 * epsilon) / (1 + np.exp(2 * epsilon))
    assert doubled(truthful, 1 - truthful) == pytest.approx((twice, 1 - twice))


@pytest.mark.parametrize("promised", [0.3, 0.5, 0.6])
def test_detection_is_as_frequent_as_computed(promised: float) -> None:
    """The share of 20,000 draws has a deviation of at most 0.0036; 0.03 is over eight of them."""
    one, other, trials, failure = 0.5, 0.25, 1_000, 0.01
    random = np.random.default_rng(1)
    low = proportion_below(random.binomial(trials, one, 20_000), trials, failure)
    high = proportion_above(random.binomial(trials, other, 20_000), trials, failure)
    share = np.mean(np.log(low / high) > promised)
    assert detection(one, other, trials, promised, failure) == pytest.approx(share, abs=0.03)


EACH = 4_000


def test_the_parts_share_nobody() -> None:
    everybody = np.arange(103)
    parts = [part(everybody) for part in (learning, choosing, bounding)]
    assert sorted(np.concatenate(parts).tolist()) == everybody.tolist()


def sent_bits(bits: np.ndarray, **kinds: bool) -> Sent:
    """Return people whose bits can be read only in one of the ways."""
    nothing = np.zeros(len(bits), dtype=np.int64)
    rounds = tuple(bits.T) if kinds.get("rounds") else (nothing,)
    symbols = tuple(bits.T) if kinds.get("symbols") else ()
    features = (
        bits.astype(np.float32) if kinds.get("features") else np.zeros((len(bits), 0), dtype=np.float32)
    )
    return Sent(rounds, symbols, features)


@pytest.mark.parametrize("kind", ["rounds", "symbols", "features"])
def test_every_kind_shows_a_loss(kind: str) -> None:
    """Three bits of loss log 3 each; what is measured is near their sum for these seeds."""
    random = np.random.default_rng(1)
    sides = [random.random((EACH, 3)) < chance for chance in (0.75, 0.25)]
    one, other = (sent_bits(bits.astype(np.int64), **{kind: True}) for bits in sides)
    assert 2 < measured([(one, other)], 0.01).at_least < 3 * np.log(3)


def test_agreement_of_rounds_shows_although_each_round_is_alike() -> None:
    random = np.random.default_rng(2)
    first, second = random.integers(0, 2, (2, EACH))
    same, apart = Sent.of_rounds([first, first]), Sent.of_rounds([first, second])
    assert measured([(same, apart)], 0.01).at_least > 0.6


def test_the_leaking_pair_is_chosen() -> None:
    random = np.random.default_rng(3)
    fair, skewed = random.random((2, EACH)) < [[0.5], [0.9]]
    pairs = [
        (Sent.of_rounds([a.astype(np.int64)]), Sent.of_rounds([b.astype(np.int64)]))
        for a, b in [(fair, fair), (skewed, fair), (fair, fair)]
    ]
    assert measured(pairs, 0.01).pair == 1


def test_logistic_regression_agrees_with_the_log_odds_of_normal_classes() -> None:
    """Two normal classes at a distance of one have log odds of slope one; 0.1 is over six deviations."""
    random = np.random.default_rng(4)
    features = np.concatenate([random.normal(1, 1, (20_000, 1)), random.normal(0, 1, (20_000, 1))])
    weights, intercept = log_odds(features, np.repeat([True, False], 20_000))
    assert weights == pytest.approx([1.0], abs=0.1)
    assert 0.5 * weights + intercept == pytest.approx([0.0], abs=0.1)
