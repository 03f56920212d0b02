"""Pairs without ratings: tables of them, what is held in Python, and published layouts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dprec.datasets import DelimitedTable, InMemory, LightGCN, MsWeb, holds_pairs, selected
from dprec.datasets.base import Dataset
from dprec.errors import InputError
from dprec.ratings import Ratings
from dprec.splits import Predefined
from tests.refusals import refused_at


def pairs(dataset: Dataset) -> list[tuple[Any, Any]]:
    sets = selected(dataset).load()
    assert sets.scale.implicit
    return pairs_of(sets)


def pairs_of(sets: Ratings) -> list[tuple[Any, Any]]:
    ids = sets.user_ids[sets.users], sets.item_ids[sets.items]
    return list(zip(*(column.tolist() for column in ids), strict=True))


@pytest.fixture
def table(tmp_path: Path) -> Any:
    def written(text: str, **settings: Any) -> DelimitedTable:
        (tmp_path / "pairs.csv").write_text(text)
        return DelimitedTable(path=str(tmp_path / "pairs.csv"), **settings)

    return written


@pytest.mark.parametrize(
    "text",
    [
        "1,10\n2,20\n1,10\n1,30\n",
        "user,item\n1,10\n2,20\n1,30\n",
        "item_id;user_id\n10;1\n20;2\n30;1\n",
        "user,item,timestamp\n1,10,5\n2,20,6\n1,30,7\n",
        "1\t10\n2\t20\n1\t30\n",
    ],
)
def test_two_columns_are_pairs_and_a_repeated_one_counts_once(text: str, table: Any) -> None:
    dataset = table(text)
    assert dataset.holds_sets
    assert pairs(dataset) == [(1, 10), (1, 30), (2, 20)]
    assert holds_pairs(dataset.path)


def test_three_columns_are_ratings_or_counts_that_a_threshold_cuts(table: Any) -> None:
    counts, ones = "1,10,99\n1,20,3\n2,20,5000\n2,30,1\n", "1,10,1\n1,20,1\n2,20,1\n"
    assert pairs(table(counts, positive=">= 3")) == [(1, 10), (1, 20), (2, 20)]
    assert not holds_pairs(table(counts).path)
    with pytest.raises(InputError, match=r'dataset.positive="> 0"\' if they say who has what'):
        table(ones).load()
    assert pairs(table(ones, positive="> 0")) == [(1, 10), (1, 20), (2, 20)]
    with refused_at("positive"):
        selected(table("1,10\n2,20\n", positive="> 0")).load()
    assert pairs(table("ann,x\nnan,x\n")) == [("ann", "x"), ("nan", "x")]


FRAME = pd.DataFrame({"user": [1, 2, 2], "item": [3, 4, 3]})


@pytest.mark.parametrize(
    "held",
    [
        FRAME,
        FRAME.assign(timestamp=[1, 2, 3]),
        ([1, 2, 2], [3, 4, 3]),
        np.array([[1, 3], [2, 4], [2, 3], [2, 3]]),
        Ratings.from_pairs([1, 2, 2], [3, 4, 3]),
    ],
)
def test_what_is_held_in_python_without_ratings(held: Any) -> None:
    assert pairs(InMemory.of(held)) == [(1, 3), (2, 3), (2, 4)]


def test_matrices_of_booleans_are_pairs_and_counts_need_a_threshold() -> None:
    matrix = np.array([[7, 0], [1, 3]])
    assert pairs(InMemory.of(sp.csr_array(matrix > 0))) == [(0, 0), (1, 0), (1, 1)]
    assert pairs(InMemory.of(sp.csr_array(matrix), positive=">= 3")) == [(0, 0), (1, 1)]
    assert pairs(InMemory.of(sp.csr_array(matrix), positive="> 0", min_items=2)) == [(1, 0), (1, 1)]
    stored = sp.csr_array((np.array([True, False, True]), ([0, 0, 1], [0, 1, 1])), shape=(2, 3))
    assert pairs(InMemory.of(stored)) == [(0, 0), (1, 1)]
    with pytest.raises(InputError, match="no pairs"):
        InMemory.of(sp.csr_array((2, 3), dtype=np.bool_))


def test_lines_of_a_user_and_its_items(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("0 1 2 3\n1 2\n2\n")
    for path in (tmp_path / "train.txt", tmp_path):
        with pytest.raises(InputError, match=r"dataset=\{kind: lightgcn, path: .*\}"):
            DelimitedTable(path=str(path)).load()
        assert pairs(LightGCN(path=str(path))) == [(0, 1), (0, 2), (0, 3), (1, 2)]
    assert LightGCN(path=str(tmp_path)).fold_names() == ()
    (tmp_path / "test.txt").write_text("0 4\n1 5 \n\n")
    dataset = LightGCN(path=str(tmp_path))
    train, test = Predefined(fold="given").split(selected(dataset), 0)
    assert pairs_of(train) == [(0, 1), (0, 2), (0, 3), (1, 2)]
    assert pairs_of(test) == [(0, 4), (1, 5)]
    assert len(pairs(dataset)) == 6


VISITS = (
    'I,4,"x"\nA,1000,1,"regwiz, the","/regwiz"\n'
    'C,"10001",10001\nV,1000,1\nV,1001,1\nC,"10002",10002\nV,1001,1\n'
)


def test_visits_of_users_with_the_titles_of_pages(tmp_path: Path) -> None:
    (tmp_path / "anonymous-msweb.data").write_text(VISITS)
    dataset = MsWeb(path=str(tmp_path))
    assert pairs(dataset) == [(10001, 1000), (10001, 1001), (10002, 1001)]
    assert dataset.item_names() == {"1000": "regwiz, the"}
    assert MsWeb(path=str(tmp_path / "none")).item_names() == {}


@pytest.mark.parametrize(
    "text",
    [
        "user,item,plays\n1,10,99\n1,20,3\n2,20,5000\n",
        "customer;product;quantity\n1;10;99\n1;20;3\n2;20;5000\n",
        "1\t10\t99\n1\t20\t3\n2\t20\t5000\n",
    ],
)
def test_counts_take_a_threshold_and_no_other_setting(text: str, table: Any) -> None:
    assert pairs(table(text, positive="> 3")) == [(1, 10), (2, 20)]
    with pytest.raises(InputError, match=r'dataset.positive=">= 1"\' if they count plays'):
        table(text.replace("99", "4").replace("5000", "5001")).load()


def test_what_data_hold_is_known_before_they_are_read(table: Any, tmp_path: Path) -> None:
    rated = "user,item,rating\n1,10,3\n2,20,4\n1,30,5\n"
    assert not table(rated).holds_sets
    assert table(rated, positive=">= 4").holds_sets
    assert not DelimitedTable(path=str(tmp_path / "nowhere.csv")).holds_sets
    assert MsWeb(path="nowhere").holds_sets
    assert InMemory.of([("a", "x"), ("b", "y"), ("a", "y")]).holds_sets
    assert not InMemory.of([("a", "x", 3), ("b", "y", 4), ("a", "y", 5)]).holds_sets
