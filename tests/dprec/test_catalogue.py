"""Public data about items: in the order of the ratings, standardised, without columns that carry nothing."""

from typing import Any

import numpy as np
import pytest

from dprec.catalogue import Catalogue, ItemRows
from dprec.errors import InputError

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


def test_numbers_of_any_size_are_standardised() -> None:
    years = (1e12 + 1e6 * np.arange(5)).tolist()
    catalogue = rows([1, 2, 3, 4, 5], years, [True] + [False] * 4).catalogue(np.arange(1, 6))
    assert catalogue.numbers.mean() == pytest.approx(0, abs=1e-12)
    assert catalogue.numbers.std() == pytest.approx(1)


@pytest.mark.parametrize("size", [1e308, 1e-308])
def test_the_largest_and_the_least_numbers_overflow_nothing(size: float) -> None:
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        catalogue = rows([1, 2, 3], [size, -size, NAN], [True, False, False]).catalogue(np.array([1, 2, 3]))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [1, -1, 0])


def test_an_item_with_two_rows_is_refused() -> None:
    with pytest.raises(InputError, match=r"items\.csv, line 4: item 3 a second time; accepted: each item"):
        rows([3, 1, 3], [1.0, 2.0, 3.0], [True, False, True]).catalogue(np.array([1]))


def test_a_file_of_other_items_is_refused() -> None:
    with pytest.raises(InputError, match=r"items\.csv: none of the rated items"):
        rows([3], [1.0], [True]).catalogue(np.array([1, 2]))


@pytest.mark.parametrize(("numbers", "names"), [(np.zeros((3, 1)), ("a", "b")), (np.zeros((2, 1)), ("a",))])
def test_columns_and_names_belong_together(numbers: np.ndarray[Any, Any], names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="shapes"):
        Catalogue(numbers, np.zeros((3, 1), dtype=bool), names, ("x",))
    with pytest.raises(ValueError, match="not finite"):
        Catalogue(np.array([[NAN]]), np.zeros((1, 1), dtype=bool), ("a",), ("x",))
