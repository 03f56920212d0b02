"""rounds.jsonl: one line per round of a protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from simulation.storage.files import Document, parse_document
from strategies.round_record import RoundRecord


class _Bytes(Document):
    payload_bytes: int
    message_bytes: int


class _RoundLine(Document):
    round: int
    replies: int
    failures: int
    accuracy: dict[str, float | None] | None
    uplink: _Bytes
    downlink: _Bytes
    seconds: float
    causes: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


def line_of(record: RoundRecord) -> dict[str, Any]:
    """Return the contents of a round's line."""
    return {
        "round": record.round,
        "replies": record.replies,
        "failures": record.failures,
        **({"causes": record.causes} if record.causes else {}),
        "accuracy": record.accuracy,
        "uplink": {
            "payload_bytes": record.uplink_payload_bytes,
            "message_bytes": record.uplink_message_bytes,
        },
        "downlink": {
            "payload_bytes": record.downlink_payload_bytes,
            "message_bytes": record.downlink_message_bytes,
        },
        "seconds": record.seconds,
    }


def written_rounds(records: Sequence[RoundRecord]) -> Iterator[str]:
    """Yield the lines of rounds.jsonl."""
    return (json.dumps(line_of(record)) + "\n" for record in records)


def parse_rounds(text: str, where: str) -> tuple[RoundRecord, ...]:
    """Parse the lines of rounds.jsonl.

    Raises
    ------
    InputError
        Naming the line.
    """
    lines = [
        parse_document(_RoundLine, line, f"{where}, line {position}")
        for position, line in enumerate(text.splitlines(), start=1)
    ]
    return tuple(
        RoundRecord(
            round=line.round,
            replies=line.replies,
            failures=line.failures,
            accuracy=line.accuracy,
            uplink_payload_bytes=line.uplink.payload_bytes,
            uplink_message_bytes=line.uplink.message_bytes,
            downlink_payload_bytes=line.downlink.payload_bytes,
            downlink_message_bytes=line.downlink.message_bytes,
            seconds=line.seconds,
            causes=line.causes,
        )
        for line in lines
    )
