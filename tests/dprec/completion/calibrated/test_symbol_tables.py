import numpy as np
import pytest

from dprec.completion import SymbolTables
from dprec.mechanisms import RandomizedResponse, ThresholdBit
from dprec.ordinal import cut_points, level_probabilities
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
CUTS = cut_points((1, 2, 4, 5, 3), 0.5)


def test_slopes_and_information_are_those_of_the_likelihood() -> None:
    channels = [
        ThresholdBit().channel(STARS, 0.7).probabilities,
        RandomizedResponse().channel(STARS, 2.0).probabilities,
    ]
    tables = SymbolTables.of(channels, CUTS)
    latent = np.linspace(-3, 3, 25)
    for number, channel in enumerate(channels):

        def likelihood(shift: float, channel: np.ndarray = channel) -> np.ndarray:
            return level_probabilities(latent + shift, CUTS)[0] @ channel

        slopes = (np.log(likelihood(1e-6)) - np.log(likelihood(-1e-6))) / 2e-6
        information = (likelihood(0) * slopes**2).sum(axis=1)
        for symbol in range(channel.shape[1]):
            found = tables.at(latent, np.full(25, symbol), np.full(25, number))
            np.testing.assert_allclose(found[0], slopes[:, symbol], atol=1e-3)
            np.testing.assert_allclose(found[1], information, atol=1e-3)


def test_beyond_the_grid_the_ends_count() -> None:
    tables = SymbolTables.of([np.eye(5)], CUTS)
    far, end = (tables.at(np.array([place, -place]), np.array([0, 4])) for place in (1e9, 8.0))
    np.testing.assert_allclose(far, end)
    assert np.isfinite(far).all()


def test_a_symbol_that_says_nothing_has_no_slope() -> None:
    slopes, information = SymbolTables.of([np.ones((5, 1))], CUTS).at(np.linspace(-3, 3, 7), np.zeros(7, int))
    assert slopes == pytest.approx(0, abs=1e-12)
    assert information == pytest.approx(0, abs=1e-12)


def test_symbols_that_are_as_likely_at_every_level_have_no_slope_at_all_not_even_by_rounding() -> None:
    tables = SymbolTables.of([np.ones((5, 1)), np.full((5, 3), 1 / 3), np.eye(5)], CUTS)
    assert not tables.slopes[:, :4].any()
    assert not tables.information[:, :2].any()
    assert tables.information[:, 2].all()
