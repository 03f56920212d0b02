"""Which node hosts which users, and how the server asks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.errors import RunError
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
    questions = [Message(RecordDict(), node, f"{MessageType.QUERY}.identify") for node in nodes]
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
    record = reply.content.get("reply") if reply is not None and reply.has_content() else None
    if not isinstance(record, ConfigRecord):
        return None
    first, reports = record.get("first"), record.get("reports")
    if not _is_whole(first) or first != first_user:
        return None
    if not isinstance(reports, list) or len(reports) != asked:
        return None
    own = [report for report in reports if isinstance(report, bytes)]
    absent, late = _marked(record.get("absent"), asked), _marked(record.get("late"), asked)
    if len(own) != asked or absent is None or late is None:
        return None
    return Arrivals(own, ~absent, ~absent & ~late)


def _marked(users: object, asked: int) -> NDArray[np.bool_] | None:
    """Return the mask of a list of users, or None when it is no such list."""
    mask = np.zeros(asked, dtype=np.bool_)
    if users is None:
        return mask
    if not isinstance(users, list) or not all(_is_whole(user) and 0 <= user < asked for user in users):
        return None
    mask[users] = True
    return mask


def _partition(reply: Message) -> int | None:
    record = reply.content.get("node") if reply.has_content() else None
    partition = record.get("partition") if isinstance(record, ConfigRecord) else None
    return partition if _is_whole(partition) else None


def _is_whole(value: object) -> TypeGuard[int]:
    """Tell whether a value is an integer and not a truth value, which Python counts among them."""
    return isinstance(value, int) and not isinstance(value, bool)
