"""The verb "run" on ratings that a caller holds in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import Synthetic
from dprec.errors import InputError
from simulation import run
from simulation.configuration.loading import load

RATINGS = Synthetic(users=30, items=20, ratings=400).load()
FRAME = RATINGS.to_pandas()
LOCAL = {"backend": "local"}


def notes(summary: dict[str, Any]) -> str:
    return " ".join(summary["privacy"]["notes"])


def test_a_data_frame_runs_as_the_same_ratings_do_in_a_file(tmp_path: Path) -> None:
    RATINGS.to_csv(tmp_path / "mine.csv")
    held = run("blp-mf", dataset=FRAME, simulation=LOCAL)
    read = run("blp-mf", dataset={"kind": "csv", "path": str(tmp_path / "mine.csv")}, simulation=LOCAL)
    np.testing.assert_array_equal(held.predictions["prediction"], read.predictions["prediction"])
    assert held.summary["dataset"]["kind"] == "in-memory"
    assert held.config.simulation.backend == "local"
    assert held.config.simulation.workers == 2
    assert "Scale: one of 1, 2, 3, 4, 5" in notes(held.summary)
    assert "To test on: 80 of 400 ratings (split: holdout test_fraction 0.2)" in notes(held.summary)


def test_a_train_and_a_test_part_are_kept_apart(tmp_path: Path) -> None:
    tested = np.arange(len(FRAME)) % 5 == 0
    parts: dict[str, Any] = {"dataset": FRAME[~tested], "test": FRAME[tested], "simulation": LOCAL}
    result = run("nothing-sent", tmp_path / "run", **parts, page=False)
    assert len(result.predictions["prediction"]) == tested.sum()
    assert "(split: predefined fold given)" in notes(result.summary)
    again = run("nothing-sent", tmp_path / "run", **parts, resume=True, page=False)
    np.testing.assert_array_equal(again.predictions["prediction"], result.predictions["prediction"])
    parts["dataset"] = FRAME[~tested].assign(rating=6 - FRAME[~tested]["rating"])
    with pytest.raises(InputError, match=r"config.yaml: dataset.sha256: '\w+' there and '\w+' now"):
        run("nothing-sent", tmp_path / "run", **parts, resume=True)


def test_files_of_a_train_and_a_test_part(tmp_path: Path) -> None:
    tested = np.arange(len(FRAME)) % 5 == 0
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    FRAME[~tested].to_csv(train, index=False)
    FRAME[tested].to_csv(test, index=False)
    read = run("nothing-sent", dataset=train, test=str(test), simulation=LOCAL)
    held = run("nothing-sent", dataset=FRAME[~tested], test=FRAME[tested], simulation=LOCAL)
    np.testing.assert_array_equal(read.predictions["prediction"], held.predictions["prediction"])
    assert read.config.split.kind == "predefined"
    everything = run("nothing-sent", dataset=train, simulation=LOCAL)
    assert everything.config.split.kind == "holdout"


def test_a_written_configuration_needs_the_ratings_again(tmp_path: Path) -> None:
    frame = FRAME.assign(rating=6 - FRAME["rating"])
    run("nothing-sent", tmp_path / "run", dataset=frame, simulation=LOCAL, page=False)
    config = tmp_path / "run" / "config.yaml"
    with pytest.raises(
        InputError, match=r"400 ratings of 19 items by 30 users that were in memory; accepted: "
    ):
        run(config)
    assert run(config, dataset=frame).config.dataset == load(config).dataset


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "absent.csv"}, "absent.csv: no such file or folder"),
        ({"dataset": FRAME, "test": "mine.csv"}, "test: a value of type str"),
        ({"dataset": "mine.csv", "test": FRAME}, "test: a test part, beside a data set of another form"),
        ({"dataset": {"kind": "csv", "path": "x"}, "test": FRAME}, "test: a test part, beside a data set"),
        ({"test": FRAME}, "test: a test part without a train part"),
        ({"split": 3}, "split: a value of type int; accepted: a mapping"),
        ({"simulation": {"bakcend": "local"}}, "simulation.bakcend: an unknown key"),
        (
            {"dataset": FRAME, "split": {"kind": "predefined", "fold": "u1"}},
            "split.fold: 'u1', but in-memory",
        ),
        (
            {"dataset": FRAME.rename(columns={"item": "zork"})},
            r"item_column: .* is not clear; accepted: .*InMemory.of\(..., item_column=...\)",
        ),
    ],
)
def test_what_is_given_is_refused_in_one_line(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run("blp-mf", **given)


def test_a_part_that_there_is_not_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"no argument 'datset'; accepted: dataset, test, .*, evaluation$"):
        run("blp-mf", datset=FRAME)  # type: ignore[call-arg]


def test_own_ratings_need_no_split_in_the_configuration() -> None:
    plain = {"name": "mine", "protocol": {"kind": "nothing-sent"}, "simulation": LOCAL}
    assert run(plain, dataset=FRAME).config.split.kind == "holdout"


@pytest.mark.parametrize(
    ("overrides", "kind"),
    [
        (["dataset={kind: csv, path: x}"], "holdout"),
        (["dataset={kind: csv, path: x}", "split={kind: k-fold}"], "k-fold"),
        (["dataset={kind: movielens-100k, path: y}"], "predefined"),
        (["dataset.path=y"], "predefined"),
        (["dataset.kind=synthetic", "dataset={kind: synthetic}"], "holdout"),
    ],
)
def test_a_split_that_other_data_lack_is_replaced(
    overrides: list[str], kind: str, tiny: dict[str, Any]
) -> None:
    tiny |= {
        "dataset": {"kind": "movielens-100k", "path": "x"},
        "split": {"kind": "predefined", "fold": "u1"},
    }
    assert load(tiny, overrides).split.kind == kind


def test_a_result_can_be_run_again() -> None:
    first = run("nothing-sent", dataset=pd.DataFrame(FRAME), simulation=LOCAL)
    again = run(first.config, overrides=["split.test_fraction=0.5"])
    assert again.config.dataset == first.config.dataset
    assert again.summary["dataset"]["test_ratings"] == 200
