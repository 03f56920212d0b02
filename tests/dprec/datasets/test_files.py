"""Public data about users and items, from files of their own and from those that come with the ratings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.catalogue import UsersTable
from dprec.datasets import DelimitedTable, MovieLens1M, MovieLens100K
from dprec.datasets.table import ItemColumns, UserColumns
from dprec.errors import InputError
from tests.refusals import refused_at

USERS = ("user,age,gender,choice", "3,24,F,0.1", "1,,M,1", "2,53,,3")
ITEMS = ("item,title,year,genres", "8,First,1990,Drama|War", "50,Second,,", '900,"3rd, new",2000, War |War')


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def table(path: Path, ids: Any = (1, 2, 3, 4), **settings: Any) -> UsersTable:
    return UserColumns(path=str(path), **settings).read(np.array(ids))


def test_users_are_in_the_order_of_the_ratings_and_what_is_missing_is_unknown(tmp_path: Path) -> None:
    users = table(write(tmp_path / "users.csv", *USERS))
    np.testing.assert_array_equal(users.column("age"), [np.nan, 53, 24, np.nan])
    np.testing.assert_array_equal(users.column("choice"), [1, 3, 0.1, np.nan])
    assert users.column("gender").tolist() == ["M", "", "F", ""]
    assert users.n_users == 4
    with pytest.raises(InputError, match=r"no column 'Age' about users; accepted: one of .* mean age"):
        users.column("Age")


@pytest.mark.parametrize(("lines", "place"), [(["1,2", "1,3"], ", line 3"), (["9,2"], "")])
def test_users_that_are_there_twice_or_not_at_all(lines: list[str], place: str, tmp_path: Path) -> None:
    with refused_at(f"users.csv{place}"):
        table(write(tmp_path / "users.csv", "user,age", *lines))


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=80))
def test_any_bytes_are_read_or_refused_in_one_line(
    data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.csv"
    path.write_bytes(data)
    message = ""
    try:
        users = table(path, [1, 2], has_header=len(data) % 2 == 0)
        assert {column.shape for column in users.columns.values()} == {(2,)}
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_a_data_set_with_users_and_items(tmp_path: Path) -> None:
    path = str(write(tmp_path / "ratings.csv", "user,item,rating", "1,900,5", "1,8,1", "2,7,3"))
    users = UserColumns(path=str(write(tmp_path / "users.csv", *USERS)))
    items_file = write(tmp_path / "items.csv", *ITEMS)
    items = ItemColumns(path=str(items_file), numbers=("year",), categories=("genres",))
    dataset = DelimitedTable(path=path, users=users, items=items)
    found, catalogue = dataset.users_table(np.array([1, 2])), dataset.catalogue(dataset.load().item_ids)
    assert found is not None
    assert catalogue is not None
    assert found.column("gender").tolist() == ["M", ""]
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [0, -1, 1])
    assert catalogue.categories.tolist() == [[False, False], [True, True], [False, True]]
    alone = DelimitedTable(path=path)
    assert alone.users_table(np.array([1, 2])) is alone.catalogue(np.array([8])) is None
    with refused_at("users.user_column"):
        nameless = UserColumns(path=str(write(tmp_path / "other.csv", "name of a person,age", "1,2")))
        DelimitedTable(path=path, users=nameless).users_table(np.array([1]))
    with refused_at("items.numbers"):
        DelimitedTable(path="x", items=ItemColumns(path="y")).catalogue(np.array([8]))


def test_numbers_and_categories_of_items(tmp_path: Path) -> None:
    path = write(tmp_path / "items.csv", *ITEMS)
    items = ItemColumns(path=str(path), numbers=("year",), categories=("genres",))
    catalogue = items.read(np.array([8, 50, 900, 7]))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [-1, 0, 1, 0])
    assert catalogue.category_names == ("genres: Drama", "genres: War")
    assert catalogue.categories.tolist() == [[True, True], [False, False], [False, True], [False, False]]
    write(path, "a;1.5;x", "b;2.5;y")
    layout: Any = {"item_column": 1, "numbers": [2], "categories": [3], "has_header": False, "separator": ";"}
    catalogue = ItemColumns(path=str(path), **layout).read(np.array(["a", "b"]))
    np.testing.assert_array_equal(catalogue.numbers[:, 0], [-1, 1])
    assert (catalogue.number_names, catalogue.category_names) == (("2",), ("3: x", "3: y"))


def test_columns_of_ones_own_stand_beside_those_of_movielens(tmp_path: Path) -> None:
    write(tmp_path / "u.user", "1|24|M|technician|85711", "2|53|F|other|T8H1N")
    (tmp_path / "u.data").touch()
    alone = MovieLens100K(path=str(tmp_path)).users_table(np.array([2, 1]))
    assert alone is not None
    assert alone.column("age").tolist() == [53, 24]
    assert alone.column("zip code").tolist() == ["T8H1N", "85711"]
    own = UserColumns(path=str(write(tmp_path / "own.csv", "user,age,epsilon", "1,7,.1", "2,8,3")))
    both = MovieLens100K(path=str(tmp_path), users=own).users_table(np.array([2, 1]))
    assert both is not None
    assert list(both.columns) == ["age", "gender", "occupation", "zip code", "epsilon"]
    assert both.column("age").tolist() == [8, 7]
    (tmp_path / "u.user").unlink()
    assert MovieLens100K(path=str(tmp_path)).users_table(np.array([1])) is None
    (tmp_path / "ratings.dat").touch()
    write(tmp_path / "users.dat", "1::F::1::10::48067", "2::M")
    with refused_at("users.dat, line 2"):
        MovieLens1M(path=str(tmp_path)).users_table(np.array([1]))
