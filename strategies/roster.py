"""Which node hosts which users, and how the server asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.errors import RunError
from dprec.exchange import IDENTIFY, NODE, Identity
from strategies.arrivals import Arrivals, arrivals_of

_USERS_AT_ONCE = 1 << 19
"""Bounds the replies in flight: while those of so many users are read, so many others are being asked."""

ReadT = TypeVar("ReadT")

Reader = Callable[[Message, int, NDArray[np.int64]], ReadT | None]
"""From an answer, the first user of its partition and those who were asked, to what the answer holds."""


@dataclass(frozen=True)
class Roster:
    """The nodes in the order of their partitions; the node of partition p hosts the p-th partition."""

    node_ids: tuple[int | None, ...]
    """As many as the users need, from `identify` or from enrolment; None for a node that never came."""
    n_users: int
    users_per_node: int

    def partition(self, partition_id: int) -> range:
        """Return the users of a partition."""
        start = partition_id * self.users_per_node
        return range(start, min(start + self.users_per_node, self.n_users))

    def messages(self, message_type: str, contents: dict[int, RecordDict], group: str) -> list[Message]:
        """Return the messages that send a request to some of the nodes.

        Parameters
        ----------
        contents : dict
            What the node of each partition is sent.
        group : str
            Run key.
        """
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
        self, grid: Grid, message_type: str, content: RecordDict, group: str
    ) -> Iterator[dict[int, Message]]:
        """Send everybody the same request; yield the answers of consecutive parts of the nodes.

        The next part is asked while the caller reads the answers of the one before. See `ask`.
        """
        size = max(1, _USERS_AT_ONCE // self.users_per_node)
        nodes = len(self.node_ids)
        parts = [
            dict.fromkeys(range(first, min(first + size, nodes)), content) for first in range(0, nodes, size)
        ]
        if len(parts) == 1:
            yield self.ask(grid, message_type, parts[0], group)
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

    def arrivals(self, answers: dict[int, Message], asked: NDArray[np.bool_]) -> Iterator[Arrivals]:
        """Yield the reports of each partition, except partitions whose answer cannot be used; see `read`."""
        return self.read(answers, asked, arrivals_of)

    def read(
        self, answers: dict[int, Message], asked: NDArray[np.bool_], reader: Reader[ReadT]
    ) -> Iterator[ReadT]:
        """Yield what a reader makes of the answer of each partition, except of those that it cannot use.

        Parameters
        ----------
        answers : dict
            From `by_partition`; emptied, so that no answer is kept after it is read.
        asked : ndarray of bool, shape (users,)
            Who was asked.
        """
        for partition_id in list(answers):
            partition = self.partition(partition_id)
            users = partition.start + np.flatnonzero(asked[partition.start : partition.stop])
            read = reader(answers.pop(partition_id), partition.start, users)
            if read is not None:
                yield read


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
    hosts = {partition_id: node for node, partition_id in partitions.items() if partition_id is not None}
    if sorted(hosts) != list(range(len(nodes))):
        raise RunError(f"{len(nodes)} nodes answered as partitions {sorted(hosts)}")
    return tuple(hosts[partition_id] for partition_id in range(len(nodes)))


def _partition(reply: Message) -> int | None:
    record = reply.content.get(NODE) if reply.has_content() else None
    if not isinstance(record, ConfigRecord):
        return None
    try:
        return Identity.of(record).partition
    except ValueError:
        return None
