"""Every message type has its answer, and none is given to a message without its record."""

import logging
import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.serde import message_to_proto

from clients import app, iterative
from clients.app import client_app
from clients.faults import ABSENT, DAMAGED, LATE, PUNCTUAL, FaultOptions, damaged, fates
from clients.iterative import reply_with_reports
from clients.population import Partition, PopulationError, open_population
from clients.refusing import LOG
from dprec import exchange
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.exchange import (
    DELIVER,
    IDENTIFY,
    MESSAGE_TYPES,
    REPLACE,
    REPORT,
    SLOPES,
    TRAIN,
    GradientRequest,
    IterativeSetup,
    OneShotSetup,
    RefusalCode,
)
from dprec.gradients import OneBitGradient
from dprec.mechanisms.randomized_response import Raw
from dprec.randomness import RunKeys
from dprec.wire import BroadcastOptions, encode_broadcast
from simulation.engine.grids import LocalGrid, stamped
from strategies.roster import arrivals_of
from strategies.rounds import request_content
from tests.builders import populated
from tests.refusals import refused_at

OF_MASKS = {exchange.KEYS, exchange.SHARES, exchange.UNMASK}
"""What only devices answer that stand by themselves."""


def answer(folder: Path, message_type: str, content: RecordDict) -> Message:
    ratings = Synthetic(users=10, items=10, ratings=40).load()
    populated(folder / "run", ratings, OneShotSetup(mechanism=Raw(), privacy=None), 10)
    grid = LocalGrid(client_app(str(folder)), 1)
    node = next(iter(grid.get_node_ids()))
    (reply,) = grid.send_and_receive([Message(content, node, message_type, group_id="run")])
    return reply


@pytest.mark.parametrize("message_type", [IDENTIFY, REPORT])
def test_questions_without_a_record_are_answered(tmp_path: Path, message_type: str) -> None:
    assert answer(tmp_path, message_type, RecordDict()).has_content()


@pytest.mark.parametrize("message_type", [TRAIN, SLOPES, DELIVER, REPLACE])
@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"request": MetricRecord({"round": 1})}),
        RecordDict({"other": ConfigRecord({"round": 1})}),
    ],
    ids=["nothing", "metrics", "another name"],
)
def test_a_request_without_its_record_is_refused(
    tmp_path: Path, message_type: str, content: RecordDict, caplog: pytest.LogCaptureFixture
) -> None:
    reply = answer(tmp_path, message_type, content)
    assert reply.error.code == RefusalCode.MALFORMED_REQUEST
    assert "a request without a record" in caplog.text


def test_a_message_of_another_type_is_refused(tmp_path: Path) -> None:
    assert answer(tmp_path, "query.profile", RecordDict()).has_error()


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
    populated(
        tmp_path / "run",
        Synthetic(users=4, items=ITEMS, ratings=20).load(),
        IterativeSetup(
            gradient=OneBitGradient(),
            broadcast=BroadcastOptions(),
            rank=RANK,
            ridge=1.0,
            epsilon_per_round=1.0,
            rounds=ROUNDS,
        ),
        4,
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


@pytest.mark.parametrize(
    "message_type", sorted(MESSAGE_TYPES - {exchange.KEYS, exchange.SHARES, exchange.UNMASK})
)
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
    monkeypatch.setattr(iterative, "profiles_of", fails)
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


USERS = 40
KEYS = RunKeys.derive(6).installed
SETUP = OneShotSetup(mechanism=Raw(), privacy=None)
FAULTS = FaultOptions(dropout=0.25, straggle=0.2, corrupt=0.15)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    ratings = Synthetic(users=2 * USERS, items=10, ratings=200).load()
    populated(tmp_path / "run", ratings, SETUP, USERS, seed=6, faults=FAULTS)
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


def test_the_shares_are_as_configured() -> None:
    """Each within 5 standard errors of 1e6 draws: false alarm 3 x 6e-7; the seed is fixed."""
    users = 1_000_000
    fate = fates(OPTIONS, 1, 1, 0, users)
    for mark, share in ((ABSENT, 0.1), (LATE, 0.05), (DAMAGED, 0.01), (PUNCTUAL, 0.84)):
        error = math.sqrt(share * (1 - share) / users)
        assert abs(np.mean(fate == mark) - share) < 5 * error


def test_a_fate_belongs_to_a_user_and_a_round() -> None:
    everybody = fates(OPTIONS, 1, 1, 0, 500)
    assert np.concatenate([fates(OPTIONS, 1, 1, first, 7) for first in range(0, 497, 7)]).tolist() == (
        everybody[:497].tolist()
    )
    assert fates(OPTIONS, 1, 2, 0, 500).tolist() != everybody.tolist()
    assert fates(OPTIONS, 2, 1, 0, 500).tolist() != everybody.tolist()


def test_no_faults_and_nothing_but_faults() -> None:
    assert (fates(FaultOptions(), 1, 1, 0, 1000) == PUNCTUAL).all()
    assert (fates(FaultOptions(dropout=1.0), 1, 1, 0, 1000) == ABSENT).all()
    assert (fates(FaultOptions(straggle=1.0), 1, 1, 0, 1000) == LATE).all()
    assert (fates(FaultOptions(corrupt=1.0), 1, 1, 0, 1000) == DAMAGED).all()


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"add up to 1\.2"):
        FaultOptions(dropout=0.6, straggle=0.6)
    for name in ("dropout", "straggle", "corrupt"):
        for value in (-0.1, 1.1, float("nan")):
            with refused_at(name):
                FaultOptions(**{name: value})


def test_a_damaged_report_is_another_one() -> None:
    assert damaged(b"") != b""
    assert damaged(b"ab") != b"ab"
