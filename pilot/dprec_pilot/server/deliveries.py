"""What a run has for devices that were away at its end, kept until they have it.

A list of items, or a table from which a device predicts, costs its user nothing. undelivered.json in the run
directory, only for its owner to read, holds what has not reached its device; what is delivered is deleted
from it, and the file when nothing is left. Devices take it as they would have in the run: under its run key.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flwr.app import Message
from flwr.common.serde import recorddict_from_proto
from flwr.proto.recorddict_pb2 import RecordDict as RecordDictProto
from flwr.serverapp import Grid
from google.protobuf.message import DecodeError

from dprec.errors import InputError
from dprec_pilot.device.ledger import DELIVERIES
from dprec_pilot.device.profile import OWNER_ONLY, kept
from dprec_pilot.server.deadline_grid import DeadlineGrid, Patience
from simulation.storage.files import read_text, unusable, write_atomically

UNDELIVERED = "undelivered.json"

_ACCEPTED = "the file as the server wrote it; dprec-pilot resume --forget deletes it"


@dataclass(frozen=True)
class Delivery:
    """The same message to some devices."""

    message_type: str
    group: str
    content: bytes
    """As Flower serialises it."""
    nodes: tuple[int, ...]

    def messages(self) -> Iterator[Message]:
        """Yield the messages."""
        content = recorddict_from_proto(RecordDictProto.FromString(self.content))
        for node in self.nodes:
            yield Message(content, node, self.message_type, group_id=self.group)

    def without(self, nodes: set[int]) -> "Delivery":
        """Return what is left when some nodes have it."""
        left = tuple(node for node in self.nodes if node not in nodes)
        return Delivery(self.message_type, self.group, self.content, left)


def keep_deliveries(run: Path, messages: Sequence[Message]) -> None:
    """Keep messages that have not reached their devices; without any, there is no file."""
    nodes: dict[tuple[str, str, bytes], list[int]] = {}
    for message in messages:
        about = message.metadata
        same = about.message_type, about.group_id, kept(message.content)
        nodes.setdefault(same, []).append(about.dst_node_id)
    _write(run, [Delivery(*same, tuple(sorted(to))) for same, to in nodes.items()])


def deliver(grid: Grid, run: Path, patience: Patience) -> tuple[int, int]:
    """Send devices that come what they have not had; return how many have it now, and how many do not.

    Raises InputError when the file is damaged.
    """
    left = _read(run)
    before = {node for delivery in left for node in delivery.nodes}
    for number, delivery in enumerate(left):

        def arrived(replies: Sequence[Message], number: int = number) -> None:
            left[number] = left[number].without({reply.metadata.src_node_id for reply in replies})
            _write(run, left)

        DeadlineGrid(grid, patience, arrived=arrived).ask(delivery.messages())
    missing = {node for delivery in left for node in delivery.nodes}
    return len(before - missing), len(missing)


def forget(run: Path) -> int:
    """Delete what is kept for devices, whatever it is; return for how many."""
    try:
        missing = {node for delivery in _read(run) for node in delivery.nodes}
    except InputError:
        missing = set()
    (run / UNDELIVERED).unlink(missing_ok=True)
    return len(missing)


def _write(run: Path, deliveries: Sequence[Delivery]) -> None:
    left = [
        {**vars(delivery), "content": b64encode(delivery.content).decode()}
        for delivery in deliveries
        if delivery.nodes
    ]
    try:
        if left:
            write_atomically(run / UNDELIVERED, json.dumps(left) + "\n", mode=OWNER_ONLY)
        else:
            (run / UNDELIVERED).unlink(missing_ok=True)
    except OSError as error:
        raise unusable(run / UNDELIVERED, error) from None


def _read(run: Path) -> list[Delivery]:
    path = run / UNDELIVERED
    if not path.exists():
        return []
    try:
        entries = json.loads(read_text(path, _ACCEPTED))
        if not isinstance(entries, list):
            raise TypeError(entries)
        return [_delivery(entry) for entry in entries]
    except (ValueError, KeyError, TypeError, OverflowError, DecodeError, RecursionError):
        raise InputError(str(path), "damaged", _ACCEPTED) from None


def _delivery(entry: dict[str, Any]) -> Delivery:
    content = b64decode(entry["content"], validate=True)
    RecordDictProto.FromString(content)
    if entry["message_type"] not in DELIVERIES:
        raise ValueError(entry["message_type"])
    return Delivery(entry["message_type"], str(entry["group"]), content, tuple(map(int, entry["nodes"])))
