"""From how many users on a protocol beats nothing sent, and the traffic of as many as one likes."""

import math
from typing import Any

import numpy as np
import pytest

from simulation.analysis.populations import (
    check_population,
    courses,
    notes_on_delta,
    project,
    users_needed,
)
from simulation.analysis.protocol_results import results_of
from simulation.analysis.vocabulary import METRICS
from tests.refusals import refused_at
from tests.results import row

RMSE = METRICS[0]
BASELINE = 1.05


def lines(
    name: str, budget: float | None, gains: dict[int, float], half_width: float = 0.0, **changes: Any
) -> list[dict[str, Any]]:
    """A protocol with so many users as the keys, better than nothing sent by the values."""
    return [
        {
            **row(name, budget),
            "dataset": "synthetic",
            "population": str(users),
            "users": float(users),
            "rmse": BASELINE - gain,
            "against": "quiet",
            "rmse_gain": gain,
            "rmse_gain_low": gain - half_width,
            "rmse_gain_high": gain + half_width,
            **changes,
        }
        for users, gain in gains.items()
    ]


def quiet(*users: int, **changes: Any) -> list[dict[str, Any]]:
    return lines("quiet", None, dict.fromkeys(users, 0.0), baseline="nothing-sent", against=None, **changes)


def needed(*rows: list[dict[str, Any]]) -> dict[tuple[str, float | None], str]:
    every = courses(results_of([row for each in rows for row in each]), RMSE)
    return {(each.name, each.budget): each.users_needed for each in every}


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ({1000: -0.1, 100_000: 0.1}, "about 10,000"),
        ({1000: -0.3, 100_000: 0.1}, "about 32,000"),
        ({1000: 0.1, 3000: -0.1, 30_000: 0.1}, "about 9,500"),
        ({1000: 0.01, 100_000: 0.1}, "at most 1,000"),
        ({1000: -0.1, 2_000_000: -0.01}, "more than 2M"),
        ({1000: 0.1, 10_000: -0.01}, "more than 10,000"),
    ],
)
def test_the_crossing_is_interpolated_on_a_logarithmic_axis(gains: dict[int, float], words: str) -> None:
    assert needed(quiet(*gains), lines("a", 1.0, gains)) == {("a", 1.0): words}


def test_what_is_better_by_less_than_its_uncertainty_does_not_beat_nothing_sent() -> None:
    gains = {1000: -0.1, 10_000: 0.1, 100_000: 0.3}
    assert needed(quiet(*gains), lines("a", 1.0, gains, half_width=0.2)) == {("a", 1.0): "about 32,000"}
    assert needed(quiet(*gains), lines("a", 1.0, gains, half_width=0.4)) == {("a", 1.0): "more than 100,000"}


def test_given_ratings_are_not_joined_to_those_that_are_drawn() -> None:
    drawn, small, large = {1000: -0.1, 3000: 0.1}, {943: 0.1}, {6040: 0.2}
    rows = [
        *quiet(1000, 3000), *lines("a", 1.0, drawn),
        *quiet(943, dataset="movielens-100k", population=None),
        *lines("a", 1.0, small, dataset="movielens-100k", population=None),
        *quiet(6040, dataset="movielens-1m", population="movielens-1m"),
        *lines("a", 1.0, large, dataset="movielens-1m", population="movielens-1m"),
    ]  # fmt: skip
    every = courses(results_of(rows), RMSE)
    assert {each.ratings: [point.users for point in each.points] for each in every} == {
        "synthetic": [1000.0, 3000.0],
        "given": [943.0, 6040.0],
    }
    assert users_needed(every, every[0].points[0].result) == "about 1,700"


def test_lists_have_to_beat_popularity() -> None:
    gains, users = {1000: -0.1, 100_000: 0.1}, (1000, 100_000)
    popular = lines("popularity", None, dict.fromkeys(users, 0.0), baseline="popularity")
    rows = [*lines("random", None, dict.fromkeys(users, -0.5), baseline="nothing-sent"), *popular]
    results = results_of([*rows, *lines("a", 1.0, gains)])
    (course,) = courses(results, RMSE)
    assert (course.base, course.users_needed) == ("popularity", "about 10,000")


@pytest.mark.parametrize(("represents", "warned"), [(200_000.0, True), (None, False)])
def test_a_delta_is_held_against_the_users_that_are_represented(
    represents: float | None, warned: bool
) -> None:
    results = results_of(lines("sums", 1.0, {10_000: 0.1}, represents=represents))
    said = [note.partition(":")[0] for note in notes_on_delta(5e-5, results)]
    assert said == ["Delta = 5e-05 is above one in 200,000 users"] * warned


def test_total_and_rate() -> None:
    projection = project(np.array([100.0, 300.0]), 1e6)
    assert projection.total == 200e6
    assert projection.bits_per_second == pytest.approx(8 * 200e6 / 86_400)


@pytest.mark.parametrize("population", [20, 1_000])
def test_the_interval_holds_as_often_as_it_says(population: int) -> None:
    draw = np.random.default_rng(5)
    held = 0
    for _ in range(600):
        projection = project(draw.gamma(4.0, 50.0, 80), population)
        assert projection.low is not None
        assert projection.high is not None
        held += projection.low <= draw.gamma(4.0, 50.0, population).sum() <= projection.high
    assert 0.92 <= held / 600 <= 0.98


@pytest.mark.parametrize("population", [0, 0.5, -3, math.nan, math.inf])
def test_what_is_no_population(population: float) -> None:
    with refused_at("users_a_day"):
        check_population(population)
