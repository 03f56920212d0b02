"""A pilot of made-up people, on nodes in this process: the run that `dprec run` makes of its settings."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from dprec.errors import RunError
from dprec.exchange import REPORT, RefusalCode, Reports
from dprec_pilot.server import simulated_pilot
from dprec_pilot.server.simulated_pilot import configured, devices, serve_made_up
from simulation import run
from simulation.configuration.models import SimulationOptions
from simulation.engine.grids import LocalGrid
from simulation.engine.session import identity_restored
from simulation.result import RunResult
from simulation.storage.run_files import read_run
from strategies.roster import reply_record
from tests.refusals import refused_at

GIVEN: dict[str, Any] = {
    "folder": "",
    "output": "",
    "page": False,
    "seed": 3,
    "dataset.users": 12,
    "dataset.items": 15,
    "dataset.ratings": 90,
    "protocol.privacy.epsilon": 2.0,
}


class Node(ClientApp):
    """A node as Flower's simulation runtime calls it, with a run configuration."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__()
        self.given = given

    def __call__(self, message: Message, context: Context) -> Message:
        return devices()(message, replace(context, run_config=self.given))


def served(nodes: int, **changed: Any) -> RunResult:
    """Return the result of a pilot on so many nodes, with some settings by their last words."""
    given = {key: changed.get(key.rpartition(".")[2], value) for key, value in GIVEN.items()}
    with identity_restored():
        return RunResult(serve_made_up(LocalGrid(Node(given), nodes), given))


@pytest.fixture(scope="module")
def simulated() -> RunResult:
    here = SimulationOptions(backend="local")
    return run(configured(GIVEN).model_copy(update={"simulation": here}), page=False)


@pytest.mark.parametrize("nodes", [1, 5, 40])
def test_it_is_the_run_of_the_same_settings_on_any_number_of_nodes(nodes: int, simulated: RunResult) -> None:
    pilot = served(nodes)
    assert pilot.predictions["prediction"].size == 18
    for name in simulated.predictions:
        assert np.array_equal(pilot.predictions[name], simulated.predictions[name]), name
    for name in simulated.traffic:
        assert np.array_equal(pilot.traffic[name], simulated.traffic[name]), name


def test_settings_change_what_is_run() -> None:
    pilot = served(2, users=6, items=10, ratings=40, epsilon=0.5)
    assert pilot.traffic["user"].size == 6
    summary = pilot.record.summary
    assert (summary.dataset.items, summary.dataset.train_ratings) == (10, 32)
    assert summary.privacy.epsilon_per_rating == pytest.approx(0.5, rel=1e-9)


def test_the_run_directory_is_written_where_output_says(tmp_path: Path) -> None:
    pilot = served(2, output=str(tmp_path / "out"), page=True)
    files = read_run(tmp_path / "out")
    assert np.array_equal(files.predictions["prediction"], pilot.predictions["prediction"])
    assert (tmp_path / "out" / "report.html").exists()
    with refused_at(str(tmp_path / "out")):
        served(2, output=str(tmp_path / "out"))


def test_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    summary = served(3).record.summary
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 made-up people, 72 ratings of 15 items, 3 nodes"
    up, down = summary.traffic.uplink, summary.traffic.downlink
    figures = [
        (1, [summary.accuracy.rmse, summary.nothing_sent], 5e-4),
        (2, [summary.privacy.epsilon_per_rating, summary.privacy.epsilon_per_user.max], 5e-3),
        (3, [up.payload_mean_per_user, down.payload_mean_per_user], 0.5),
        (3, [up.message_mean_per_user, down.message_mean_per_user], 0.5),
    ]
    for line, expected, error in figures:
        told = [float(word.strip(",;")) for word in lines[line].split() if word.strip(",;")[0].isdigit()]
        assert all(min(abs(np.array(told) - value)) <= error for value in expected), lines[line]
    assert [line.removeprefix("- ") for line in lines[4:]] == list(summary.notes)


@pytest.mark.parametrize(
    ("where", "changed"),
    [
        ("--run-config folder", {"folder": "/srv/pilot/server"}),
        ("--run-config output", {"output": "out"}),
        ("--run-config dataset.users", {"users": 0}),
        ("--run-config dataset.users", {"users": "/etc/passwd"}),
        ("--run-config protocol.privacy.epsilon", {"epsilon": -1.0}),
        ("dataset.ratings", {"ratings": 1000}),
        ("--run-config seed", {"seed": "many"}),
    ],
)
def test_what_cannot_be_is_refused_before_any_node_is_asked(where: str, changed: dict[str, Any]) -> None:
    given = {key: changed.get(key.rpartition(".")[2], value) for key, value in GIVEN.items()}

    asked: list[Message] = []
    with identity_restored():
        grid = LocalGrid(Node(given), 2, lambda question, _reply: asked.append(question))
        with refused_at(where):
            serve_made_up(grid, given)
    assert asked == []


def test_nothing_else_can_be_set() -> None:
    """Where ratings are read from, above all: a node reads no file, whatever it is told."""
    told = {"dataset.noise": 0.1, "simulation.population_dir": "/tmp"}
    assert configured(GIVEN | told) == configured(GIVEN)
    assert configured(GIVEN | {"dataset.kind": "csv", "dataset.path": "/etc/passwd"}) == configured(GIVEN)
    assert configured({}).dataset.kind == "synthetic"


def test_a_node_holds_the_made_up_people_of_its_part_alone() -> None:
    def reports(partitions: int) -> list[list[bytes]]:
        with identity_restored():
            grid = LocalGrid(Node(GIVEN), partitions)
            questions = [Message(RecordDict(), node, REPORT) for node in grid.get_node_ids()]
            records = [reply_record(reply) for reply in grid.send_and_receive(questions)]
        return [list(Reports.of(record).reports) for record in records if record is not None]

    divided, (whole,) = reports(3), reports(1)
    assert [len(part) for part in divided] == [4, 4, 4]
    assert [report for part in divided for report in part] == whole
    assert len(set(whole)) == 12


def test_a_node_that_fails_ends_the_run_and_says_nothing() -> None:
    class Failing(Node):
        def __call__(self, message: Message, context: Context) -> Message:
            lost = {key: value for key, value in self.given.items() if key != "dataset.users"}
            self.given = lost | {"dataset.ratings": 10**9}
            return super().__call__(message, context)

    with identity_restored(), pytest.raises(RunError) as caught:
        serve_made_up(LocalGrid(Failing(GIVEN), 2), GIVEN)
    assert RefusalCode.INTERNAL_FAILURE.name in str(caught.value)
    assert "1000000000" not in str(caught.value)


def test_a_runtime_without_nodes_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_pilot, "START_SECONDS", 0.1)
    with identity_restored(), pytest.raises(RunError):
        serve_made_up(LocalGrid(Node(GIVEN), 0), GIVEN)


def test_nodes_that_are_registered_late_take_part(simulated: RunResult) -> None:
    """As in Flower's simulation runtime: the first of them answers when all are there."""

    class Filling(LocalGrid):
        asked = False

        def get_node_ids(self) -> list[int]:
            nodes = list(super().get_node_ids())
            return nodes if self.asked else nodes[:1]

        def answer(self, message: Message) -> Message:
            self.asked = True
            return super().answer(message)

    with identity_restored():
        pilot = RunResult(serve_made_up(Filling(Node(GIVEN), 4), GIVEN))
    assert np.array_equal(pilot.predictions["prediction"], simulated.predictions["prediction"])


def test_the_server_of_a_deployment_makes_nobody_up(capsys: pytest.CaptureFixture[str]) -> None:
    from flwr.superlink.grid import InMemoryGrid

    from dprec_pilot.server.serving import server_app

    with identity_restored():
        local = LocalGrid(Node(GIVEN), 2)

        def context() -> Context:
            return Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config=dict(GIVEN))

        with refused_at("--run-config folder"):
            server_app()(local, context())

        class InMemory(InMemoryGrid):
            def __init__(self) -> None:
                """Have no state of Flower's."""

            get_node_ids = staticmethod(local.get_node_ids)  # type: ignore[assignment]
            push_messages = staticmethod(local.push_messages)  # type: ignore[assignment]
            pull_messages = staticmethod(local.pull_messages)  # type: ignore[assignment]

        server_app()(InMemory(), context())
        assert "12 made-up people" in capsys.readouterr().out
