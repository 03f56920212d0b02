"""The experiments on data sets that cannot be shipped, on small files of the same layout."""

import csv
from pathlib import Path

import numpy as np
import pytest

from simulation import compare
from simulation.protocols.base import BASELINES
from tests.paths import CONFIGS

EXPERIMENTS = CONFIGS / "experiments"


def jester(path: Path) -> None:
    """Write 60 jokers' ratings of 100 jokes as the distributor does: 99 is "not rated"."""
    draws = np.random.default_rng(0)
    ratings = np.round(draws.uniform(-10, 10, (60, 100)), 2)
    ratings[draws.random(ratings.shape) < 0.6] = 99
    lines = [",".join([str(int((row != 99).sum())), *(f"{value:g}" for value in row)]) for row in ratings]
    path.write_text("\n".join(lines) + "\n")


def libimseti(path: Path) -> None:
    """Write 60 users' ratings of 40 profiles, 1 to 10."""
    draws = np.random.default_rng(0)
    cells = [(user, profile) for user in range(1, 61) for profile in range(1, 41) if draws.random() < 0.5]
    path.write_text("".join(f"{user},{profile},{draws.integers(1, 11)}\n" for user, profile in cells))


@pytest.mark.parametrize(
    ("name", "write", "low", "high"), [("neera-fig7b", jester, -10, 10), ("neera-fig7c", libimseti, 1, 10)]
)
def test_figure_7_runs_on_files_of_the_same_layout(
    tmp_path: Path, name: str, write: object, low: int, high: int
) -> None:
    data = tmp_path / "data.csv"
    write(data)  # type: ignore[operator]
    changes = [f"dataset.path={data}", "folds=[0, 3]", "epsilons=[1.0]", "simulation={backend: local}"]
    result = compare(EXPERIMENTS / f"{name}.yaml", tmp_path / "out", overrides=changes, page=False)
    assert not result.failures
    with (tmp_path / "out" / "comparison.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = ["blp-mog-mf", "isgd", "plain-mf", *BASELINES]
    assert [row["name"] for row in rows] == [name for name in names for _ in ("fold 0", "fold 3")]
    for row in rows:
        assert (float(row["scale_low"]), float(row["scale_high"])) == (low, high)
        assert 0 < float(row["rmse"]) < high - low
        assert 0 < float(row["f_score_at_k"]) <= 1


def test_private_least_squares_run_on_a_file_of_movielens_10m(tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    cells = [(user, film) for user in range(1, 61) for film in range(1, 31) if draws.random() < 0.5]
    lines = [f"{user}::{film}::{draws.integers(1, 11) / 2:g}::{978300000 + user}" for user, film in cells]
    (tmp_path / "ratings.dat").write_text("\n".join(lines) + "\n")
    result = compare(
        EXPERIMENTS / "dp-als-movielens-10m.yaml",
        tmp_path / "out",
        overrides=[f"dataset.path={tmp_path}", "simulation={backend: local}", "baselines=false"],
        page=False,
    )
    assert not result.failures
    with (tmp_path / "out" / "comparison.csv").open(newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"dp-als", "dp-als-without-noise", "dp-item-effects"}
    assert rows["dp-als-without-noise"]["epsilon_composed_max"] == ""
    assert float(rows["dp-als"]["epsilon_composed_max"]) == pytest.approx(1.0)
