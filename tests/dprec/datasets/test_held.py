"""Ratings that are held in Python: every form gives the same data set, and bad ones are refused."""

import copy
import gc
import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from pydantic import TypeAdapter

from dprec.datasets import InMemory, Synthetic, SyntheticDomains
from dprec.errors import InputError
from dprec.ratings import Ratings
from tests.refusals import refused_at

USERS, ITEMS, RATINGS = [2, 0, 1, 0, 2], [0, 1, 2, 0, 2], [5.0, 1.0, 2.0, 4.0, 3.0]
COLUMNS: dict[str, Any] = {"userId": USERS, "movie_id": ITEMS, "stars": RATINGS}
HELD = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "polars": pl.DataFrame(COLUMNS),
    "polars, lazy": pl.DataFrame(COLUMNS).lazy(),
    "single precision": pd.DataFrame(COLUMNS).astype({"stars": np.float32}),
    "sparse array": sp.csr_array((RATINGS, (USERS, ITEMS))),
    "sparse matrix": sp.coo_matrix((RATINGS, (USERS, ITEMS))),
    "lists": (USERS, ITEMS, RATINGS),
    "arrays": (np.array(USERS, dtype=np.uint8), np.array(ITEMS, dtype=float), np.array(RATINGS)),
    "one array": np.column_stack([USERS, ITEMS, RATINGS]),
}


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"user": USERS, "item": ITEMS, "rating": RATINGS, **columns})


@pytest.mark.parametrize("form", HELD)
def test_every_form_is_the_same_data_set(form: str) -> None:
    dataset = InMemory.of(HELD[form])
    assert dataset == InMemory.of(HELD["lists"])
    assert replace(dataset, scale_given=True) == InMemory.of(dataset.load())
    assert (dataset.users, dataset.items, dataset.ratings, dataset.test_ratings) == (3, 3, 5, 0)
    np.testing.assert_array_equal(dataset.load().to_sparse().toarray(), [[4, 1, 0], [0, 0, 2], [5, 0, 3]])


def test_what_the_ratings_decide_of_the_scale() -> None:
    ends, whole = {"low": 1, "high": 5}, InMemory.of(frame())
    assert InMemory.of(frame(), **ends).read_off() == whole.read_off() == ("low", "high", "step")
    assert InMemory.of(frame(), **ends, step=1).read_off() == ()
    code = whole.written({**ends, "step": 0.5}).replace("dataset=", "")
    assert eval(code.replace("...", "frame()")).load().scale.levels == 9


def test_a_train_and_a_test_part() -> None:
    parts = frame().iloc[:3], pl.from_pandas(frame().iloc[3:])
    dataset = InMemory.of(*parts)
    assert (dataset.ratings, dataset.test_ratings, dataset.fold_names()) == (5, 2, ("given",))
    train, test = dataset.load_fold("given")
    assert (train.count, test.count) == (3, 2)
    assert train.scale is test.scale
    np.testing.assert_array_equal(
        dataset.load().to_sparse().toarray(), (train.to_sparse() + test.to_sparse()).toarray()
    )
    assert dataset != InMemory.of(frame())
    with pytest.raises(InputError, match="in-memory comes without predefined folds"):
        InMemory.of(frame()).load_fold("given")


def test_ratings_keep_their_scale() -> None:
    made = Synthetic(users=8, items=9, ratings=30).load()
    few = made.select(made.levels < 3)
    assert InMemory.of(few).load() is few
    train, test = InMemory.of(few, made.select(made.levels > 3)).load_fold("given")
    assert train.scale.high == test.scale.high == 5
    with refused_at("test"):
        InMemory.of(few, InMemory.of(([1], [1], [2]), low=1, high=2, step=1).load())


def test_domains_are_part_of_what_identifies_ratings() -> None:
    domains = SyntheticDomains(users=8, items=10, ratings=40).load()
    names = "indptr", "items", "levels", "scale", "user_ids", "item_ids"
    assert InMemory.of(domains).load() is domains
    assert InMemory.of(domains) != InMemory.of(Ratings(*(getattr(domains, name) for name in names)))


def test_a_file_names_ratings_that_are_present_and_only_those() -> None:
    reader: TypeAdapter[InMemory] = TypeAdapter(InMemory)
    dataset = InMemory.of(frame(rating=[5, 1, 2, 4, 2.0]))
    written = reader.dump_json(dataset)
    assert json.loads(written)["sha256"] == dataset.sha256
    ratings = dataset.load()
    assert reader.validate_json(written).load() is ratings
    assert copy.deepcopy(dataset).load() is ratings
    elsewhere = pickle.dumps(dataset)
    del dataset
    gc.collect()
    absent = reader.validate_json(written)
    assert absent.known_scale() is None
    with pytest.raises(
        InputError, match="5 ratings of 3 items by 3 users that were in memory; accepted: the same"
    ):
        absent.load()
    arrived = pickle.loads(elsewhere)
    assert arrived == absent
    np.testing.assert_array_equal(reader.validate_json(written).load().values, ratings.values)


def objects(*values: Any) -> Any:
    return np.array(values, dtype=object)


MASKED = np.ma.array(USERS, mask=[0, 1, 0, 0, 0])
DAMAGED = sp.csr_array((RATINGS, (USERS, ITEMS)))
DAMAGED.indices[0] = 99


@pytest.mark.parametrize(
    ("held", "where", "found"),
    [
        ("abc", "dataset", "a value of type str"),
        (pl.DataFrame(COLUMNS).to_arrow(), "dataset", "a value of type Table"),
        (frame().iloc[:0], "dataset", "no ratings"),
        ({"a": {}}, "dataset", "no ratings"),
        (InMemory.of(frame()).load().select(np.zeros(5, dtype=np.bool_)), "dataset", "no ratings"),
        (frame(user=["a", None, "b", "c", "d"]), "dataset, column 'user', row 2", "nothing"),
        (frame(rating=[1, np.nan, 2, 3, 4]), "dataset, column 'rating', row 2", "nothing"),
        ((USERS, ITEMS, [1, np.inf, 2, 3, 4]), "dataset, row 2", "rating inf"),
        ((USERS, ITEMS, RATINGS[:-1]), "dataset", "columns of different lengths"),
        ((USERS, ITEMS, list("abcde")), "dataset", "could not convert string"),
        ((MASKED, ITEMS, RATINGS), "dataset", "columns that are no arrays, or hide"),
        (([1, [2]], [1, 2], [1, 2]), "dataset", "columns that are no arrays"),
        (frame(item=[0.5, 1, 2, 3, 4]), "dataset: item", "identifiers of type float64"),
        ((objects(1, "a"), [1, 2], [1, 2]), "dataset: user", "identifiers of type object"),
        (frame().rename(columns={"item": "zork"}), "item_column", "dataset: which of the columns"),
        (sp.coo_array(([1.0, 2.0], ([0, 0], [0, 0]))), "dataset, row 2", "user 0 rates item 0 a second time"),
        (frame(rating=[1, 2, 3, 4, 5.3333333]), "low", "dataset: ratings from 1 to 5.33333"),
        (frame(user=objects(10**30, 2, 3, 4, 5)), "dataset: user", "identifiers beyond 64 bits"),
        (frame(user=["a", "a\0", "b", "c", "d"]), "dataset: user", "an identifier with a zero character"),
        ((objects("\ud800", *"bcde"), ITEMS, RATINGS), "dataset: user", "an identifier that is no"),
        (frame(item=["x" * 256, *"bcde"]), "dataset: item", "an identifier of 256 characters"),
        (frame(rating=np.array(RATINGS) * 1j), "dataset", "ratings of type complex128"),
        (frame(rating=np.array(RATINGS) * 5e-324), "low", "dataset: ratings from"),
        (frame(rating=[1e307, -1e307, 1, 2, 3]), "dataset", "a scale from -1e+307 to 1e+307"),
        (pl.DataFrame(COLUMNS).lazy().select("nobody"), "dataset", "a lazy frame that raised"),
        (sp.coo_array(([5.0], ([0], [0])), shape=(2**40, 2)), "dataset", "a sparse matrix of 1099511627776"),
        (DAMAGED, "dataset", ""),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(held: Any, where: str, found: str) -> None:
    with refused_at(where) as caught:
        InMemory.of(held)
    assert caught.value.found.startswith(found)


def test_the_way_out_of_empty_rows_leads_out() -> None:
    for given in (frame(rating=[1, None, 2, 3, 4]), pl.DataFrame({**COLUMNS, "rating": [1, None, 2, 3, 4]})):
        with refused_at("dataset, column 'rating', row 2") as caught:
            InMemory.of(given)
        way_out = caught.value.accepted.partition("frame.")[2]
        assert InMemory.of(eval(f"given.{way_out}", {"given": given})).load().count == 4


def test_times_with_an_offset_count_from_it() -> None:
    zoned = pd.date_range("2020-01-01", periods=5, tz="Europe/Berlin")
    held = InMemory.of(frame(timestamp=zoned)).load_timed()
    plain = InMemory.of(frame(timestamp=zoned.tz_convert("UTC").tz_localize(None))).load_timed()
    assert held.times is not None
    assert np.array_equal(held.times, plain.times)


def test_settings_of_the_columns_and_the_scale() -> None:
    odd = frame().rename(columns={"item": "zork"})
    assert InMemory.of(odd, item_column="zork", low=0, high=10, step=1).load().scale.levels == 11
    assert InMemory.of(odd, item_column=2) == InMemory.of(frame())
    for column, named in ((odd, "zorg"), (frame(), "user")):
        with refused_at("item_column"):
            InMemory.of(column, item_column=named)
    twice = pd.concat([frame(), frame()])
    assert InMemory.of(twice, duplicates="last") == InMemory.of(frame())
