"""What results say of somebody's own ratings: what the scale reveals, and what looks wrong."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import InMemory, Synthetic
from dprec.datasets.base import typed
from simulation import compare, run
from simulation.console.results import comparison_notes

RATINGS = Synthetic(users=30, items=20, ratings=400).load()
LOCAL = {"backend": "local"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    RATINGS.to_csv(tmp_path / "mine.csv")
    return tmp_path / "mine.csv"


def noted(**parts: Any) -> tuple[dict[str, Any], str]:
    """Return what a run says of its data set, and its note on the scale."""
    summary = run("nothing-sent", simulation=LOCAL, **parts).summary
    (note,) = [note for note in summary["dataset"]["notes"] if note.startswith("Scale: ")]
    return summary["dataset"], note


def test_a_scale_that_the_ratings_decided_is_said_to_be_unprotected(path: Path) -> None:
    dataset, note = noted(dataset=path)
    assert dataset["scale_read_off"] == ["low", "high", "step"]
    assert "read off the private ratings (low, high, step). No epsilon covers that" in note
    typed_settings = note.partition("Given, it is public: ")[2]
    assert typed_settings == "--set dataset.low=1 --set dataset.high=5 --set dataset.step=1"
    overrides = [word for word in shlex.split(typed_settings) if word != "--set"]
    dataset, note = noted(dataset=path, overrides=overrides)
    assert dataset["scale_read_off"] == []
    assert note == "Scale: one of 1, 2, 3, 4, 5 (as given)."


def test_a_frame_is_told_the_arguments_that_make_its_scale_public() -> None:
    frame = RATINGS.to_pandas()
    _, note = noted(dataset=frame)
    assert note.endswith("Given, it is public: dataset=InMemory.of(..., low=1, high=5, step=1)")
    for given in (InMemory.of(frame, low=1, high=5, step=1), RATINGS):
        assert noted(dataset=given)[1] == "Scale: one of 1, 2, 3, 4, 5 (as given)."


def test_a_slider_between_given_ends_has_no_levels_to_give() -> None:
    frame = RATINGS.to_pandas()
    frame["rating"] += np.linspace(-0.4, 0.4, len(frame))
    dataset, note = noted(dataset=InMemory.of(frame, low=0, high=6))
    assert dataset["scale_read_off"] == ["low", "high", "step"]
    assert note.endswith("InMemory.of(..., low=0, high=6, continuous=True)")
    assert "(as given)" in noted(dataset=InMemory.of(frame, low=0, high=6, continuous=True))[1]


def test_a_public_data_set_has_no_such_note() -> None:
    summary = run(
        "nothing-sent", dataset=Synthetic(users=30, items=20, ratings=400), simulation=LOCAL
    ).summary
    assert summary["dataset"]["scale_read_off"] == []
    assert summary["dataset"]["notes"] == []
    assert not [note for note in summary["privacy"]["notes"] if note.startswith("To test")]


def test_ratings_that_do_not_differ_are_warned_about() -> None:
    same = RATINGS.to_pandas().assign(rating=5)
    summary = run("nothing-sent", dataset=InMemory.of(same, low=1, high=5), simulation=LOCAL).summary
    notes = summary["dataset"]["notes"]
    assert [note for note in notes if note.startswith("All ratings are the same, 5: ")]


def test_a_comparison_says_it_too(path: Path, tmp_path: Path) -> None:
    config = {
        "name": "mine",
        "dataset": {"kind": "csv", "path": str(path)},
        "split": {"kind": "holdout"},
        "simulation": LOCAL,
        "protocols": ["nothing-sent"],
        "baselines": False,
    }
    result = compare(config, tmp_path / "mine", page=False)
    (note,) = comparison_notes(result)
    assert note.startswith("Scale: one of 1, 2, 3, 4, 5, read off the private ratings (low, high, step). ")


def test_settings_are_typed_so_that_a_shell_reads_them() -> None:
    words = typed({"missing": [-1.0, 99.0], "low": -10.0, "step": 0.1, "continuous": True})
    assert shlex.split(words)[1::2] == [
        "dataset.missing=[-1, 99]",
        "dataset.low=-10",
        "dataset.step=0.1",
        "dataset.continuous=true",
    ]


def test_the_mean_loss_is_that_of_all_users_also_of_those_who_have_sent_nothing() -> None:
    simulation = {**LOCAL, "faults": {"dropout": 0.4}}
    result = run("blp-mf", dataset=RATINGS, simulation=simulation, page=False)
    losses, privacy = result.traffic["epsilon_per_user"], result.summary["privacy"]
    assert 0 < np.count_nonzero(losses == 0) < losses.size
    assert privacy["epsilon_per_user"]["mean"] == pytest.approx(losses.mean())
    assert privacy["epsilon_per_user"]["median"] == pytest.approx(np.median(losses))
