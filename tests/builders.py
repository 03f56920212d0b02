"""What many tests begin with: a population on disk, and a grid that keeps what goes through it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from clients.app import client_app
from clients.faults import FaultOptions
from clients.population import Brought, write_population
from dprec.exchange import Reports
from dprec.protocols.base import Protocol
from dprec.randomness import RunKeys
from dprec.ratings import Ratings
from simulation.engine.grids import LocalGrid

Tamper = Callable[[Message], Message | None]
SOUND = FaultOptions()


def populated(
    folder: Path,
    ratings: Ratings,
    protocol: Protocol | None,
    size: int | None = None,
    *,
    seed: int = 1,
    **more: Any,
) -> Path:
    """Write what devices hold, by default all of them on one node."""
    keys, faults = RunKeys.derive(seed).installed, more.pop("faults", None) or SOUND
    size = size or ratings.n_users
    write_population(
        folder, ratings, users_per_node=size, keys=keys, faults=faults, protocol=protocol, **more
    )
    return folder


class RecordingGrid(LocalGrid):
    """A grid that keeps what went through it; replies may be tampered with, those of one node or of all."""

    def __init__(self, root: Path, nodes: int) -> None:
        super().__init__(client_app(str(root)), nodes)
        self.sent: list[Message] = []
        self.received: list[Message] = []
        self.tamper: Tamper | None = None
        self.victim: int | None = None

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterator[Message]:
        questions = list(messages)
        replies = list(super().send_and_receive(questions, timeout=timeout))
        if self.tamper:
            aimed = [self.victim is None or reply.metadata.src_node_id == self.victim for reply in replies]
            replies = [
                self.tamper(reply) if hit else reply for reply, hit in zip(replies, aimed, strict=True)
            ]
        arrived = [reply for reply in replies if reply is not None]
        self.sent += questions
        self.received += arrived
        # In whatever order they come.
        return iter(arrived[::-1])


class OneNode:
    """A server with one node, which it asks whatever a test wants.

    Parameters
    ----------
    folder : Path
        Holds the populations, by the names of runs.
    brought : mapping of str to Brought, optional
        What runs need from outside dprec.
    """

    def __init__(self, folder: Path, brought: Mapping[str, Brought] | None = None) -> None:
        self.grid = LocalGrid(client_app(str(folder), brought), 1)
        (self.node,) = self.grid.get_node_ids()

    def ask(self, kind: str, content: RecordDict, run: str = "run") -> Message:
        """Return the reply to a message."""
        (reply,) = self.grid.send_and_receive([Message(content, self.node, kind, group_id=run)])
        return reply

    def told(self, kind: str, run: str = "run", **entries: Any) -> list[bytes] | int:
        """Return the reports of a reply, or the code with which the node refuses."""
        reply = self.ask(kind, RecordDict({"request": ConfigRecord(entries)}), run)
        if reply.has_error():
            return reply.error.code
        answered = reply.content.get("reply")
        return list(Reports.of(answered).reports) if isinstance(answered, ConfigRecord) else []
