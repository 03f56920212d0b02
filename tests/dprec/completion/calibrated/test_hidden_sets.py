"""Calibrated completion of reports that hide which items were rated, on planted ratings."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.catalogue import Catalogue
from dprec.completion import Calibrated
from dprec.mechanisms import HiddenThreshold, Mechanism, ZhengLaplace, ZhengRandomizedResponse
from dprec.observations import RowReports
from tests.dprec.completion.calibrated.hidden_worlds import SHARES, planted_levels, reported

COMPLETION = Calibrated(histogram=SHARES, dimensions=3, sweeps=8)
USERS, ITEMS = 400, 90


@pytest.mark.parametrize("mechanism", [HiddenThreshold(), ZhengLaplace(), ZhengRandomizedResponse()])
def test_biases_and_their_uncertainty_are_learned_through_any_channel(mechanism: Mechanism) -> None:
    levels, biases, _ = planted_levels(USERS, ITEMS)
    model = COMPLETION.fit(reported(levels, mechanism, 3.0), 1)
    errors = model.items.means - biases
    assert np.mean(errors**2) < 0.5 * biases.var()
    assert 0.6 < np.mean(errors**2 / model.items.variances) < 1.5


def test_ratings_do_not_seem_more_frequent_for_the_noise() -> None:
    levels = planted_levels(USERS, ITEMS)[0]
    for epsilon in (1.0, 3.0):
        model = COMPLETION.fit(reported(levels, HiddenThreshold(), epsilon), 1)
        assert model.diagnostics["expected_ratings"] == pytest.approx((levels > 0).sum(), rel=0.25)


def test_a_budget_that_says_nothing_leaves_the_prior() -> None:
    levels = planted_levels(USERS, ITEMS)[0]
    model = COMPLETION.fit(reported(levels, HiddenThreshold(), 1e-6), 1)
    np.testing.assert_allclose(model.items.means, 0, atol=1e-3)
    np.testing.assert_allclose(model.items.variances, 0.3, atol=1e-3)
    assert not model.embedding.items.any()
    # What is noise in the counts is no popularity.
    assert np.abs(model.embedding.popularity).max() < 0.01


def test_tastes_that_show_in_what_is_rated_place_the_items() -> None:
    levels, _, side = planted_levels(USERS, ITEMS, taste=1.5)
    model = COMPLETION.fit(reported(levels, HiddenThreshold(), 2.0), 1)
    assert model.diagnostics["dimensions_above_noise"] == 1
    place = model.embedding.items[:, 0]
    assert abs(np.corrcoef(place, side)[0, 1]) > 0.7
    assert model.embedding.items.shape == (ITEMS, 3)
    without = COMPLETION.fit(reported(planted_levels(USERS, ITEMS)[0], HiddenThreshold(), 2.0), 1)
    assert without.diagnostics["dimensions_above_noise"] == 0


def test_users_whose_report_was_not_accepted_say_nothing() -> None:
    levels = planted_levels(USERS, ITEMS)[0]
    seen = reported(levels, HiddenThreshold(), 2.0)
    arrived = np.arange(USERS) < 200
    assert isinstance(seen.evidence, RowReports)
    kept = arrived[seen.users]
    symbols = replace(
        seen.evidence,
        symbols=seen.evidence.symbols[kept],
        channel_of=seen.evidence.channel_of[kept],
        reported=arrived,
    )
    half = replace(
        seen, users=seen.users[kept], items=seen.items[kept], values=seen.values[kept], evidence=symbols
    )
    alone = COMPLETION.fit(reported(levels[:200], HiddenThreshold(), 2.0), 1)
    model = COMPLETION.fit(half, 1)
    np.testing.assert_allclose(model.users.means[200:], 0, atol=1e-12)
    # The users who say nothing are prior entities, which changes what is learned of the spread a little.
    assert np.corrcoef(model.items.means, alone.items.means)[0, 1] > 0.98


def test_public_features_say_most_where_reports_say_little() -> None:
    levels, biases, _ = planted_levels(USERS, ITEMS)
    seen = reported(levels, HiddenThreshold(), 1.0)
    known = Catalogue((biases / biases.std())[:, None], np.zeros((ITEMS, 0), dtype=np.bool_), ("mood",), ())
    plain, informed = (COMPLETION.fit(replace(seen, catalogue=public), 1) for public in (None, known))
    assert np.mean((informed.items.means - biases) ** 2) < 0.6 * np.mean((plain.items.means - biases) ** 2)


def test_biases_are_regressed_on_the_places() -> None:
    levels, biases, side = planted_levels(USERS, ITEMS, taste=1.5, better=0.6)
    model = COMPLETION.fit(reported(levels, HiddenThreshold(), 2.0), 1)
    assert model.items.coefficients.size == 2
    assert np.corrcoef(model.items.regressed, side)[0, 1] ** 2 > 0.4
    between = np.mean(biases[side > 0]) - np.mean(biases[side < 0])
    found = np.mean(model.items.means[side > 0]) - np.mean(model.items.means[side < 0])
    assert found > 0.5 * between


def test_popularity_is_learned_and_shrunk_by_the_noise_on_it() -> None:
    levels = planted_levels(USERS, ITEMS)[0]
    true = np.log1p((levels > 0).sum(axis=0))
    weak, strong = (
        COMPLETION.fit(reported(levels, HiddenThreshold(), epsilon), 1).embedding for epsilon in (0.5, 4.0)
    )
    assert np.corrcoef(strong.popularity, true)[0, 1] > 0.95
    found = np.corrcoef(weak.popularity, true)[0, 1]
    assert found == pytest.approx(weak.count_reliability, abs=0.1)
    assert weak.count_reliability < strong.count_reliability < 1


def test_differences_within_a_bin_are_no_tastes() -> None:
    levels = planted_levels(1500, 200)[0]
    model = COMPLETION.fit(reported(levels, HiddenThreshold(), 6.0), 1)
    assert not model.embedding.items.any()
