import math

import numpy as np
from scipy import sparse

from dprec.lists import gram
from dprec.lists.gram import DIAGONAL, DenoisedTable
from dprec.lists.model import PairTable
from tests.pair_tables import noisy_table, planted


def test_without_noise_the_table_is_the_sum_itself() -> None:
    noisy, truth = noisy_table(planted(), 0.0)
    diagonal = np.concatenate([[0], np.cumsum(np.arange(40, 1, -1))])
    table = gram.denoised_table(noisy, 1e-6, noisy[diagonal])
    np.testing.assert_allclose(table.pairs, truth, atol=1e-4)
    np.testing.assert_allclose(table.popularity, noisy[diagonal] / DIAGONAL, rtol=1e-6)


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


def test_popularity_of_pairs_is_about_the_users_of_each_item_however_many_items_they_have() -> None:
    sets = planted(2_000)
    counts = np.asarray(sets.sum(axis=0)).ravel()
    exact = gram.popularity_of_pairs(noisy_table(sets, 0.0)[0], 1e-6)
    # Who has one item counts 1, who has very many the root of 2.
    assert ((exact >= 0.999 * counts) & (exact <= math.sqrt(2) * counts)).all()
    noisy, deviation = noisy_table(sets, 20.0)[0], 20.0
    popularity = gram.popularity_of_pairs(noisy, deviation)
    diagonal = np.concatenate([[0], np.cumsum(np.arange(40, 1, -1))])
    assert popularity.min() > 0
    errors = [np.log(each / each.sum()) - np.log(counts / counts.sum()) for each in (popularity, exact)]
    by_itself = np.maximum(noisy[diagonal], 1e-3)
    by_itself = np.log(by_itself / by_itself.sum()) - np.log(counts / counts.sum())
    assert np.abs(errors[1]).max() < 0.1
    assert (errors[0] ** 2).mean() < (by_itself**2).mean() / 10
