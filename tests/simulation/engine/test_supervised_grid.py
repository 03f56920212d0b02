"""A run does not go on without the users of a node that failed, and waits for nothing for ever."""

import platform
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import Message, RecordDict

from clients.app import client_app
from dprec.errors import RunError
from dprec.exchange import IDENTIFY, REPORT
from simulation import run
from simulation.engine.local_grid import LocalGrid
from simulation.engine.session import Session
from simulation.engine.supervised_grid import SupervisedGrid


class Silent(LocalGrid):
    """A grid that loses the replies of all nodes but the first ``heard``."""

    def __init__(self, heard: int = 0) -> None:
        super().__init__(client_app(), 3)
        self._heard = list(self.get_node_ids())[:heard]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = super().pull_messages(message_ids)
        return [reply for reply in replies if reply.metadata.src_node_id in self._heard]


def questions(grid: LocalGrid, kind: str = IDENTIFY) -> list[Message]:
    return [Message(RecordDict(), node, kind, group_id="run") for node in grid.get_node_ids()]


def test_replies_pass_through() -> None:
    grid = LocalGrid(client_app(), 3)
    replies = SupervisedGrid(grid).send_and_receive(questions(grid))
    assert sorted(reply.metadata.src_node_id for reply in replies) == list(grid.get_node_ids())


def test_a_failed_node_ends_the_wait_with_its_reason(tmp_path: Path) -> None:
    grid = LocalGrid(client_app(str(tmp_path)), 3)
    message = rf"^a node \(and 2 more\) failed: .*run/population.json: not on {platform.node()}; accepted: "
    with pytest.raises(RunError, match=message):
        SupervisedGrid(grid).send_and_receive(questions(grid, REPORT))


@pytest.mark.parametrize(("heard", "silent"), [(0, 3), (1, 2)])
def test_nodes_that_do_not_answer_end_the_wait(heard: int, silent: int) -> None:
    grid = Silent(heard)
    seconds = {"first_answer_seconds": 0.0, "next_answer_seconds": 0.01}
    with pytest.raises(RunError, match=f"^{silent} nodes did not answer, and none did for 0"):
        SupervisedGrid(grid, **seconds).send_and_receive(questions(grid))


def test_a_runtime_that_ends_ends_the_wait() -> None:
    def ended() -> None:
        raise RunError("the runtime ended")

    grid = Silent()
    with pytest.raises(RunError, match="the runtime ended"):
        SupervisedGrid(grid, ended).send_and_receive(questions(grid))


def test_a_given_timeout_returns_what_has_arrived() -> None:
    grid = Silent(1)
    assert len(list(SupervisedGrid(grid).send_and_receive(questions(grid), timeout=0.0))) == 1


@pytest.mark.parametrize(
    "protocol",
    [
        None,
        {"kind": "iterative", "gradient": {"kind": "full"}, "rounds": 2, "rank": 2},
    ],
    ids=["one shot", "in rounds"],
)
def test_a_run_whose_disk_is_missing_fails(
    tiny: dict[str, Any], monkeypatch: pytest.MonkeyPatch, protocol: dict[str, Any] | None
) -> None:
    install = Session.install

    def lost(session: Session, *arguments: Any, **options: Any) -> str:
        group = install(session, *arguments, **options)
        shutil.rmtree(session.root / group)
        return group

    monkeypatch.setattr(Session, "install", lost)
    tiny["simulation"]["users_per_node"] = 10
    tiny["protocol"] = protocol or tiny["protocol"]
    with pytest.raises(RunError, match=r"a node \(and 3 more\) failed: .*population.json: not on"):
        run(tiny)
