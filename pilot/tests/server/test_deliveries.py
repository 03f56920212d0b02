"""What costs nothing reaches a device that was away at the end of a run, whenever it comes back."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message
from flwr.serverapp import Grid

from dprec_pilot.server import deadline_grid
from dprec_pilot.server.journal import UNDELIVERED
from dprec_pilot.server.server_folder import ServerFolder
from dprec_pilot.server.serving import resume, serve
from pilot.tests.make import BLP, PG, USERS, folders_of, grid_of, pilot
from pilot.tests.server.test_deadline_grid import Clock
from simulation.engine.grids import WaitingGrid
from tests.refusals import refused_at

AWAY = {1, 3}


class LeavingGrid(WaitingGrid):
    """A grid some of whose devices leave after so many questions, before what is delivered."""

    def __init__(self, grid: Grid, away: set[int], questions: int = 0) -> None:
        super().__init__(grid)
        self.nodes = list(grid.get_node_ids())
        self.away, self.questions = away, questions

    def get_node_ids(self) -> Iterable[int]:
        gone = self.away if self.questions <= 0 else set()
        return [node for user, node in enumerate(self.nodes) if user not in gone]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        sent = list(super().push_messages(messages))
        self.questions -= len(sent)
        return sent

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        raise NotImplementedError


def predictions(server: ServerFolder) -> list[bytes | None]:
    files = [device.predictions_file for device in folders_of(server)]
    return [file.read_bytes() if file.exists() else None for file in files]


def ledgers(server: ServerFolder) -> list[str]:
    return [device.ledger_file.read_text() for device in folders_of(server)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait for a deadline."""
    monkeypatch.setattr(deadline_grid, "time", Clock())


@pytest.mark.parametrize(
    "values", [BLP, pytest.param(PG, marks=pytest.mark.thorough)], ids=lambda values: values["name"]
)
def test_who_comes_back_gets_what_the_others_have(tmp_path: Path, values: dict[str, Any]) -> None:
    _, calm = pilot(values, tmp_path / "calm")
    serve(grid_of(calm), calm, tmp_path / "calm-out")
    _, server = pilot(values, tmp_path / "pilot")
    # Its rounds end without those who are not there.
    options, output = server.path / "deployment.json", tmp_path / "out"
    options.write_text(json.dumps({**json.loads(options.read_text()), "quorum": 0.4}))
    questions = values["protocol"].get("rounds", 1) * USERS
    serve(LeavingGrid(grid_of(server), AWAY, questions), server, output)
    before, files = ledgers(server), {path.name: path.read_bytes() for path in output.iterdir()}
    assert [user for user, own in enumerate(predictions(server)) if own is None] == sorted(AWAY)
    assert (output / UNDELIVERED).stat().st_mode & 0o777 == 0o600
    # One comes back, and then the other.
    for still_away in ({3}, set[int]()):
        resume(LeavingGrid(grid_of(server), still_away), server, output)
        assert {user for user, own in enumerate(predictions(server)) if own is None} == still_away
        assert (output / UNDELIVERED).exists() is bool(still_away)
    assert predictions(server) == predictions(calm)
    assert ledgers(server) == before
    del files[UNDELIVERED]
    assert {path.name: path.read_bytes() for path in output.iterdir()} == files


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    serve(grid_of(server), server, tmp_path / "out")
    assert not (tmp_path / "out" / UNDELIVERED).exists()
    grid, entry = grid_of(server), '"group": "", "content": "", "nodes"'
    for text in (
        *("", "[", "{}", "[1]"),
        f'[{{"message_type": "train", {entry}: []}}]',
        f'[{{"message_type": "query.deliver", {entry}: [Infinity]}}]',
    ):
        (tmp_path / "out" / UNDELIVERED).write_text(text)
        with refused_at(UNDELIVERED):
            resume(grid, server, tmp_path / "out")
