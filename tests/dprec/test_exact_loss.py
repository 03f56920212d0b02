"""Losses of integer weights and draws within a loss, against decimal arithmetic of 80 digits."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.randomness import DRAWS, even_share, fewest_draws, loss_of_draws, most_draws

DIGITS = Context(prec=80)
epsilons = st.floats(1e-9, 50.0) | st.floats(1e-9, 1e-3)


def exponential(epsilon: float) -> Decimal:
    return Decimal(epsilon).exp(DIGITS)


@given(st.integers(1, DRAWS), st.integers(1, DRAWS))
def test_a_loss_is_the_next_number_above_the_logarithm(one: int, other: int) -> None:
    most, fewest = max(one, other), min(one, other)
    loss = loss_of_draws(most, fewest)
    exact = DIGITS.divide(Decimal(most), Decimal(fewest)).ln(DIGITS)
    assert Decimal(loss) >= exact
    assert most == fewest or Decimal(math.nextafter(loss, 0.0)) < exact


def test_the_ends_of_the_losses() -> None:
    assert loss_of_draws(DRAWS, DRAWS) == 0
    assert loss_of_draws(1, 0) == math.inf
    assert 0 < loss_of_draws(DRAWS, DRAWS - 1) <= 2.0**-59


@given(epsilons, st.lists(st.integers(0, DRAWS), min_size=1, max_size=5))
def test_the_most_draws_are_within_epsilon_and_one_more_is_hardly(epsilon: float, fewest: list[int]) -> None:
    most = most_draws(np.array(fewest, dtype=np.int64), epsilon).tolist()
    for high, low in zip(most, fewest, strict=True):
        allowed = exponential(epsilon) * low
        assert low <= high <= min(allowed, DRAWS)
        assert high == DRAWS or high + 1 >= low + (allowed - low) * Decimal(1 - 1e-14)


def test_without_a_budget_every_number_of_draws_is_allowed() -> None:
    assert most_draws(np.array([0, 7]), math.inf).tolist() == [DRAWS, DRAWS]


@given(epsilons)
def test_the_fewest_draws_of_a_coin(epsilon: float) -> None:
    fewest = fewest_draws(epsilon)
    assert loss_of_draws(DRAWS - fewest, fewest) <= epsilon
    assert fewest == 1 or loss_of_draws(DRAWS - fewest + 1, fewest - 1) > epsilon


@given(st.floats(1e-300, 1e300), st.integers(1, 10**6))
def test_even_shares_never_exceed_the_whole(epsilon: float, parts: int) -> None:
    share = even_share(epsilon, parts)
    assert Fraction(share) * parts <= Fraction(epsilon)
    assert Fraction(share) * parts >= Fraction(epsilon) * (1 - Fraction(parts + 1, 2**52))
    assert share * parts <= epsilon


@given(st.floats(1e-6, 1e3), st.integers(1, 300))
def test_shares_that_are_added_one_by_one_stay_within_the_whole(epsilon: float, parts: int) -> None:
    assert list(accumulate([even_share(epsilon, parts)] * parts))[-1] <= epsilon
