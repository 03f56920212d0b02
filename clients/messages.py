"""What requests ask of a cohort, and the reply: its users' reports in one message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from numpy.typing import NDArray

from clients.faults import ABSENT, DAMAGED, LATE, damaged, fates
from clients.population import Cohort


def request_of(message: Message) -> ConfigRecord:
    """Return the record of a request.

    Raises
    ------
    ValueError
        When there is none.
    """
    record = message.content.get("request")
    if not isinstance(record, ConfigRecord):
        raise ValueError("a request without a record")
    return record


def asked_round(request: ConfigRecord) -> int:
    """Return the round that a request belongs to."""
    round_index = request.get("round")
    # A truth value is an integer to Python, and would name the draws of a round of its own.
    if not isinstance(round_index, int) or isinstance(round_index, bool):
        raise ValueError(f"asked for round {round_index!r}")
    return round_index


def asked_users(cohort: Cohort, request: ConfigRecord) -> NDArray[np.bool_]:
    """Return which users of a cohort a request is for, shape (users,).

    A message to a user who is alone on its node names nobody; one to a cohort of which only some
    are asked carries a bitmap.
    """
    bitmap = request.get("asked")
    if bitmap is None:
        return np.ones(cohort.size, dtype=np.bool_)
    if not isinstance(bitmap, bytes) or len(bitmap) != -(-cohort.size // 8):
        raise ValueError("a bitmap of another cohort")
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), count=cohort.size)
    return bits.astype(np.bool_)


def reply_with_reports(
    message: Message,
    cohort: Cohort,
    reports: Sequence[bytes],
    *,
    round_index: int,
    asked: NDArray[np.bool_] | None = None,
) -> Message:
    """Return the reply that carries one report per user who was asked.

    Faults are drawn here. An absent user's report is empty and marked, and a late one is marked:
    the marks stand for time in a simulation, which has none.

    Parameters
    ----------
    message : Message
        The request.
    cohort : Cohort
    reports : sequence of bytes
        One per user who was asked, in the order of the users.
    round_index : int
    asked : ndarray of bool, shape (users,), optional
        By default everybody.
    """
    population, sent = cohort.population, list(reports)
    fate = fates(population.faults, population.seed, round_index, cohort.start, cohort.size)
    fate = fate if asked is None else fate[asked]
    for user in np.flatnonzero(fate == ABSENT).tolist():
        sent[user] = b""
    for user in np.flatnonzero(fate == DAMAGED).tolist():
        sent[user] = damaged(sent[user])
    record = ConfigRecord({"first": cohort.start, "reports": sent})
    for name, mark in (("absent", ABSENT), ("late", LATE)):
        users = np.flatnonzero(fate == mark).tolist()
        if users:
            record[name] = users
    return Message(RecordDict({"reply": record}), reply_to=message)
