"""Biases of items are found from the numbers of symbols alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprec.completion import ItemBiases, Observations, SymbolTables
from dprec.mechanisms import RandomizedResponse, ThresholdBit
from dprec.observations import SymbolReports
from dprec.ordinal import cut_points, level_probabilities
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)


def reported(n_users: int, biases: np.ndarray, user_variance: float, seed: int) -> Observations:
    """Return bits about ratings of all items by all users, who differ in level."""
    draws = np.random.default_rng(seed)
    model = ItemBiases(histogram="netflix")
    latent = biases + np.sqrt(user_variance) * draws.standard_normal((n_users, 1))
    noisy = latent + draws.standard_normal(latent.shape)
    cuts = model.fit(observations(np.zeros(1, np.int64), np.zeros(1, np.int64), (1, 1)), 1).cuts
    levels = np.searchsorted(cuts, noisy.ravel())
    channel = ThresholdBit().channel(STARS, 2.0).probabilities
    symbols = (draws.random(levels.size) < channel[levels, 1]).astype(np.int64)
    items = np.tile(np.arange(biases.size), n_users)
    return observations(items, symbols, (n_users, biases.size))


def observations(items: np.ndarray, symbols: np.ndarray, shape: tuple[int, int]) -> Observations:
    """Return reports of every user on as many items each, at epsilon 2."""
    channel = ThresholdBit().channel(STARS, 2.0)
    users = np.repeat(np.arange(shape[0], dtype=np.int32), items.size // shape[0])
    reports = SymbolReports((channel.probabilities,), symbols, np.zeros_like(symbols))
    return Observations(
        users, items.astype(np.int32), channel.values[symbols], shape, STARS, evidence=reports
    )


def test_planted_biases_are_found_whatever_users_differ_by() -> None:
    biases = np.linspace(-0.8, 0.8, 60)
    for variance in (0.0, 0.6):
        seen = reported(4000, biases, variance, seed=1)
        model = ItemBiases(histogram="netflix", user_variance=variance).fit(seen, seed=1)
        assert np.abs(model.biases.biases - biases).max() < 0.15
        slope = np.polyfit(biases, model.biases.biases, 1)[0]
        assert slope == pytest.approx(1.0, abs=0.05)


def test_who_sent_a_report_and_when_makes_no_difference() -> None:
    seen = reported(50, np.linspace(-0.5, 0.5, 20), 0.25, seed=2)
    own = ItemBiases().fit(seen, seed=1)
    unlinked = ItemBiases().fit(seen.unlinked(with_sets=False), seed=1)
    assert (own.biases.biases == unlinked.biases.biases).all()
    assert (own.biases.variances == unlinked.biases.variances).all()
    moved = np.random.default_rng(3).permutation(seen.items.size)
    assert seen.symbols is not None
    shuffled = replace(
        seen,
        items=seen.items[moved],
        values=seen.values[moved],
        evidence=replace(seen.symbols, symbols=seen.symbols.symbols[moved]),
    )
    assert (ItemBiases().fit(shuffled, seed=1).biases.biases == own.biases.biases).all()


def test_unlinked_reports_come_in_an_order_that_follows_from_what_they_say() -> None:
    seen = reported(50, np.linspace(-0.5, 0.5, 20), 0.25, seed=2)
    moved = np.random.default_rng(3).permutation(seen.items.size)
    assert seen.symbols is not None
    symbols = replace(seen.symbols, symbols=seen.symbols.symbols[moved])
    shuffled = replace(seen, items=seen.items[moved], values=seen.values[moved], evidence=symbols)
    one, other = seen.unlinked(with_sets=False), shuffled.unlinked(with_sets=False)
    assert one.symbols is not None
    assert other.symbols is not None
    assert (one.items == other.items).all()
    assert (one.values == other.values).all()
    assert (one.symbols.symbols == other.symbols.symbols).all()
    # Every report is of a user of its own.
    assert (one.users == np.arange(seen.items.size)).all()
    assert one.shape == (seen.items.size, 20)
    assert (np.bincount(one.items) == 50).all()


def test_items_without_reports_are_predicted_from_the_others() -> None:
    seen = reported(200, np.array([0.6, 0.6, 0.5]), 0.25, seed=4)
    model = ItemBiases(histogram="netflix").fit(replace(seen, shape=(200, 4)), seed=1)
    known, unknown = model.predict(np.zeros(2, np.int64), np.array([0, 3]))
    assert model.diagnostics["items_without_reports"] == 1
    assert 3 < unknown <= known + 0.5
    assert model.biases.variances[3] > 2 * model.biases.variances[0]


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
