"""The reports that a partition's reply contains."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np
from flwr.app import ConfigRecord, Message
from numpy.typing import NDArray

from dprec.arrays import sizes_of
from dprec.exchange import REPLY, Reports, words_of


@dataclass(frozen=True, eq=False)
class Attendance:
    """Which of the users of a partition who were asked have answered."""

    users: NDArray[np.int64]
    """Who was asked, ascending; shape (asked,)."""
    arrived: NDArray[np.bool_]
    punctual: NDArray[np.bool_]
    """Whose report was sent at all, and whose arrived before the round ended; shape (asked,)."""
    refused: str = field(default="", kw_only=True)
    """Why none of them has answered, if the node said so: see `dprec.exchange.messages.words_of`."""

    @property
    def senders(self) -> NDArray[np.int64]:
        """Users who sent a report, whether or not it was in time."""
        return self.users[self.arrived]

    @property
    def punctual_users(self) -> NDArray[np.int64]:
        """Users whose report arrived before the round ended."""
        return self.users[self.punctual]

    @property
    @abstractmethod
    def payloads(self) -> NDArray[np.int64]:
        """Bytes of the report of each of the senders, shape (senders,)."""


@dataclass(frozen=True, eq=False)
class Arrivals(Attendance):
    """The reports of the users of a partition who were asked; see `Attendance` for the other parameters."""

    reports: list[bytes]
    """One per user who was asked; empty for one who did not answer."""

    @property
    def payloads(self) -> NDArray[np.int64]:
        """Bytes of the report of each of the senders, shape (senders,)."""
        return sizes_of(self.reports)[self.arrived]

    def in_time(self) -> list[bytes]:
        """Return the reports of the punctual users."""
        return [self.reports[place] for place in np.flatnonzero(self.punctual)]


def reply_record(reply: Message | None) -> ConfigRecord | None:
    """Return the record with what a partition replies; None if there is none."""
    record = reply.content.get(REPLY) if reply is not None and reply.has_content() else None
    return record if isinstance(record, ConfigRecord) else None


def arrivals_of(reply: Message | None, first_user: int, users: NDArray[np.int64]) -> Arrivals | None:
    """Return the reports of a partition's reply, or None when it cannot be used.

    A reply for other users, or for another number of them, is rejected as a whole: nothing in it can
    be attributed. An error is the answer of devices that refuse.

    Parameters
    ----------
    first_user : int
        First user of the partition.
    users : ndarray of int64, shape (asked,)
        Users of the partition who were asked, ascending.
    """
    if reply is not None and reply.has_error():
        nobody = np.zeros(users.size, dtype=np.bool_)
        return Arrivals(users, nobody, nobody, [b""] * users.size, refused=words_of(reply.error.code))
    record = reply_record(reply)
    if record is None:
        return None
    try:
        read = Reports.of(record)
    except ValueError:
        return None
    if read.first != first_user or len(read.reports) != users.size:
        return None
    absent, late = np.zeros((2, users.size), dtype=np.bool_)
    absent[list(read.absent)], late[list(read.late)] = True, True
    return Arrivals(users, ~absent, ~absent & ~late, read.reports)
