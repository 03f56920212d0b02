"""What the reports of a partition add up to, whether its node or the server adds them up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from flwr.app import ConfigRecord, Message
from numpy.typing import NDArray

from dprec.arrays import sizes_of
from dprec.exchange import SummedReports
from dprec.gradients import Aggregate
from strategies.arrivals import Attendance, arrivals_of, reply_record


class Summable(Protocol):
    """A kind of report of which the server needs the sum only; see `dprec.gradients.GradientReport`."""

    @property
    def hides_rated_items(self) -> bool:
        """Whether a sum reveals nothing about which items were rated."""

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[NDArray[np.bool_], Aggregate]:
        """Validate and add up the reports of a partition."""

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the shape of the sum of reports."""

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether valid reports can have a sum that somebody else added up."""


@dataclass(frozen=True, eq=False)
class Sums(Attendance):
    """The sum of a partition's reports; see `Attendance` for the other parameters."""

    sent: NDArray[np.int64]
    """Bytes of each report; of no meaning for a user who did not answer; shape (asked,)."""
    aggregate: Aggregate
    """Sum of the valid reports that arrived in time."""

    @property
    def payloads(self) -> NDArray[np.int64]:
        """Bytes of the report of each of the senders, shape (senders,)."""
        return self.sent[self.arrived]


@dataclass(frozen=True, eq=False)
class ReadSums:
    """Reads the replies of partitions: reports, which it adds up, or their sum, which it checks."""

    gradient: Summable
    """What the devices report."""
    shape: tuple[int, int]
    """Items and rank."""
    users_per_node: int
    """A node of one user, as every device is, has nothing to add up: only its report is read, whose bounds
    can be checked. The sum of several is believed of the nodes of a simulation.
    """

    def __call__(self, reply: Message | None, first_user: int, users: NDArray[np.int64]) -> Sums | None:
        """Return the sums of a reply, or None when it cannot be used; see `arrivals_of` for the parameters.

        No sum is believed that valid reports of so many users cannot have.
        """
        record = reply_record(reply)
        if record is not None and "total" in record:
            if self.users_per_node == 1:
                return None
            return self._checked(record, first_user, users)
        arrivals = arrivals_of(reply, first_user, users)
        if arrivals is None:
            return None
        _, aggregate = self.gradient.decode(arrivals.in_time(), self.shape)
        sent, refused = sizes_of(arrivals.reports), arrivals.refused
        return Sums(users, arrivals.arrived, arrivals.punctual, sent, aggregate, refused=refused)

    def _checked(self, record: ConfigRecord, first_user: int, users: NDArray[np.int64]) -> Sums | None:
        sum_shape = self.gradient.sum_shape(self.shape)
        items = None if self.gradient.hides_rated_items else self.shape[0]
        try:
            read = SummedReports.of(record, users.size, math.prod(sum_shape), items)
        except ValueError:
            return None
        aggregate = Aggregate(read.total.reshape(sum_shape), read.raters, read.accepted)
        punctual = ~read.absent & ~read.late
        if read.first != first_user or read.accepted > punctual.sum():
            return None
        if not self.gradient.possible(aggregate, self.shape):
            return None
        return Sums(users, ~read.absent, punctual, read.sizes, aggregate)
