"""Every message type has its answer, and none is given to a message without its record."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.serde import message_to_proto

from clients import app, iterative
from clients.app import client_app
from clients.faults import ABSENT, DAMAGED, LATE, FaultOptions, fates
from clients.iterative import reply_with_reports
from clients.population import Partition, open_population
from dprec.accounting import PrivacyBudget
from dprec.exchange import (
    DELIVER,
    KEYS,
    MESSAGE_TYPES,
    REPLACE,
    REPORT,
    SHARES,
    SLOPES,
    TRAIN,
    UNMASK,
    GradientRequest,
    RefusalCode,
)
from dprec.gradients import OneBitGradient
from dprec.mechanisms.randomized_response import Raw
from dprec.protocols.iterative import IterativeProtocol
from dprec.randomness import RunKeys
from dprec.wire import encode_broadcast
from simulation.engine.grids import LocalGrid, stamped
from strategies.roster import arrivals_of
from strategies.rounds import request_content
from tests import make
from tests.builders import OneNode, populated
from tests.make import synthetic

OF_MASKS = {KEYS, SHARES, UNMASK}
"""What only devices answer that stand by themselves."""
SETUP = make.one_shot(Raw())


@pytest.mark.parametrize("message_type", [TRAIN, SLOPES, DELIVER, REPLACE])
@pytest.mark.parametrize(
    "content",
    [{}, {"request": MetricRecord({"round": 1})}, {"other": ConfigRecord({"round": 1})}],
    ids=["nothing", "metrics", "another name"],
)
def test_a_request_without_its_record_is_refused(
    tmp_path: Path, message_type: str, content: Any, caplog: pytest.LogCaptureFixture
) -> None:
    populated(tmp_path / "run", synthetic(10, 10, 40), SETUP, 10)
    reply = OneNode(tmp_path).ask(message_type, RecordDict(content))
    assert reply.error.code == RefusalCode.MALFORMED_REQUEST
    assert "a request without a record" in caplog.text


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
def server(tmp_path: Path) -> OneNode:
    budget = PrivacyBudget(epsilon=ROUNDS, per="user")
    protocol = IterativeProtocol(gradient=OneBitGradient(), rank=RANK, rounds=ROUNDS, privacy=budget)
    populated(tmp_path / "run", synthetic(4, ITEMS, 20), protocol, 4)
    made = OneNode(tmp_path)
    made.grid = Recorder(client_app(str(tmp_path)), 1)
    return made


def gradient(round_index: int, factors: bytes = FACTORS) -> RecordDict:
    return request_content(GradientRequest(round_index, factors))


def refused(reply: Message, code: RefusalCode) -> None:
    assert (reply.error.code, reply.error.reason) == (code, code.name)


def test_no_reply_says_more_than_a_code(server: OneNode, caplog: pytest.LogCaptureFixture) -> None:
    assert server.ask(TRAIN, gradient(2)).has_content()
    refused(server.ask(TRAIN, gradient(2, OTHERS)), RefusalCode.CHANGED_REQUEST)
    refused(server.ask(TRAIN, gradient(1)), RefusalCode.ROUND_ANSWERED)
    refused(server.ask(TRAIN, gradient(ROUNDS + 1)), RefusalCode.TOO_MANY_ROUNDS)
    malformed = [gradient(3, FACTORS[1:]), gradient(0), RecordDict({"request": ConfigRecord({"round": "3"})})]
    for content in malformed:
        refused(server.ask(TRAIN, content), RefusalCode.MALFORMED_REQUEST)
    refused(server.ask(TRAIN, gradient(3), run="../run"), RefusalCode.MALFORMED_REQUEST)
    refused(server.ask("query.profile", RecordDict()), RefusalCode.MALFORMED_REQUEST)
    refused(server.ask(REPORT, RecordDict()), RefusalCode.NOT_SET_UP)
    reasons = [str(record.args[1]) for record in caplog.records if isinstance(record.args, tuple)]
    assert len(reasons) == 9
    assert not [reason for reason in reasons if reason.encode() in server.grid.received]


@pytest.mark.parametrize("message_type", sorted(MESSAGE_TYPES - OF_MASKS))
def test_a_defect_in_any_handler_stays_on_the_device(
    server: OneNode, message_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KeyError(SECRET)

    for name in ("partition_of", "partition_id_of"):
        monkeypatch.setattr(app, name, fails)
    refused(server.ask(message_type, RecordDict()), RefusalCode.INTERNAL_FAILURE)
    assert SECRET.encode() not in server.grid.received
    (failure,) = server.grid.failures
    assert failure.line.startswith(f"KeyError: '{SECRET}' (test_app.py, line ")


def test_a_defect_in_the_work_of_a_device_stays_there(
    server: OneNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(iterative, "profiles_of", fails)
    refused(server.ask(TRAIN, gradient(1)), RefusalCode.INTERNAL_FAILURE)
    assert SECRET.encode() not in server.grid.received


USERS = 40
KEYS = RunKeys.derive(6).installed
FAULTS = FaultOptions(dropout=0.25, straggle=0.2, corrupt=0.15)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    populated(tmp_path / "run", synthetic(2 * USERS, 10, 200), SETUP, USERS, seed=6, faults=FAULTS)
    return open_population(str(tmp_path / "run")).partition(1)


@pytest.fixture
def message() -> Message:
    return stamped(Message(RecordDict(), 7, "train", group_id="run"))


@pytest.mark.parametrize("some", [False, True])
def test_a_reply_tells_what_arrived_and_when(partition: Partition, message: Message, some: bool) -> None:
    asked = np.arange(USERS) % 2 == 0 if some else np.ones(USERS, dtype=np.bool_)
    reports = [bytes([user, user]) for user in range(USERS)]
    sent = [reports[user] for user in np.flatnonzero(asked)]
    reply = reply_with_reports(message, partition, reports, round_index=5, asked=asked if some else None)
    arrivals = arrivals_of(reply, partition.start, partition.start + np.flatnonzero(asked))
    assert arrivals is not None
    fate = fates(FAULTS, KEYS.network_seed, 5, partition.start, USERS)[asked]
    assert {ABSENT, LATE, DAMAGED} <= set(fate.tolist())
    assert arrivals.arrived.tolist() == (fate != ABSENT).tolist()
    assert arrivals.punctual.tolist() == ((fate != ABSENT) & (fate != LATE)).tolist()
    for own, report, mark in zip(sent, arrivals.reports, fate.tolist(), strict=True):
        if mark == ABSENT:
            assert report == b""
        else:
            assert (report == own) == (mark != DAMAGED)
    assert len(sent) == asked.sum()


OPTIONS = FaultOptions(dropout=0.1, straggle=0.05, corrupt=0.01)


def test_a_fate_belongs_to_a_user_and_a_round() -> None:
    everybody = fates(OPTIONS, 1, 1, 0, 500)
    assert np.concatenate([fates(OPTIONS, 1, 1, first, 7) for first in range(0, 497, 7)]).tolist() == (
        everybody[:497].tolist()
    )
    assert fates(OPTIONS, 1, 2, 0, 500).tolist() != everybody.tolist()
    assert fates(OPTIONS, 2, 1, 0, 500).tolist() != everybody.tolist()
