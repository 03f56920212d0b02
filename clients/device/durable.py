"""What survives a crash: writes that are on disk when a call returns, and the memory of a device.

The memory is one file, replaced as a whole. It is written before a charge is appended to the ledger and
before a reply leaves, so it knows at least as much as the ledger and the server do: what was answered, the
item factors of the last round, the last line that the ledger must have, and a reply that may not have
arrived.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import (
    message_from_proto,
    message_to_proto,
    recorddict_from_proto,
    recorddict_to_proto,
)
from flwr.proto.message_pb2 import Message as MessageProto
from flwr.proto.recorddict_pb2 import RecordDict as RecordDictProto
from google.protobuf.message import DecodeError

from dprec.errors import InputError

OWNER_ONLY = 0o600
"""Permissions of what says something about the user."""

PART = ".part-"
"""How the name of a file begins that is not written yet."""


def write_durably(path: Path, contents: bytes) -> None:
    """Replace a file as a whole; raises OSError when it cannot be written, and the old contents remain."""
    # The mode of such a file is that of `OWNER_ONLY`.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=PART)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync_folder(path.parent)


def append_durably(path: Path, contents: bytes, *, after: int) -> None:
    """Write the end of a file after some bytes; raises OSError when part of it may be missing."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(after)
        file.seek(after)
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to disk: without it, a new file may have no name after a crash."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_DEVICE = "device"
"""Name of the device's own record, beside those of the handlers."""

_DIGEST_BYTES = 32


@dataclass(frozen=True, eq=False)
class State:
    """The memory of a device."""

    answers: bytes = b""
    """What the handlers keep, as Flower serialises it."""
    charges: int = 0
    """Lines that the ledger has, or must be given."""
    last_charge: bytes = b""
    """The last of them."""
    reply: bytes = b""
    """A reply that is not known to have arrived, as Flower serialises it; empty if there is none."""
    node_id: int = 0
    """Under which the server knows the device; 0 before it does."""

    @property
    def records(self) -> RecordDict:
        """A copy of what the handlers keep."""
        return recorddict_from_proto(RecordDictProto.FromString(self.answers))

    @property
    def pending(self) -> Message | None:
        """The reply that is not known to have arrived."""
        return message_from_proto(MessageProto.FromString(self.reply)) if self.reply else None


def kept(records: RecordDict) -> bytes:
    """Return what the handlers keep as bytes, equal for equal records."""
    return bytes(recorddict_to_proto(records).SerializeToString(deterministic=True))


def as_bytes(reply: Message) -> bytes:
    """Return a reply as bytes."""
    return bytes(message_to_proto(reply).SerializeToString(deterministic=True))


def write_state(path: Path, state: State) -> None:
    """Write the memory of a device; raises OSError when it cannot be, and the old one remains."""
    own = ConfigRecord(
        {
            "answers": state.answers,
            "charges": state.charges,
            "last-charge": state.last_charge,
            "reply": state.reply,
            # The ids of Flower's nodes are wider than the numbers of its records.
            "node": str(state.node_id),
        }
    )
    contents = kept(RecordDict({_DEVICE: own}))
    write_durably(path, hashlib.sha256(contents).digest() + contents)


def read_state(path: Path) -> State:
    """Read the memory of a device; raises InputError when it is missing or damaged."""
    accepted = "the file as the device wrote it; a device that has lost its memory has to be enrolled anew"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None
    digest, contents = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(contents).digest() != digest:
        raise InputError(str(path), "damaged", accepted)
    try:
        own = recorddict_from_proto(RecordDictProto.FromString(contents)).config_records[_DEVICE]
        return State(
            answers=_bytes(own, "answers"),
            charges=int(str(own["charges"])),
            last_charge=_bytes(own, "last-charge"),
            reply=_bytes(own, "reply"),
            node_id=int(str(own["node"])),
        )
    except (DecodeError, KeyError, ValueError):
        raise InputError(str(path), "of another version", accepted) from None


def _bytes(record: ConfigRecord, key: str) -> bytes:
    value = record[key]
    assert isinstance(value, bytes)
    return value
