"""Splits on disk: who reads one learns from and tests on the same ratings, and gets the same figures."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import InMemory
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale
from simulation import load, run
from simulation.execution import load_ratings
from simulation.storage.saved_split import NEGATIVES, save_negatives, save_split
from tests.refusals import refused_at

LOCAL = {"backend": "local"}
DRAWN = np.random.default_rng(5)
RATED = DRAWN.random((30, 20)) < 0.5
USERS, ITEMS = RATED.nonzero()
NAMED = (
    [f'{user}, "the {user}th"' for user in USERS.tolist()],
    [f"it's;{item}|'\"" for item in ITEMS.tolist()],
)
HOURS = DRAWN.permutation(USERS.size)
STARS = DRAWN.integers(2, 5, USERS.size)
"""None of them at an end of their scale."""


def frame(ratings: Any = STARS, users: Any = USERS, items: Any = ITEMS) -> pd.DataFrame:
    times = pd.to_datetime("2005-06-01") + pd.to_timedelta(HOURS, unit="h")
    return pd.DataFrame({"user": users, "item": items, "rating": ratings, "timestamp": times})


RATED_DATA: dict[str, dict[str, Any]] = {
    "without the ends of the scale": {"dataset": InMemory.of(frame(), low=1, high=5)},
    "quotes and commas": {"dataset": frame(users=NAMED[0], items=NAMED[1])},
    "a slider": {"dataset": InMemory.of(frame(DRAWN.uniform(-10, 10, USERS.size)), low=-10, high=10)},
    "between dates": {
        "dataset": frame(),
        "split": {"kind": "temporal", "before": "2005-06-05", "after": "2005-06-09"},
    },
    "copies": {"dataset": InMemory.of(frame(), copies=70)},
    "signs": {"dataset": frame(), "binarization": {"kind": "mean"}},
}


@pytest.mark.parametrize("parts", RATED_DATA.values(), ids=RATED_DATA)
def test_a_run_on_a_saved_split_has_the_same_figures(parts: dict[str, Any], tmp_path: Path) -> None:
    preset = "one-bit-input" if "binarization" in parts else "blp-mf"
    saving = run(preset, save_split=tmp_path / "split", simulation=LOCAL, **parts)
    others = {name: part for name, part in parts.items() if name == "binarization"}
    again = run(preset, dataset=tmp_path / "split", simulation=LOCAL, **others)
    np.testing.assert_array_equal(saving.predictions["prediction"], again.predictions["prediction"])
    np.testing.assert_array_equal(saving.predictions["user"], again.predictions["user"])
    assert saving.summary["accuracy"] == again.summary["accuracy"]
    assert saving.summary["dataset"]["scale"] == again.summary["dataset"]["scale"]
    typed = load(preset, [f"dataset={tmp_path / 'split'}"])
    assert (typed.split.kind, typed.dataset.kind) == ("predefined", "csv")


def test_a_scale_that_ratings_decided_stays_so(tmp_path: Path) -> None:
    dataset: Any = frame()
    for place in (tmp_path / "once", tmp_path / "twice"):
        run("nothing-sent", dataset=dataset, save_split=place, simulation=LOCAL)
        summary = run("nothing-sent", dataset=place, simulation=LOCAL).summary
        assert summary["dataset"]["scale_read_off"] == ["low", "high", "step"]
        assert summary["read"]["scale"].endswith("read off the ratings")
        dataset = place
    (note,) = (note for note in summary["dataset"]["notes"] if note.startswith("Scale: "))
    overrides = [word for word in shlex.split(note.partition("public: ")[2]) if word != "--set"]
    stated = run("nothing-sent", dataset=place, overrides=overrides, simulation=LOCAL).summary
    assert stated["read"]["scale"].endswith("as given")
    public = InMemory.of(frame(), low=1, high=5, step=1)
    run("nothing-sent", dataset=public, save_split=tmp_path / "public", simulation=LOCAL)
    assert load("nothing-sent", [f"dataset={tmp_path / 'public'}"]).dataset.read_off() == ()


@pytest.mark.parametrize("settings", [{}, {"positive": ">= 4", "min_items": 3}], ids=["pairs", "a threshold"])
def test_sets_are_saved_with_the_items_that_nobody_has(settings: dict[str, Any], tmp_path: Path) -> None:
    rows = frame()
    if settings:
        rows.loc[rows["item"] == 3, "rating"] = 2
    dataset = InMemory.of(rows if settings else rows[["user", "item"]], **settings)
    saving = run("gram-local", dataset=dataset, save_split=tmp_path, simulation=LOCAL)
    again = run("gram-local", dataset=tmp_path, simulation=LOCAL)
    assert saving.summary["accuracy"] == again.summary["accuracy"]
    assert saving.summary["dataset"]["items"] == again.summary["dataset"]["items"] == 20
    header = (tmp_path / "train.csv").read_text().partition("\n")[0]
    assert header == "user,item"
    assert (tmp_path / "unrated.csv").exists() == bool(settings)


def test_public_data_of_files_and_populations_go_with_the_split(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "ratings.csv", index=False)
    pd.DataFrame({"item": range(20), "year": range(1980, 2000)}).to_csv(tmp_path / "items.csv", index=False)
    dataset = {
        "kind": "csv",
        "path": str(tmp_path / "ratings.csv"),
        "items": {"path": str(tmp_path / "items.csv"), "numbers": ["year"]},
        "copies": 1000,
        "simulated_up_to": 100,
    }
    config = load("global-mean", parts={"dataset": dataset, "split": {"kind": "holdout"}})
    save_split(config.dataset, tmp_path / "split", *load_ratings(config))
    again = load(config, [f"dataset={tmp_path / 'split'}"]).dataset
    for name in ("items", "copies", "simulated_up_to"):
        assert getattr(again, name) == getattr(config.dataset, name)


def test_a_split_that_is_there_stays_and_another_is_refused(tmp_path: Path) -> None:
    dataset, folder = InMemory.of(frame()), tmp_path / "split"
    kept, other = (load("blp-mf", [f"seed={seed}"], {"dataset": dataset}) for seed in (1, 2))
    for _ in range(2):
        save_split(dataset, folder, *load_ratings(kept))
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    with refused_at("split"):
        save_split(dataset, folder, *load_ratings(other))
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    (tmp_path / "file").write_text("mine")
    with refused_at("file"):
        save_split(dataset, tmp_path / "file", *load_ratings(kept))


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (frame(users=USERS.astype(str))[:200], frame(users=USERS.astype(str))[200:]),
        (
            Ratings.from_triples([1, 2], [1, 2], [1, 7], scale := RatingScale(np.array([1.0, 2.0, 7.0]))),
            Ratings.from_triples([1, 2], [2, 1], [2, 7], scale),
        ),
    ],
)
def test_what_files_do_not_keep_is_refused(train: Any, test: Any, tmp_path: Path) -> None:
    with refused_at("save_split"):
        run("nothing-sent", dataset=train, test=test, save_split=tmp_path / "split", simulation=LOCAL)
    assert list((tmp_path / "split").iterdir()) == []


@pytest.mark.parametrize(
    ("config", "parts", "why"),
    [
        ("nothing-sent", {"split": {"kind": "cold-users"}}, "cold users"),
        ("x-map", {}, "two domains"),
        ("weekly-increments", {}, "a schedule"),
    ],
)
def test_what_is_no_split_into_two_files_is_refused(
    config: str, parts: dict[str, Any], why: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"^save_split: .*{why}"):
        run(config, save_split=tmp_path / "split", **parts)
    assert not (tmp_path / "split").exists()


def test_negatives_are_written_once_whole_or_not_at_all(tmp_path: Path) -> None:
    def broken() -> Iterator[str]:
        yield "(1,2)\t3\n"
        raise InputError("negatives", "one", "another")

    with pytest.raises(InputError, match="one"):
        save_negatives(tmp_path, broken())
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        save_negatives(tmp_path, ["(1,2)\t3\n", "(2,2)\té\n"])
    for others in ([], ["(1,2)\t3\n"], ["(1,2)\t3\n", "(2,2)\té\n", "(3,2)\t1\n"], ["(1,2)\t4\n"]):
        with pytest.raises(InputError, match="other items than were drawn"):
            save_negatives(tmp_path, others)
    assert (tmp_path / NEGATIVES).read_text() == "(1,2)\t3\n(2,2)\té\n"
