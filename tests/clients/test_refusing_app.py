"""Whatever goes wrong on a device, the server reads a code and nothing else."""

import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import message_to_proto

from clients import app, iterative
from clients.app import LOG, client_app
from clients.faults import FaultOptions
from clients.population import PopulationError, write_population
from dprec.datasets import Synthetic
from dprec.exchange import MESSAGE_TYPES, REPORT, TRAIN, GradientRequest, IterativeSetup, RefusalCode
from dprec.gradients import OneBitGradient
from dprec.randomness import RunKeys
from dprec.wire import BroadcastOptions, encode_broadcast
from simulation.engine.grids import LocalGrid
from strategies.rounds import request_content

ITEMS, RANK, ROUNDS = 10, 2, 3
FACTORS = encode_broadcast(np.ones((ITEMS, RANK), dtype="<f4"))
OTHERS = encode_broadcast(np.zeros((ITEMS, RANK), dtype="<f4"))
SECRET = "user 7 rated item 42 with 4 stars"


class Recorder(LocalGrid):
    """A grid that keeps every reply as the bytes that a server receives."""

    received: bytes = b""

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = list(super().pull_messages(message_ids))
        self.received += b"".join(message_to_proto(reply).SerializeToString() for reply in replies)
        return replies


@pytest.fixture
def grid(tmp_path: Path) -> Recorder:
    write_population(
        tmp_path / "run",
        Synthetic(users=4, items=ITEMS, ratings=20).load(),
        users_per_node=4,
        keys=RunKeys.derive(1).installed,
        faults=FaultOptions(),
        setup=IterativeSetup(
            gradient=OneBitGradient(),
            broadcast=BroadcastOptions(),
            rank=RANK,
            ridge=1.0,
            epsilon_per_round=1.0,
            rounds=ROUNDS,
        ),
    )
    return Recorder(client_app(str(tmp_path)), 1)


def ask(grid: LocalGrid, message_type: str, content: RecordDict, group: str = "run") -> Message:
    (node,) = grid.get_node_ids()
    (reply,) = grid.send_and_receive([Message(content, node, message_type, group_id=group)])
    return reply


def gradient(round_index: int, factors: bytes = FACTORS) -> RecordDict:
    return request_content(GradientRequest(round_index, factors))


def refused(reply: Message, code: RefusalCode) -> None:
    assert (reply.error.code, reply.error.reason) == (code, code.name)


def test_no_reply_says_more_than_a_code(grid: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(grid, TRAIN, gradient(2)).has_content()
    refused(ask(grid, TRAIN, gradient(2, OTHERS)), RefusalCode.CHANGED_REQUEST)
    refused(ask(grid, TRAIN, gradient(1)), RefusalCode.ROUND_ANSWERED)
    refused(ask(grid, TRAIN, gradient(ROUNDS + 1)), RefusalCode.TOO_MANY_ROUNDS)
    malformed = [gradient(3, FACTORS[1:]), gradient(0), RecordDict({"request": ConfigRecord({"round": "3"})})]
    for content in malformed:
        refused(ask(grid, TRAIN, content), RefusalCode.MALFORMED_REQUEST)
    refused(ask(grid, TRAIN, gradient(3), group="../run"), RefusalCode.MALFORMED_REQUEST)
    refused(ask(grid, "query.profile", RecordDict()), RefusalCode.MALFORMED_REQUEST)
    refused(ask(grid, REPORT, RecordDict()), RefusalCode.NOT_SET_UP)
    reasons = [str(record.args[1]) for record in caplog.records if isinstance(record.args, tuple)]
    assert len(reasons) == 9
    assert not [reason for reason in reasons if reason.encode() in grid.received]


@pytest.mark.parametrize("message_type", sorted(MESSAGE_TYPES))
def test_a_defect_in_any_handler_stays_on_the_device(
    grid: Recorder, message_type: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise KeyError(SECRET)

    for name in ("partition_of", "partition_id_of"):
        monkeypatch.setattr(app, name, fails)
    refused(ask(grid, message_type, RecordDict()), RefusalCode.INTERNAL_FAILURE)
    assert SECRET.encode() not in grid.received
    assert SECRET in caplog.text


def test_a_defect_in_the_work_of_a_device_stays_there(
    grid: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(LOG, "disabled", True)
    monkeypatch.setattr(iterative, "solve_user_factors", fails)
    refused(ask(grid, TRAIN, gradient(1)), RefusalCode.INTERNAL_FAILURE)
    assert SECRET.encode() not in grid.received


def test_a_population_that_is_not_there_is_no_fault_of_a_device(
    grid: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger=LOG.name):
        reply = ask(grid, TRAIN, gradient(1), group="other")
    assert PopulationError.__name__ in reply.error.reason
    assert "other/population.json: not on" in reply.error.reason
    assert not caplog.records
