from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS
from dprec.mechanisms.laplace import TAIL, cell_probabilities, wide_grid
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def test_cells_integrate_the_laplace_density() -> None:
    edges = np.array([-3.0, 0.5, 2.0, 2.25, 9.0])
    found = cell_probabilities(edges, [2.0, 0.5, -7.0], 1.5)
    bounds = np.concatenate([[-np.inf], edges, [np.inf]])
    for row, centre in zip(found, (2.0, 0.5, -7.0), strict=True):
        np.testing.assert_allclose(row, np.diff(stats.laplace(centre, 1.5).cdf(bounds)), atol=1e-15)


def test_the_wide_grid_leaves_the_stated_tails() -> None:
    edges, values = wide_grid(1, 5, 4.0, 256)
    tails = cell_probabilities(edges, [1.0, 5.0], 4.0)[:, [0, -1]]
    assert tails.max() == pytest.approx(TAIL)
    assert tails.sum(axis=1).max() <= 2 * TAIL
    assert np.all(np.diff(values) > 0)


@pytest.mark.parametrize("kind", ["laplace", "zheng-laplace"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_unbounded_noise_is_unbiased_and_has_variance_2_b_squared(kind: str, epsilon: float) -> None:
    channel = MECHANISMS[kind]().channel(STARS, epsilon)
    b = 4 / epsilon
    rated = slice(1 - channel.first_level, None)
    np.testing.assert_allclose(channel.bias()[rated], 0, atol=1e-3 * b)
    np.testing.assert_allclose(channel.variance()[rated], 2 * b**2, rtol=2e-3)


def test_clamping_puts_half_of_an_end_on_that_end() -> None:
    channel = MECHANISMS["clamped-laplace"]().channel(STARS, 1.0)
    assert channel.values[[0, -1]].tolist() == [1.0, 5.0]
    assert channel.probabilities[0, 0] == pytest.approx(0.5)
    assert channel.probabilities[0, -1] == pytest.approx(np.exp(-1.0) / 2)
    assert np.all((channel.values >= 1) & (channel.values <= 5))


def test_clamped_moments_are_those_of_clamped_noise() -> None:
    channel = MECHANISMS["clamped-laplace"](symbols=4096).channel(STARS, 1.6)
    noise = stats.laplace(scale=4 / 1.6).ppf((np.arange(2_000_000) + 0.5) / 2_000_000)
    for row, rating in enumerate(STARS.values):
        clamped = np.clip(rating + noise, 1, 5)
        assert channel.bias()[row] == pytest.approx(clamped.mean() - rating, abs=1e-5)
        assert channel.variance()[row] == pytest.approx(clamped.var(), abs=1e-4)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_bounded_laplace_at_256_symbols_is_tight(epsilon: float) -> None:
    assert MECHANISMS["bounded-laplace"]().channel(STARS, epsilon).epsilon == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("kind", ["laplace", "clamped-laplace", "zheng-laplace"])
def test_coarse_grids_keep_the_budget(kind: str) -> None:
    for symbols in (4, 5, 16):
        channel = MECHANISMS[kind](symbols=symbols).channel(STARS, 1.0)
        assert channel.symbols == symbols
        assert channel.epsilon == pytest.approx(1.0, abs=1e-9)
    with pytest.raises(InputError, match="symbols"):
        MECHANISMS[kind](symbols=2)
