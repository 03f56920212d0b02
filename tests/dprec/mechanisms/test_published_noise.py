"""What papers derive of their mechanisms' noise, against the noise itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import (
    interval_probabilities,
    least_scale,
    modified_laplace_bound,
    normalisation,
    normalisation_ratio,
    randomized_response_bound,
)
from dprec.randomness import generator, words
from dprec.ratings import RatingScale

LEVELS = np.arange(1.0, 6.0)
SHARES = np.array([0.06, 0.11, 0.27, 0.34, 0.22])


@pytest.mark.parametrize("b", [0.5, 4.0, 40.0])
def test_normalisation_is_the_mass_inside(b: float) -> None:
    for rating in (1.0, 2.3, 5.0):
        mass, _ = quad(lambda x, r=rating: np.exp(-abs(x - r) / b) / (2 * b), 1, 5, points=[rating])
        assert float(normalisation(rating, 1, 5, b)) == pytest.approx(mass)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_intervals_agree_with_redrawn_noise(epsilon: float) -> None:
    random = generator(0, "redrawn")
    b = least_scale(1, 5, epsilon)
    ratings = random.choice(LEVELS, 100_000, p=SHARES)
    noise = random.laplace(0, b, ratings.size)
    while (outside := (ratings + noise < 1) | (ratings + noise > 5)).any():
        noise[outside] = random.laplace(0, b, int(outside.sum()))
    edges = np.linspace(-4, 4, 17)
    expected = interval_probabilities(edges, LEVELS, SHARES, 1, 5, b) * noise.size
    counts, _ = np.histogram(noise, edges)
    assert np.all(np.abs(counts - expected) <= 6 * np.sqrt(expected))


def test_the_channel_draws_with_these_probabilities() -> None:
    channel = MECHANISMS["bounded-laplace"](symbols=4096).channel(RatingScale.evenly(1, 5, 1), 1.0)
    step = channel.values[1] - channel.values[0]
    for row, rating in enumerate(LEVELS):
        edges = np.append(channel.values, channel.values[-1] + step)[1:] - step / 2 - rating
        expected = interval_probabilities(edges, [rating], [1.0], 1, 5, 4.0)
        np.testing.assert_allclose(channel.probabilities[row, 1:-1], expected[:-1], rtol=2e-3)


def test_theorem_1_at_the_sensitivity_of_the_scale() -> None:
    assert normalisation_ratio(1, 5, 4.0, 4.0) == pytest.approx(1)
    assert least_scale(1, 5, 0.5) == 8.0


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


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="epsilon"):
        least_scale(1, 5, 0.0)
    with pytest.raises(InputError, match="sensitivity"):
        least_scale(1, 5, 1.0, 4.5)
    with pytest.raises(InputError, match="ratings"):
        interval_probabilities([-1.0, 1.0], [0.0, 1.0], [0.5, 0.5], 1, 5, 1.0)
    with pytest.raises(InputError, match="shares"):
        interval_probabilities([-1.0, 1.0], [1.0, 2.0], [0.5, -0.5], 1, 5, 1.0)


USERS, ITEMS, DRAWS = 40, 30, 400
STARS = RatingScale.evenly(1, 5, 1)

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


def test_bounds_fall_to_the_rating_noise() -> None:
    assert modified_laplace_bound(20, 30, 100, 1000.0, 0.1, 0.3) == pytest.approx(3.0, abs=0.2)
    assert randomized_response_bound(20, 30, 100, 5, 200.0, 0.1, 0.3) == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((2, 2, 5, 1.0, 0.1), "ratings"),
        ((2, 2, 3, 0.0, 0.1), "epsilon"),
        ((2, 2, 3, 1.0, 0.0), "tolerance"),
        ((2, 2, 3, 1.0, 1.0), "tolerance"),
    ],
)
def test_arguments_out_of_range_are_named(arguments: tuple[int, int, int, float, float], named: str) -> None:
    with pytest.raises(InputError, match=named):
        modified_laplace_bound(*arguments)
    users, items, ratings, epsilon, tolerance = arguments
    with pytest.raises(InputError, match=named):
        randomized_response_bound(users, items, ratings, 5, epsilon, tolerance)


def test_one_level_is_refused() -> None:
    with pytest.raises(InputError, match="levels"):
        randomized_response_bound(2, 2, 3, 1, 1.0, 0.1)
