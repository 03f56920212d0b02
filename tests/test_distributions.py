"""What checks draws finds what is wrong, and nothing else, and refuses samples that are too small to tell."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from tests.distributions import check_drawn, check_independent, check_share

DRAWS = 40_000
DISTRIBUTIONS = [stats.norm(scale=3.0), stats.laplace(scale=0.2), stats.skellam(2.5, 2.5), stats.poisson(0.7)]


def drawn(distribution: Any, seed: int, size: int = DRAWS) -> NDArray[np.float64]:
    values: NDArray[np.float64] = distribution.rvs(size, random_state=np.random.default_rng(seed))
    return values


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda each: each.dist.name)
def test_right_draws_pass_and_wrong_ones_are_found(distribution: Any) -> None:
    for seed in range(5):
        check_drawn(drawn(distribution, seed), distribution)
    mean, deviation = distribution.mean(), distribution.std()
    wrong: list[Callable[[NDArray[np.float64]], NDArray[np.float64]]] = [
        lambda values: mean + 0.95 * (values - mean),
        lambda values: mean + 1.05 * (values - mean),
        lambda values: values + 0.05 * deviation,
        lambda values: np.clip(values, mean - 2 * deviation, mean + 2 * deviation),
    ]
    for change in wrong:
        for seed in range(2):
            with pytest.raises(AssertionError):
                check_drawn(change(drawn(distribution, seed)), distribution)


def test_a_sample_that_is_too_small_is_refused() -> None:
    with pytest.raises(AssertionError, match="would not show"):
        check_drawn(drawn(stats.norm(), 1, 10_000), stats.norm())
    with pytest.raises(AssertionError, match="would not show"):
        check_share(300, 1000, 0.3)


def test_columns_that_tell_of_each_other_are_found_and_others_are_not() -> None:
    random = np.random.default_rng(3)
    for _ in range(3):
        one, other, bit = random.standard_normal(DRAWS), random.standard_normal(DRAWS), random.random(DRAWS)
        check_independent(one, other)
        check_independent(one, bit < 0.1)
        check_independent(random.poisson(0.3, DRAWS), bit < 0.9)
        for told in (0.1 * one + other, np.where(bit < 0.02, one, other), np.abs(one) + other):
            with pytest.raises(AssertionError, match="independent"):
                check_independent(one, told)
    with pytest.raises(AssertionError, match="one class"):
        check_independent(one, np.zeros(DRAWS))
