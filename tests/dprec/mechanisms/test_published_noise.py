"""What papers derive of their mechanisms' noise, against the noise itself."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import (
    cell_probabilities,
    interval_probabilities,
    least_scale,
    modified_laplace_bound,
    normalisation,
    normalisation_ratio,
    randomized_response_bound,
)
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


@pytest.mark.parametrize("sensitivity", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_theorem_1_is_tight_at_smaller_sensitivities(sensitivity: float, epsilon: float) -> None:
    b = least_scale(1, 5, epsilon, sensitivity)
    ratio = normalisation_ratio(1, 5, b, sensitivity)
    assert ratio > 1
    assert b == pytest.approx(sensitivity / (epsilon - np.log(ratio)))
    ratings = np.linspace(1, 5, 81)
    density = np.exp(-np.abs(ratings[None] - ratings[:, None]) / b) / normalisation(ratings, 1, 5, b)[:, None]
    near = np.abs(ratings[:, None] - ratings[None]) <= sensitivity + 1e-9
    losses = np.log(density[:, None] / density[None]).max(axis=2)
    assert losses[near].max() == pytest.approx(epsilon)


USERS, ITEMS, DRAWS = 40, 30, 400


BOUNDS: dict[str, tuple[Callable[[int, float, float], float], float]] = {
    # The bound for a number of ratings, an epsilon and a tolerance; the unit of it, in stars.
    "zheng-laplace": (lambda s, epsilon, gamma: modified_laplace_bound(USERS, ITEMS, s, epsilon, gamma), 2.0),
    "zheng-randomized-response": (
        lambda s, epsilon, gamma: randomized_response_bound(USERS, ITEMS, s, 5, epsilon, gamma),
        1.0,
    ),
}


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", BOUNDS.keys())
def test_the_bound_is_kept_at_least_as_often_as_promised(kind: str, epsilon: float) -> None:
    random = generator(0, "bounds")
    truth = random.integers(1, 6, USERS * ITEMS).astype(np.uint8)
    rated = random.random(truth.size) < 0.2
    levels = np.where(rated, truth, 0).astype(np.uint8)
    channel = MECHANISMS[kind]().channel(STARS, epsilon)
    bound, unit = BOUNDS[kind]
    distances = []
    for draw in range(DRAWS):
        sent = channel.values[channel.sample(levels, words(draw, "bounds", 0, levels.size))]
        distances.append(np.sqrt(np.nansum((STARS.values[truth - 1] - sent) ** 2)) / unit)
    for gamma in (0.01, 0.1, 0.5, 0.9):
        kept = np.mean(np.array(distances) <= bound(int(rated.sum()), epsilon, gamma))
        assert kept >= 1 - gamma


def test_formulas_at_known_values() -> None:
    # 4 / 2 sqrt(100 / 0.25) = 40, and sqrt(2 * 600 / (e + 1) / 0.25 * 3).
    expected = 0.5 * 10 + 40 + np.sqrt(2 * 600 / ((np.e + 1) * 0.25) * 3)
    assert modified_laplace_bound(20, 30, 100, 2.0, 0.25, 0.5) == pytest.approx(expected)
    expected = 0.5 * 10 + 2 * 4 * np.sqrt(2 * 600 * 5 / ((np.exp(2) + 5) * 0.25))
    assert randomized_response_bound(20, 30, 100, 5, 2.0, 0.25, 0.5) == pytest.approx(expected)


def test_cells_integrate_the_laplace_density() -> None:
    edges = np.array([-3.0, 0.5, 2.0, 2.25, 9.0])
    found = cell_probabilities(edges, [2.0, 0.5, -7.0], 1.5)
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    for row, centre in zip(found, (2.0, 0.5, -7.0), strict=True):
        np.testing.assert_allclose(row, np.diff(stats.laplace(centre, 1.5).cdf(bounds)), atol=1e-15)


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
