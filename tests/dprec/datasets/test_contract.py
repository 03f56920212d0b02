"""The contract of data sets, on every registered one, with a small file in each one's layout."""

from typing import Any

import numpy as np
import pytest

from dprec.components import kind_of
from dprec.datasets import DATASETS, Dataset
from dprec.datasets.base import FileDataset
from dprec.testing import DatasetContract, FileDatasetContract, Sample


def tabs(user: Any, item: Any, rating: Any) -> str:
    return f"{user}\t{item}\t{rating}"


def timed_tabs(user: Any, item: Any, rating: Any) -> str:
    return f"{user}\t{item}\t{rating}\t881250949"


def colons(user: Any, item: Any, rating: Any) -> str:
    return f"{user}::{item}::{rating}::978300760"


def commas(user: Any, item: Any, rating: Any) -> str:
    return f"{user},{item},{rating}"


def timed_commas(user: Any, item: Any, rating: Any) -> str:
    return f"{user},{item},{rating},1147880044"


HEADERS = {
    "header": "userId,movieId,rating,timestamp",
    "renamed_header": "unknownId,movieId,rating,timestamp",
}
SAMPLES = {
    "movielens-100k": Sample("u.data", timed_tabs, 1, 5, 5),
    "movielens-1m": Sample("ratings.dat", colons, 1, 5, 5),
    "movielens-10m": Sample("ratings.dat", colons, 0.5, 5, 10),
    "movielens-20m": Sample("ratings.csv", timed_commas, 0.5, 5, 10, **HEADERS),
    "movielens-25m": Sample("ratings.csv", timed_commas, 0.5, 5, 10, **HEADERS),
    "jester": Sample(
        "jester_ratings.dat", lambda *row: "\t\t".join(map(str, row)), -10, 10, 41, continuous=True
    ),
    "libimseti": Sample("ratings.dat", commas, 1, 10, 10),
    "rc": Sample(
        "rating_final.csv",
        lambda *row: f"{commas(*row)},2,1",
        0,
        2,
        3,
        header="userID,placeID,rating,food_rating,service_rating",
        renamed_header="unknownID,placeID,rating,food_rating,service_rating",
        users=("U1077", "U1103", "U1068"),
    ),
    "douban": Sample("music.dat", tabs, 1, 5, 5, settings={"domain": "music"}),
    "csv": Sample(
        "mine.txt",
        lambda user, item, rating: f"{rating};ignored;{user};{item}",
        1,
        4,
        4,
        header="stars;comment;who;what",
        renamed_header="stars;comment;nobody;what",
        found_in_folder=False,
        settings={
            "user_column": "who",
            "item_column": "what",
            "rating_column": 1,
            "separator": ";",
            "low": 1.0,
            "high": 4.0,
            "step": 1.0,
        },
    ),
}

TWO_FILES = {"movielens-genres", "csv-domains"}
"""Read several files each, and have tests of their own for what these hold."""

REQUIRED: dict[str, dict[str, Any]] = {
    "csv-domains": {"target_path": "there"},
    "in-memory": {"users": 3, "items": 3, "ratings": 5, "sha256": "0" * 64},
}


def test_every_data_set_that_reads_one_file_has_a_sample() -> None:
    reading = {kind_of(dataset) for dataset in DATASETS if issubclass(dataset, FileDataset)}
    assert reading - TWO_FILES == set(SAMPLES)


class TestEveryDataset(DatasetContract):
    @pytest.fixture(params=DATASETS.kinds)
    def dataset(self, request: pytest.FixtureRequest) -> type[Dataset]:
        return DATASETS[request.param]

    def settings(self, dataset: type[Dataset]) -> dict[str, Any]:
        path = {"path": "here"} if issubclass(dataset, FileDataset) else {}
        return {**path, **REQUIRED.get(kind_of(dataset), {})}


class TestEveryFileDataset(FileDatasetContract):
    @pytest.fixture(params=sorted(SAMPLES))
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def dataset(self, kind: str) -> type[Dataset]:
        return DATASETS[kind]

    @pytest.fixture
    def sample(self, kind: str) -> Sample:
        return SAMPLES[kind]


def test_synthetic_needs_no_file() -> None:
    ratings = DATASETS["synthetic"]().load()
    assert (ratings.n_users, ratings.n_items, ratings.count) == (943, 1682, 100_000)
    assert np.bincount(ratings.levels)[1:].tolist() == [6110, 11370, 27145, 34174, 21201]
