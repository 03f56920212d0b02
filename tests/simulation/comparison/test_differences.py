"""In what two runs, or two comparisons, are said to differ."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import InputError
from dprec.metrics import interval, resampled_sums
from simulation import compare, diff, run
from simulation.storage.run_files import read_predictions
from simulation.storage.summary import read_summary
from tests.refusals import refused_at
from tests.simulation.conftest import TINY


def finished(folder: Path, *overrides: str) -> Path:
    run(copy.deepcopy(TINY), folder, overrides=overrides, page=False)
    return folder


def test_settings_figures_and_gains_of_two_runs(tmp_path: Path) -> None:
    low, high = finished(tmp_path / "low"), finished(tmp_path / "high", "protocol.privacy.epsilon=20.0")
    same = diff(low, low)
    assert (same.settings, same.figures, same.same_ratings) == ({}, (), True)
    assert {(gain.mean, gain.low, gain.high, gain.significant) for gain in same.gains.values()} == {
        (0, 0, 0, False)
    }
    found = diff(low, high)
    assert found.settings == {"protocol.privacy.epsilon": (1.0, 20.0)}
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in (low, high)]
    figures = {figure.name: (figure.first, figure.second) for figure in found.figures}
    assert figures["rmse"] == tuple(summary["accuracy"]["rmse"] for summary in summaries)
    assert {"name", "users"}.isdisjoint(figures)
    rmse = found.gains["rmse"]
    assert rmse.mean == pytest.approx(figures["rmse"][0] - figures["rmse"][1], abs=1e-9)
    # The same, computed from the predictions alone.
    columns = [read_predictions(folder, read_summary(folder)) for folder in (low, high)]
    users, rows = np.unique(columns[0]["user"], return_inverse=True)
    parts = [np.ones(rows.size), *((own["prediction"] - own["rating"]) ** 2 for own in columns)]
    drawn = resampled_sums(np.stack([np.bincount(rows, part, users.size) for part in parts], axis=1))
    gained = np.sqrt(drawn[:, 1] / drawn[:, 0]) - np.sqrt(drawn[:, 2] / drawn[:, 0])
    assert (rmse.low, rmse.high) == pytest.approx(interval(gained), abs=0.01)
    back = diff(high, low).gains["rmse"]
    assert (back.mean, back.low, back.high) == (-rmse.mean, -rmse.high, -rmse.low)
    assert json.loads(json.dumps(found.values()))["gains"]["rmse"]["better_by"] == rmse.mean


def test_other_test_ratings_have_no_paired_interval(tmp_path: Path) -> None:
    found = diff(finished(tmp_path / "one"), finished(tmp_path / "two", "seed=2"))
    assert (found.gains, found.same_ratings) == ({}, False)
    assert found.settings == {"seed": (1, 2)}


def test_two_comparisons(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "name": "two",
        "dataset": TINY["dataset"],
        "split": TINY["split"],
        "baselines": False,
        "simulation": {"backend": "local"},
    }
    for name, epsilons, protocols in (("a", [1.0, 4.0], ["blp-mf"]), ("b", [4.0], ["blp-mf", "isgd"])):
        listed = [{"name": protocol} for protocol in protocols]
        compare({**values, "epsilons": epsilons, "protocols": listed}, tmp_path / name, page=False)
    found = diff(tmp_path / "a", tmp_path / "b")
    assert found.settings["epsilons"] == ([1.0, 4.0], [4.0])
    assert not any(key.startswith("cells") for key in found.settings)
    assert (found.only_first, found.only_second) == (("blp-mf, budget 1",), ("isgd, budget 4",))
    assert (found.figures, found.gains, found.same_ratings) == ((), {}, None)
    run(copy.deepcopy(TINY), tmp_path / "run", page=False)
    with pytest.raises(InputError, match="not a comparison; accepted: a comparison"):
        diff(tmp_path / "a", tmp_path / "run")
    with refused_at("nowhere"):
        diff(tmp_path / "a", tmp_path / "nowhere")
