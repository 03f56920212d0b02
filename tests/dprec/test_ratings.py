"""The rating scale and the rating matrix."""

import csv
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import gaussian_epsilon
from dprec.accounting.events import gaussian_delta
from dprec.binarization import FixedThreshold, MeanThreshold, binary_scale, check_binary, is_binary
from dprec.catalogue import Catalogue, ItemRows
from dprec.errors import InputError, SettingError
from dprec.observations import EmbeddingRelease
from dprec.ratings import MAX_LEVELS, RatingRows, Ratings, RatingScale, _stable_order
from tests.refusals import refused_at

STARS = RatingScale.evenly(1, 5, 1)
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
    assert_same(Ratings.from_pandas(ratings.to_pandas(), ratings.scale), ratings)


@given(rating_matrices())
def test_round_trip_through_a_sparse_matrix(ratings: Ratings) -> None:
    again = Ratings.from_sparse(ratings.to_sparse(), ratings.scale)
    assert (again.n_users, again.n_items) == (ratings.n_users, ratings.n_items)
    np.testing.assert_array_equal(again.items, ratings.items)
    np.testing.assert_array_equal(again.values, ratings.values)


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


def test_no_ratings_at_all() -> None:
    ratings = Ratings.from_triples([], [], [], STARS)
    assert ratings.count == 0
    assert ratings.mean == 3
    assert ratings.histogram().sum() == 0
    assert ratings.to_sparse().shape == (0, 0)


def test_a_continuous_rating_keeps_its_value_and_has_a_level() -> None:
    ratings = Ratings.from_triples([1, 1], [1, 2], [-9.8, 0.2], SLIDER)
    assert ratings.values.tolist() == [-9.8, 0.2]
    assert SLIDER.values[ratings.levels - 1].tolist() == [-10, 0]


@pytest.mark.parametrize("value", [0.0, 6.0, 2.5, np.nan, np.inf, -np.inf])
def test_a_rating_off_the_scale_is_found(value: float) -> None:
    rows = RatingRows(np.array([1, 2, 3]), np.ones(3), np.array([1, 2, value]), "file", first_line=10)
    with refused_at("file, line 12"):
        Ratings.from_rows(rows, STARS)


def test_duplicates() -> None:
    users, items, values = [1, 2, 1, 1], [7, 7, 7, 8], [1, 2, 3, 4]
    with refused_at("ratings, line 3"):
        Ratings.from_triples(users, items, values, STARS)
    last = Ratings.from_triples(users, items, values, STARS, duplicates="last")
    assert last.to_sparse().toarray().tolist() == [[3, 4], [2, 0]]
    with refused_at("duplicates"):
        Ratings.from_triples(users, items, values, STARS, duplicates="first")  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"user": [1], "rating": [2]}, "data frame: no column 'item'"),
        ({"user": [1, 2], "item": [1, 2], "rating": [1, None]}, "data frame, line 2: nothing in 'rating'"),
        ({"user": ["a", None], "item": [1, 2], "rating": [1, 2]}, "data frame, line 2: nothing in 'user'"),
        ({"user": [1, float("nan")], "item": [1, 2], "rating": [1, 2]}, "line 2: nothing in 'user'"),
        ({"user": [1], "item": [1], "rating": ["x"]}, "data frame: could not convert"),
    ],
)
def test_data_frames_that_are_refused(columns: dict[str, Any], message: str) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match=message):
        Ratings.from_pandas(pandas.DataFrame(columns), STARS)


@given(st.floats(-10, 10))
def test_the_nearest_level(value: float) -> None:
    level = int(SLIDER.level_of(value))
    assert abs(SLIDER.values[level - 1] - value) == pytest.approx(np.abs(SLIDER.values - value).min())


@given(st.integers(-50, 50), st.integers(1, MAX_LEVELS - 1), st.sampled_from([0.1, 0.25, 0.5, 1, 3]))
def test_even_scales(low: int, steps: int, step: float) -> None:
    scale = RatingScale.evenly(low, low + steps * step, step)
    assert scale.levels == steps + 1
    np.testing.assert_array_equal(scale.level_of(scale.values), np.arange(1, steps + 2))
    assert scale.accepts(scale.values).all()
    assert not scale.accepts((scale.values[1:] + scale.values[:-1]) / 2).any()


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(1, 5, 0.3), (1, 1, 1), (5, 1, 1), (1, 5, 0), (0, 1000, 1), (0, float("inf"), 1)],
)
def test_scales_that_do_not_divide(low: float, high: float, step: float) -> None:
    with refused_at("scale"):
        RatingScale.evenly(low, high, step)


@pytest.mark.parametrize("values", [[1], [2, 1], [1, 1], [1, float("nan")], list(range(256))])
def test_levels_that_make_no_scale(values: list[float]) -> None:
    with refused_at("scale"):
        RatingScale(np.array(values, dtype=np.float64))


def test_without_a_budget_there_is_no_noise_and_no_loss_is_stated() -> None:
    assert EmbeddingRelease().distance == 0
    assert EmbeddingRelease().epsilon_between_profiles == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 16.0])
def test_the_distance_costs_what_was_asked_for(epsilon: float) -> None:
    embedding_release = EmbeddingRelease(epsilon=epsilon, delta=1e-5)
    assert gaussian_epsilon(embedding_release.distance, 1e-5) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_delta(embedding_release.distance, epsilon) <= 1e-5
    # Two profiles are sqrt(2) times as far apart as a profile and none.
    assert epsilon < embedding_release.epsilon_between_profiles < 2 * epsilon


@pytest.mark.parametrize(
    ("settings", "key"),
    [({"least_raters": 0}, "least_raters"), ({"epsilon": 0.0}, "epsilon"), ({"delta": 0.0}, "delta")],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, float], key: str) -> None:
    with pytest.raises(SettingError) as error:
        EmbeddingRelease(**settings)
    assert error.value.where == key


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


def test_a_rating_at_the_threshold_is_not_above_it() -> None:
    train, _ = FixedThreshold(above=3).apply(TRAIN, TEST)
    assert train.values.tolist() == [-1, -1, 1, 1]
    assert FixedThreshold(above=1).apply(TRAIN, TEST)[0].values.tolist() == [-1, 1, 1, 1]


def test_a_continuous_scale_is_cut_at_its_unrounded_ratings() -> None:
    jokes = RatingScale.evenly(-10, 10, 1, continuous=True)
    ratings = Ratings.from_triples([1, 1], [1, 2], [0.2, 0.4], jokes)
    train, _ = FixedThreshold(above=0.3).apply(ratings, ratings)
    assert train.values.tolist() == [-1, 1]
    assert train.exact is None


def test_signs_stay_what_they_are() -> None:
    once, _ = MeanThreshold().apply(TRAIN, TEST)
    again, _ = MeanThreshold().apply(once, once)
    np.testing.assert_array_equal(again.levels, once.levels)


@pytest.mark.parametrize("above", [0.5, 5.0, 7.0])
def test_a_threshold_off_the_scale_is_refused(above: float) -> None:
    with pytest.raises(InputError, match=rf"^above: {above:g}; accepted: from 1 to below 5"):
        FixedThreshold(above=above).apply(TRAIN, TEST)


def test_a_mean_that_no_rating_is_above_divides_nothing() -> None:
    alike = Ratings.from_triples([1, 2], [1, 1], [4.0, 4.0], RatingScale.evenly(1, 5, 1))
    with pytest.raises(InputError, match="all alike"):
        MeanThreshold().cut(alike)


def test_only_minus_one_and_one_are_binary() -> None:
    check_binary(binary_scale())
    for values in ([0.0, 1.0], [1.0, 2.0], [-1.0, 0.0, 1.0]):
        scale = RatingScale(np.array(values))
        assert not is_binary(scale)
        with refused_at("binarization"):
            check_binary(scale)


NAN = np.nan


def rows(item_ids: list[Any], years: list[float], drama: list[bool]) -> ItemRows:
    numbers, categories = np.array(years)[:, None], np.array(drama)[:, None]
    return ItemRows(np.array(item_ids), numbers, categories, ("year",), ("genre: Drama",), "items.csv", 2)


def test_rows_follow_the_items_of_the_ratings() -> None:
    whole = rows([9, 4, 7, 1], [2000.0, 1990.0, NAN, 1000.0], [True, False, True, True])
    catalogue = whole.catalogue(np.array([4, 5, 7, 9]))
    # 5 has no row, 7 no year, and the year of 1, which nobody rated, is not in the mean.
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [-1, 0, 0, 1])
    assert catalogue.categories[:, 0].tolist() == [False, False, True, True]
    assert (catalogue.number_names, catalogue.category_names) == (("year",), ("genre: Drama",))
    assert catalogue.n_items == 4


def test_identifiers_that_are_words_in_one_of_the_files() -> None:
    catalogue = rows([2, 1], [1.0, 3.0], [True, False]).catalogue(np.array(["1", "2", "x"]))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [1, -1, 0])


@pytest.mark.parametrize("years", [[0.1, 0.1, NAN], [NAN, NAN, NAN], [5.0, NAN, NAN], [0.0, 0.0, 0.0]])
def test_a_number_that_is_the_same_for_all_is_dropped(years: list[float]) -> None:
    catalogue = rows([1, 2, 3], years, [True, False, False]).catalogue(np.array([1, 2, 3]))
    assert catalogue.numbers.shape == (3, 0)
    assert catalogue.number_names == ()
    assert catalogue.category_names == ("genre: Drama",)


@pytest.mark.parametrize("everywhere", [True, False])
def test_a_category_of_all_items_or_of_none_is_dropped(everywhere: bool) -> None:
    catalogue = rows([1, 2], [1.0, 2.0], [everywhere] * 2).catalogue(np.array([1, 2]))
    assert catalogue.categories.shape == (2, 0)
    assert catalogue.category_names == ()


@pytest.mark.parametrize("size", [1e308, 1e-308])
def test_the_largest_and_the_least_numbers_overflow_nothing(size: float) -> None:
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        catalogue = rows([1, 2, 3], [size, -size, NAN], [True, False, False]).catalogue(np.array([1, 2, 3]))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [1, -1, 0])


def test_an_item_with_two_rows_is_refused() -> None:
    with refused_at("items.csv, line 4"):
        rows([3, 1, 3], [1.0, 2.0, 3.0], [True, False, True]).catalogue(np.array([1]))


def test_a_file_of_other_items_is_refused() -> None:
    with refused_at("items.csv"):
        rows([3], [1.0], [True]).catalogue(np.array([1, 2]))


@pytest.mark.parametrize(("numbers", "names"), [(np.zeros((3, 1)), ("a", "b")), (np.zeros((2, 1)), ("a",))])
def test_columns_and_names_belong_together(numbers: np.ndarray[Any, Any], names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="shapes"):
        Catalogue(numbers, np.zeros((3, 1), dtype=bool), names, ("x",))
    with pytest.raises(ValueError, match="not finite"):
        Catalogue(np.array([[NAN]]), np.zeros((1, 1), dtype=bool), ("a",), ("x",))
