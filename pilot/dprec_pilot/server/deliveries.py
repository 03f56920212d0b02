"""What a run has for devices that were away at its end, kept until they have it.

A list of items, or a table from which a device predicts, costs its user nothing. undelivered.json in the run
directory, only for its owner to read, holds what has not reached its device; what is delivered is deleted
from it, and the file when nothing is left. Devices take it as they would have in the run: under its run key.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from flwr.app import Message
from flwr.serverapp import Grid

from dprec.errors import InputError
from dprec_pilot.device.ledger import DELIVERIES
from dprec_pilot.files import read_text, unusable, write_durably
from dprec_pilot.records import DecodeError, kept, records_of
from dprec_pilot.server.deadline_grid import DeadlineGrid, Patience

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
        content = records_of(self.content)
        for node in self.nodes:
            yield Message(content, node, self.message_type, group_id=self.group)


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
    before = _without(left)
    for place, delivery in enumerate(left):
        DeadlineGrid(grid, patience, arrived=partial(_arrived, run, left, place)).ask(delivery.messages())
    missing = _without(left)
    return len(before - missing), len(missing)


def _arrived(run: Path, left: list[Delivery], place: int, replies: Sequence[Message]) -> None:
    """Note who has answered to what stands in a place, so has it."""
    have = {reply.metadata.src_node_id for reply in replies}
    nodes = tuple(node for node in left[place].nodes if node not in have)
    left[place] = replace(left[place], nodes=nodes)
    _write(run, left)


def forget(run: Path) -> int:
    """Delete what is kept for devices, whatever it is; return for how many."""
    try:
        missing = _without(_read(run))
    except InputError:
        missing = set()
    (run / UNDELIVERED).unlink(missing_ok=True)
    return len(missing)


def _without(deliveries: Sequence[Delivery]) -> set[int]:
    """Return the devices that lack something."""
    return {node for delivery in deliveries for node in delivery.nodes}


def _write(run: Path, deliveries: Sequence[Delivery]) -> None:
    path, left = run / UNDELIVERED, [delivery for delivery in deliveries if delivery.nodes]
    entries = [{**vars(each), "content": b64encode(each.content).decode()} for each in left]
    try:
        if left:
            write_durably(path, json.dumps(entries) + "\n")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unusable(path, error) from None


def _read(run: Path) -> list[Delivery]:
    path = run / UNDELIVERED
    if not path.exists():
        return []
    try:
        entries = json.loads(read_text(path, _ACCEPTED))
        if not isinstance(entries, list):
            raise TypeError(entries)
        deliveries = [
            Delivery(
                str(entry["message_type"]),
                str(entry["group"]),
                b64decode(entry["content"], validate=True),
                tuple(map(int, entry["nodes"])),
            )
            for entry in entries
        ]
        for delivery in deliveries:
            records_of(delivery.content)
        if not {delivery.message_type for delivery in deliveries} <= DELIVERIES:
            raise ValueError(deliveries)
    except (ValueError, KeyError, TypeError, OverflowError, DecodeError, RecursionError):
        raise InputError(str(path), "damaged", _ACCEPTED) from None
    return deliveries
