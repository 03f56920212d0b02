"""Which node hosts which users, how the server asks them, and what arrives: reports, or their sums."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from dprec.arrays import Bools, Ints, Pieces
from dprec.errors import RunError
from dprec.exchange import IDENTIFY, NODE, REPLY, Identity, Reports, SummedReports, bitmap_of, words_of
from dprec.gradients import Aggregate, Places

_USERS_AT_ONCE = 1 << 19
"""Bounds the replies in flight: while those of so many users are read, so many others are being asked."""

ReadT = TypeVar("ReadT")

Reader = Callable[[Message, int, Ints], ReadT | None]
"""From an answer, the first user of its partition and those who were asked, to what the answer holds."""


@dataclass(frozen=True)
class Roster:
    """The nodes in the order of their partitions; the node of partition p hosts the p-th partition."""

    node_ids: tuple[int | None, ...]
    """As many as the users need, from `identify` or from enrolment; None for a node that never came."""
    n_users: int
    users_per_node: int
    present: Bools | None = None
    """Users who are there to be asked for reports and sent what is learned; None for all; shape (users,)."""
    believed: bool = False
    """Whether nodes are believed what they add up: those of a simulation are, and no device."""

    @property
    def everybody(self) -> Bools:
        """Which users are there, shape (users,)."""
        return np.ones(self.n_users, dtype=np.bool_) if self.present is None else self.present

    def contents(
        self, asked: Bools, content_of: Callable[[int, bytes | None], RecordDict]
    ) -> dict[int, RecordDict]:
        """Return requests to the partitions of some users, given who is asked; see `bitmap_of`."""
        contents = {}
        for partition_id in range(len(self.node_ids)):
            partition = self.partition(partition_id)
            asked_here = asked[partition.start : partition.stop]
            if asked_here.any():
                contents[partition_id] = content_of(partition_id, bitmap_of(asked_here))
        return contents

    def partition(self, partition_id: int) -> range:
        """Return the users of a partition."""
        start = partition_id * self.users_per_node
        return range(start, min(start + self.users_per_node, self.n_users))

    def there(self, partition_id: int) -> slice | Ints:
        """Return which users of a partition are there."""
        partition = self.partition(partition_id)
        users = slice(partition.start, partition.stop)
        return users if self.present is None else partition.start + np.flatnonzero(self.present[users])

    def messages(self, message_type: str, contents: dict[int, RecordDict], group: str) -> list[Message]:
        """Return the messages that send a request, by partition, to some of the nodes."""
        return [
            Message(content, node, message_type, group_id=group)
            for partition_id, content in contents.items()
            if (node := self.node_ids[partition_id]) is not None
        ]

    def ask(
        self, grid: Grid, message_type: str, contents: dict[int, RecordDict], group: str
    ) -> dict[int, Message]:
        """Send a request to some of the nodes and return their answers; see `messages`, `by_partition`."""
        return self.by_partition(grid.send_and_receive(self.messages(message_type, contents, group)))

    def ask_in_turn(
        self, grid: Grid, message_type: str, contents: dict[int, RecordDict], group: str
    ) -> Iterator[dict[int, Message]]:
        """Send a request to some of the nodes; yield the answers of consecutive parts of these.

        The next part is asked while the caller reads the answers of the one before. See `ask`.
        """
        size, partition_ids = max(1, _USERS_AT_ONCE // self.users_per_node), list(contents)
        parts = [
            {partition_id: contents[partition_id] for partition_id in partition_ids[first : first + size]}
            for first in range(0, len(partition_ids), size)
        ]
        if len(parts) < 2:
            yield self.ask(grid, message_type, contents, group)
            return
        ahead = ThreadPoolExecutor(1)
        try:
            coming = ahead.submit(self.ask, grid, message_type, parts[0], group)
            for part in parts[1:]:
                answers = coming.result()
                coming = ahead.submit(self.ask, grid, message_type, part, group)
                yield answers
                del answers
            yield coming.result()
        finally:
            # After an interrupt, nobody waits for what is still asked; it ends with the grid.
            ahead.shutdown(wait=False, cancel_futures=True)

    def by_partition(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Return the replies by the partition of the node that sent them, in ascending order."""
        partitions = {node: partition_id for partition_id, node in enumerate(self.node_ids)}
        answers = {partitions.get(reply.metadata.src_node_id, -1): reply for reply in replies}
        return {partition_id: answers[partition_id] for partition_id in sorted(answers) if partition_id >= 0}

    def arrivals(self, answers: dict[int, Message], asked: Bools) -> "Iterator[ArrivedReports]":
        """Yield the reports of each partition, except partitions whose answer cannot be used; see `read`."""
        return self.read(answers, asked, arrivals_of)

    def read(self, answers: dict[int, Message], asked: Bools, reader: Reader[ReadT]) -> Iterator[ReadT]:
        """Yield what a reader makes of the answer of each partition, if anything; ``answers`` are emptied."""
        for partition_id in list(answers):
            partition = self.partition(partition_id)
            users = partition.start + np.flatnonzero(asked[partition.start : partition.stop])
            read = reader(answers.pop(partition_id), partition.start, users)
            if read is not None:
                yield read


def identify(grid: Grid) -> tuple[int, ...]:
    """Ask every node for its partition and return their ids in that order, or raise RunError."""
    nodes = list(grid.get_node_ids())
    questions = [Message(RecordDict(), node, IDENTIFY) for node in nodes]
    hosts = {}
    for reply in grid.send_and_receive(questions):
        record = reply.content.get(NODE) if reply.has_content() else None
        if isinstance(record, ConfigRecord):
            with suppress(ValueError):
                hosts[Identity.of(record).partition] = reply.metadata.src_node_id
    if sorted(hosts) != list(range(len(nodes))):
        raise RunError(f"{len(nodes)} nodes answered as partitions {sorted(hosts)}")
    return tuple(hosts[partition_id] for partition_id in range(len(nodes)))


@dataclass(frozen=True, eq=False)
class Replies:
    """Which of the users of a partition who were asked have answered."""

    users: Ints
    """Who was asked, ascending; shape (asked,)."""
    arrived: Bools
    punctual: Bools
    """Whose report was sent at all, and whose arrived before the round ended; shape (asked,)."""
    refused: str = field(default="", kw_only=True)
    """Why none of them has answered, if the node said so: see `dprec.exchange.words_of`."""

    @property
    def senders(self) -> Ints:
        """Users who sent a report, whether or not it was in time."""
        return self.users[self.arrived]

    @property
    def punctual_users(self) -> Ints:
        """Users whose report arrived before the round ended."""
        return self.users[self.punctual]

    @property
    @abstractmethod
    def payloads(self) -> Ints:
        """Bytes of the report of each of the senders, shape (senders,)."""

    @property
    def first_report(self) -> bytes:
        """The report of the first of the senders; empty where only sums have arrived."""
        return b""


@dataclass(frozen=True, eq=False)
class ArrivedReports(Replies):
    """The reports of the users of a partition who were asked; see `Replies` for the other parameters."""

    reports: Pieces
    """One per user who was asked; empty for one who did not answer."""

    @property
    def payloads(self) -> Ints:
        """Bytes of the report of each of the senders, shape (senders,)."""
        return self.reports.sizes[self.arrived]

    @property
    def first_report(self) -> bytes:
        """The report of the first of the senders."""
        return self.reports[int(self.arrived.argmax())] if self.arrived.any() else b""

    def in_time(self) -> Pieces:
        """Return the reports of the punctual users."""
        return self.reports if self.punctual.all() else self.reports.chosen(np.flatnonzero(self.punctual))


def reply_record(reply: Message | None) -> ConfigRecord | None:
    """Return the record with what a partition replies; None if there is none."""
    record = reply.content.get(REPLY) if reply is not None and reply.has_content() else None
    return record if isinstance(record, ConfigRecord) else None


def arrivals_of(reply: Message | None, first_user: int, users: Ints) -> ArrivedReports | None:
    """Return the reports of a partition's reply, or None when it cannot be used.

    A reply for other users, or for another number of them, is rejected as a whole: nothing in it can be
    attributed. An error is the answer of devices that refuse.
    """
    if reply is not None and reply.has_error():
        nobody = np.zeros(users.size, dtype=np.bool_)
        nothing, cause = Pieces.of([b""] * users.size), words_of(reply.error.code)
        return ArrivedReports(users, nobody, nobody, nothing, refused=cause)
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
    return ArrivedReports(users, ~absent, ~absent & ~late, Pieces.of(read.reports))


@dataclass(frozen=True, eq=False)
class Sums(Replies):
    """The sum of a partition's reports; see `Replies` for the other parameters."""

    sent: Ints
    """Bytes of each report; of no meaning for a user who did not answer; shape (asked,)."""
    aggregate: Aggregate
    """Sum of the valid reports that arrived in time."""
    reports: Pieces | None = field(default=None, kw_only=True)
    """Those of the punctual users; None where only their sum has arrived."""

    @property
    def payloads(self) -> Ints:
        """Bytes of the report of each of the senders, shape (senders,)."""
        return self.sent[self.arrived]


@dataclass(frozen=True, eq=False)
class ReadSums:
    """Reads the replies of partitions: reports, which it adds up, or their sum, which it checks."""

    decode: Callable[[Sequence[bytes]], tuple[Bools, Aggregate]]
    """Validates and adds up the reports of a partition; see `dprec.gradients.GradientReport`."""
    possible: Callable[[Aggregate], bool]
    """Whether valid reports can have a sum, of the right shape, that somebody else added up."""
    sum_shape: tuple[int, ...]
    items: int | None
    """Items whose raters a sum reveals; None if it reveals nothing about which items were rated."""
    believed: bool
    """See `Roster`; else only reports are read, whose bounds can be checked."""

    def __call__(self, reply: Message | None, first_user: int, users: Ints) -> Sums | None:
        """Return the sums of a reply, or None when it cannot be used; see `arrivals_of`."""
        record = reply_record(reply)
        if record is not None and "total" in record:
            return self._checked(record, first_user, users) if self.believed else None
        arrivals = arrivals_of(reply, first_user, users)
        if arrivals is None:
            return None
        in_time = arrivals.in_time()
        _, aggregate = self.decode(in_time)
        sent, refused = arrivals.reports.sizes, arrivals.refused
        return Sums(
            users, arrivals.arrived, arrivals.punctual, sent, aggregate, reports=in_time, refused=refused
        )

    def _checked(self, record: ConfigRecord, first_user: int, users: Ints) -> Sums | None:
        try:
            read = SummedReports.of(record, users.size, math.prod(self.sum_shape), self.items)
        except ValueError:
            return None
        assert read.places is not None, "a sum that has been sent with its zeros"
        places = Places(read.places, self.sum_shape)
        aggregate = Aggregate(read.total, read.raters, read.accepted, read.undrawn, places)
        punctual = ~read.absent & ~read.late
        if read.first != first_user or not read.undrawn <= read.accepted <= punctual.sum():
            return None
        if not self.possible(aggregate):
            return None
        return Sums(users, ~read.absent, punctual, read.sizes, aggregate)
