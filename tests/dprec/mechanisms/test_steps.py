"""Mechanisms with a density of steps: unbiased, of the published variance, and not changed by the cutting."""

import math

import numpy as np
import pytest
from scipy import integrate

from dprec.binarization import binary_scale
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.fisher_optimal import FisherOptimal, information
from dprec.mechanisms.randomized_response import flips_keep
from dprec.mechanisms.steps import Duchi, Steps, half_width
from dprec.mechanisms.thresholds import HiddenThreshold, ThresholdBit
from dprec.ratings import RatingScale
from tests.make import STARS
from tests.refusals import refused_at

HALF_STARS = RatingScale.evenly(0.5, 5, 0.5)
UNBIASED = ["duchi", "piecewise", "hybrid", "square-wave"]


@pytest.mark.parametrize("kind", UNBIASED)
@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("scale", [STARS, HALF_STARS])
def test_the_values_are_unbiased(kind: str, epsilon: float, scale: RatingScale) -> None:
    channel = MECHANISMS[kind]().channel(scale, epsilon)
    np.testing.assert_allclose(channel.bias(), 0, atol=1e-9 * np.abs(channel.values).max())


def test_the_variance_of_one_bit_is_as_published() -> None:
    # On [-1, 1]: ((e + 1) / (e - 1))^2 - x^2; the scale is twice as long.
    x = (STARS.values - 3) / 2
    for epsilon in (0.5, 2.0):
        c = (np.exp(epsilon) + 1) / (np.exp(epsilon) - 1)
        variance = MECHANISMS["duchi"]().channel(STARS, epsilon).variance()
        np.testing.assert_allclose(variance, 4 * (c**2 - x**2))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_variance_of_the_piecewise_mechanism_is_less_than_published_by_that_of_the_steps(
    epsilon: float,
) -> None:
    # Published on [-1, 1]: x^2 / (r - 1) + (r + 3) / (3 (r - 1)^2), r = e^(epsilon / 2). Sending the middle
    # of a step in place of the noisy rating takes away the variance within the steps.
    channel = MECHANISMS["piecewise"]().channel(STARS, epsilon)
    middles = (channel.values - 3) / 2
    bound = 1 / np.tanh(epsilon / 4)
    edges = [-bound]
    for middle in middles:
        edges.append(2 * middle - edges[-1])
    assert edges[-1] == pytest.approx(bound)
    within = channel.probabilities @ (np.diff(edges) ** 2 / 12)
    root, x = np.exp(epsilon / 2), (STARS.values - 3) / 2
    published = x**2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)
    np.testing.assert_allclose(channel.variance() / 4 + within, published)


@pytest.mark.parametrize("epsilon", [1e-9, 9.99e-4, 1.01e-3, 0.1, 1.0, 10.0])
def test_the_window_maximises_the_bound_on_information(epsilon: float) -> None:
    # Its closed form in extended precision.
    e = np.longdouble(epsilon)
    if epsilon >= 1e-3:
        exact = (e * np.exp(e) - np.exp(e) + 1) / (2 * np.exp(e) * (np.exp(e) - 1 - e))
        assert half_width(epsilon) == pytest.approx(float(exact), rel=1e-7)
    assert half_width(epsilon) == pytest.approx(half_width(epsilon * 1.001), abs=1e-3)
    assert 0 < half_width(epsilon) <= 0.5


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_staircase_is_a_density_that_loses_epsilon_over_its_width(epsilon: float) -> None:
    noise = Steps(4.0, epsilon)
    falls = (np.arange(60) + noise.inner_share) * 4.0
    inner = 2 * integrate.quad(lambda x: noise.density(np.array(x)), 0, falls[-1], points=falls, limit=200)[0]
    assert inner + 2 * noise.tail(falls[-1:])[0] == pytest.approx(1.0, abs=1e-9)
    places = np.linspace(-30, 30, 1201) + 1e-3
    ratio = np.log(noise.density(places)) - np.log(noise.density(places + 4.0))
    assert np.abs(ratio).max() == pytest.approx(epsilon)
    starts = np.array([0.0, 0.3, 4.0, 7.7])
    for start, tail in zip(starts, noise.tail(starts), strict=True):
        within = integrate.quad(
            lambda x: noise.density(np.array(x)), start, falls[-1], points=falls, limit=200
        )
        assert within[0] + noise.tail(falls[-1:])[0] == pytest.approx(tail, abs=1e-9)


SKEWED = (0.06, 0.11, 0.27, 0.35, 0.21)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0])
def test_no_other_mechanism_says_more(epsilon: float) -> None:
    best = information(
        FisherOptimal(histogram=SKEWED).channel(STARS, epsilon).probabilities, SKEWED, 0.5
    ).sum()
    for kind in ("randomized-response", "threshold-bit", "duchi", "piecewise", "hybrid", "bounded-laplace"):
        other = MECHANISMS[kind]().channel(STARS, epsilon).probabilities
        assert information(other, SKEWED, 0.5).sum() <= best * (1 + 1e-6), kind


@pytest.mark.parametrize("p1", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("p2", [0.05, 0.4, 0.6])
def test_the_condition_is_the_exact_loss(p1: float, p2: float) -> None:
    mechanism = MECHANISMS["binary-flip"](p1=p1, p2=p2)
    loss = mechanism.channel(binary_scale(), 20.0).epsilon
    assert mechanism.channel(binary_scale(), loss * 1.001).epsilon == loss
    with refused_at("p1"):
        mechanism.channel(binary_scale(), loss * 0.999)


def test_the_theorems_condition_alone_is_not_enough() -> None:
    # 1 - p2 e <= p1 <= (1 - p2) e holds, and yet a received -1 tells a -1 from a +1 by a factor of 50.
    p1, p2, epsilon = 0.01, 0.5, 1.0
    assert 1 - p2 * math.e <= p1 <= (1 - p2) * math.e
    assert math.log((1 - p2) / p1) > 3 * epsilon
    assert not flips_keep(p1, p2, epsilon)


UNEVEN = RatingScale(np.array([1.0, 2.0, 5.0, 6.0]), False)


def test_a_fixed_threshold_sends_one_bit_that_is_unbiased_for_the_means_of_the_two_parts() -> None:
    channel = ThresholdBit().channel(STARS, 1.0)
    flip = 1 / (1 + np.e)
    np.testing.assert_allclose(channel.probabilities[:, 1], [flip, flip, flip, 1 - flip, 1 - flip])
    np.testing.assert_allclose(channel.probabilities @ channel.values, [2, 2, 2, 4.5, 4.5])
    assert ThresholdBit(threshold=2).channel(STARS, 1.0).probabilities[1, 1] == pytest.approx(1 - flip)


def test_a_drawn_threshold_is_sent_with_its_bit_and_unbiased_for_every_rating() -> None:
    for scale in (STARS, UNEVEN):
        channel = ThresholdBit(threshold="drawn").channel(scale, 0.7)
        assert channel.symbols == 2 * (scale.levels - 1)
        np.testing.assert_allclose(channel.bias(), 0, atol=1e-12)
        # Without the threshold, the bit is that of Duchi et al.
        alone = Duchi().channel(scale, 0.7)
        half = channel.symbols // 2
        np.testing.assert_allclose(channel.probabilities[:, half:].sum(axis=1), alone.probabilities[:, 1])


def test_a_share_of_the_ratings_is_asked_about_other_thresholds_at_the_same_loss() -> None:
    channel = ThresholdBit(other_thresholds=0.3).channel(STARS, 1.0)
    asked = channel.probabilities.reshape(5, 2, 4).sum(axis=1)
    np.testing.assert_allclose(asked, [[0.1, 0.1, 0.7, 0.1]] * 5)
    yes = channel.probabilities[:, 4:] / asked
    np.testing.assert_allclose(yes > 0.5, STARS.values[:, None] >= [2, 3, 4, 5])
    assert channel.epsilon == pytest.approx(1.0, abs=1e-9)
    assert channel.epsilon <= 1
    between = ThresholdBit(threshold=3.5, other_thresholds=0.3).channel(STARS, 1.0)
    np.testing.assert_array_equal(between.probabilities, channel.probabilities)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
def test_three_classes_are_answered_by_randomised_response(epsilon: float) -> None:
    channel = HiddenThreshold().channel(STARS, epsilon)
    kept = 1 / (1 + 2 * np.exp(-epsilon))
    classes = np.array([0, 1, 1, 1, 2, 2])
    expected = np.where(classes[:, None] == np.arange(3), kept, (1 - kept) / 2)
    np.testing.assert_allclose(channel.probabilities, expected, atol=1e-15)
    assert channel.hides_rated_items
    assert epsilon * (1 - 1e-6) <= channel.epsilon <= epsilon
