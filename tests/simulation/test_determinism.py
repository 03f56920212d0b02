"""The result of a run is a function of its configuration and seed: not of how the work is divided."""

import copy
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message
from flwr.common.serde import message_to_proto
from flwr.serverapp import Grid

from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.session import Session, open_session
from simulation.execution import load_ratings, run_in
from simulation.run import run
from simulation.storage.run_directory import RunDirectory
from strategies.envelope import message_size

DIVISIONS: list[int | str] = [1, 7, "all"]
PROTOCOLS: dict[str, dict[str, Any]] = {
    "plain": {"mechanism": {"kind": "none"}},
    "per rating": {"mechanism": {"kind": "bounded-laplace"}, "privacy": {"epsilon": 1.0, "per": "rating"}},
    "per user": {"mechanism": {"kind": "laplace"}, "privacy": {"epsilon": 9.0, "per": "user"}},
    "hidden": {
        "mechanism": {"kind": "zheng-randomized-response"},
        "privacy": {"epsilon": 4.0, "per": "cell"},
    },
}


def divided(values: dict[str, Any], backend: str, workers: int, users_per_node: int | str) -> RunConfig:
    simulation = {**values.get("simulation", {}), "backend": backend, "workers": workers}
    return parse_config({**values, "simulation": {**simulation, "users_per_node": users_per_node}})


def bits(session: Session | None, config: RunConfig, folder: Path) -> dict[str, Any]:
    """Run, in a session if there is one, and return what must not depend on the division."""
    if session is None:
        run(config, folder)
    else:
        directory = RunDirectory.claim(folder, config)
        directory.write(run_in(session, config, *load_ratings(config)))
    summary = json.loads((folder / "summary.json").read_text())
    rounds = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    return {
        "predictions.csv": (folder / "predictions.csv").read_bytes(),
        "traffic.csv": (folder / "traffic.csv").read_bytes(),
        "accuracy": summary["accuracy"],
        "privacy": summary["privacy"],
        "traffic": summary["traffic"],
        "rounds": [{key: value for key, value in line.items() if key != "seconds"} for line in rounds],
    }


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def ray_session(request: pytest.FixtureRequest) -> Iterator[tuple[int, Session]]:
    """Start Ray once for all runs that have the same number of workers."""
    from simulation.configuration.models import SimulationOptions

    with open_session(SimulationOptions(backend="ray", workers=request.param), 40) as session:
        yield request.param, session


@pytest.fixture(autouse=True)
def _without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pages, which take longer to draw than these runs take."""
    monkeypatch.setattr("simulation.pages.report", lambda directory, population: None)


def one_shot(tiny: dict[str, Any], protocol: str) -> dict[str, Any]:
    completion = tiny["protocol"]["completion"]
    return {**tiny, "protocol": {"kind": "one-shot", "completion": completion, **PROTOCOLS[protocol]}}


def compare(one: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in one.items():
        assert other[key] == value, key


@pytest.mark.parametrize("faults", [{}, {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}])
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_in_one_process(
    tmp_path: Path, tiny: dict[str, Any], protocol: str, faults: dict[str, float]
) -> None:
    values = one_shot(tiny, protocol)
    values["simulation"] = {"faults": faults}
    expected = bits(None, divided(values, "local", 1, 1), tmp_path / "expected")
    if faults:
        assert any("malformed" in note for note in expected["privacy"]["notes"])
    for users_per_node in (7, "all", "auto"):
        for workers in (1, 2):
            folder = tmp_path / f"{users_per_node}-{workers}"
            compare(expected, bits(None, divided(values, "local", workers, users_per_node), folder))


def test_every_preset_in_one_process(tmp_path: Path, preset: dict[str, Any]) -> None:
    expected = bits(None, divided(preset, "local", 1, "all"), tmp_path / "all")
    for users_per_node in (1, 7):
        folder = tmp_path / str(users_per_node)
        compare(expected, bits(None, divided(preset, "local", 2, users_per_node), folder))


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], protocol: str
) -> None:
    workers, session = ray_session
    values = one_shot(tiny, protocol)
    expected = bits(None, divided(values, "local", 1, "all"), tmp_path / "expected")
    for users_per_node in DIVISIONS:
        config = divided(values, "ray", workers, users_per_node)
        compare(expected, bits(session, config, tmp_path / str(users_per_node)))


SEVERAL_ROUNDS: dict[str, dict[str, Any]] = {
    "one-bit gradients": {
        "protocol": {
            "kind": "iterative",
            "privacy": {"epsilon": 4.0, "per": "user"},
            "gradient": {"kind": "one-bit"},
            "rounds": 2,
            "rank": 2,
        }
    },
    "slopes": {
        "binarization": {"kind": "mean"},
        "protocol": {
            "kind": "gradient-perturbation",
            "privacy": {"epsilon": 4.0, "per": "rating"},
            "completion": {"kind": "one-bit"},
            "rounds": 2,
        },
    },
    "replacements": {
        "dataset": {"kind": "synthetic-domains", "users": 40, "items": 30, "ratings": 400},
        "split": {"kind": "cold-start", "test_fraction": 0.4},
        "protocol": {
            "kind": "x-map",
            "mechanism": {"kind": "none"},
            "replacement": {"selection": "private", "epsilon": 0.6},
            "recommendation": {"epsilon": 0.6},
        },
    },
}


@pytest.mark.parametrize("protocol", sorted(SEVERAL_ROUNDS))
def test_several_rounds_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], protocol: str
) -> None:
    workers, session = ray_session
    values = {**tiny, **copy.deepcopy(SEVERAL_ROUNDS[protocol])}
    expected = bits(None, divided(values, "local", 1, "all"), tmp_path / "expected")
    for users_per_node in DIVISIONS:
        config = divided(values, "ray", workers, users_per_node)
        compare(expected, bits(session, config, tmp_path / str(users_per_node)))


FLOORS: dict[str, dict[str, Any]] = {
    "nothing sent": {"kind": "nothing-sent"},
    "one mean each": {
        "kind": "global-mean",
        "mechanism": {"kind": "laplace"},
        "privacy": {"epsilon": 1.0, "per": "user"},
    },
}


@pytest.mark.parametrize("floor", sorted(FLOORS))
def test_floors_on_ray(
    tmp_path: Path, tiny: dict[str, Any], ray_session: tuple[int, Session], floor: str
) -> None:
    workers, session = ray_session
    values = {**tiny, "protocol": copy.deepcopy(FLOORS[floor])}
    expected = bits(None, divided(values, "local", 1, "all"), tmp_path / "expected")
    compare(expected, bits(session, divided(values, "ray", workers, 7), tmp_path / "7"))


class Recording:
    """A grid that keeps what goes through it."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.sent: dict[int, Message] = {}
        self.received: dict[int, Message] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(self, messages: Iterable[Message], **options: Any) -> list[Message]:
        questions = list(messages)
        replies = list(self._grid.send_and_receive(questions, **options))
        self.sent = {message.metadata.dst_node_id: message for message in questions}
        self.received = {message.metadata.src_node_id: message for message in replies}
        return replies


def test_accounted_bytes_are_those_of_the_messages_on_ray(
    tiny: dict[str, Any], ray_session: tuple[int, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, session = ray_session
    recording = Recording(session.grid)
    monkeypatch.setattr(session, "grid", recording)
    config = divided(tiny, "ray", workers, 1)
    traffic = run_in(session, config, *load_ratings(config)).traffic
    for user, node in enumerate(session.node_ids):
        reply, question = recording.received[node], recording.sent[node]
        assert traffic["uplink_message_bytes"][user] == message_size(reply)
        assert traffic["downlink_message_bytes"][user] == message_size(question)
        # Flower's random ids are written in up to 10 bytes each, and are counted as all 10.
        assert 0 <= message_size(reply) - message_to_proto(reply).ByteSize() <= 4
