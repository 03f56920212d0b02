"""What results say of somebody's own ratings: what the scale reveals, and what looks wrong."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import Synthetic
from simulation import run

RATINGS = Synthetic(users=30, items=20, ratings=400).load()
LOCAL = {"backend": "local"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RATINGS.to_csv(tmp_path / "mine.csv")
    return tmp_path / "mine.csv"


def noted(**parts: Any) -> tuple[dict[str, Any], str]:
    """Return what a run says of its data set, and its note on the scale, empty without one."""
    summary = run("nothing-sent", simulation=LOCAL, **parts).summary
    note = [note for note in summary["dataset"]["notes"] if note.startswith("Scale: ")]
    return {**summary["dataset"], "read": summary["read"]}, "".join(note)


def test_a_scale_that_the_ratings_decided_is_said_to_be_unprotected(path: Path) -> None:
    dataset, note = noted(dataset=path)
    assert dataset["scale_read_off"] == ["low", "high", "step"]
    assert "read off the private ratings (low, high, step). No epsilon covers that" in note
    typed_settings = note.partition("Given, it is public: ")[2]
    assert typed_settings == "--set dataset.low=1 --set dataset.high=5 --set dataset.step=1"
    overrides = [word for word in shlex.split(typed_settings) if word != "--set"]
    dataset, note = noted(dataset=path, overrides=overrides)
    assert dataset["scale_read_off"] == []
    assert (dataset["read"]["scale"], note) == ("one of 1, 2, 3, 4, 5, as given", "")


def test_what_was_read_is_said_in_a_line(tmp_path: Path) -> None:
    lines = [
        "event,book_id,user_id,stars,when",
        *(f"read,{n % 7},{n % 5},{n % 5 + 1},{n}" for n in range(35)),
    ]
    lines += ["read,3,1,5,900", "seen,1,1,4,2", "read,2,2,0,3"]
    (tmp_path / "books.csv").write_text("\n".join(lines) + "\n")
    settings = {"duplicates": "last", "where": "event = 'read'", "missing": [0], "timestamp_column": "when"}
    result = run(
        "nothing-sent",
        dataset={"kind": "csv", "path": str(tmp_path / "books.csv"), **settings},
        simulation=LOCAL,
    )
    assert result.summary["read"] == {
        "source": "books.csv",
        "users": "user_id",
        "items": "book_id",
        "ratings": "stars",
        "times": "when",
        "scale": "one of 1, 2, 3, 4, 5, read off the ratings",
        "left_out": {"outside event = 'read'": 1, "not rated (0)": 1, "repeated pairs (last)": 1},
        "counts": [5, 7, 35],
    }
    assert result.record.summary.notes[0] == (
        "Read from books.csv: 5 users (user_id), 7 items (book_id), 35 ratings (stars; one of 1, 2, 3, 4, 5, "
        "read off the ratings), times (when). Left out: 1 outside event = 'read', 1 not rated (0), 1 "
        "repeated pairs (last)."
    )


def test_all_rows_of_two_files_are_read_or_left_out(tmp_path: Path) -> None:
    for name, rows in (
        ("train", ["1,1,5", "1,2,0", "2,1,3", "2,2,1"]),
        ("test", ["1,3,0", "2,3,4", "2,4,0"]),
    ):
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item,rating", *rows]) + "\n")
    dataset = {"kind": "csv", "path": str(tmp_path), "missing": [0]}
    read = noted(dataset=dataset)[0]["read"]
    assert (read["source"], read["left_out"]) == ("train.csv, test.csv", {"not rated (0)": 3})
    assert (read["counts"], read["ratings"]) == ([2, 3, 4], "rating")
    # Another split divides the ratings of both.
    assert noted(dataset=dataset, split={"kind": "holdout"})[0]["read"] == read


def test_what_lies_between_two_dates_is_left_out(tmp_path: Path) -> None:
    rows = [f"{n % 5},{n % 7},{n % 5 + 1},{n}" for n in range(35)]
    (tmp_path / "mine.csv").write_text("\n".join(["user,item,rating,time", *rows, "1,1,0,3"]) + "\n")
    read = noted(
        dataset={"kind": "csv", "path": str(tmp_path / "mine.csv"), "missing": [0]},
        split={"kind": "temporal", "before": 20, "after": 28},
    )[0]["read"]
    assert read["left_out"] == {"not rated (0)": 1, "between before and after": 8}
    assert read["counts"] == [5, 7, 35 - 8]


def test_a_schedule_tests_on_ratings_that_count_once(tmp_path: Path) -> None:
    """Of each user, what the first period holds is not predicted."""
    rows = [f"{n % 5},{n % 7},{n % 5 + 1},{n * 86_400}" for n in range(35)]
    (tmp_path / "mine.csv").write_text("\n".join(["user,item,rating,time", *rows]) + "\n")
    summary = run("weekly-increments", dataset=tmp_path / "mine.csv", simulation=LOCAL).summary
    assert summary["read"]["counts"] == [5, 7, 35]
    assert summary["terms"]["collections"] == 4
    tested = "what users rate after their first period, each predicted before it is reported"
    assert f"To test on: 28 of 35 ratings ({tested})." in summary["privacy"]["notes"]


def test_a_public_data_set_has_no_such_note() -> None:
    public = Synthetic(users=30, items=20, ratings=400)
    summary = run("nothing-sent", dataset=public, simulation=LOCAL).summary
    assert summary["dataset"]["scale_read_off"] == []
    assert summary["dataset"]["notes"] == []
    assert not [note for note in summary["privacy"]["notes"] if note.startswith("To test")]


def test_the_mean_loss_is_that_of_all_users_also_of_those_who_have_sent_nothing() -> None:
    simulation = {**LOCAL, "faults": {"dropout": 0.4}}
    result = run("blp-mf", dataset=RATINGS, simulation=simulation, page=False)
    losses, privacy = result.traffic["epsilon_per_user"], result.summary["privacy"]
    assert 0 < np.count_nonzero(losses == 0) < losses.size
    assert privacy["epsilon_per_user"]["mean"] == pytest.approx(losses.mean())
    assert privacy["epsilon_per_user"]["median"] == pytest.approx(np.median(losses))


@pytest.mark.parametrize(
    ("represented", "warned"), [({"copies": 200_000, "simulated_up_to": 100}, True), ({}, False)]
)
def test_a_delta_is_held_against_the_users_that_are_represented(
    represented: dict[str, int], warned: bool
) -> None:
    drawn = {"kind": "synthetic", "users": 30, "items": 20, "ratings": 400, **represented}
    overrides = ["protocol.privacy.delta=5e-5"]
    result = run("dp-item-effects", dataset=drawn, simulation=LOCAL, overrides=overrides)
    notes = str(result.summary["privacy"]["notes"])
    assert ("Delta = 5e-05 is above one in 200,000 users" in notes) is warned
