"""What papers derive of their mechanisms' noise, against the noise itself."""

import numpy as np
import pytest
from scipy import stats

from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import interval_probabilities
from dprec.randomness import generator, words
from tests.make import STARS

LEVELS = np.arange(1.0, 6.0)


def test_the_channel_draws_with_these_probabilities() -> None:
    channel = MECHANISMS["bounded-laplace"](symbols=4096).channel(STARS, 1.0)
    step = channel.values[1] - channel.values[0]
    for row, rating in enumerate(LEVELS):
        edges = np.append(channel.values, channel.values[-1] + step)[1:] - step / 2 - rating
        expected = interval_probabilities(edges, [rating], [1.0], 1, 5, 4.0)
        np.testing.assert_allclose(channel.probabilities[row, 1:-1], expected[:-1], rtol=2e-3)


USERS, ITEMS, DRAWS = 40, 30, 400


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["zheng-laplace", "zheng-randomized-response"])
def test_the_bound_is_kept_at_least_as_often_as_promised(kind: str, epsilon: float) -> None:
    random = generator(0, "bounds")
    truth = random.integers(1, 6, USERS * ITEMS).astype(np.uint8)
    rated = random.random(truth.size) < 0.2
    levels = np.where(rated, truth, 0).astype(np.uint8)
    mechanism = MECHANISMS[kind]()
    channel = mechanism.channel(STARS, epsilon)
    distances = []
    for draw in range(DRAWS):
        sent = channel.values[channel.sample(levels, words(draw, "bounds", 0, levels.size))]
        distances.append(np.sqrt(np.nansum((STARS.values[truth - 1] - sent) ** 2)))
    for gamma in (0.01, 0.1, 0.5, 0.9):
        bound = mechanism.distance_bound(USERS, ITEMS, int(rated.sum()), STARS, epsilon, gamma)
        kept = np.mean(np.array(distances) <= bound)
        assert kept >= 1 - gamma


@pytest.mark.parametrize("kind", ["laplace", "zheng-laplace"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_unbounded_noise_is_unbiased_and_has_variance_2_b_squared(kind: str, epsilon: float) -> None:
    channel = MECHANISMS[kind]().channel(STARS, epsilon)
    b = 4 / epsilon
    rated = slice(1 - channel.first_level, None)
    np.testing.assert_allclose(channel.bias()[rated], 0, atol=1e-3 * b)
    np.testing.assert_allclose(channel.variance()[rated], 2 * b**2, rtol=2e-3)


def test_clamped_moments_are_those_of_clamped_noise() -> None:
    channel = MECHANISMS["clamped-laplace"](symbols=4096).channel(STARS, 1.6)
    noise = stats.laplace(scale=4 / 1.6).ppf((np.arange(2_000_000) + 0.5) / 2_000_000)
    for row, rating in enumerate(STARS.values):
        clamped = np.clip(rating + noise, 1, 5)
        assert channel.bias()[row] == pytest.approx(clamped.mean() - rating, abs=1e-5)
        assert channel.variance()[row] == pytest.approx(clamped.var(), abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 50.0])
def test_modified_laplace_drops_and_makes_up_ratings_as_defined(epsilon: float) -> None:
    channel = MECHANISMS["zheng-laplace"]().channel(STARS, epsilon)
    honest = 1 / (1 + np.exp(-epsilon / 2))
    assert np.isnan(channel.inputs[0])
    assert np.isnan(channel.values[0])
    assert channel.probabilities[0, 0] == pytest.approx(honest)
    np.testing.assert_allclose(channel.probabilities[1:, 0], 1 - honest, atol=1e-15)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 800.0])
def test_randomized_response_is_definition_3(epsilon: float) -> None:
    channel = MECHANISMS["zheng-randomized-response"]().channel(STARS, epsilon)
    kept = 1 / (1 + 5 * np.exp(-epsilon))
    expected = np.where(np.eye(6) > 0, kept, (1 - kept) / 5)
    np.testing.assert_allclose(channel.probabilities, expected, atol=1e-15)
    np.testing.assert_array_equal(channel.values, [np.nan, 1, 2, 3, 4, 5])
