"""Calibrated completion on planted ratings, read through private channels.

Shares of the levels that are learned from private reports.
"""

import numpy as np
import pytest

from dprec.completion import Calibrated, ItemAverage, MatrixFactorization
from dprec.completion.calibrated.completion import learned_shares
from dprec.mechanisms import Mechanism, RandomizedResponse, SetOnly, ThresholdBit
from dprec.observations import Observations, SymbolReports
from dprec.ordinal import cut_points, level_probabilities
from tests import make
from tests.make import SHARES, STARS

USERS, ITEMS = 300, 80


def planted(mechanism: Mechanism, epsilon: float) -> tuple[Observations, np.ndarray]:
    """Return reports of ordinal ratings whose users and items differ, and all expected ratings."""
    random = np.random.default_rng(2)
    latent = random.normal(scale=0.5, size=(USERS, 1)) + random.normal(scale=0.6, size=(1, ITEMS))
    levels = level_probabilities(latent.ravel(), cut_points(SHARES, 0.5))[0].reshape(USERS, ITEMS, 5)
    rated = random.random(latent.shape) < 0.4
    drawn = (random.random((rated.sum(), 1)) > np.cumsum(levels[rated], axis=1)).sum(axis=1)
    seen = make.reported(make.rated(rated, np.minimum(drawn, 4) + 1), mechanism, epsilon)
    return seen, levels @ STARS.values


def error(completed, expected: np.ndarray) -> float:
    users, items = np.indices(expected.shape).reshape(2, -1)
    return float(np.sqrt(np.mean((completed.predict(users, items) - expected.ravel()) ** 2)))


@pytest.mark.parametrize(("mechanism", "share"), [(ThresholdBit(), 1.0), (RandomizedResponse(), 0.85)])
def test_noisy_reports_are_read_better_than_as_numbers(mechanism: Mechanism, share: float) -> None:
    # The two values of a bit are as good as its likelihood; the values of five symbols are not.
    seen, expected = planted(mechanism, 1.0)
    calibrated = error(Calibrated(histogram=SHARES).fit(seen, 1), expected)
    assert calibrated < share * error(MatrixFactorization().fit(seen, 1), expected)
    assert calibrated < 0.85 * error(ItemAverage().fit(seen, 1), expected)
    assert calibrated < 0.85 * expected.std()


def test_channels_of_their_own_are_read_each_by_its_likelihood() -> None:
    strong, _ = planted(ThresholdBit(), 4.0)
    weak = ThresholdBit().channel(STARS, 0.1).probabilities
    mixed = SymbolReports((strong.symbols.channels[0], weak), strong.symbols.symbols, strong.users % 2)
    half = make.observations(strong.users, strong.items, strong.values, strong.shape, evidence=mixed)
    of_weak = Calibrated(histogram=SHARES).fit(half, 1).latent.users.variances[1::2]
    of_strong = Calibrated(histogram=SHARES).fit(half, 1).latent.users.variances[::2]
    assert of_weak.min() > of_strong.max()


@pytest.mark.parametrize(
    "cells", [np.eye(1, 6) > -1, np.eye(6, 1) > -1, np.eye(1) > 0, np.eye(3, 5, 1) > 0, np.eye(3, 4) > 1]
)
@pytest.mark.parametrize("learn", [False, True])
def test_however_few_the_ratings_predictions_are_ratings(cells: np.ndarray, learn: bool) -> None:
    """One user, one item, one rating, one of each, and none at all."""
    seen = make.reported(make.rated(cells), ThresholdBit(), 1.0)
    completed = Calibrated(histogram=SHARES, learn_histogram=learn).fit(seen, 1)
    predictions = completed.predict(*np.indices(cells.shape).reshape(2, -1))
    assert ((predictions > 1) & (predictions < 5)).all()


PUBLIC = np.array([0.1, 0.1, 0.2, 0.4, 0.2])
TRUE = np.array([0.3, 0.05, 0.15, 0.1, 0.4])


def reports(mechanism: Mechanism, epsilon: float, count: int, shares: np.ndarray = TRUE) -> SymbolReports:
    """Return so many reports of every kind as are expected, so that there is no noise to allow for."""
    channel = mechanism.channel(STARS, epsilon)
    expected = np.rint(count * shares @ channel.probabilities).astype(np.int64)
    symbols = np.repeat(np.arange(channel.symbols), expected)
    return SymbolReports((channel.probabilities,), symbols, np.zeros_like(symbols))


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


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "count"),
    [(SetOnly(), np.inf, 1000), (RandomizedResponse(), 1e-6, 1000), (RandomizedResponse(), 1.0, 0)],
)
def test_without_information_the_public_histogram_stands(
    mechanism: Mechanism, epsilon: float, count: int
) -> None:
    np.testing.assert_allclose(learned_shares(reports(mechanism, epsilon, count), PUBLIC), PUBLIC, atol=1e-3)
