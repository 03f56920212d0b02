"""The rating scale and the rating matrix."""

import csv
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import gaussian_epsilon
from dprec.accounting.events import gaussian_delta
from dprec.binarization import FixedThreshold, MeanThreshold, is_binary
from dprec.catalogue import Catalogue
from dprec.errors import InputError
from dprec.observations import EmbeddingRelease
from dprec.rating_rows import RatingRows, _stable_order
from dprec.ratings import Ratings, RatingScale
from tests.make import STARS
from tests.refusals import refused_at

SLIDER = RatingScale.evenly(-10, 10, 0.5, continuous=True)
FROM_ZERO = RatingScale.evenly(0, 2, 1)


@st.composite
def rating_matrices(draw: st.DrawFn) -> Ratings:
    scale = draw(st.sampled_from([STARS, SLIDER, FROM_ZERO]))
    words = draw(st.booleans())
    names: st.SearchStrategy[Any] = (
        st.text("abcä ,\"'", min_size=1, max_size=4) if words else st.integers(-9, 99)
    )
    pairs = draw(st.lists(st.tuples(names, names), unique=True, min_size=1, max_size=25))
    value = st.floats(scale.low, scale.high) if scale.continuous else st.sampled_from(scale.values.tolist())
    values = draw(st.lists(value, min_size=len(pairs), max_size=len(pairs)))
    users, items = zip(*pairs, strict=True)
    return Ratings.from_triples(users, items, values, scale)


def assert_same(one: Ratings, other: Ratings) -> None:
    assert one.user_ids.tolist() == other.user_ids.tolist()
    assert one.item_ids.tolist() == other.item_ids.tolist()
    np.testing.assert_array_equal(one.indptr, other.indptr)
    np.testing.assert_array_equal(one.items, other.items)
    np.testing.assert_array_equal(one.levels, other.levels)
    np.testing.assert_array_equal(one.values, other.values)


@given(rating_matrices())
def test_round_trip_through_pandas(ratings: Ratings) -> None:
    pytest.importorskip("pandas")
    frame = ratings.to_pandas()
    again = Ratings.from_triples(frame["user"], frame["item"], frame["rating"], ratings.scale)
    assert_same(again, ratings)


@given(ratings=rating_matrices())
def test_round_trip_through_csv(ratings: Ratings, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "ratings.csv"
    ratings.to_csv(path)
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["user", "item", "rating"]
    convert = int if ratings.user_ids.dtype.kind == "i" else str
    users, items, values = zip(*rows, strict=True)
    again = Ratings.from_triples(
        [convert(user) for user in users],
        [convert(item) for item in items],
        list(map(float, values)),
        ratings.scale,
    )
    assert_same(again, ratings)


@given(rating_matrices(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(ratings: Ratings, random: Any) -> None:
    order = list(range(ratings.count))
    random.shuffle(order)
    shuffled = Ratings.from_triples(
        ratings.user_ids[ratings.users[order]],
        ratings.item_ids[ratings.items[order]],
        ratings.values[order],
        ratings.scale,
    )
    assert_same(shuffled, ratings)


@given(st.lists(st.integers(-50, 50) | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_identifiers_are_numbered_in_their_order(users: list[int]) -> None:
    ratings = Ratings.from_pairs(users, users)
    assert ratings.user_ids.tolist() == ratings.item_ids.tolist() == sorted(set(users))
    np.testing.assert_array_equal(ratings.items, np.arange(len(set(users))))


@pytest.mark.parametrize("most", [5, 2**40, 2**62])
def test_equal_numbers_are_ordered_as_they_come(most: int) -> None:
    numbers = np.random.default_rng(1).integers(0, most, 5000) // (most // 5) * (most // 5)
    np.testing.assert_array_equal(_stable_order(numbers), np.argsort(numbers, kind="stable"))


@given(rating_matrices())
def test_selecting_splits_the_matrix(ratings: Ratings) -> None:
    keep = ratings.items % 2 == 0
    even, odd = ratings.select(keep), ratings.select(~keep)
    assert (even.to_sparse() + odd.to_sparse() != ratings.to_sparse()).nnz == 0
    assert even.count + odd.count == ratings.count
    np.testing.assert_array_equal(even.counts + odd.counts, ratings.counts)


def test_counts_means_and_histogram() -> None:
    ratings = Ratings.from_triples(
        ["b", "a", "b"], [9, 9, 4], [5, 1, 4], STARS, user_ids=np.array(["a", "b", "c"])
    )
    assert ratings.counts.tolist() == [1, 2, 0]
    assert ratings.users.tolist() == [0, 1, 1]
    assert ratings.values.tolist() == [1, 4, 5]
    assert ratings.user_means().tolist() == [1, 4.5, pytest.approx(10 / 3)]
    assert ratings.histogram().tolist() == [1 / 3, 0, 0, 1 / 3, 1 / 3]


@pytest.mark.parametrize("value", [0.0, 6.0, 2.5, np.nan, np.inf, -np.inf])
def test_a_rating_off_the_scale_is_found(value: float) -> None:
    rows = replace(
        RatingRows.of(np.array([1, 2, 3]), np.ones(3), np.array([1, 2, value]), "file"), first_line=10
    )
    with refused_at("file, line 12"):
        Ratings.from_rows(rows, STARS)


def test_duplicates() -> None:
    users, items, values = [1, 2, 1, 1], [7, 7, 7, 8], [1, 2, 3, 4]
    with refused_at("ratings, line 3"):
        Ratings.from_triples(users, items, values, STARS)
    last = Ratings.from_triples(users, items, values, STARS, duplicates="last")
    assert last.to_sparse().toarray().tolist() == [[3, 4], [2, 0]]
    for rule, kept in (("first", 1), ("max", 3), ("mean", 2), ("sum", 4)):
        assert Ratings.from_triples(users, items, values, STARS, duplicates=rule).values[0] == kept  # type: ignore[arg-type]
    with refused_at("duplicates"):
        Ratings.from_triples(users, items, values, STARS, duplicates="newest")  # type: ignore[arg-type]


def test_times_decide_which_rating_is_the_first_and_the_last() -> None:
    rows = RatingRows.of([1, 1, 1, 2], [7, 7, 7, 7], [5.0, 1, 3, 4], "file")
    timed = replace(rows, times=np.array([300.0, 100, 300, 0]))
    assert timed.collapsed("first").values.tolist() == [1, 4]
    last = timed.collapsed("last")
    assert last.values.tolist() == [3, 4]
    assert last.places is not None
    assert last.places.tolist() == [2, 3]
    assert timed.agreeing("error", lambda values: values >= 4).values.tolist() == [5, 4]


@pytest.mark.parametrize(
    ("users", "values", "message"),
    [
        ([1, 2], [1], "columns of different lengths"),
        ([1], ["good"], "could not convert string to float"),
        (np.array([1, "a"], dtype=object), [1, 2], "user: identifiers of different types"),
    ],
)
def test_rows_that_make_no_sense(users: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Ratings.from_triples(users, np.arange(len(users)), values, STARS)


def test_identifiers_outside_the_given_space() -> None:
    for space in (np.array([1, 2]), np.array([], dtype=np.int64)):
        with pytest.raises(InputError, match="ratings: user: unknown identifier 5"):
            Ratings.from_triples([5], [1], [2], STARS, user_ids=space)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 16.0])
def test_the_distance_costs_what_was_asked_for(epsilon: float) -> None:
    embedding_release = EmbeddingRelease(epsilon=epsilon, delta=1e-5)
    assert gaussian_epsilon(embedding_release.distance, 1e-5) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_delta(embedding_release.distance, epsilon) <= 1e-5
    # Two profiles are sqrt(2) times as far apart as a profile and none.
    assert epsilon < embedding_release.epsilon_between_profiles < 2 * epsilon


TRAIN = Ratings.from_triples([1, 1, 2, 2], [1, 2, 1, 2], [1, 3, 4, 5], STARS)
TEST = Ratings.from_triples([1, 2], [1, 2], [3, 4], STARS)


def test_the_mean_of_train_cuts_both() -> None:
    train, test = MeanThreshold().apply(TRAIN, TEST)
    assert train.values.tolist() == [-1, -1, 1, 1]
    assert test.values.tolist() == [-1, 1]
    assert train.scale.cut == test.scale.cut == 3.25
    assert is_binary(train.scale)
    assert train.items.tolist() == TRAIN.items.tolist()
    assert train.user_ids.tolist() == TRAIN.user_ids.tolist()


def test_a_continuous_scale_is_cut_at_its_unrounded_ratings() -> None:
    jokes = RatingScale.evenly(-10, 10, 1, continuous=True)
    ratings = Ratings.from_triples([1, 1], [1, 2], [0.2, 0.4], jokes)
    train, _ = FixedThreshold(above=0.3).apply(ratings, ratings)
    assert train.values.tolist() == [-1, 1]
    assert train.exact is None


NAN = np.nan


def catalogue_of(wanted: list[Any], item_ids: list[Any], years: list[float], drama: list[bool]) -> Catalogue:
    columns, names = (np.array(years)[:, None], np.array(drama)[:, None]), (("year",), ("genre: Drama",))
    return Catalogue.of_rows(np.array(wanted), np.array(item_ids), columns, names, "items.csv", 2)


def test_rows_follow_the_items_of_the_ratings() -> None:
    years, drama = [2000.0, 1990.0, NAN, 1000.0], [True, False, True, True]
    catalogue = catalogue_of([4, 5, 7, 9], [9, 4, 7, 1], years, drama)
    # 5 has no row, 7 no year, and the year of 1, which nobody rated, is not in the mean.
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [-1, 0, 0, 1])
    assert catalogue.categories[:, 0].tolist() == [False, False, True, True]
    assert (catalogue.number_names, catalogue.category_names) == (("year",), ("genre: Drama",))
    assert catalogue.n_items == 4


@pytest.mark.parametrize("years", [[0.1, 0.1, NAN], [NAN, NAN, NAN], [5.0, NAN, NAN], [0.0, 0.0, 0.0]])
def test_a_number_that_is_the_same_for_all_is_dropped(years: list[float]) -> None:
    catalogue = catalogue_of([1, 2, 3], [1, 2, 3], years, [True, False, False])
    assert catalogue.numbers.shape == (3, 0)
    assert catalogue.number_names == ()
    assert catalogue.category_names == ("genre: Drama",)
