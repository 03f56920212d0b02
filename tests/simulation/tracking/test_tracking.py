"""Rounds and figures as callbacks get them; the modules of those that are not installed are faked."""

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dprec.errors import RunError
from simulation import compare, run
from simulation.storage.run_files import line_of
from simulation.tracking import TRACKERS, Callback, Started
from strategies.participation import RoundRecord
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


class Heard(Callback):
    """Keeps all that it is told, and what is put there besides."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def started(self, run: Started) -> None:
        self.calls.append(("started", run))

    def round(self, record: RoundRecord) -> None:
        self.calls.append(("round", record))

    def finished(self, summary: Mapping[str, Any]) -> None:
        self.calls.append(("finished", summary))

    def failed(self, reason: str) -> None:
        self.calls.append(("failed", reason))


OF_CELLS: Calls = []


class HeardOfCells(Heard):
    """Keeps what all its copies in this process are told."""

    def __init__(self) -> None:
        super().__init__(OF_CELLS)

    def __reduce__(self) -> Any:
        return HeardOfCells, ()


class Broken(Callback):
    """Fails in its first round."""

    def round(self, record: RoundRecord) -> None:
        raise OSError("no route to host")


def test_a_file_has_every_round_and_the_figures_of_the_run(tmp_path: Path) -> None:
    result = run(config("pg-mf"), tmp_path, page=False, track=["csv"])
    tracked = lines(tmp_path)
    for figure, of_run in (
        ("accuracy.rmse", {"": result.summary["accuracy"]["rmse"]}),
        ("epsilon", {}),
        ("asked", {}),
    ):
        values = {each["round"]: float(each["value"]) for each in tracked if each["figure"] == figure}
        first, *rest = figure.split(".")
        rounds = {str(one["round"]): one[first][rest[0]] if rest else one[first] for one in result.rounds}
        assert values == {**rounds, **of_run}
    assert {line["figure"] for line in tracked if line["round"] == "1"} >= {"replies", "uplink.message_bytes"}


def test_what_a_simulation_observes_is_passed_on(tmp_path: Path) -> None:
    tracker = TRACKERS["csv"]()
    tracker.started(Started("tiny", {}, tmp_path))
    tracker.round(RoundRecord(1, 7, 2, None, 1, 2, 3, 4, 0.1, observed={"norm": 2.5}))
    tracker.failed("interrupted")
    assert [line["value"] for line in lines(tmp_path) if line["figure"] == "observed.norm"] == ["2.5"]


def test_rounds_come_while_the_run_goes_on(tmp_path: Path) -> None:
    calls: Calls = []

    def progress(stage: str, done: int, planned: int) -> None:
        calls.append((stage, done))

    result = run(config("federated-mf"), tmp_path, page=False, track=[Heard(calls)], progress=progress)
    told = [call for call in calls if call[0] in ("started", "round", "rounds", "finished", "failed")]
    (_, begun), *rounds, (last, summary) = told
    assert calls[0] == ("loading the ratings", 0)
    assert (begun.name, begun.directory, begun.group) == ("federated-mf", tmp_path, None)
    assert begun.settings["protocol.rounds"] == 3
    assert [number if what == "rounds" else number.round for what, number in rounds] == [1, 1, 2, 2, 3, 3]
    assert [line_of(record)["replies"] for what, record in rounds if what == "round"] == [40] * 3
    assert (last, summary) == ("finished", json.loads((tmp_path / "summary.json").read_text()))
    assert summary["accuracy"] == result.summary["accuracy"]


def test_what_fails_is_named_and_the_others_hear_of_it() -> None:
    calls: Calls = []
    with pytest.raises(RunError, match=r"tracker .*:Broken: OSError: no route to host") as caught:
        run(config("federated-mf", 1), track=[Heard(calls), Heard(calls), Broken()])
    assert [call[0] for call in calls] == [each for each in ("started", "round", "failed") for _ in range(2)]
    assert calls[-1][1] == str(caught.value)


class Raising(Callback):
    """Cannot hear why a run fails."""

    def failed(self, reason: str) -> None:
        raise OSError("disk full")


def test_who_cannot_hear_of_a_failure_is_noted_beside_it() -> None:
    calls: Calls = []
    with pytest.raises(RunError, match="no route to host") as caught:
        run(config("federated-mf", 1), track=[Heard(calls), Raising(), Heard(calls), Broken()])
    assert [call[0] for call in calls[-2:]] == ["failed"] * 2
    (note,) = caught.value.__notes__
    assert note.endswith("Raising: OSError: disk full")


MINE = """
from simulation.tracking import Callback

class Mine(Callback):
    def started(self, run):
        self.lines = run.directory / "mine.txt"
        self.lines.write_text(f"{run.group} {run.name}\\n")

    def round(self, record):
        with self.lines.open("a") as file:
            print(record.round, record.asked, record.epsilon is not None, file=file)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a callback of one's own in the current directory."""
    (tmp_path / "callbacks_of_mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return "callbacks_of_mine:Mine"


def test_a_class_of_ones_own_is_named(mine: str, tmp_path: Path) -> None:
    run(config("pg-mf", 2), tmp_path / "run", page=False, track=[mine])
    assert (tmp_path / "run/mine.txt").read_text() == "None pg-mf\n1 40 True\n2 40 True\n"


def compared(backend: str = "local") -> dict[str, Any]:
    values = config("pg-mf", 2)
    shared = {key: values[key] for key in ("dataset", "split")}
    entry = {"name": "pg", "protocol": values["protocol"]}
    cells = {"protocols": [entry], "epsilons": [1.0, 2.0], "seeds": [1], "baselines": False}
    matched = {"match": {"epsilon": "user"}, "simulation": {"backend": backend}}
    return {"name": "study", **shared, **cells, **matched}


def test_every_cell_of_a_comparison_is_a_run_and_none_is_recorded_again(mine: str, tmp_path: Path) -> None:
    calls = OF_CELLS
    calls.clear()
    kept = tmp_path / "study"
    compare(compared(), kept, page=False, jobs=1, track=["csv", mine, HeardOfCells()])
    cells = sorted(path.name for path in (kept / "cells").iterdir())
    started = [run for what, run in calls if what == "started"]
    assert sorted(each.name for each in started) == cells
    assert {each.group for each in started} == {"study"}
    assert [call[0] for call in calls] == ["started", "round", "round", "finished"] * 2
    for name in cells:
        written = [json.loads(line) for line in (kept / "cells" / name / "rounds.jsonl").open()]
        tracked = {
            each["round"]: float(each["value"])
            for each in lines(kept / "cells" / name)
            if each["figure"] == "epsilon"
        }
        assert tracked == {str(line["round"]): line["epsilon"] for line in written}
        assert (kept / "cells" / name / "mine.txt").read_text().startswith(f"study {name}\n1 40 True")
    before = {name: (kept / "cells" / name / "tracked.csv").read_bytes() for name in cells}
    (kept / "cells" / cells[0] / "summary.json").unlink()
    calls.clear()
    compare(compared(), kept, page=False, jobs=1, resume=True, track=["csv", mine, HeardOfCells()])
    assert [call[1].name for call in calls if call[0] == "started"] == [cells[0]]
    assert (kept / "cells" / cells[1] / "tracked.csv").read_bytes() == before[cells[1]]


@pytest.mark.thorough
def test_cells_on_ray_are_recorded_by_a_class_of_ones_own(mine: str, tmp_path: Path) -> None:
    result = compare(compared("ray"), tmp_path / "study", page=False, jobs=2, track=["csv", mine])
    assert not result.failures
    assert len([*(tmp_path / "study").glob("cells/*/tracked.csv")]) == 2
    assert len([*(tmp_path / "study").glob("cells/*/mine.txt")]) == 2


def test_a_callback_that_fails_fails_its_cell_alone(tmp_path: Path) -> None:
    class Picky(Callback):
        def started(self, run: Started) -> None:
            if run.settings["protocol.privacy.epsilon"] == 2.0:
                raise OSError("no route to host")

    result = compare(compared(), tmp_path / "study", page=False, jobs=1, track=[Picky()])
    (failure,) = result.failures.values()
    assert failure.endswith("Picky: OSError: no route to host")
    assert len(result.rows) == 1


def test_trackers_group_the_runs_of_a_comparison(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mlflow: Calls = []
    given: list[Any] = []

    def writer(folder: str) -> Remembered:
        given.append(folder)
        return Remembered([])

    def init(**values: Any) -> Remembered:
        given.append((values["group"], values["name"]))
        return Remembered([])

    monkeypatch.setitem(sys.modules, "mlflow", Remembered(mlflow))
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=writer))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    for name in ("mlflow", "tensorboard", "wandb"):
        TRACKERS[name]().started(Started("pg-1", {"seed": 1}, tmp_path, "study"))
    assert ("start_run", {"run_name": "pg-1", "tags": {"comparison": "study"}}) in mlflow
    assert given == [str(tmp_path / "tensorboard/pg-1"), ("study", "pg-1")]


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
        ("nowhere:Mine", "", "track"),
        ("pathlib:Path", "", "track"),
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
    if where == "track":
        with refused_at(where):
            compare(compared(), tmp_path / "study", track=[name])
        assert not (tmp_path / "study").exists()


def test_a_callback_that_cannot_travel_to_cells_is_refused(tmp_path: Path) -> None:
    told = Heard([])
    told.calls.append(((tmp_path / "open").open("w"),))
    with refused_at("track"):
        compare(compared(), tmp_path / "study", track=[told])
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("track", ["csv", Callback])
def test_what_cannot_hear_of_a_run_is_refused(track: Any) -> None:
    """A file without a directory, and a class in place of an instance."""
    with refused_at("track"):
        run(config("blp-mf"), track=[track])
