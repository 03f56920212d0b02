"""Biases of items are found from the numbers of symbols alone."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from dprec.completion import ItemBiases, Regressed, SymbolTables
from dprec.completion.calibrated.biases import SIDE_PER_BIAS, ProfileFit, ResidualAnswers, fitted_to_residuals
from dprec.completion.calibrated.regressions import Expected
from dprec.mechanisms import RandomizedResponse, ThresholdBit
from dprec.observations import Observations, ProfileReports, ResidualReports
from dprec.ordinal import cut_points, level_probabilities, level_shares
from dprec.progress import silent
from dprec.randomness import generator
from tests import make
from tests.make import STARS


def reported(n_users: int, biases: np.ndarray, user_variance: float, seed: int) -> Observations:
    """Return bits at epsilon 2 about ratings of all items by all users, who differ in level."""
    draws = np.random.default_rng(seed)
    latent = biases + np.sqrt(user_variance) * draws.standard_normal((n_users, 1))
    cuts = cut_points(level_shares("netflix", 5), 0.5)
    levels = 1 + np.searchsorted(cuts, latent + draws.standard_normal(latent.shape))
    return make.reported(make.table(levels), ThresholdBit(), 2.0, seed)


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
        read=lambda: [seen.values[moved]],
        evidence=replace(seen.symbols, symbols=seen.symbols.symbols[moved]),
    )
    assert (ItemBiases().fit(shuffled, seed=1).biases.biases == own.biases.biases).all()


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
            found = tables.at(latent, np.full(25, tables.first[number] + symbol), np.full(25, number))
            np.testing.assert_allclose(found[0], slopes[:, symbol], atol=1e-3)
            np.testing.assert_allclose(found[1], information, atol=1e-3)


def test_symbols_that_are_as_likely_at_every_level_have_no_slope_at_all_not_even_by_rounding() -> None:
    tables = SymbolTables.of([np.ones((5, 1)), np.full((5, 3), 1 / 3), np.eye(5)], CUTS)
    assert not tables.slopes[:, :4].any()
    assert not tables.information[:, :2].any()
    assert tables.information[:, 2].all()


def planted(answers: int) -> tuple[ProfileReports, np.ndarray, np.ndarray]:
    """Return answers about 300 items, their biases, and the shares of users who rate them."""
    random, items = generator(4, "planted"), 300
    biases, shares = random.normal(0.0, 0.4, items), np.exp(random.normal(-4.0, 1.2, items)).clip(0, 0.9)
    unrated, rated = 1e-3, 0.01
    sides = np.clip((1 + biases * SIDE_PER_BIAS) / 2, 0, 1)
    expected = [unrated + (rated - unrated) * shares * side for side in (sides, 1 - sides)]
    above, below = (random.poisson(answers * each) for each in expected)
    return ProfileReports(above, below, answers, (0.9e-3, 1.1e-3), rated), biases, shares


def test_many_answers_tell_biases_and_popularity() -> None:
    reports, biases, shares = planted(30_000_000)
    fit = ProfileFit.of(reports, None, 40, silent)
    popular = shares > np.median(shares)
    assert np.corrcoef(fit.means[popular], biases[popular])[0, 1] > 0.95
    assert np.std((fit.means - biases) / np.sqrt(fit.variances)) < 1.4
    counts = fit.embedding(10).item_counts
    assert np.corrcoef(np.log(counts), np.log(shares))[0, 1] > 0.9
    assert abs(fit.unrated / 2e-3 - 1) < 0.02


USERS, ITEMS, RATED = 4000, 40, 10


def observed(lies: float, *, answers: int = 2, seed: int = 3) -> tuple[Observations, np.ndarray]:
    """Return answers of the model itself, and the item biases."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(ITEMS, 2))
    biases = features @ [0.6, -0.3] + 0.2 * random.normal(size=ITEMS)
    items = np.sort(random.random((USERS, ITEMS)).argsort(axis=1)[:, :RATED], axis=1)
    own = biases[items]
    residuals = (own - own.mean(axis=1, keepdims=True)) / np.sqrt(1.2 * (1 - 1 / RATED))
    above = (random.random(own.shape) < ndtr(residuals)) ^ (random.random(own.shape) < lies)
    asked = (random.random(own.shape).argsort(axis=1) < answers).ravel()
    cells = np.flatnonzero(asked)
    reports = ResidualReports(cells, above.ravel()[asked], np.full(cells.size, lies))
    seen = make.observations(
        np.repeat(np.arange(USERS, dtype=np.int32), RATED),
        items.ravel(),
        np.full(USERS * RATED, 3.0),
        (USERS, ITEMS),
        evidence=reports,
    )
    return seen, np.column_stack([np.ones(ITEMS), features, biases])


@pytest.mark.parametrize("lies", [0.0, 0.2])
def test_biases_are_recovered_from_the_answers(lies: float) -> None:
    """Errors in units of the posterior's: the mean square of 40 beyond 3 has probability below 1e-9."""
    seen, known = observed(lies)
    start = Regressed.prior(known[:, :3], Expected(spread=(0.06,)))
    fitted = fitted_to_residuals(start, seen, seen.evidence, 20, silent)
    # What all items have in common is not in the residuals.
    error = fitted.biases - known[:, 3]
    error -= error.mean()
    assert np.mean(error**2 / fitted.variances) < 3
    assert np.corrcoef(fitted.biases, known[:, 3])[0, 1] > 0.9
    assert fitted.coefficients[0] == 0
    assert fitted.coefficients[1:, 0] == pytest.approx([0.6, -0.3], abs=0.15)
    assert 0.01 < fitted.spreads[0] < 0.12


def test_the_slope_is_that_of_the_log_likelihood() -> None:
    seen, known = observed(0.2)
    answers = ResidualAnswers.of(seen, seen.evidence, known[:, :3])
    latent = np.linspace(-3, 3, answers.items.size)
    slopes, information = answers.linearised(latent)

    def log_likelihood(at: np.ndarray) -> np.ndarray:
        chance = 0.2 + 0.6 * ndtr(at)
        return np.log(np.where(answers.reports.above, chance, 1 - chance))

    step = 1e-6
    numeric = (log_likelihood(latent + step) - log_likelihood(latent - step)) / (2 * step)
    np.testing.assert_allclose(slopes, numeric, atol=1e-7)
    assert (information > 0).all()


def test_only_differences_from_the_rated_items_count() -> None:
    seen, known = observed(0.1)
    start = Regressed.prior(known[:, :3], Expected(spread=(0.06,)))
    shifted = Regressed.prior(known[:, :3] + [0, 2, -1], Expected(spread=(0.06,)))
    one, other = (fitted_to_residuals(each, seen, seen.evidence, 5, silent) for each in (start, shifted))
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)
    np.testing.assert_allclose(one.means - one.means.mean(), other.means - other.means.mean(), atol=1e-9)
