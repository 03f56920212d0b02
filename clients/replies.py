"""The reply of a cohort: its users' reports in one message, after simulated faults."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from numpy.typing import NDArray

from clients.faults import ABSENT, DAMAGED, LATE, damaged, fates
from clients.population import Cohort
from dprec.messages import REPLY, Reports


def reply_with_reports(
    message: Message,
    cohort: Cohort,
    reports: Sequence[bytes],
    *,
    round_index: int,
    asked: NDArray[np.bool_] | None = None,
) -> Message:
    """Return the reply that carries one report per user who was asked.

    Faults are drawn here: an absent user's report is empty and marked, a late one is marked.

    Parameters
    ----------
    message : Message
        The request.
    cohort : Cohort
    reports : sequence of bytes
        One per user of the cohort.
    round_index : int
    asked : ndarray of bool, shape (users,), optional
        Everybody by default.
    """
    population = cohort.population
    users = np.arange(cohort.size) if asked is None else np.flatnonzero(asked)
    sent = [reports[user] for user in users.tolist()]
    fate = fates(population.faults, population.keys.network_seed, round_index, cohort.start, cohort.size)[
        users
    ]
    for place in np.flatnonzero(fate == ABSENT).tolist():
        sent[place] = b""
    for place in np.flatnonzero(fate == DAMAGED).tolist():
        sent[place] = damaged(sent[place])
    absent, late = (tuple(np.flatnonzero(fate == mark).tolist()) for mark in (ABSENT, LATE))
    record = ConfigRecord(Reports(cohort.start, sent, absent, late).entries())
    return Message(RecordDict({REPLY: record}), reply_to=message)
