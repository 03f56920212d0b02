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


def planted(users: int = 6_000, items: int = 40, taste: float = 1.5) -> sparse.csr_array:
    """Return sets of two tastes, popular items first, in which items 38 and 39 go together."""
    random = np.random.default_rng(1)
    popularity = 1 / (2 + np.arange(items))
    liked = random.random((users, items)) < popularity * (
        1 + taste * (np.arange(items) % 2 == random.integers(0, 2, (users, 1)))
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


def departs(cells: Floats, noise: float, users: int, having: Floats) -> tuple[float, float]:
    return gram.departure(cells, noise, users / cells.sum(), having)


def test_without_tastes_pairs_depart_by_chance_alone() -> None:
    users, items, deviation = 2_000, 40, 0.5
    popularity = 1 / (20 + np.arange(items))
    rows, columns = np.triu_indices(items, 1)
    random = np.random.default_rng(5)
    expected = popularity[rows] * popularity[columns]
    expected *= 4_000 / expected.sum()
    found = np.empty((2, 200, 2))
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


def test_a_table_has_next_to_no_say_without_tastes_and_some_with_them() -> None:
    alike = np.random.default_rng(3).random((4_000, 40)) < 1 / (2 + np.arange(40))
    settings = gram.GramSettings.of(1e-4, 40, content=False)
    without, with_tastes = sparse.csr_array(alike.astype(float)), planted(taste=4.0)
    for sets, lowest, highest in ((without, 0.0, 0.1), (with_tastes, 2.0, 16.0)):
        for deviation in (0.01, 2.0):
            noisy, _ = noisy_table(sets, deviation)
            departed = gram.departure_of_sum(noisy, deviation, sets.shape[0])
            assert lowest <= settings.share_by(departed) <= highest


def test_the_ridge_grows_with_noise_and_with_what_users_add() -> None:
    cells = np.full(30, 1.0)
    assert gram.ridge_of(cells, 2.0, 10, 0.0) == pytest.approx(0.0045 * math.sqrt(300) + 12)
    assert gram.ridge_of(4 * cells, 0.0, 10, 0.0) == pytest.approx(2 * gram.ridge_of(cells, 0.0, 10, 0.0))
    assert gram.ridge_of(-cells, 0.0, 10, -1.0) == pytest.approx(0.045)
    # Tastes that are three times as strong as usual ones want a third of the ridge, but for noise.
    assert gram.ridge_of(cells, 2.0, 10, 0.9) == pytest.approx(0.0015 * math.sqrt(300) + 12)


def test_pairs_depart_by_the_variance_of_ratios_to_what_popularity_explains() -> None:
    # Products of 4, 1 and 1, each of half a user, and of users of whom a half and a quarter have an item.
    expected, lacking = np.array([4.0, 4.0, 1.0]), np.array([0.375, 0.375, 0.5625])
    variances = 0.25 + 0.5 * lacking * expected
    weights = (expected / variances) ** 2
    chance = (weights @ variances) / (weights @ expected**2)
    error = math.sqrt(2 / (weights @ expected**2))
    having = np.array([0.5, 0.25, 0.25])
    assert gram.departure(expected, 0.25, 0.5, having) == pytest.approx((-chance, error), rel=1e-3)
    # Three pairs always fit; of four items that go together by twos, each is in as many pairs as any other.
    cells = np.array([4.0, 0.0, 0.0, 0.0, 0.0, 4.0])
    expected = np.full(6, 4 / 3)
    variances = 0.25 + 0.5 * expected
    departed = ((cells - expected) ** 2 - variances).mean() / expected[0] ** 2
    assert gram.departure(cells, 0.25, 0.5, np.zeros(4))[0] == pytest.approx(departed)
    assert gram.departure(np.zeros(3), 0.25, 0.5, np.zeros(3))[0] == 0.0
    assert gram.departure(np.zeros(0), 0.25, 0.5, np.zeros(1))[0] == 0.0
    # Nearly all users have an item: less varies, but not nothing.
    assert gram.departure(cells, 1e-9, 0.5, np.full(4, 2.0))[0] < departed + 1


@pytest.mark.parametrize("mean", [0.3, 2.0, 30.0])
def test_the_weight_of_a_pair_is_hardly_more_than_that_of_the_sets_whether_few_or_all_have_one(
    mean: float,
) -> None:
    sizes = np.random.default_rng(8).poisson(mean, 50_000).astype(float)
    sizes = sizes[sizes > 1]
    weights = 1 / np.sqrt(DIAGONAL**2 * sizes + sizes * (sizes - 1) / 2)
    total, squares = (float((each * sizes * (sizes - 1) / 2).sum()) for each in (weights, weights**2))
    assert 0.97 < gram._weight_of_pairs(total, 50_000) / (squares / total) < 1.25
    assert 0.9 < gram._weight_of_pairs(-1.0, 50_000) <= 1.0
