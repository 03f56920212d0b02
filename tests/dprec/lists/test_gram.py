import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from dprec.arrays import Floats
from dprec.lists import gram
from dprec.lists.contributions import DIAGONAL, PairLayout
from dprec.lists.gram import DenoisedTable, GramSettings
from dprec.lists.model import ItemTable


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
    layout = PairLayout(items)
    _, cells, numbers = layout.cells(sets.indptr.astype(np.int64), sets.indices)
    total = np.bincount(cells, numbers, layout.n_rows)
    table = np.zeros((items, items))
    table[np.triu_indices(items)] = total
    table = table + table.T
    np.fill_diagonal(table, 0)
    return total + deviation * np.random.default_rng(2).standard_normal(total.size), table


def test_the_table_is_nearer_to_the_truth_than_the_noisy_one() -> None:
    deviation = 20.0
    noisy, truth = noisy_table(planted(), deviation)
    table = gram.denoised_table(noisy, deviation)
    error = np.sqrt(((table.pairs - truth) ** 2).mean())
    assert error < 0.5 * deviation
    assert (table.pairs >= 0).all()
    assert (table.pairs == table.pairs.T).all()
    assert table.pairs[38, 39] == pytest.approx(truth[38, 39], abs=3 * deviation)


def test_without_noise_the_table_is_the_sum_itself() -> None:
    noisy, truth = noisy_table(planted(), 0.0)
    table = gram.denoised_table(noisy, 1e-6)
    np.testing.assert_allclose(table.pairs, truth, atol=1e-4)
    diagonal = np.concatenate([[0], np.cumsum(np.arange(40, 1, -1))])
    np.testing.assert_allclose(table.popularity, noisy[diagonal] / DIAGONAL, atol=1e-9)


def test_what_noise_alone_explains_is_nothing() -> None:
    noise = np.random.default_rng(3).standard_normal((60, 60))
    noise = np.triu(noise, 1) + np.triu(noise, 1).T
    direction = np.ones(60) / np.sqrt(60)
    found = gram.above_noise(noise + 60 * np.outer(direction, direction), 1.0)
    assert direction @ found @ direction == pytest.approx(60, rel=0.1)
    # The edge is of many items; of 60, an eigenvalue may stand above it by a little.
    assert np.abs(gram.above_noise(noise, 1.0)).max() < 1.0


def test_weights_are_the_regression_of_each_item_on_the_others() -> None:
    random = np.random.default_rng(4)
    rows = (random.random((50, 5)) < 0.5).astype(float)
    full = rows.T @ rows
    table = DenoisedTable(full - np.diag(np.diag(full)), np.diag(full))
    weights = ItemTable.of(np.arange(5, dtype=np.int32), table, 3.0, 1.0).weights
    for item in range(5):
        others = [other for other in range(5) if other != item]
        inverse = np.linalg.inv(full[np.ix_(others, others)] + 3.0 * np.eye(4))
        np.testing.assert_allclose(weights[others, item], inverse @ full[others, item])
    assert (np.diag(weights) == 0).all()


def test_popularity_is_positive_and_near_the_truth() -> None:
    truth = np.random.default_rng(5).gamma(0.2, 50, 2_000)
    noisy = truth + 8 * np.random.default_rng(6).standard_normal(2_000)
    estimate = gram.popularity_estimate(noisy, 8.0)
    assert (estimate > 0).all()
    assert ((estimate - truth) ** 2).mean() < 0.6 * 64


def test_pairs_tell_popularity_more_precisely_than_a_noisy_round() -> None:
    sets, deviation = planted(), 60.0
    noisy, _ = noisy_table(sets, 20.0)
    truth = np.asarray((sets / np.sqrt(np.maximum(sets.sum(axis=1), 1))[:, None]).sum(axis=0))
    known = np.maximum(truth + deviation * np.random.default_rng(5).standard_normal(truth.size), 1.0)
    joined = gram.joined_popularity(known, deviation, noisy, 20.0)
    assert np.abs(joined - truth).mean() < 0.7 * np.abs(known - truth).mean()
    np.testing.assert_allclose(gram.joined_popularity(truth, 1e-6, noisy, 20.0), truth, rtol=1e-6)
    of_pairs_alone = gram.joined_popularity(np.ones(40), np.inf, noisy, 20.0)
    assert np.corrcoef(of_pairs_alone, truth)[0, 1] > 0.95


def test_popularity_stays_positive_whatever_noise_leaves_of_pairs() -> None:
    for cells in (np.zeros(10), np.full(10, -1e9), np.random.default_rng(6).standard_normal(10) * 1e6):
        joined = gram.joined_popularity(np.arange(1.0, 5.0), 2.0, cells, 1e6)
        assert (joined > 0).all()
        assert np.isfinite(joined).all()
    assert gram.joined_popularity(np.ones(1), 2.0, np.ones(1), 1.0) == pytest.approx([1])


def test_the_popular_items_are_in_order_and_the_first_of_equals() -> None:
    assert gram.popular_items(np.array([1.0, 3, 2, 3, 2]), 3).tolist() == [1, 2, 3]


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


def settings(tau: float, items: int = 1_000, content: bool = False) -> GramSettings:
    return GramSettings.of(tau, items, content=content)


def test_with_more_noise_fewer_items_take_part_and_popularity_has_more_of_the_budget() -> None:
    rising = [settings(tau) for tau in np.geomspace(7e-5, 8e-3, 10)]
    assert all(later.table_items < earlier.table_items for earlier, later in pairwise(rising))
    assert all(later.popularity_share > earlier.popularity_share for earlier, later in pairwise(rising))
    assert all(later.share_of_weights < earlier.share_of_weights for earlier, later in pairwise(rising))


def test_the_whole_budget_goes_where_it_is_of_use() -> None:
    assert settings(1e-2) == GramSettings(1.0, 0, 0.0)
    assert settings(1e-4, items=300).popularity_share == 0
    assert settings(1e-4, items=300).table_items == 300


def test_with_content_popularity_has_more_of_the_budget_where_noise_is_large() -> None:
    assert gram.popularity_share(4e-3, content=True) > 1.5 * gram.popularity_share(4e-3, content=False)
    assert gram.popularity_share(1.0, content=True) < 1


def test_the_ridge_grows_with_noise_and_with_what_users_add() -> None:
    cells = np.full(30, 1.0)
    assert gram.ridge_of(cells, 2.0, 10) == pytest.approx(0.0045 * math.sqrt(300) + 12)
    assert gram.ridge_of(4 * cells, 0.0, 10) == pytest.approx(2 * gram.ridge_of(cells, 0.0, 10))
    assert gram.ridge_of(-cells, 0.0, 10) == pytest.approx(0.045)


def test_content_counts_for_more_beside_weights() -> None:
    assert settings(1e-4, content=True).share_of_weights < settings(1e-4).share_of_weights


def test_where_no_cell_stands_out_a_part_of_the_table_is_found_without_single_cells() -> None:
    noisy, _ = noisy_table(planted(), 60.0)
    with_cells, half, without = (gram.denoised_table(noisy, 60.0, None, share).pairs for share in (0, 0.5, 1))
    np.testing.assert_allclose(half, (with_cells + without) / 2)
    assert not np.allclose(with_cells, without)
    assert settings(1e-3).coherent_share > settings(3e-4).coherent_share == 0
