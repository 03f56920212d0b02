"""Runs whose work is divided in different ways, and the bits that must not depend on it."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from flwr.app import Message
from flwr.serverapp import Grid

from simulation import run
from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.session import Session, open_session
from simulation.execution import load_ratings, run_in
from simulation.storage.run_directory import RunDirectory

PROTOCOLS: dict[str, dict[str, Any]] = {
    "plain": {"mechanism": {"kind": "none"}},
    "per rating": {"mechanism": {"kind": "bounded-laplace"}, "privacy": {"epsilon": 1.0, "per": "rating"}},
    "per user": {"mechanism": {"kind": "laplace"}, "privacy": {"epsilon": 9.0, "per": "user"}},
    "hidden": {
        "mechanism": {"kind": "zheng-randomized-response"},
        "privacy": {"epsilon": 4.0, "per": "cell"},
    },
}


Expected = Callable[[dict[str, Any]], dict[str, Any]]
"""From a configuration to its bits, with all users in one node of one process; each is run once."""


def one_shot(tiny: dict[str, Any], protocol: str) -> dict[str, Any]:
    completion = tiny["protocol"]["completion"]
    return {**tiny, "protocol": {"kind": "one-shot", "completion": completion, **PROTOCOLS[protocol]}}


def divided(values: dict[str, Any], backend: str, workers: int, users_per_node: int | str) -> RunConfig:
    simulation = {**values.get("simulation", {}), "backend": backend, "workers": workers}
    return parse_config({**values, "simulation": {**simulation, "users_per_node": users_per_node}})


def bits(session: Session | None, config: RunConfig, folder: Path) -> dict[str, Any]:
    """Run, in a session if there is one, and return what must not depend on the division."""
    if session is None:
        run(config, folder, page=False)
    else:
        directory = RunDirectory.claim(folder, config)
        directory.write(run_in(session, config, *load_ratings(config)))
    return written(folder)


def written(folder: Path) -> dict[str, Any]:
    """Return what must not depend on the division, from the directory of a run."""
    summary = json.loads((folder / "summary.json").read_text())
    rounds = [json.loads(line) for line in (folder / "rounds.jsonl").read_text().splitlines()]
    return {
        "predictions.csv.gz": (folder / "predictions.csv.gz").read_bytes(),
        "traffic.csv": (folder / "traffic.csv").read_bytes(),
        "accuracy": summary["accuracy"],
        "privacy": summary["privacy"],
        "traffic": summary["traffic"],
        "rounds": [{key: value for key, value in line.items() if key != "seconds"} for line in rounds],
    }


def compare(one: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in one.items():
        assert other[key] == value, key


class Recording:
    """A grid that keeps what goes through it, by the node that it goes to or comes from."""

    def __init__(self, grid: Grid, nodes: Sequence[int]) -> None:
        self._grid, self.nodes = grid, nodes
        self.sent: dict[int, list[Message]] = defaultdict(list)
        self.received: dict[int, list[Message]] = defaultdict(list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(self, messages: Iterable[Message], **options: Any) -> list[Message]:
        questions = list(messages)
        replies = list(self._grid.send_and_receive(questions, **options))
        for question in questions:
            self.sent[question.metadata.dst_node_id].append(question)
        for reply in replies:
            self.received[reply.metadata.src_node_id].append(reply)
        return replies


def recorded(config: RunConfig, session: Session | None = None) -> tuple[Recording, Any]:
    """Run with each user on a node of its own, and return the messages and the result."""
    train, test = load_ratings(config)
    if session is None:
        with open_session(config.simulation, train.n_users) as opened:
            return recorded(config, opened)
    grid = session.grid
    session.grid = recording = Recording(grid, session.node_ids)  # type: ignore[assignment]
    try:
        return recording, run_in(session, config, train, test)
    finally:
        session.grid = grid
