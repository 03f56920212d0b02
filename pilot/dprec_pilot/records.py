"""Messages of Flower and their contents as bytes, equal for equal ones."""

from flwr.app import Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto, recorddict_from_proto, recorddict_to_proto
from flwr.proto.message_pb2 import Message as MessageProto
from flwr.proto.recorddict_pb2 import RecordDict as RecordDictProto
from google.protobuf.message import DecodeError

__all__ = ["DecodeError", "as_bytes", "kept", "message_of", "records_of"]


def kept(records: RecordDict) -> bytes:
    """Return records as bytes."""
    return bytes(recorddict_to_proto(records).SerializeToString(deterministic=True))


def records_of(data: bytes) -> RecordDict:
    """Read what `kept` returned; raises DecodeError or ValueError."""
    return recorddict_from_proto(RecordDictProto.FromString(data))


def as_bytes(message: Message) -> bytes:
    """Return a message as bytes."""
    return bytes(message_to_proto(message).SerializeToString(deterministic=True))


def message_of(data: bytes) -> Message:
    """Read what `as_bytes` returned; raises DecodeError or ValueError."""
    return message_from_proto(MessageProto.FromString(data))
