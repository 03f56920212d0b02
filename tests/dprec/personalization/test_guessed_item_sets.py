"""What the table of items tells of who rated what: guesses from an item that one person alone rated."""

import numpy as np
import pytest

from benchmarks.guess_item_sets import Guesses, area, guesses, table_of_sets
from dprec.datasets import MovieLens100K
from dprec.observations import EmbeddingRelease
from dprec.ratings import Ratings, RatingScale
from tests.paths import DATA

MOVIELENS = DATA / "ml-100k"
STARS = RatingScale.evenly(1, 5, 1)
USERS, ITEMS, RARE = 400, 200, 40
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
    circles = np.arange(USERS)[:, None] % 5 == np.arange(ITEMS) % 5
    popular = random.gamma(1.0, 0.06, ITEMS)
    rated = random.random((USERS, ITEMS)) < np.minimum(0.9, popular * np.where(circles, 2.5, 0.4))
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


def test_what_one_person_alone_rated_has_no_place_and_tells_nothing_more_than_popularity(
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
    # With nobody's own set in the table, its places tell nothing of them: what is left is popularity.
    assert found.with_table <= min(1.0, np.exp(epsilon) * found.popularity + embedding_release.delta)
    assert abs(found.with_table - found.popularity) < 0.02


def test_beside_the_noisy_sums_nothing_in_the_table_of_sets_depends_on_who_rated_what() -> None:
    random = np.random.default_rng(1)
    tables = []
    for share in (0.2, 0.6):
        users, items = np.nonzero(random.random((60, 30)) < share)
        train = Ratings.from_triples(
            users, items, np.full(users.size, 3.0), STARS, user_ids=np.arange(60), item_ids=np.arange(30)
        )
        tables.append(table_of_sets(train, EmbeddingRelease(epsilon=100.0)))
    first, second = tables
    for column in ("cuts", "means", "deviations", "item_factors", "categories"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert not np.array_equal(first.numbers, second.numbers)


def test_the_area_counts_pairs_that_are_in_order() -> None:
    wanted = np.array([True, False, True, False])
    assert area(np.array([4.0, 3.0, 2.0, 1.0]), wanted) == 0.75
    assert area(np.ones(4), wanted) == 0.5
