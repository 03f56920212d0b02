from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.common.serde import message_to_proto

from clients.faults import FaultOptions
from dprec.accounting import PrivacyBudget
from dprec.errors import RunError
from dprec.exchange import RefusalCode, Reports
from dprec.mechanisms import BoundedLaplace, ZhengRandomizedResponse
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import RandomizedResponse
from simulation.engine.grids import stamped
from strategies.report_collection import Collected, ReportCollection
from strategies.roster import Roster, identify
from strategies.rounds import message_size
from tests import make
from tests.builders import RecordingGrid, Tamper, populated
from tests.make import synthetic

USERS, ITEMS, GROUP = 30, 40, "00000001"
SIZE = 5
VICTIM = 2
"""Partition whose node misbehaves; it hosts the users 10 to 14."""
PARTITION = range(VICTIM * SIZE, (VICTIM + 1) * SIZE)


RATINGS = synthetic(USERS, ITEMS, 500, without=(3,))


def start(
    folder: Path,
    size: int,
    mechanism: Mechanism | None = None,
    faults: FaultOptions = FaultOptions(),  # noqa: B008 (frozen)
) -> tuple[RecordingGrid, Roster, ReportCollection]:
    mechanism = mechanism or RandomizedResponse()
    budget = PrivacyBudget(epsilon=1.0, per="cell" if mechanism.report_family.hides_items else "rating")
    protocol = make.one_shot(mechanism, budget)
    populated(folder / GROUP, RATINGS, protocol, size, faults=faults)
    grid = RecordingGrid(folder, -(-USERS // size))
    grid.victim = list(grid.get_node_ids())[min(VICTIM, -(-USERS // size) - 1)]
    calibrated = mechanism.family(budget, RATINGS.scale, ITEMS)
    collection = ReportCollection(calibrated, GROUP)
    return grid, Roster(identify(grid), USERS, size), collection


@pytest.fixture
def honest(tmp_path: Path) -> Collected:
    grid, roster, collection = start(tmp_path / "honest", SIZE)
    return collection.collect(grid, roster)


def collect(folder: Path, tamper: Tamper, *, everywhere: bool = False) -> Collected:
    grid, roster, collection = start(folder, SIZE)
    grid.tamper = tamper
    if everywhere:
        grid.victim = None
    return collection.collect(grid, roster)


def cells_of(collected: Collected, without: Iterable[int]) -> list[tuple[int, int, float]]:
    seen = collected.observations
    keep = ~np.isin(seen.users, list(without))
    return list(
        zip(seen.users[keep].tolist(), seen.items[keep].tolist(), seen.values[keep].tolist(), strict=True)
    )


def replying(record: object) -> Tamper:
    def tamper(reply: Message) -> Message:
        reply.content = RecordDict({"reply": record})  # type: ignore[dict-item]
        return reply

    return tamper


def with_record(change: Callable[[int, list[bytes]], dict[str, object]]) -> Tamper:
    """Replace the record by what is made from the honest first user and reports."""

    def tamper(reply: Message) -> Message:
        record = reply.content["reply"]
        changed = change(record["first"], list(Reports.of(record).reports))  # type: ignore[index, arg-type]
        reply.content = RecordDict({"reply": ConfigRecord(changed)})  # type: ignore[arg-type]
        return reply

    return tamper


def sent(reports: list[bytes]) -> list[bytes]:
    """Return reports as the entry of a reply."""
    entry: list[bytes] = Reports(0, reports).entries()["reports"]
    return entry


def failing(reply: Message, code: int = 1) -> Message:
    question = Message(RecordDict(), reply.metadata.src_node_id, reply.metadata.message_type)
    answered = Message(Error(code, "the device is on fire"), reply_to=stamped(question))
    answered.metadata.__dict__["_src_node_id"] = reply.metadata.src_node_id
    return answered


def entries(**changes: Any) -> Tamper:
    """Replace entries of the record; None leaves one out, and a function is given the reports."""

    def change(first: int, reports: list[bytes]) -> dict[str, object]:
        honest = {"first": first, "reports": sent(reports)}
        made = {key: each(reports) if callable(each) else each for key, each in changes.items()}
        return {key: value for key, value in {**honest, **made}.items() if value is not None}

    return with_record(change)


WHOLE_REPLY: dict[str, Tamper] = {
    "the first partition's id": entries(first=0),
    "a negative id": entries(first=-PARTITION.start),
    "an id that is a float": entries(first=float(PARTITION.start)),
    "no id": entries(first=None),
    "a report too few": entries(reports=lambda reports: sent(reports[:-1])),
    "a report too many": entries(reports=lambda reports: sent([*reports, b""])),
    "no reports": entries(reports=None),
    "bytes, not a list": entries(reports=b"".join),
    "numbers": entries(reports=[1.0] * SIZE),
    "text": entries(reports=["a"] * SIZE),
    "metrics": replying(MetricRecord({"first": PARTITION.start, "reports": [1.0] * SIZE})),
    "arrays": replying(ArrayRecord({"reports": Array(np.full(SIZE, np.nan))})),
    "an error": failing,
    "nothing": lambda reply: None,
}


@pytest.mark.parametrize("tamper", WHOLE_REPLY.values(), ids=WHOLE_REPLY.keys())
def test_a_reply_that_cannot_be_attributed_is_counted_and_left_out(
    tmp_path: Path, honest: Collected, tamper: Tamper
) -> None:
    collected = collect(tmp_path, tamper)
    assert np.flatnonzero(~collected.sent).tolist() == list(PARTITION)
    assert np.flatnonzero(~collected.accepted).tolist() == list(PARTITION)
    assert collected.record.failures == SIZE
    assert collected.record.replies == USERS - SIZE
    assert cells_of(collected, []) == cells_of(honest, PARTITION)
    others = np.delete(np.arange(USERS), PARTITION)
    assert collected.traffic.uplink_message[PARTITION].tolist() == [0] * SIZE
    assert collected.traffic.uplink_message[others].tolist() == honest.traffic.uplink_message[others].tolist()
    assert collected.traffic.downlink_message.tolist() == honest.traffic.downlink_message.tolist()


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda report: report[:-1],
    "a million bytes longer": lambda report: report + bytes(1_000_000),
    "ones": lambda report: b"\xff" * len(report),
    "the item set alone": lambda report: report[:6],
    "twice": lambda report: report + report,
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_malformed_report_is_counted_and_its_neighbours_are_kept(
    tmp_path: Path, honest: Collected, spoil: Callable[[bytes], bytes]
) -> None:
    bad, lengths = PARTITION.start + 2, []

    def change(first: int, reports: list[bytes]) -> dict[str, object]:
        reports[2] = spoil(reports[2])
        lengths.append(len(reports[2]))
        return {"first": first, "reports": sent(reports)}

    collected = collect(tmp_path, with_record(change))
    assert collected.sent.all()
    assert np.flatnonzero(~collected.accepted).tolist() == [bad]
    assert (collected.record.replies, collected.record.failures) == (USERS - 1, 1)
    assert cells_of(collected, []) == cells_of(honest, [bad])
    # It crossed the network all the same.
    assert collected.traffic.uplink_payload[bad] == lengths[0]
    assert collected.traffic.uplink_message[bad] > lengths[0]


@pytest.mark.parametrize("tamper", [failing, lambda reply: None, WHOLE_REPLY["text"]])
def test_a_run_without_a_single_report_fails(tmp_path: Path, tamper: Tamper) -> None:
    with pytest.raises(RunError, match="none of the 30 users"):
        collect(tmp_path, tamper, everywhere=True)


def test_a_late_report_is_charged_and_not_used(tmp_path: Path) -> None:
    grid, roster, collection = start(tmp_path, SIZE, faults=FaultOptions(straggle=0.4))
    collected = collection.collect(grid, roster)
    assert collected.sent.all()
    assert 0 < collected.accepted.sum() == collected.record.replies < USERS
    assert ((collected.traffic.uplink_payload > 0) == (RATINGS.counts > 0)).all()


def test_refusals_are_counted_by_their_code(tmp_path: Path) -> None:
    collected = collect(tmp_path / "known", partial(failing, code=RefusalCode.BUDGET_SPENT))
    assert collected.record.causes == {"budget-spent": SIZE}
    assert not collected.sent[PARTITION].any()
    collected = collect(tmp_path / "unknown", failing)
    assert collected.record.causes == {"other-failure": SIZE}


def test_causes_add_up_to_the_failures(tmp_path: Path) -> None:
    faults = FaultOptions(dropout=0.3, straggle=0.2, corrupt=0.2)
    grid, roster, collection = start(tmp_path, SIZE, faults=faults)
    grid.tamper = partial(failing, code=RefusalCode.NOT_SET_UP)
    record = collection.collect(grid, roster).record
    assert set(record.causes) == {"absent", "late", "malformed", "not-set-up"}
    assert sum(record.causes.values()) == record.failures


def test_a_node_that_never_came_is_absent(tmp_path: Path, honest: Collected) -> None:
    grid, roster, collection = start(tmp_path, SIZE)
    place = PARTITION.start // SIZE
    gap = replace(roster, node_ids=(*roster.node_ids[:place], None, *roster.node_ids[place + 1 :]))
    collected = collection.collect(grid, gap)
    assert collected.record.causes == {"absent": SIZE}
    assert cells_of(collected, []) == cells_of(honest, PARTITION)


@pytest.mark.parametrize("mechanism", [BoundedLaplace(), ZhengRandomizedResponse()])
def test_accounted_bytes_are_those_of_the_real_messages(tmp_path: Path, mechanism: Mechanism) -> None:
    grid, roster, collection = start(tmp_path / "alone", 1, mechanism)
    alone = collection.collect(grid, roster)
    replies = {reply.metadata.src_node_id: reply for reply in grid.received}
    questions = {question.metadata.dst_node_id: question for question in grid.sent}
    for user, node in enumerate(roster.node_ids):
        assert alone.traffic.uplink_message[user] == message_size(replies[node])
        assert alone.traffic.downlink_message[user] == message_size(questions[node])
        # Replacing the random ids by wide ones can only add the bytes of a few varints.
        excess = message_size(replies[node]) - message_to_proto(replies[node]).ByteSize()
        assert 0 <= excess <= 2 * 10
    assert alone.traffic.messages.tolist() == [2] * USERS
    for size in (SIZE, USERS):
        grid, roster, collection = start(tmp_path / str(size), size, mechanism)
        together = collection.collect(grid, roster)
        for column in ("uplink_payload", "uplink_message", "downlink_payload", "downlink_message"):
            assert getattr(together.traffic, column).tolist() == getattr(alone.traffic, column).tolist()
        assert cells_of(together, []) == cells_of(alone, [])


def test_who_is_absent_has_sent_no_byte(tmp_path: Path) -> None:
    """A server that keeps all that it is sent would have it."""
    grid, roster, collection = start(tmp_path, SIZE, faults=FaultOptions(dropout=0.4))
    collection.collect(grid, roster)
    said = [Reports.of(reply.content["reply"]) for reply in grid.received if "reply" in reply.content]
    empty = [not report for each in said for report in each.reports]
    absent = [place in each.absent for each in said for place in range(len(each.reports))]
    assert 0 < sum(absent) < len(absent) == USERS
    # User 3 has rated nothing, which is reported in no byte either.
    assert sum(empty) - sum(absent) in (0, 1)
    assert not any(gone and not nothing for gone, nothing in zip(absent, empty, strict=True))
