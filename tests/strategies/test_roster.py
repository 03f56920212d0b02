"""Sums that nodes send instead of reports: what is believed of them."""

from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from dprec.exchange import REPLY, TRAIN, Reports, SummedReports
from dprec.gradients import Aggregate, FullGradient, GradientReport, OneBitGradient
from dprec.protocols.iterative import FactorsDevice, IterativeProtocol
from strategies.roster import ReadSums, Sums
from strategies.rounds import reply_message

ITEMS, RANK, FIRST, USERS = 4, 2, 14, 9
ABSENT, LATE = np.arange(USERS) == 3, np.arange(USERS) == 5
SIZES = np.where(np.arange(USERS) == 1, 3, 2)
RATERS = np.ones(ITEMS, dtype=np.int64)
VOTES = np.array([2, 0, -1, 0, 0, 3, 0, 0])

Entries = dict[str, Any]


def read_by(gradient: GradientReport, *, believed: bool) -> ReadSums:
    protocol = IterativeProtocol(gradient=gradient, rounds=1, rank=RANK)
    device = FactorsDevice(protocol, np.zeros((ITEMS, RANK), dtype=np.float32))
    return ReadSums(*device.reading, believed)


def read(entries: Entries, gradient: GradientReport) -> Sums | None:
    reply = reply_message(TRAIN, RecordDict({REPLY: ConfigRecord(entries)}), "run")
    users = np.arange(FIRST, FIRST + USERS)
    return read_by(gradient, believed=True)(reply, FIRST, users)


def votes() -> Entries:
    return SummedReports(FIRST, ABSENT, LATE, SIZES, 6, VOTES).entries()


def test_what_a_node_adds_up_arrives() -> None:
    sums = read(votes(), OneBitGradient())
    assert sums is not None
    assert sums.aggregate.total.tolist() == VOTES.tolist()
    assert sums.aggregate.users == 6
    assert sums.senders.tolist() == [14, 15, 16, 18, 19, 20, 21, 22]
    assert sums.payloads.tolist() == [2, 3, 2, 2, 2, 2, 2, 2]
    assert sums.punctual_users.tolist() == [14, 15, 16, 18, 20, 21, 22]


def test_a_device_alone_has_nothing_to_add_up() -> None:
    """A sum of one, however large, is believed of nobody; the report of one is, whose bounds are checked."""
    for total in ([1, 0], [2**39, 2**39]):
        own = SummedReports(FIRST, ABSENT[:1], LATE[:1], SIZES[:1], 1, np.resize(total, ITEMS * RANK), RATERS)
        reply = reply_message(TRAIN, RecordDict({REPLY: ConfigRecord(own.entries())}), "run")
        for gradient in (FullGradient(), OneBitGradient()):
            assert read_by(gradient, believed=False)(reply, FIRST, np.array([FIRST])) is None
    report = reply_message(TRAIN, RecordDict({REPLY: ConfigRecord(Reports(FIRST, [b""]).entries())}), "run")
    alone = read_by(FullGradient(), believed=False)(report, FIRST, np.array([FIRST]))
    assert alone is not None
    assert alone.aggregate.users == 1


def numbers(*values: int) -> bytes:
    return np.array(values, dtype="<i8").tobytes()


def places(*values: int) -> bytes:
    return np.array(values, dtype="<u4").tobytes()


HOSTILE: dict[str, Entries] = {
    "other users": {"first": 7},
    "too few": {"asked": 8},
    "too many": {"asked": 2**60},
    "more accepted than punctual": {"accepted": 8},
    "fewer accepted than added up": {"accepted": 4},
    "more without noise than accepted": {"undrawn": 7},
    "fewer than none without noise": {"undrawn": -1},
    "no such number of votes": {"accepted": 7},
    "marks of others": {"absent": bytes(3)},
    "large": {"total": numbers(2**62), "total_at": places(0)},
    "the smallest integer": {"total": numbers(-(2**63)), "total_at": places(0)},
    "cut short": {"total": numbers(2, 2)[:-1]},
    "fewer numbers": {"total": numbers(2, 2)},
    "beyond the end": {"total": numbers(2), "total_at": places(ITEMS * RANK)},
    "at one place twice": {"total": numbers(1, 1), "total_at": places(0, 0)},
    "text": {"total": "x"},
    "not a number": {"total": float("nan")},
    "huge reports": {"sizes": [2**60]},
    "negative sizes": {"sizes": [-1]},
    "no sizes": {"sizes": []},
    "sizes of others": {"size_of": bytes(USERS + 1)},
    "no such size": {"size_of": bytes([2] * USERS)},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_sums_are_not_believed(change: Entries) -> None:
    assert read({**votes(), **change}, OneBitGradient()) is None


def test_votes_have_the_parity_and_size_of_so_many_signs() -> None:
    for total, possible in (
        ([3, 0, 0, 0], True),
        ([1, -1, 1, 0], True),
        ([1, 0, 0, 0], True),
        ([2, 0, 0, 0], False),
        ([2, -1, 1, 1], False),
        ([5, 0, 0, 0], False),
    ):
        assert OneBitGradient().possible(Aggregate(np.array(total), None, 3), (2, 2)) == possible


def test_an_item_has_no_more_raters_than_users_and_no_more_gradient_than_raters() -> None:
    gradient, largest = FullGradient(), 2**39
    for raters, first, possible in (
        ([1, 0], largest, True),
        ([1, 0], largest + 1, False),
        ([0, 1], 1, False),
        ([4, 0], 0, False),
        ([-1, 0], 0, False),
    ):
        aggregate = Aggregate(np.array([[first, 0], [0, 0]]), np.array(raters), 3)
        assert gradient.possible(aggregate, (2, 2)) == possible


def test_raters_are_read_where_reports_show_them_and_nowhere_else() -> None:
    total, raters = np.arange(ITEMS * RANK), np.full(ITEMS, 2)
    both = SummedReports(FIRST, ABSENT, LATE, SIZES, 6, total, raters).entries()
    sums = read(both, FullGradient())
    assert sums is not None
    assert sums.aggregate.total.tolist() == total.reshape(ITEMS, RANK).tolist()
    assert sums.aggregate.raters is not None
    assert sums.aggregate.raters.tolist() == raters.tolist()
    assert read(SummedReports(FIRST, ABSENT, LATE, SIZES, 6, total).entries(), FullGradient()) is None
    beyond = {**both, "raters_at": places(0, 1, 2, ITEMS)}
    assert read(beyond, FullGradient()) is None
