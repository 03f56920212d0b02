"""The reply of a partition after simulated faults: its users' reports in one message, or their sum."""

from collections.abc import Callable, Sequence

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from numpy.typing import NDArray

from clients.faults import ABSENT, DAMAGED, LATE, damaged, fates
from clients.population import Partition
from dprec.arrays import Bools, sizes_of
from dprec.exchange import REPLY, Entries, Reports, SummedReports
from dprec.gradients import Aggregate

AddUp = Callable[[Sequence[bytes]], tuple[Bools, Aggregate]]
"""Validates and adds up reports; see `GradientReport.decode`."""


def reply_with_reports(
    message: Message,
    partition: Partition,
    reports: Sequence[bytes],
    *,
    round_index: int,
    asked: Bools | None = None,
) -> Message:
    """Return the reply that carries one report per user who was asked, by default everybody.

    Faults are drawn here: an absent user's report is empty and marked, a late one is marked.
    """
    sent, fate = _after_faults(partition, reports, round_index, asked)
    absent, late = (tuple(np.flatnonzero(fate == mark).tolist()) for mark in (ABSENT, LATE))
    return _reply(message, Reports(partition.start, sent, absent, late).entries())


def reply_with_sums(
    message: Message,
    partition: Partition,
    reports: Sequence[bytes],
    add_up: AddUp,
    *,
    round_index: int,
    asked: Bools,
) -> Message:
    """Return the reply that carries the sum of those reports that a server would accept.

    The node does here what the server does with reports, so that they need not be carried to it.
    """
    sent, fate = _after_faults(partition, reports, round_index, asked)
    absent, late = fate == ABSENT, fate == LATE
    punctual = np.flatnonzero(~absent & ~late).tolist()
    _, aggregate = add_up([sent[place] for place in punctual])
    total = aggregate.total.ravel()
    reply = SummedReports(
        partition.start, absent, late, sizes_of(sent), aggregate.users, total, aggregate.raters
    )
    return _reply(message, reply.entries())


def _after_faults(
    partition: Partition, reports: Sequence[bytes], round_index: int, asked: Bools | None
) -> tuple[list[bytes], NDArray[np.int8]]:
    """Return what those who are asked send, empty for who is absent, and the fate of each reply."""
    population = partition.population
    users = np.arange(partition.size) if asked is None else np.flatnonzero(asked)
    sent = [reports[user] for user in users.tolist()]
    fate = fates(
        population.faults, population.keys.network_seed, round_index, partition.start, partition.size
    )[users]
    for place in np.flatnonzero(fate == ABSENT).tolist():
        sent[place] = b""
    for place in np.flatnonzero(fate == DAMAGED).tolist():
        sent[place] = damaged(sent[place])
    return sent, fate


def _reply(message: Message, entries: Entries) -> Message:
    return Message(RecordDict({REPLY: ConfigRecord(entries)}), reply_to=message)
