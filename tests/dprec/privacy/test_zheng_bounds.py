"""The bounds of Zheng's Theorem 3 hold on what the channels really send."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.published_noise import modified_laplace_bound, randomized_response_bound
from dprec.randomness import generator, words
from dprec.ratings import RatingScale

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
