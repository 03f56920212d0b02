"""Groups of users in runs and comparisons: the same figures in files, over folds, and on pages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.datasets import DelimitedTable, Synthetic
from dprec.datasets.table import UserColumns
from simulation import compare, run
from simulation.analysis.groups import read_groups
from simulation.storage.run_files import read_users
from simulation.storage.summary import Summary, read_summary
from tests.approved import words_of_page
from tests.refusals import refused_at

LOCAL = {"backend": "local"}
USERS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A file of ratings with a file of users beside it."""
    folder = tmp_path_factory.mktemp("data")
    drawn = Synthetic(users=USERS, items=40, ratings=900).load()
    cells = zip(drawn.users.tolist(), drawn.items.tolist(), drawn.values.tolist(), strict=True)
    lines = [f"{user},{item},{value:g}" for user, item, value in cells]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines]))
    people = [f"{user},{18 + user},{'FM'[user % 2]}" for user in range(1, USERS)]
    (folder / "users.csv").write_text("\n".join(["user,age,gender", *people]))
    users = UserColumns(path=str(folder / "users.csv"))
    return DelimitedTable(path=str(folder / "ratings.csv"), low=1, high=5, step=1, users=users).entries()


@pytest.fixture(scope="module")
def compared(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = {
        "name": "groups",
        "dataset": data,
        "split": {"kind": "k-fold", "folds": 2, "fold": 0},
        "folds": [0, 1],
        "seeds": [1, 2],
        "epsilons": [1.0],
        "groups": ["activity", "gender", "epsilon"],
        "protocols": ["one-bit-on-device"],
        "simulation": LOCAL,
    }
    return compare(config, tmp_path_factory.mktemp("compared") / "out", page=False).directory


def test_the_groups_of_a_run(data: dict[str, Any], tmp_path: Path) -> None:
    groups = ["activity", "age", "gender", "epsilon"]
    asked: Any = {"evaluation": {"groups": groups}, "split": {"kind": "holdout"}, "simulation": LOCAL}
    run("one-bit-on-device", tmp_path / "run", dataset=data, **asked)
    summary = read_summary(tmp_path / "run")
    assert list(summary.groups) == ["all", *groups]
    (everybody,) = summary.groups["all"]
    assert everybody.rmse == pytest.approx(summary.accuracy.rmse)
    assert everybody.rmse_alone == pytest.approx(summary.nothing_sent)
    assert [each.group for each in summary.groups["gender"]] == ["unknown", "F", "M"]
    assert [each.group for each in summary.groups["epsilon"]] == ["1"]
    for own in summary.groups.values():
        assert sum(each.users for each in own) == everybody.users
        assert sum(each.test_ratings for each in own) == summary.dataset.test_ratings
    columns = read_users(tmp_path / "run", summary)
    women = columns["group_gender"] == "F"
    worse = columns["squared_errors"] > columns["squared_errors_alone"]
    assert summary.groups["gender"][1].worse == pytest.approx(worse[women].mean())
    assert "Who pays: groups of users" in words_of_page((tmp_path / "run" / "report.html").read_text())
    # What is read back is what was written.
    again = run("one-bit-on-device", tmp_path / "run", dataset=data, resume=True, **asked)
    assert Summary.model_validate_json(summary.model_dump_json()).groups == summary.groups
    assert again.summary["groups"]["gender"][1]["worse"] == summary.groups["gender"][1].worse


def test_a_comparison_predicts_each_rating_once(compared: Path) -> None:
    lines = {(each.name, each.by, each.figures.group): each.figures for each in read_groups(compared)}
    names = [f"one-bit-on-device-eps1.0-fold{fold}-seed{seed}" for seed in (1, 2) for fold in (0, 1)]
    summaries = [read_summary(compared / "cells" / name) for name in names]
    everybody = lines["one-bit-on-device", "all", "everybody"]
    assert everybody.test_ratings == sum(each.dataset.test_ratings for each in summaries[:2]) == 900
    assert everybody.users == USERS
    assert everybody.epsilon_per_rating == pytest.approx(1)
    by_seed = []
    for seed in (1, 2):
        sums: dict[str, np.ndarray] = {}
        for fold in (0, 1):
            cell = compared / "cells" / f"one-bit-on-device-eps1.0-fold{fold}-seed{seed}"
            users = read_users(cell, read_summary(cell))
            for user, own, alone in zip(
                *(users[name] for name in ("user", "squared_errors", "squared_errors_alone")), strict=True
            ):
                sums[user] = sums.get(user, np.zeros(2)) + np.array([own, alone])
        by_seed.append(np.mean([own > alone for own, alone in sums.values()]))
    assert everybody.worse == pytest.approx(np.mean(by_seed))
    alone = lines["nothing-sent", "all", "everybody"]
    assert (alone.worse, alone.gain_p, alone.rmse) == (0, 1, pytest.approx(alone.rmse_alone))
    covered = [each.groups["all"][0].coverage for each in summaries]
    assert everybody.coverage == pytest.approx(np.mean(covered))


@pytest.mark.parametrize(
    ("name", "changed", "key"),
    [
        ("one-bit-on-device", {"evaluation": {"groups": ["shoe size"]}}, "evaluation.groups.shoe size"),
        (
            "one-bit-on-device",
            {"evaluation": {"groups": ["age", "age"]}},
            "one-bit-on-device.yaml: evaluation.groups",
        ),
        ("one-bit-input", {"evaluation": {"groups": ["activity"]}}, "evaluation.groups"),
    ],
)
def test_groups_that_cannot_be_made(name: str, changed: Any, key: str, data: dict[str, Any]) -> None:
    with refused_at(key):
        run(name, dataset=data, split={"kind": "holdout"}, simulation=LOCAL, **changed)


def test_lists_have_groups_too() -> None:
    result = run("popularity", evaluation={"groups": ["activity"]}, simulation=LOCAL)
    for each in result.summary["groups"]["activity"]:
        assert each["rmse"] is each["worse"] is None
        assert 0 <= each["ndcg_at_10"] <= 1
        assert each["popularity_lift"] > 0


def test_cold_users_have_no_column_and_no_traffic(data: dict[str, Any]) -> None:
    asked = {"dataset": data, "split": {"kind": "cold-users"}, "simulation": LOCAL}
    result = run("nothing-sent", evaluation={"groups": ["activity"]}, **asked)
    assert all(each["message_bytes"] is None for each in result.summary["groups"]["activity"])
    with refused_at("evaluation.groups.gender"):
        run("nothing-sent", evaluation={"groups": ["gender"]}, **asked)
