from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.published_noise import (
    interval_probabilities,
    least_scale,
    noise_density,
    normalisation,
    normalisation_ratio,
)
from dprec.randomness import generator
from dprec.ratings import RatingScale

LEVELS = np.arange(1.0, 6.0)
SHARES = np.array([0.06, 0.11, 0.27, 0.34, 0.22])


@pytest.mark.parametrize("b", [0.5, 4.0, 40.0])
def test_normalisation_is_the_mass_inside(b: float) -> None:
    for rating in (1.0, 2.3, 5.0):
        mass, _ = quad(lambda x, r=rating: np.exp(-abs(x - r) / b) / (2 * b), 1, 5, points=[rating])
        assert float(normalisation(rating, 1, 5, b)) == pytest.approx(mass)


@pytest.mark.parametrize("b", [0.5, 4.0, 40.0])
def test_density_integrates_to_one_and_to_the_intervals(b: float) -> None:
    # The density jumps where a rating's noise ends, and has a kink at 0: both are edges here.
    edges = np.arange(-4.0, 5.0)
    found = interval_probabilities(edges, LEVELS, SHARES, 1, 5, b)
    assert found.sum() == pytest.approx(1)
    for left, right, probability in zip(edges, edges[1:], found, strict=False):
        mass, _ = quad(lambda n: noise_density([n], LEVELS, SHARES, 1, 5, b)[0], left + 1e-12, right - 1e-12)
        assert mass == pytest.approx(probability, rel=1e-8)


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


def test_the_channel_draws_from_this_density() -> None:
    channel = MECHANISMS["bounded-laplace"](symbols=4096).channel(RatingScale.evenly(1, 5, 1), 1.0)
    step = channel.values[1] - channel.values[0]
    for row, rating in enumerate(LEVELS):
        inner = slice(1, -1)
        density = noise_density(channel.values[inner] - rating, [rating], [1.0], 1, 5, 4.0)
        np.testing.assert_allclose(channel.probabilities[row, inner] / step, density, rtol=2e-3)


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
        noise_density([0.0], [0.0, 1.0], [0.5, 0.5], 1, 5, 1.0)
    with pytest.raises(InputError, match="shares"):
        noise_density([0.0], [1.0, 2.0], [0.5, -0.5], 1, 5, 1.0)
