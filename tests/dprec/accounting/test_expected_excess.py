"""The bound on an expected excess is never below the truth, and nearly equal to it."""

import numpy as np
import pytest
from scipy.stats import binom

from dprec.accounting.expected_excess import expected_excess


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 7, 60])
def test_the_excess_of_whole_numbers_is_bounded_closely(seed: int, count: int) -> None:
    draws = np.random.default_rng(seed)
    # Every second time, sums above 0 are rare.
    values = np.sort(draws.choice(np.arange(-9, 10), 4, replace=False)).astype(float) - 6 * (seed % 2)
    values[-1] = abs(values[-1]) + 1
    masses = draws.dirichlet(np.full(4, 2.0))
    one = np.bincount(values.astype(np.int64) + 20, masses, minlength=40)
    sums = np.ones(1)
    for _ in range(count):
        sums = np.convolve(sums, one)
    exact = float(np.maximum(0.0, np.arange(sums.size) - 20 * count) @ sums)
    bound = expected_excess(values, masses, count)
    assert bound >= exact * (1 - 1e-9)
    # In the furthest tails the grid counts, though not at a delta that anybody asks for.
    assert bound <= exact * (1.02 if exact > 1e-15 else 4)


def test_small_excesses_keep_their_precision() -> None:
    """A binomial tail of about 1e-70, where a plain Fourier transform would return rounding errors."""
    heads, least = 0.1, 180
    values, masses = np.array([-least / 400, 1 - least / 400]), np.array([1 - heads, heads])
    counts = np.arange(least + 1, 401)
    exact = float(binom.pmf(counts, 400, heads) @ (counts - least))
    bound = expected_excess(values, masses, 400)
    assert exact < 1e-60
    assert exact <= bound <= 1.05 * exact


def test_sums_that_cannot_exceed_0_do_not() -> None:
    assert expected_excess(np.array([-2.0, -1.0]), np.array([0.5, 0.5]), 9) == 0
    assert expected_excess(np.array([3.0, 3.0]), np.array([0.5, 0.5]), 2) == 6
