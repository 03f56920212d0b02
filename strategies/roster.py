"""Which node hosts which users, and how the server asks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.errors import RunError
from dprec.messages import IDENTIFY, NODE, REPLY, Identity, Reports
from dprec.ragged import sizes_of


@dataclass(frozen=True)
class Roster:
    """The nodes in the order of their partitions; the node of partition p hosts the p-th cohort.

    Parameters
    ----------
    node_ids : tuple of int
        As many as the users need, from `identify`.
    n_users : int
    users_per_node : int
    """

    node_ids: tuple[int, ...]
    n_users: int
    users_per_node: int

    def cohort(self, partition: int) -> range:
        """Return the users of a partition."""
        start = partition * self.users_per_node
        return range(start, min(start + self.users_per_node, self.n_users))

    def ask(
        self, grid: Grid, message_type: str, contents: dict[int, RecordDict], group: str
    ) -> dict[int, Message]:
        """Send a request to some of the nodes and return their answers by partition.

        Parameters
        ----------
        grid : Grid
        message_type : str
        contents : dict
            What the node of each partition is sent.
        group : str
            Run key.

        Returns
        -------
        dict
            Without the nodes that did not answer or whose app failed; in the order of the partitions.
        """
        requests = [
            Message(content, self.node_ids[partition], message_type, group_id=group)
            for partition, content in contents.items()
        ]
        return self.by_partition(grid.send_and_receive(requests))

    def by_partition(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Sort replies by the partition of the node that sent them, errors left out."""
        partitions = {node: partition for partition, node in enumerate(self.node_ids)}
        usable = [reply for reply in replies if reply.has_content()]
        answers = {partitions.get(reply.metadata.src_node_id, -1): reply for reply in usable}
        return {partition: answers[partition] for partition in sorted(answers) if partition >= 0}


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What came from the users of a cohort who were asked.

    Parameters
    ----------
    reports : list of bytes
        One per user who was asked; empty for one who did not answer.
    arrived, punctual : ndarray of bool, shape (reports,)
        Whose report was sent at all, and whose was there before the round ended.
    """

    reports: list[bytes]
    arrived: NDArray[np.bool_]
    punctual: NDArray[np.bool_]

    @property
    def payloads(self) -> NDArray[np.int64]:
        """Bytes of each report, shape (reports,)."""
        return sizes_of(self.reports)

    def in_time(self) -> list[bytes]:
        """Return the reports that were there before the round ended."""
        return [self.reports[user] for user in np.flatnonzero(self.punctual)]


def identify(grid: Grid) -> tuple[int, ...]:
    """Ask every node which partition it hosts; return the node ids in the order of the partitions.

    Raises
    ------
    RunError
        When a partition is hosted by no node or by two.
    """
    nodes = list(grid.get_node_ids())
    questions = [Message(RecordDict(), node, IDENTIFY) for node in nodes]
    partitions = {reply.metadata.src_node_id: _partition(reply) for reply in grid.send_and_receive(questions)}
    hosts = {partition: node for node, partition in partitions.items() if partition is not None}
    if sorted(hosts) != list(range(len(nodes))):
        raise RunError(f"{len(nodes)} nodes answered as partitions {sorted(hosts)}")
    return tuple(hosts[partition] for partition in range(len(nodes)))


def arrivals_of(reply: Message | None, first_user: int, asked: int) -> Arrivals | None:
    """Return what a reply brings from the users of a cohort, or None when it cannot be used.

    A reply that speaks for other users, or for another number of them, is rejected whole: nothing
    in it can be attributed.

    Parameters
    ----------
    reply : Message or None
    first_user : int
        First user of the cohort.
    asked : int
        Users of the cohort who were asked.
    """
    record = _record(reply, REPLY)
    if record is None:
        return None
    try:
        read = Reports.of(record)
    except ValueError:
        return None
    if read.first != first_user or len(read.reports) != asked:
        return None
    absent, late = np.zeros(asked, dtype=np.bool_), np.zeros(asked, dtype=np.bool_)
    absent[list(read.absent)], late[list(read.late)] = True, True
    return Arrivals(read.reports, ~absent, ~absent & ~late)


def _partition(reply: Message) -> int | None:
    record = _record(reply, NODE)
    if record is None:
        return None
    try:
        return Identity.of(record).partition
    except ValueError:
        return None


def _record(message: Message | None, name: str) -> ConfigRecord | None:
    record = message.content.get(name) if message is not None and message.has_content() else None
    return record if isinstance(record, ConfigRecord) else None
