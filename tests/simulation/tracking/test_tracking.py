"""Rounds and figures as trackers get them; the modules of those that are not installed are faked."""

import csv
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dprec.errors import RunError
from simulation import run
from simulation.tracking import TRACKERS
from tests.refusals import refused_at
from tests.simulation.conftest import presets

Calls = list[tuple[Any, ...]]


def config(name: str, rounds: int = 3) -> dict[str, Any]:
    values = presets()[name]
    if "rounds" in values["protocol"]:
        values["protocol"]["rounds"] = rounds
    return values


class Remembered:
    """Keeps the calls of its methods, whatever they are."""

    def __init__(self, calls: Calls, prefix: str = "") -> None:
        self._calls, self._prefix = calls, prefix

    def __getattr__(self, name: str) -> Any:
        if name in ("config", "summary"):
            return Remembered(self._calls, f"{name}.")
        return lambda *args, **kwargs: self._calls.append((self._prefix + name, *args, kwargs))


def lines(directory: Path) -> list[dict[str, str]]:
    with (directory / "tracked.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_file_has_every_round_and_the_figures_of_the_run(tmp_path: Path) -> None:
    result = run(config("federated-mf"), tmp_path, page=False, track=["csv"])
    tracked = lines(tmp_path)
    errors = {line["round"]: float(line["value"]) for line in tracked if line["figure"] == "accuracy.rmse"}
    expected = {str(one["round"]): one["accuracy"]["rmse"] for one in result.rounds}
    assert errors == {**expected, "": result.summary["accuracy"]["rmse"]}
    assert {line["figure"] for line in tracked if line["round"] == "1"} >= {"replies", "uplink.message_bytes"}


def test_rounds_come_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Calls = []
    monkeypatch.setitem(TRACKERS, "csv", lambda name, directory: Remembered(calls))

    def progress(stage: str, done: int, planned: int) -> None:
        calls.append((stage, done))

    run(config("federated-mf"), tmp_path, page=False, track=["csv"], progress=progress)
    order = [
        call[2] if call[0] == "figures" else call[:2] for call in calls if call[0] in ("figures", "rounds")
    ]
    assert order == [1, ("rounds", 1), 2, ("rounds", 2), 3, ("rounds", 3), None]
    assert calls[0] == ("loading the ratings", 0)
    assert calls[1][0] == "settings"
    assert calls[1][1]["protocol.rounds"] == 3
    assert calls[-1][:2] == ("close", None)


def test_a_tracker_that_fails_is_named_and_the_others_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Calls = []

    class Broken(Remembered):
        def figures(self, values: dict[str, float], round_index: int | None) -> None:
            raise OSError("no route to host")

    monkeypatch.setitem(TRACKERS, "csv", lambda name, directory: Remembered(calls))
    monkeypatch.setitem(TRACKERS, "wandb", lambda name, directory: Broken([]))
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    with pytest.raises(RunError, match="tracker wandb: OSError: no route to host"):
        run(config("federated-mf", 1), tmp_path, page=False, track=["csv", "wandb"])
    assert calls[-1][:2] == ("close", "tracker wandb: OSError: no route to host")


def test_every_tracker_gets_rounds_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, Calls] = {"mlflow": [], "tensorboard": [], "wandb": []}
    board, wandb = Remembered(calls["tensorboard"]), Remembered(calls["wandb"])
    monkeypatch.setitem(sys.modules, "mlflow", Remembered(calls["mlflow"]))
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=lambda folder: board))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **given: wandb))
    run(config("federated-mf", 2), tmp_path, page=False, track=list(calls))
    steps = [call[2].get("step") for call in calls["mlflow"] if call[0] == "log_metrics"]
    assert steps == [1, 2, None]
    assert calls["mlflow"][-2][1]["final.accuracy.rmse"] > 0
    assert calls["mlflow"][-1] == ("end_run", "FINISHED", {})
    scalars = [call[1:4:2] for call in calls["tensorboard"] if call[0] == "add_scalar"]
    assert [step for name, step in scalars if name == "rounds/accuracy.rmse"] == [1, 2]
    assert "final/accuracy.rmse" in dict(scalars)
    names = [call[0] for call in calls["wandb"]]
    assert names == ["config.update", "log", "log", "summary.update", "finish"]
    assert [call[2]["step"] for call in calls["wandb"][1:3]] == [1, 2]
    assert calls["wandb"][-1][1] == {"exit_code": 0}


@pytest.mark.parametrize(
    ("name", "hidden", "where"),
    [
        ("mlflow", "mlflow", "track"),
        ("tensorboard", "tensorboardX", "track"),
        ("wandb", "wandb", "track"),
        ("mflow", "", "track"),
        ("csv", "", "tracked.csv"),
    ],
)
def test_what_cannot_track_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hidden: str, where: str
) -> None:
    """A module that is not installed, a tracker that is unknown, and a file of something else."""
    monkeypatch.setitem(sys.modules, hidden, None)
    (tmp_path / "tracked.csv").write_text("mine\n")
    with refused_at(where) as caught:
        run(config("blp-mf"), tmp_path, page=False, track=[name])
    assert not hidden or f"pip install 'dprec[{name}]'" in str(caught.value)
    assert (tmp_path / "tracked.csv").read_text() == "mine\n"


def test_a_run_without_a_directory_has_no_file_of_rounds() -> None:
    with refused_at("track"):
        run(config("blp-mf"), track=["csv"])
