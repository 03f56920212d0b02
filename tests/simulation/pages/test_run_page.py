"""What a run's page says first is true: the baseline, every epsilon with what it is for, both prices."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulation import run
from simulation.pages.run_page import run_tiles
from simulation.storage.summary import read_summary
from tests.approved import check
from tests.simulation.pages.conftest import CROSS_DOMAIN, words_of, write_run

Directories = Callable[..., Path]


def tiles_of(page: str) -> dict[str, tuple[str, str]]:
    """Return what is large and what is small in every tile."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)<small>(.*?)</small>", page)
    return {name: (figure, detail) for name, figure, detail in found}


@pytest.mark.parametrize(("share", "shown"), [(0.5, True), (0.89, True), (0.9, False), (1.0, False)])
def test_lists_of_everything_are_no_figure(run_directory: Directories, share: float, shown: bool) -> None:
    page = words_of(run_directory(altered={"accuracy.whole_lists": share}))[0]
    assert ("F-score at 10" in tiles_of(page)) is shown
    assert ("left out" in page) is not shown
    assert (f"{share:.0%} of the users have at most 10 candidates" in page) is not shown


def test_the_share_of_whole_lists_is_that_of_the_tested_users(tmp_path: Path, tiny: dict[str, Any]) -> None:
    for top_k in (1, 2, 3):
        values = {**tiny, "evaluation": {"top_k": top_k}}
        result = run(values, tmp_path / str(top_k), page=False)
        tested = np.unique(result.predictions["user"], return_counts=True)[1]
        assert result.summary["accuracy"]["whole_lists"] == np.mean(tested <= top_k)
    unrated = {**tiny, "evaluation": {"top_k": 22, "candidates": "unrated"}}
    result = run(unrated, tmp_path / "unrated", page=False)
    left = 30 - result.traffic["ratings"][np.isin(result.traffic["user"], result.predictions["user"])]
    assert result.summary["accuracy"]["whole_lists"] == np.mean(left <= 22)
    assert 0 < result.summary["accuracy"]["whole_lists"] < 1


_UNKNOWN = {"privacy.epsilon_per_rating": None, "privacy.epsilon_per_user.max": None}
_ONE = {"privacy.epsilon_composed.max": 1.0}
_CLAIMED = {"privacy.status": "claimed"}
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "per rating": ({}, {}),
    "better than nothing sent": ({}, {"accuracy.rmse": 0.9}),
    "as good as nothing sent": ({}, {"accuracy.rmse": 1.0634}),
    "for any two profiles without a delta": (
        {},
        {"privacy.epsilon_any_two": 163.0, "privacy.epsilon_composed.max": 163.0},
    ),
    "for any two profiles": ({}, {"privacy.epsilon_any_two": 7.5}),
    "per user": ({"per": "user"}, _ONE),
    "without privacy": (
        {"mechanism": "none", "epsilon": None, "completion": "mf"},
        {"privacy.epsilon_composed.max": None},
    ),
    "by composition only": ({"trust": "secure-aggregation"}, {**_UNKNOWN, "privacy.hides_rated_items": True}),
    "claimed": (
        {"trust": "central"},
        {**_UNKNOWN, **_CLAIMED, "privacy.epsilon_claimed": {"per_rating": 2.0, "per_user": 1154.2}},
    ),
    "claimed beside a proof of less": (
        {"trust": "central"},
        {
            **_CLAIMED,
            "privacy.epsilon_per_rating": 900.0,
            "privacy.epsilon_claimed": {"per_rating": 1.0, "per_user": None},
        },
    ),
    "nothing sent": ({}, {"traffic.uplink.message_bytes": 0}),
    "deployed": ({"per": "user"}, {"devices": "deployed", "accuracy": {"rmse": None}, **_ONE}),
    "worse signs": (
        {"metric": "sign_accuracy", "per": "user"},
        {"accuracy.sign_accuracy": 0.6, "nothing_sent": 0.64, **_ONE},
    ),
    "signs": (
        {"metric": "sign_accuracy", "per": "user"},
        {"accuracy.sign_accuracy": 0.7, "nothing_sent": 0.64, **_ONE},
    ),
}


def test_a_run_is_answered_in_figures(tmp_path: Path) -> None:
    said = []
    for name, (settings, altered) in RUNS.items():
        summary = read_summary(write_run(tmp_path / name, **settings, altered=altered))
        said += [f"# {name}", *(" | ".join(tile) for tile in run_tiles(summary))]
    check("answers-of-runs", "\n".join(said))


PERSONAL = "This page holds personal data: the identifier and true ratings of a user."


def test_ratings_of_people_are_shown_only_if_asked_for(tmp_path: Path, tiny: dict[str, Any]) -> None:
    file, folder = tmp_path / "ratings.csv", tmp_path / "run"
    lines = [f"user-{user},{item},{1 + item % 5}" for user in "abc" for item in range(20)]
    file.write_text("\n".join(["user,item,rating", *lines]))
    split = {"kind": "holdout", "test_fraction": 0.5}
    run({**tiny, "dataset": {"kind": "csv", "path": str(file)}, "split": split}, folder, page=False)
    page = words_of(folder)[0]
    assert "user-" not in page
    assert PERSONAL not in page
    assert page.count("This page names no user and shows nobody&#39;s data") == 1
    assert "Left out, because the ratings of a user are personal data: dprec report DIR --examples" in page
    page = words_of(folder, examples=True)[0]
    assert len(set(re.findall("Test ratings of user (user-[abc])<", page))) == 1
    # For the officer, and where they are.
    assert page.count(PERSONAL) == 2
    assert "names no user" not in page


@pytest.mark.parametrize(
    ("kind", "examples", "shown"),
    [("synthetic-domains", False, True), ("douban", False, False), ("douban", True, True)],
)
def test_an_alter_ego_is_shown_only_if_asked_for(
    run_directory: Directories, kind: str, examples: bool, shown: bool
) -> None:
    altered = {"protocol": "x-map", "domains": CROSS_DOMAIN, "dataset.kind": kind}
    page = words_of(run_directory(altered=altered), examples=examples)[0]
    assert ("AlterEgo of user 7" in page) is shown
    assert ("All users are made up." in page) is (kind == "synthetic-domains")
    assert (PERSONAL in page) is examples
