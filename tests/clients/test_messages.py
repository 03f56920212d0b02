"""Requests, read with suspicion, and replies, with the faults that befall them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict

from clients.faults import ABSENT, DAMAGED, LATE, FaultOptions, fates
from clients.messages import asked_round, asked_users, reply_with_reports, request_of
from clients.population import Cohort, open_population, write_population
from dprec.datasets.synthetic import Synthetic
from dprec.mechanisms.raw import Raw
from dprec.setups import OneShotSetup
from strategies.roster import arrivals_of

USERS = 40
SETUP = OneShotSetup(mechanism=Raw(), privacy=None)
FAULTS = FaultOptions(dropout=0.25, straggle=0.2, corrupt=0.15)


@pytest.fixture
def cohort(tmp_path: Path) -> Cohort:
    ratings = Synthetic(users=2 * USERS, items=10, ratings=200).load()
    write_population(tmp_path / "run", ratings, users_per_node=USERS, seed=6, faults=FAULTS, setup=SETUP)
    return open_population(str(tmp_path / "run")).cohort(1)


@pytest.fixture
def message() -> Message:
    question = Message(RecordDict(), 7, "train", group_id="run")
    question.metadata.__dict__["_message_id"] = "question"
    return question


@pytest.mark.parametrize("content", [{}, {"request": MetricRecord({"round": 1})}, {"other": ConfigRecord()}])
def test_a_request_without_a_record_is_refused(message: Message, content: dict[str, Any]) -> None:
    message.content = RecordDict(content)
    with pytest.raises(ValueError, match="without a record"):
        request_of(message)


@pytest.mark.parametrize("value", [None, True, False, "1", 1.0, b"1", [1]])
def test_a_round_is_a_whole_number(value: Any) -> None:
    record = ConfigRecord({} if value is None else {"round": value})
    with pytest.raises(ValueError, match="asked for round"):
        asked_round(record)
    assert asked_round(ConfigRecord({"round": 3})) == 3


@pytest.mark.parametrize("bitmap", [b"", bytes(4), bytes(6), "x", 1, [True]])
def test_a_bitmap_of_another_cohort_is_refused(cohort: Cohort, bitmap: Any) -> None:
    with pytest.raises(ValueError, match="another cohort"):
        asked_users(cohort, ConfigRecord({"asked": bitmap}))


def test_a_bitmap_names_the_users_who_are_asked(cohort: Cohort) -> None:
    wanted = np.arange(USERS) % 3 == 0
    record = ConfigRecord({"asked": np.packbits(wanted).tobytes()})
    assert asked_users(cohort, record).tolist() == wanted.tolist()
    assert asked_users(cohort, ConfigRecord()).all()


@pytest.mark.parametrize("some", [False, True])
def test_a_reply_tells_what_arrived_and_when(cohort: Cohort, message: Message, some: bool) -> None:
    asked = np.arange(USERS) % 2 == 0 if some else np.ones(USERS, dtype=np.bool_)
    sent = [bytes([user, user]) for user in np.flatnonzero(asked)]
    reply = reply_with_reports(message, cohort, sent, round_index=5, asked=asked if some else None)
    arrivals = arrivals_of(reply, cohort.start, len(sent))
    assert arrivals is not None
    fate = fates(FAULTS, 6, 5, cohort.start, USERS)[asked]
    assert {ABSENT, LATE, DAMAGED} <= set(fate.tolist())
    assert arrivals.arrived.tolist() == (fate != ABSENT).tolist()
    assert arrivals.punctual.tolist() == ((fate != ABSENT) & (fate != LATE)).tolist()
    for own, report, mark in zip(sent, arrivals.reports, fate.tolist(), strict=True):
        if mark == ABSENT:
            assert report == b""
        else:
            assert (report == own) == (mark != DAMAGED)
    assert len(sent) == asked.sum()
