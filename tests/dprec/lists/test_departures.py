import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dprec.arrays import Floats
from dprec.lists import departures
from dprec.lists.departures import Departure, ridge_of
from dprec.lists.gram import DIAGONAL, GramSettings
from tests.pair_tables import noisy_table, planted


def departs(cells: Floats, noise: float, users: int, having: Floats) -> tuple[float, float, float]:
    found = departures.departure(cells, noise, users / cells.sum(), having)
    return found.variance, found.error, found.lower_bound


def test_without_tastes_pairs_depart_by_chance_alone() -> None:
    users, items, deviation = 2_000, 40, 0.5
    popularity = 1 / (20 + np.arange(items))
    rows, columns = np.triu_indices(items, 1)
    random = np.random.default_rng(5)
    expected = popularity[rows] * popularity[columns]
    expected *= 4_000 / expected.sum()
    found = np.empty((2, 200, 3))
    for draw in range(200):
        # Pairs weigh a half each.
        noisy = 0.5 * random.poisson(2 * expected) + deviation * random.standard_normal(expected.size)
        found[0, draw] = departs(noisy, deviation**2, users, np.zeros(items))
        tastes = noisy + expected * np.where(random.random(expected.size) < 0.5, -0.3, 0.3)
        found[1, draw] = departs(tastes, deviation**2, users, np.zeros(items))
    # Means of 200 draws are 6 standard errors off with probability 1e-9. Fitting takes 40 of 780 degrees of
    # freedom from what departs and from chance, which is all that does where there are no tastes.
    variances, told = found[:, :, 0], found[:, :, 1].mean(axis=1)
    errors = variances.std(axis=1) / math.sqrt(200)
    truth, chance = np.array([0.0, 0.09]), told * math.sqrt(780 / 2)
    wanted = truth - 40 / 780 * (truth + chance)
    assert (np.abs(variances.mean(axis=1) - wanted) < 6 * errors + 0.002).all()
    assert (errors < 0.002).all()
    np.testing.assert_allclose(variances.std(axis=1)[0], told[0], rtol=0.35)
    assert (found[1, :, 2] > 0).all()


def test_noise_alone_is_mostly_below_the_lower_bound() -> None:
    random, popularity = np.random.default_rng(6), 1 / (20 + np.arange(40))
    rows, columns = np.triu_indices(40, 1)
    expected = 1e4 * popularity[rows] * popularity[columns]
    noisy = (expected + 0.5 * random.standard_normal(expected.size) for _ in range(200))
    bounds = [departures.departure(cells, 0.25, 1e-6, np.zeros(40)).lower_bound for cells in noisy]
    # Of 5,000 draws with another seed, a fifth are beyond it: more than 80 of 200 with probability 3e-8.
    assert sum(bound > 0 for bound in bounds) <= 80


def test_a_table_has_next_to_no_say_without_tastes_and_some_with_them() -> None:
    alike = np.random.default_rng(3).random((4_000, 40)) < 1 / (2 + np.arange(40))
    settings = GramSettings.of(1e-4, 40, content=False)
    without, with_tastes = sparse.csr_array(alike.astype(float)), planted(taste=4.0)
    for deviation in (0.01, 2.0):
        shares = []
        for sets in (without, with_tastes):
            noisy, _ = noisy_table(sets, deviation)
            departed = departures.departure_of_sum(noisy, deviation, sets.shape[0])
            shares.append(settings.share_by(departed.lower_bound))
        assert shares[0] < 0.1
        assert shares[1] > 2.0


def test_pairs_depart_by_the_variance_of_ratios_to_what_popularity_explains() -> None:
    # Products of 4, 1 and 1, each of half a user, and of users of whom a half and a quarter have an item.
    expected, lacking = np.array([4.0, 4.0, 1.0]), np.array([0.375, 0.375, 0.5625])
    variances = 0.25 + 0.5 * lacking * expected
    weights = (expected / variances) ** 2
    chance = (weights @ variances) / (weights @ expected**2)
    error = math.sqrt(2 / (weights @ expected**2))
    having = np.array([0.5, 0.25, 0.25])
    sampled = expected / lacking
    sampling = 0.5 * sampled.sum() / (sampled @ sampled)
    found = departures.departure(expected, 0.25, 0.5, having)
    assert found.variance == pytest.approx(-chance, rel=1e-3)
    assert found.error == pytest.approx(error, rel=1e-3)
    assert found.sampling == pytest.approx(sampling, rel=1e-3)
    # Noise takes nothing from what is sampling.
    assert departures.departure(expected, 9.0, 0.5, having).sampling == found.sampling
    # Three pairs always fit; of four items that go together by twos, each is in as many pairs as any other.
    cells = np.array([4.0, 0.0, 0.0, 0.0, 0.0, 4.0])
    expected = np.full(6, 4 / 3)
    variances = 0.25 + 0.5 * expected
    departed = ((cells - expected) ** 2 - variances).mean() / expected[0] ** 2
    assert departures.departure(cells, 0.25, 0.5, np.zeros(4)).variance == pytest.approx(departed)
    # Nearly all users have an item: a twentieth of a twentieth varies, and not nothing.
    most = departures.departure(cells, 1e-9, 0.5, np.full(4, 2.0))
    assert most.sampling == pytest.approx(0.5 * 0.05**2 / (4 / 3))
    assert most.variance == pytest.approx(2 - most.sampling)


@pytest.mark.parametrize(("cells", "items"), [([], 1), ([-2.0], 2), ([0.0] * 3, 3), ([1.0, 1.0, -2.0], 3)])
def test_the_departure_of_a_few_noisy_pairs_is_a_number(cells: list[float], items: int) -> None:
    found = departures.departure(np.array(cells), 1.0, 0.5, np.zeros(items))
    assert np.isfinite([found.variance, found.error, found.sampling]).all()
    assert found.lower_bound <= 0


@pytest.mark.parametrize("mean", [0.3, 2.0, 30.0])
def test_the_weight_of_a_pair_is_hardly_more_than_that_of_the_sets_whether_few_or_all_have_one(
    mean: float,
) -> None:
    sizes = np.random.default_rng(8).poisson(mean, 50_000).astype(float)
    sizes = sizes[sizes > 1]
    weights = 1 / np.sqrt(DIAGONAL**2 * sizes + sizes * (sizes - 1) / 2)
    total, squares = (float((each * sizes * (sizes - 1) / 2).sum()) for each in (weights, weights**2))
    assert 0.97 < departures._weight_of_pairs(total, 50_000) / (squares / total) < 1.25
    assert 0.9 < departures._weight_of_pairs(-1.0, 50_000) <= 1.0


def test_the_lower_bound_is_beyond_a_quarter_of_the_error_and_a_fifth_of_sampling() -> None:
    assert Departure(0.5, 0.04, 0.2).lower_bound == pytest.approx(0.45)


def test_the_ridge_is_as_large_as_sampling_is_beside_tastes_whatever_the_users() -> None:
    cells, found = np.full(30, 1.0), Departure(0.5, 0.01, 0.2)
    assert ridge_of(cells, 0.0, 100, found) == pytest.approx(2.4)
    assert ridge_of(cells, 0.0, 200, replace(found, sampling=0.1)) == pytest.approx(2.4)
    assert ridge_of(cells, 0.0, 100, replace(found, variance=0.25)) == pytest.approx(4.8)
    for variance in (1e-9, 0.0, -1.0):
        assert ridge_of(cells, 0.0, 100, replace(found, variance=variance)) == 30.0


def test_a_ridge_has_a_least_and_grows_with_noise() -> None:
    cells, found = np.full(30, 1.0), Departure(0.5, 0.01, 0.2)
    assert ridge_of(cells, 2.0, 100, found) == pytest.approx(2.4 + 14)
    # Of a million users: a part of them, or of what they add.
    assert ridge_of(cells, 2.0, 10**6, found) == pytest.approx(450 + 14)
    assert ridge_of(4e6 / 30 * cells, 2.0, 10**6, found) == pytest.approx(2 * 450 + 14)
