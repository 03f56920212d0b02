"""How long grids wait: for no failed node, and for no silent one for ever."""

import platform
from collections.abc import Iterable
from pathlib import Path

import pytest
from flwr.app import Message, RecordDict

from clients.app import client_app
from dprec.errors import RunError
from dprec.exchange import IDENTIFY, REPORT
from simulation.engine import grids
from simulation.engine.grids import LocalGrid, SupervisedGrid


class Silent(LocalGrid):
    """A grid that loses the replies of all nodes but the first ``heard``."""

    def __init__(self, heard: int = 0) -> None:
        super().__init__(client_app(""), 3)
        self._heard = list(self.get_node_ids())[:heard]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = super().pull_messages(message_ids)
        return [reply for reply in replies if reply.metadata.src_node_id in self._heard]


def questions(grid: LocalGrid, kind: str = IDENTIFY) -> list[Message]:
    return [Message(RecordDict(), node, kind, group_id="run") for node in grid.get_node_ids()]


def test_a_failed_node_ends_the_wait_with_its_reason(tmp_path: Path) -> None:
    grid = LocalGrid(client_app(str(tmp_path)), 3)
    message = rf"^a node \(and 2 more\) failed: .*run/population.json: not on {platform.node()}; accepted: "
    with pytest.raises(RunError, match=message):
        SupervisedGrid(grid).send_and_receive(questions(grid, REPORT))


@pytest.mark.parametrize(("heard", "silent"), [(0, 3), (1, 2)])
def test_nodes_that_do_not_answer_end_the_wait(
    monkeypatch: pytest.MonkeyPatch, heard: int, silent: int
) -> None:
    grid = Silent(heard)
    monkeypatch.setattr(grids, "START_SECONDS", 0.0)
    monkeypatch.setattr(grids, "_NEXT_ANSWER_SECONDS", 0.01)
    with pytest.raises(RunError, match=f"^{silent} nodes did not answer, and none did for 0"):
        SupervisedGrid(grid).send_and_receive(questions(grid))
