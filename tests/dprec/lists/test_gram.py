import math

import numpy as np
import pytest
from scipy import sparse

from dprec.arrays import Floats
from dprec.lists import gram
from dprec.lists.gram import DIAGONAL, DenoisedTable
from dprec.lists.model import PairTable
from dprec.sums import UNIT
from tests.summing import contributed, pairs


def planted(users: int = 6_000, items: int = 40) -> sparse.csr_array:
    """Return sets of two tastes, popular items first, in which items 38 and 39 go together."""
    random = np.random.default_rng(1)
    popularity = 1 / (2 + np.arange(items))
    liked = random.random((users, items)) < popularity * (
        1 + 1.5 * (np.arange(items) % 2 == random.integers(0, 2, (users, 1)))
    )
    liked[:, 39] = liked[:, 38]
    return sparse.csr_array(liked.astype(float))


def noisy_table(sets: sparse.csr_array, deviation: float) -> tuple[Floats, Floats]:
    """Return the sum of contributions with noise, and without it as pairs of a symmetric table."""
    items = sets.shape[1]
    vectors = contributed(sets.indptr, sets.indices, items).vectors(pairs(items))
    total = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, items * (items + 1) // 2)
    table = np.zeros((items, items))
    table[np.triu_indices(items)] = total
    table = table + table.T
    np.fill_diagonal(table, 0)
    return total + deviation * np.random.default_rng(2).standard_normal(total.size), table


def test_without_noise_the_table_is_the_sum_itself() -> None:
    noisy, truth = noisy_table(planted(), 0.0)
    table = gram.denoised_table(noisy, 1e-6)
    np.testing.assert_allclose(table.pairs, truth, atol=1e-4)
    diagonal = np.concatenate([[0], np.cumsum(np.arange(40, 1, -1))])
    np.testing.assert_allclose(table.popularity, noisy[diagonal] / DIAGONAL, atol=1e-9)


def test_weights_are_the_regression_of_each_item_on_the_others() -> None:
    random = np.random.default_rng(4)
    rows = (random.random((50, 5)) < 0.5).astype(float)
    full = rows.T @ rows
    table = DenoisedTable(full - np.diag(np.diag(full)), np.diag(full))
    weights = PairTable.of(np.arange(5, dtype=np.int32), table, 3.0, 1.0).weights
    for item in range(5):
        others = [other for other in range(5) if other != item]
        inverse = np.linalg.inv(full[np.ix_(others, others)] + 3.0 * np.eye(4))
        np.testing.assert_allclose(weights[others, item], inverse @ full[others, item])
    assert (np.diag(weights) == 0).all()


def test_scores_rank_by_weights_among_the_items_and_by_what_is_expected_elsewhere() -> None:
    sets = sparse.csr_array(np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]]))
    weights = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    expected = np.log([1.0, 2, 3, 4])
    scores = gram.scores(sets, np.array([0, 1, 3]), weights, expected, 10.0)
    assert np.argmax(scores[0]) == 1
    assert scores[0, 2] == expected[2]
    assert scores[1].tolist() == expected.tolist()
    assert gram.scores(sets, np.array([0, 1, 3]), weights, np.tile(expected, (2, 1)), 10.0).tolist() == (
        scores.tolist()
    )


def test_a_table_is_worth_its_noise_where_the_eigenvalue_of_popularity_stands_out() -> None:
    # 100 users of 4 items each, a half of all popularity: 2 items each, and pairs of 100 * sqrt(2) in all.
    popularity = np.array([50.0, 50.0, 50.0, 50.0])
    items = np.array([1, 3])
    largest = 2 * 100 * math.sqrt(2) / 2
    most = largest / (1.2 * 2 * math.sqrt(2))
    assert gram.worth_a_table(popularity, items, 0.999 * most, 100)
    assert not gram.worth_a_table(popularity, items, 1.001 * most, 100)
    # Where each has half an item of the table, an eighth has a pair.
    most = 2 * 100 / 8 / 2 / (1.2 * 2 * math.sqrt(2))
    popularity = np.array([87.5, 12.5, 87.5, 12.5])
    assert gram.worth_a_table(popularity, items, 0.999 * most, 100)
    assert not gram.worth_a_table(popularity, items, 1.001 * most, 100)
    # However noise swells popularity, sets have no more items than the table.
    assert not gram.worth_a_table(1e6 * popularity, items, 1e3, 100)


def test_what_is_noisy_of_items_with_themselves_gives_way_to_what_is_known() -> None:
    known = np.geomspace(1, 50, 30)
    rows, columns = np.triu_indices(30)
    truth = np.where(rows == columns, DIAGONAL * known[rows], 0.01 * known[rows] * known[columns])
    noisy = truth + 10 * np.random.default_rng(3).standard_normal(truth.size)
    popularity = gram.denoised_table(noisy, 10.0, known).popularity
    assert np.corrcoef(np.log(popularity), np.log(known))[0, 1] > 0.95
    exact = gram.denoised_table(truth, 1e-6, known).popularity
    np.testing.assert_allclose(exact, known, rtol=1e-6)


def test_without_tastes_pairs_depart_by_chance_alone() -> None:
    users, items, deviation = 2_000, 40, 0.5
    popularity = 1 / (2 + np.arange(items))
    rows, columns = np.triu_indices(items)
    off, random = rows != columns, np.random.default_rng(5)
    expected = popularity[rows] * popularity[columns]
    expected *= 4_000 / expected[off].sum()
    departs = np.empty((2, 200))
    for draw in range(200):
        # Pairs weigh a half each.
        noisy = 0.5 * random.poisson(2 * expected) + deviation * random.standard_normal(expected.size)
        departs[0, draw] = gram.departure(noisy, deviation, popularity, users)
        tastes = noisy + expected * np.where(random.random(expected.size) < 0.5, -0.3, 0.3)
        departs[1, draw] = gram.departure(tastes, deviation, popularity, users)
    # Means of 200 draws are 6 standard errors off with probability 1e-9; fitting takes 1 of 780 degrees.
    errors = departs.std(axis=1) / math.sqrt(200)
    assert (np.abs(departs.mean(axis=1) - [0.0, 0.09]) < 6 * errors + 0.002).all()
    assert (errors < 0.002).all()


def test_the_ridge_grows_with_noise_and_with_what_users_add() -> None:
    cells = np.full(30, 1.0)
    assert gram.ridge_of(cells, 2.0, 10) == pytest.approx(0.0045 * math.sqrt(300) + 12)
    assert gram.ridge_of(4 * cells, 0.0, 10) == pytest.approx(2 * gram.ridge_of(cells, 0.0, 10))
    assert gram.ridge_of(-cells, 0.0, 10) == pytest.approx(0.045)


def test_pairs_depart_by_the_variance_of_ratios_to_what_popularity_explains() -> None:
    popularity = np.array([4.0, 1.0, 1.0])
    rows, columns = np.triu_indices(3)
    noisy = popularity[rows] * popularity[columns]
    # Pairs 4, 4, 1 of 9 users, of norm 1: noise and sampling are taken off, weighed alike but for 1.
    variances, expected = 0.25 + np.array([4.0, 4.0, 1.0]), np.array([4.0, 4.0, 1.0])
    weights = (expected / variances) ** 2
    chance = (weights @ variances) / (weights @ expected**2)
    assert gram.departure(noisy, 0.5, popularity, 9) == pytest.approx(-chance)
    # Of the first 8, the unit is (32 + 16 + 1) / 33, and 14 users' contributions weigh a unit each.
    noisy[1] = 8.0
    expected = expected * 49 / 33
    variances = 0.25 + 14 / max(expected.sum(), 14) * expected
    weights = (expected / variances) ** 2
    unexplained = weights @ ((np.array([8.0, 4.0, 1.0]) - expected) ** 2 - variances)
    assert gram.departure(noisy, 0.5, popularity, 14) == pytest.approx(unexplained / (weights @ expected**2))
    assert gram.departure(np.ones(1), 0.5, np.ones(1), 9) == 0.0
