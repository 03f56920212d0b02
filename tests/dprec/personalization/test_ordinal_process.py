"""Devices' Gaussian processes, against one that is computed user by user without batches.

What the table of items tells of who rated what: guesses from an item that one person alone rated.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.choosing.guess_item_sets import Guesses, guesses, table_of_sets
from dprec.arrays import offsets
from dprec.completion import SymbolTables
from dprec.datasets import MovieLens100K
from dprec.errors import RunError
from dprec.observations import EmbeddingRelease
from dprec.ordinal import cut_points, expected_rating, level_probabilities
from dprec.personalization import BroadcastDevices, OrdinalProcess
from dprec.personalization.ordinal_process import Posterior
from dprec.ratings import Ratings
from dprec.wire import ItemTable
from tests import make
from tests.make import SHARES, STARS
from tests.paths import DATA

VALUES = STARS.values
CUTS = cut_points(SHARES, 0.5)
ITEMS = 70


def ratings(counts: np.ndarray, items: np.ndarray, levels: np.ndarray) -> Ratings:
    users = np.arange(counts.size)
    catalogue = np.arange(max(ITEMS, items.size))
    return Ratings(offsets(counts), items.astype(np.int32), levels.astype(np.uint8), STARS, users, catalogue)


def population(seed: int = 0, users: int = 30) -> BroadcastDevices:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 40, users)
    counts[0] = 0
    items = np.concatenate([np.sort(random.choice(ITEMS, count, replace=False)) for count in counts])
    table = ItemTable(
        CUTS,
        random.normal(size=ITEMS) * 0.4,
        random.random(ITEMS) * 0.5,
        random.normal(size=(ITEMS, 3)),
        random.normal(size=(ITEMS, 2)) * 0.2,
        random.normal(size=(ITEMS, 2)),
        random.random((ITEMS, 4)) < 0.3,
        random.normal(size=(3, 3)) * 0.3,
    )
    own = ratings(counts, items, random.integers(1, 6, items.size))
    return BroadcastDevices(OrdinalProcess(), table, own)


def covariance(devices: BroadcastDevices) -> np.ndarray:
    table, process = devices.table, devices.process
    directions = table.directions(process.reach)
    apart = ((directions[:, None] - directions) ** 2).sum(axis=2)
    centred = table.categories - table.categories.mean(axis=0)
    return (
        process.level
        + process.agreement * np.outer(table.means, table.means)
        + process.taste * directions @ directions.T
        + process.nearness * np.exp(-apart)
        + process.number * table.numbers @ table.numbers.T
        + process.category * centred @ centred.T
        + table.item_factors @ table.item_factors.T
    )


def prior_of(devices: BroadcastDevices, user: int) -> np.ndarray:
    rated = devices.ratings.items[devices.ratings.indptr[user] : devices.ratings.indptr[user + 1]]
    mean = devices.table.embeddings[rated].sum(axis=0) / (rated.size + 5)
    level, *user_factors = mean @ devices.table.leanings
    return devices.table.means + level + devices.table.item_factors @ np.array(user_factors)


def test_the_mode_is_that_of_the_posterior_and_predictions_follow_from_it() -> None:
    devices = population()
    whole = covariance(devices)
    for user in (1, 2, 5):
        rated = slice(devices.ratings.indptr[user], devices.ratings.indptr[user + 1])
        items, symbols = devices.ratings.items[rated], devices.ratings.levels[rated].astype(int) - 1
        prior = prior_of(devices, user)
        kernel = whole[np.ix_(items, items)] + np.diag(devices.table.deviations[items] ** 2)

        def loss(pull: np.ndarray, prior=prior, kernel=kernel, items=items, symbols=symbols) -> float:
            latent = prior[items] + kernel @ pull
            likelihood = level_probabilities(latent, CUTS)[0][np.arange(items.size), symbols]
            return float(pull @ kernel @ pull / 2 - np.log(likelihood).sum())

        pull = minimize(loss, np.zeros(items.size), method="BFGS", options={"gtol": 1e-7}).x
        probabilities, slopes = level_probabilities(prior[items] + kernel @ pull, CUTS)
        weights = (slopes**2 / probabilities).sum(axis=1)
        across = whole[:, items]
        solved = np.linalg.solve(kernel + np.diag(1 / weights), across.T)
        variance = np.diag(whole) + devices.table.deviations**2 - (across * solved.T).sum(axis=1)
        expected = expected_rating(prior + across @ pull, variance, CUTS, VALUES)
        found = devices.predict(np.full(ITEMS, user), np.arange(ITEMS))
        np.testing.assert_allclose(found, expected, atol=5e-3)


def test_a_device_without_ratings_predicts_from_what_it_was_told() -> None:
    devices = population()
    variance = np.diag(covariance(devices)) + devices.table.deviations**2
    expected = expected_rating(prior_of(devices, 0), variance, CUTS, VALUES)
    np.testing.assert_allclose(devices.predict(np.zeros(ITEMS, int), np.arange(ITEMS)), expected)
    nobody = ratings(np.zeros(2, np.int64), np.zeros(0), np.zeros(0))
    alone = BroadcastDevices(devices.process, devices.table, nobody)
    np.testing.assert_allclose(alone.predict(np.zeros(ITEMS, int), np.arange(ITEMS)), expected)


def test_a_prediction_does_not_depend_on_what_else_is_asked() -> None:
    devices, random = population(users=200), np.random.default_rng(3)
    users, items = random.integers(0, 200, 900), random.integers(0, ITEMS, 900)
    together = devices.predict(users, items)
    order = random.permutation(900)
    np.testing.assert_array_equal(devices.predict(users[order], items[order]), together[order])
    for user in (3, 11):
        mine = users == user
        np.testing.assert_array_equal(devices.predict(users[mine], items[mine]), together[mine])
    assert devices.predict(users[:0], items[:0]).shape == (0,)


def test_recommended_items_are_those_predicted_highest_among_the_unrated() -> None:
    devices = population()
    devices = replace(devices, ratings=replace(devices.ratings, item_ids=np.arange(ITEMS)))
    users = np.array([4, 0, 17])
    lists = devices.recommend(users, 5)
    for user, listed in zip(users, lists, strict=True):
        rated = devices.ratings.items[devices.ratings.indptr[user] : devices.ratings.indptr[user + 1]]
        unrated = np.setdiff1d(np.arange(ITEMS), rated)
        predictions = devices.predict(np.full(unrated.size, user), unrated)
        assert listed.tolist() == unrated[np.argsort(-predictions, kind="stable")[:5]].tolist()


def test_the_largest_numbers_that_a_device_decodes_leave_its_covariances_positive_definite() -> None:
    devices = population()
    rank_one = np.full((ITEMS, 255), 999.0)
    leanings = np.full((3, 256), 999.0)
    wild = replace(devices.table, item_factors=rank_one, numbers=rank_one, leanings=leanings)
    counts, items = np.full(2, ITEMS), np.tile(np.arange(ITEMS), 2)
    own = ratings(counts, items, np.tile([1, 5], ITEMS))
    users, asked = np.divmod(np.arange(2 * ITEMS), ITEMS)
    predictions = BroadcastDevices(devices.process, wild, own).predict(users, asked)
    assert ((predictions >= VALUES[0]) & (predictions <= VALUES[-1])).all()


def test_a_covariance_that_is_not_positive_definite_is_an_error() -> None:
    tables = SymbolTables.of([np.eye(5)], CUTS)
    covariance, prior = np.stack([np.eye(3), -9 * np.eye(3)]), np.zeros((2, 3))
    everything = np.ones((2, 3), dtype=np.bool_)
    with pytest.raises(RunError, match="not positive definite"):
        Posterior.of(covariance, prior, np.full((2, 3), 2), everything, tables)


MOVIELENS = DATA / "ml-100k"

USERS, GUESSED_ITEMS, RARE = 400, 200, 40
WITHOUT_NOISE = EmbeddingRelease(least_raters=1)


@pytest.fixture(scope="module", params=["synthetic", "MovieLens 100K"])
def train(request: pytest.FixtureRequest) -> Ratings:
    if request.param == "synthetic":
        return of_five_circles()
    if not (MOVIELENS / "u1.base").exists():
        pytest.skip(f"MovieLens 100K is not at {MOVIELENS} (set DPREC_DATA)")
    return MovieLens100K(path=str(MOVIELENS)).load_fold("u1")[0]


def of_five_circles() -> Ratings:
    """Return ratings by people of five circles, who rate items of their own more, and rare items alone."""
    random = np.random.default_rng(5)
    circles = np.arange(USERS)[:, None] % 5 == np.arange(GUESSED_ITEMS) % 5
    popular = random.gamma(1.0, 0.06, GUESSED_ITEMS)
    rated = random.random((USERS, GUESSED_ITEMS)) < np.minimum(0.9, popular * np.where(circles, 2.5, 0.4))
    alone = np.zeros((USERS, RARE), dtype=bool)
    alone[random.choice(USERS, RARE, replace=False), np.arange(RARE)] = True
    users, items = np.nonzero(np.hstack([rated, alone]))
    return Ratings.from_triples(users, items, np.full(users.size, 3.0), STARS)


def guessed(train: Ratings, embedding_release: EmbeddingRelease) -> Guesses:
    return guesses(table_of_sets(train, embedding_release), train)


def test_without_a_least_number_of_raters_who_rated_a_rare_item_is_known_by_the_others(
    train: Ratings,
) -> None:
    found = guessed(train, WITHOUT_NOISE)
    assert found.guessed >= 40
    assert found.with_table > found.popularity + 0.1


def test_what_one_person_alone_rated_has_no_embedding_and_tells_nothing_more_than_popularity(
    train: Ratings,
) -> None:
    table = table_of_sets(train, EmbeddingRelease())
    counts = np.bincount(train.items, minlength=train.n_items)
    assert not table.embeddings[counts < 5].any()
    assert table.embeddings[counts >= 5].any(axis=1).all()
    found = guesses(table, train)
    assert found.with_table == pytest.approx(found.popularity, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_with_noise_nothing_more_is_guessed_than_epsilon_allows(train: Ratings, epsilon: float) -> None:
    embedding_release = EmbeddingRelease(least_raters=1, epsilon=epsilon)
    found = guessed(train, embedding_release)
    # With no single item set in the table, its embeddings tell nothing of them: what is left is popularity.
    assert found.with_table <= min(1.0, np.exp(epsilon) * found.popularity + embedding_release.delta)
    assert abs(found.with_table - found.popularity) < 0.02


def test_beside_the_noisy_sums_nothing_in_the_table_of_sets_depends_on_who_rated_what() -> None:
    random = np.random.default_rng(1)
    tables = []
    for share in (0.2, 0.6):
        train = make.rated(random.random((60, 30)) < share)
        tables.append(table_of_sets(train, EmbeddingRelease(epsilon=100.0)))
    first, second = tables
    for column in ("cuts", "deviations", "item_factors", "categories", "leanings"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    for table in tables:
        # Whatever an item's mean says, its popularity, from the noisy sums, says, up to rounding.
        assert np.corrcoef(table.means, table.numbers[:, 0])[0, 1] == pytest.approx(1.0, abs=0.05)
    assert not np.array_equal(first.numbers, second.numbers)
