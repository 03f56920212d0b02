"""exchanges.jsonl: what a deployment has asked, and who answered. Simulated users can answer likewise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from clients.faults import ABSENT, LATE, NOT_ASKED, PUNCTUAL, Attendance
from dprec.errors import InputError
from dprec.exchange import COUNT, REPORT, SLOPES, STATISTICS, TRAIN, UPDATE
from simulation.storage.files import Document, parse_document, read_text

EXCHANGES = "exchanges.jsonl"

_REPORTS = frozenset({REPORT, COUNT, TRAIN, STATISTICS, UPDATE, SLOPES})
"""Types of messages that ask for reports."""

_MOST_ROUNDS = 100_000


class Exchange(Document):
    """Something that the server asked, and how it went; a line of exchanges.jsonl."""

    exchange: Annotated[int, Field(ge=1)] = Field(description="Its number in the run, from 1.")
    asks: str = Field(description="Type of the messages.")
    round: Annotated[int, Field(ge=1)] | None = Field(
        description="The round that they name; null for what costs devices nothing."
    )
    began: str = Field(description="When, in UTC.")
    seconds: float = Field(ge=0, description="How long it took.")
    answered: tuple[str, ...] = Field(description="Users whose answer came in time.")
    late: tuple[str, ...] = Field(description="Users whose answer came in the grace period.")
    absent: tuple[str, ...] = Field(description="Users without an answer.")
    refused: dict[str, tuple[str, ...]] = Field(description="Users whose device refused, by its reason.")

    @property
    def causes(self) -> dict[str, int]:
        """Why answers failed, and how many."""
        counts = {"absent": len(self.absent), "late": len(self.late)}
        counts |= {cause: len(users) for cause, users in self.refused.items()}
        return {cause: count for cause, count in counts.items() if count}


def read_exchanges(directory: Path) -> tuple[Exchange, ...]:
    """Read what was asked in a run so far; nothing if it has no such file. Raises InputError."""
    path = directory / EXCHANGES
    if not path.exists():
        return ()
    lines = read_text(path, "exchanges.jsonl as a run writes it").splitlines()
    return tuple(
        parse_document(Exchange, line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)
    )


def attendance_in(directory: Path, user_ids: Sequence[str]) -> Attendance:
    """Return who has reported in which round of a deployed run; who has never answered was never asked.

    Raises InputError when the run has asked for no report, or has other users than those.
    """
    path, exchanges = directory / EXCHANGES, read_exchanges(directory)
    if not path.exists():
        raise InputError(str(path), "no such file", "the directory of a deployed run")
    reports = [
        (exchange.round, exchange)
        for exchange in exchanges
        if exchange.round is not None and exchange.asks in _REPORTS
    ]
    n_rounds = max((number for number, _ in reports), default=0)
    if not 1 <= n_rounds <= _MOST_ROUNDS:
        raise InputError(
            str(path), f"{n_rounds} rounds of reports", f"a deployed run, of 1 to {_MOST_ROUNDS:,} rounds"
        )
    position = {user: number for number, user in enumerate(user_ids)}
    named = {
        user for exchange in exchanges for user in (*exchange.answered, *exchange.late, *exchange.absent)
    }
    if strange := sorted(named - position.keys()):
        raise InputError(str(path), f"user {strange[0]!r}", "users of the data set")
    fates = np.full((n_rounds, len(user_ids)), ABSENT, dtype=np.int8)
    for number, exchange in reports:
        for users, fate in ((exchange.answered, PUNCTUAL), (exchange.late, LATE)):
            fates[number - 1, [position[user] for user in users]] = fate
    heard = {
        user
        for exchange in exchanges
        for user in (*exchange.answered, *exchange.late, *sum(exchange.refused.values(), ()))
    }
    fates[:, [position[user] for user in position.keys() - heard]] = NOT_ASKED
    return Attendance(fates)
