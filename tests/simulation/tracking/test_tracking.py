"""Rounds and figures as trackers get them; the modules of those that are not installed are faked."""

import csv
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dprec.errors import InputError, RunError
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


@pytest.mark.parametrize("name", ["blp-mf", "one-bit-gradient"])
def test_rounds_that_come_at_the_end_are_kept_once(tmp_path: Path, name: str) -> None:
    result = run(config(name), tmp_path, page=False, track=["csv", "csv"])
    rounds = [line["round"] for line in lines(tmp_path) if line["figure"] == "replies"]
    assert rounds == [str(one["round"]) for one in result.rounds]


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


def test_mlflow_gets_parameters_metrics_and_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Calls = []
    monkeypatch.setitem(sys.modules, "mlflow", Remembered(calls))
    run(config("federated-mf", 2), tmp_path, page=False, track=["mlflow"])
    names = [call[0] for call in calls]
    assert names[:3] == ["set_experiment", "start_run", "log_params"]
    steps = [call[2].get("step") for call in calls if call[0] == "log_metrics"]
    assert steps == [1, 2, None]
    final = calls[-2][1]
    assert final["final.accuracy.rmse"] > 0
    assert calls[-1] == ("end_run", "FINISHED", {})


def test_tensorboard_gets_scalars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Calls = []
    module = SimpleNamespace(SummaryWriter=lambda folder: calls.append((folder,)) or Remembered(calls))
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    run(config("federated-mf", 2), tmp_path, page=False, track=["tensorboard"])
    assert calls[0] == (str(tmp_path / "tensorboard" / "federated-mf"),)
    errors = [call[3] for call in calls if call[:2] == ("add_scalar", "rounds/accuracy.rmse")]
    assert errors == [1, 2]
    assert any(call[:2] == ("add_scalar", "final/accuracy.rmse") for call in calls)


def test_wandb_gets_a_configuration_a_history_and_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Calls = []
    module = SimpleNamespace(init=lambda **given: calls.append(("init", given)) or Remembered(calls))
    monkeypatch.setitem(sys.modules, "wandb", module)
    run(config("federated-mf", 2), tmp_path, page=False, track=["wandb"])
    assert [call[0] for call in calls] == ["init", "config.update", "log", "log", "summary.update", "finish"]
    assert calls[0][1]["name"] == "federated-mf"
    assert [call[2]["step"] for call in calls[2:4]] == [1, 2]
    assert calls[-1][1] == {"exit_code": 0}


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


@pytest.mark.parametrize(
    ("name", "module"), [("mlflow", "mlflow"), ("tensorboard", "tensorboardX"), ("wandb", "wandb")]
)
def test_what_is_not_installed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf"track: {name}, but .* pip install 'dprec\[{name}\]'"):
        run(config("blp-mf"), tmp_path, page=False, track=[name])


def test_nothing_is_appended_to_another_file(tmp_path: Path) -> None:
    path = tmp_path / "tracked.csv"
    path.write_text("mine\n")
    with refused_at("tracked.csv"):
        run(config("blp-mf"), tmp_path, page=False, track=["csv"])
    assert path.read_text() == "mine\n"


def test_unknown_trackers_and_runs_without_a_directory_are_refused(tmp_path: Path) -> None:
    with refused_at("track"):
        run(config("blp-mf"), tmp_path / "run", track=["mflow"])
    assert not (tmp_path / "run").exists()
    with refused_at("track"):
        run(config("blp-mf"), track=["csv"])
    assert set(TRACKERS) == {"csv", "mlflow", "tensorboard", "wandb"}
