"""Calibrated completion of reports that hide which items were rated, on planted ratings."""

import numpy as np
import pytest

from dprec.completion import Calibrated
from dprec.completion.calibrated.hidden_sets import HiddenReports
from dprec.mechanisms import HiddenThreshold, Mechanism, ZhengLaplace, ZhengRandomizedResponse
from tests.dprec.completion.calibrated.hidden_worlds import CUTS, SHARES, planted_levels, reported

COMPLETION = Calibrated(histogram=SHARES, dimensions=3, sweeps=8)
USERS, ITEMS = 400, 90


@pytest.mark.parametrize("mechanism", [HiddenThreshold(), ZhengLaplace(), ZhengRandomizedResponse()])
def test_biases_and_their_uncertainty_are_learned_through_any_channel(mechanism: Mechanism) -> None:
    levels, biases, _ = planted_levels(USERS, ITEMS)
    model = COMPLETION.fit(reported(levels, mechanism, 3.0), 1)
    errors = model.latent.items.biases - biases
    assert np.mean(errors**2) < 0.5 * biases.var()
    assert 0.6 < np.mean(errors**2 / model.latent.items.variances) < 1.5


def test_a_budget_that_says_nothing_leaves_the_prior() -> None:
    levels = planted_levels(USERS, ITEMS)[0]
    model = COMPLETION.fit(reported(levels, HiddenThreshold(), 1e-6), 1)
    np.testing.assert_allclose(model.latent.items.biases, 0, atol=1e-3)
    np.testing.assert_allclose(model.latent.items.variances, 0.3, atol=1e-3)
    assert not model.embedding.items.any()
    # What is noise in the counts is no popularity.
    assert np.abs(model.embedding.popularity).max() < 0.01


def test_symbols_are_counted_by_bin_with_those_that_are_not_sent() -> None:
    seen = reported(planted_levels(30, 20)[0], HiddenThreshold(), 1.0)
    reports = HiddenReports.of(seen, seen.evidence)
    table = np.zeros((30, 20), dtype=np.int64)
    table[reports.users, reports.items] = reports.symbols
    bins = np.arange(30) % 4
    counts = reports.of_items(bins, 4)
    expected = [[[(table[bins == b, i] == z).sum() for z in range(3)] for b in range(4)] for i in range(20)]
    np.testing.assert_array_equal(counts, expected)
    by_user = reports.of_users(np.arange(20) % 3, 3)
    np.testing.assert_array_equal(
        by_user.sum(axis=1), [[(row == z).sum() for z in range(3)] for row in table]
    )


def test_the_symbols_of_a_fine_grid_are_merged_and_keep_their_likelihood() -> None:
    seen = reported(planted_levels(30, 20)[0], ZhengLaplace(), 1.0)
    reports = HiddenReports.of(seen, seen.evidence)
    assert reports.unrated.size == 16
    assert reports.symbols.min() > 0
    np.testing.assert_allclose(reports.rated.sum(axis=1), 1)
    assert reports.unrated.sum() == pytest.approx(1)
    # "?" stays as it is, and neighbours stay in order.
    assert reports.unrated[0] == pytest.approx(1 / (1 + np.exp(-0.5)))
    in_order = reports.symbols[np.argsort(seen.values)]
    assert (in_order[1:] >= in_order[:-1]).all()


LATENT = np.array([-1.0, 0.3, 2.0])


def probabilities(latent: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    seen = reported(planted_levels(30, 20)[0], ZhengRandomizedResponse(), 1.0)
    return HiddenReports.of(seen, seen.evidence).given(latent, CUTS, variance)


def test_probabilities_sum_to_one_and_slopes_are_their_derivatives() -> None:
    given, slopes = probabilities(LATENT, 0.4)
    np.testing.assert_allclose(given.sum(axis=1), 1)
    ahead, behind = (probabilities(LATENT + move, 0.4)[0] for move in (1e-5, -1e-5))
    np.testing.assert_allclose((ahead - behind) / 2e-5, slopes, atol=1e-9)


def test_uncertain_latent_ratings_are_averaged_over() -> None:
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)
    drawn = probabilities(0.3 + 0.8 * nodes, 0.0)[0]
    averaged = probabilities(np.array([0.3]), 0.64)[0]
    np.testing.assert_allclose(averaged[0], masses @ drawn / masses.sum(), rtol=1e-9)
