"""Replies, with the faults that befall them."""

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message, RecordDict

from clients.faults import ABSENT, DAMAGED, LATE, FaultOptions, fates
from clients.population import Partition, open_population, write_population
from clients.replies import reply_with_reports
from dprec.datasets import Synthetic
from dprec.exchange import OneShotSetup
from dprec.mechanisms.unprotected import Raw
from dprec.randomness import RunKeys
from simulation.engine.grids import stamped
from strategies.roster import arrivals_of

USERS = 40
KEYS = RunKeys.derive(6).installed
SETUP = OneShotSetup(mechanism=Raw(), privacy=None)
FAULTS = FaultOptions(dropout=0.25, straggle=0.2, corrupt=0.15)


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    ratings = Synthetic(users=2 * USERS, items=10, ratings=200).load()
    write_population(
        tmp_path / "run",
        ratings,
        users_per_node=USERS,
        keys=KEYS,
        faults=FAULTS,
        setup=SETUP,
    )
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
