"""Shares of the levels that are learned from private reports."""

import numpy as np
import pytest

from dprec.completion.calibrated.learned_histogram import learned_shares
from dprec.mechanisms import Mechanism, RandomizedResponse, SetOnly, ThresholdBit
from dprec.observations import SymbolReports
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
PUBLIC = np.array([0.1, 0.1, 0.2, 0.4, 0.2])
TRUE = np.array([0.3, 0.05, 0.15, 0.1, 0.4])


def reports(mechanism: Mechanism, epsilon: float, count: int, shares: np.ndarray = TRUE) -> SymbolReports:
    """Return so many reports of every kind as are expected, so that there is no noise to allow for."""
    channel = mechanism.channel(STARS, epsilon)
    expected = np.rint(count * shares @ channel.probabilities).astype(np.int64)
    symbols = np.repeat(np.arange(channel.symbols), expected)
    return SymbolReports((channel.probabilities,), symbols, np.zeros_like(symbols))


@pytest.mark.parametrize("mechanism", [RandomizedResponse(), ThresholdBit(other_thresholds=0.2)])
def test_many_reports_tell_the_shares_whatever_the_public_histogram(mechanism: Mechanism) -> None:
    np.testing.assert_allclose(learned_shares(reports(mechanism, 1.0, 10**6), PUBLIC), TRUE, atol=2e-3)


def test_the_shares_are_those_of_expectation_and_maximisation() -> None:
    strong, weak = reports(RandomizedResponse(), 2.0, 300), reports(ThresholdBit(), 0.5, 500)
    both = SymbolReports(
        strong.channels + weak.channels,
        np.concatenate([strong.symbols, weak.symbols]),
        np.repeat([0, 1], [strong.symbols.size, weak.symbols.size]),
    )
    of_symbol = np.hstack([strong.channels[0][:, strong.symbols], weak.channels[0][:, weak.symbols]])
    shares = PUBLIC
    for _ in range(1000):
        responsibilities = shares[:, None] * of_symbol
        shares = (responsibilities / responsibilities.sum(axis=0)).sum(axis=1) + 20 * PUBLIC
        shares /= shares.sum()
    np.testing.assert_allclose(learned_shares(both, PUBLIC), shares, atol=1e-6)


def test_levels_that_a_bit_does_not_tell_apart_keep_their_public_ratio() -> None:
    shares = learned_shares(reports(ThresholdBit(), 1.0, 10**6), 7 * PUBLIC)
    np.testing.assert_allclose(shares[3:].sum(), TRUE[3:].sum(), atol=1e-3)
    np.testing.assert_allclose(shares[:3] / shares[:3].sum(), PUBLIC[:3] / PUBLIC[:3].sum(), atol=1e-6)
    np.testing.assert_allclose(shares[3] / shares[4], 2, atol=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "count"),
    [(SetOnly(), np.inf, 1000), (RandomizedResponse(), 1e-6, 1000), (RandomizedResponse(), 1.0, 0)],
)
def test_without_information_the_public_histogram_stands(
    mechanism: Mechanism, epsilon: float, count: int
) -> None:
    np.testing.assert_allclose(learned_shares(reports(mechanism, epsilon, count), PUBLIC), PUBLIC, atol=1e-3)


def test_a_level_that_nobody_gives_keeps_a_share() -> None:
    never = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    shares = learned_shares(reports(RandomizedResponse(), 15.0, 10**5, never), PUBLIC)
    assert 0 < shares[0] < 1e-3
    np.testing.assert_allclose(shares, never, atol=1e-3)
