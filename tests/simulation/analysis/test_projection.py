"""Traffic of a population, extrapolated from the simulated users."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dprec.errors import InputError
from simulation.analysis.populations import check_population, project


def test_total_and_rate() -> None:
    projection = project(np.array([100.0, 300.0]), 1e6)
    assert projection.total == 200e6
    assert projection.bits_per_second == pytest.approx(8 * 200e6 / 86_400)


def test_users_who_are_all_alike_leave_nothing_open() -> None:
    projection = project(np.full(50, 110.0), 1e6)
    assert (projection.low, projection.high) == (110e6, 110e6)


def test_one_user_has_no_interval() -> None:
    projection = project(np.array([100.0]), 10)
    assert (projection.total, projection.low, projection.high) == (1000.0, None, None)


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
    with pytest.raises(InputError, match="population"):
        check_population(population)
