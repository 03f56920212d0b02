"""Laplace noise in integers: its distribution, and what it guarantees on a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprec.randomness import NoiseGrid
from dprec.randomness.discrete_laplace import discrete_laplace

MILLION = 1_000_000


@pytest.mark.parametrize("bits", [1, 3])
def test_every_integer_is_as_likely_as_it_should_be(bits: int) -> None:
    drawn = discrete_laplace(5, "test", np.arange(MILLION), bits)
    ratio, most = math.exp(-(2.0**-bits)), 8 * 2**bits
    numbers = np.arange(-most, most + 1)
    shares = (1 - ratio) / (1 + ratio) * ratio ** np.abs(numbers)
    shares[0] = shares[-1] = ratio**most / (1 + ratio)  # With all that lies beyond.
    observed = np.bincount(np.clip(drawn, -most, most) + most, minlength=numbers.size)
    statistic = ((observed - MILLION * shares) ** 2 / (MILLION * shares)).sum()
    # Exact draws are rejected with probability 1e-6.
    assert MILLION * shares.min() > 20
    assert stats.chi2.sf(statistic, numbers.size - 1) > 1e-6


def test_fine_noise_has_the_distribution_of_laplace() -> None:
    drawn = discrete_laplace(5, "test", np.arange(200_000), 32) / 2.0**32
    assert stats.kstest(drawn, stats.laplace().cdf).pvalue > 1e-6


def test_a_draw_is_the_same_whichever_others_are_asked_for() -> None:
    whole = discrete_laplace(1, "test", np.arange(1000), 32)
    some = np.random.default_rng(0).permutation(1000)[:50]
    assert discrete_laplace(1, "test", some, 32).tolist() == whole[some].tolist()
    assert discrete_laplace(1, "test", some[:0], 32).size == 0
    assert np.unique(whole).size == whole.size
    assert not np.any(discrete_laplace(2, "test", np.arange(1000), 32) == whole)


@given(st.floats(1e-9, 1e9), st.floats(1e-3, 1e6), st.integers(0, 10_000))
def test_the_loss_is_never_more_than_what_was_asked_for(
    sensitivity: float, epsilon: float, rounded: int
) -> None:
    grid = NoiseGrid.of(sensitivity, epsilon, rounded)
    # Moving what the noise is added to by some steps multiplies no probability by more than this.
    steps = math.ceil(Fraction(sensitivity) / Fraction(grid.step)) + rounded
    assert Fraction(steps, 2**grid.bits) <= Fraction(epsilon)
    assert Fraction(steps, 2**grid.bits) <= Fraction(grid.loss(sensitivity, rounded)) <= Fraction(epsilon)
    if rounded <= 100 and epsilon <= 100:
        assert grid.scale == pytest.approx(sensitivity / epsilon, rel=1e-4)


def test_the_exact_loss_of_neighbouring_outputs_is_read_from_their_probabilities() -> None:
    grid = NoiseGrid.of(2.0, 0.7, 1)
    one, other = grid.on_grid(np.array([-1.0, 1.0])).tolist()
    outputs = [one - 5, one, one + 1, 0, other - 1, other, other + 5]
    losses = [Fraction(abs(z - other) - abs(z - one), 2**grid.bits) for z in outputs]
    assert max(abs(loss) for loss in losses) == Fraction(other - one, 2**grid.bits) <= Fraction(0.7)


@given(st.floats(-1, 1), st.floats(0, 0.5))
def test_rounding_moves_a_number_by_at_most_one_step_more(value: float, moved: float) -> None:
    grid = NoiseGrid.of(0.5, 1.0, 1)
    one, other = grid.on_grid(np.array([value, value + moved])).tolist()
    assert other - one <= math.ceil(0.5 / grid.step) + 1


def test_an_epsilon_that_rounding_uses_up_is_refused() -> None:
    with pytest.raises(ValueError, match="leaves no step of 1000000 rounded numbers"):
        NoiseGrid.of(1.0, 1e-5, 1_000_000)
