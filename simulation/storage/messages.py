"""messages.json: what one simulated user is sent and sends, by kind of message. A deployment stores none."""

from typing import Annotated

from pydantic import Field

from dprec.exchange import REPORT
from dprec.ratings import Ratings
from dprec.reports import ReportFamily
from dprec.wire import TrafficLedger
from simulation.protocols.base import Protocol
from simulation.storage.files import Count, Document

_BEGINNING = 16
"""Bytes of a payload that are stored."""

_MADE_UP = ("synthetic", "synthetic-domains", "one-bit-synthetic")
"""Data sets of nobody's ratings."""


class MessagesOfKind(Document):
    """Messages of one kind, one way."""

    kind: str = Field(description="Type of the request, `further` or `item set`.")
    up: bool = Field(description="Whether the device sends them.")
    messages: Annotated[int, Field(ge=1)] = Field(description="How many there are, over all rounds.")
    payload_bytes: Count = Field(description="Encoded contents of all of them.")
    message_bytes: Count = Field(description="Whole messages, all of them.")
    begins: str = Field(pattern="^([0-9a-f]{2})*$", description="First bytes of the first, in hexadecimal.")
    bits: dict[str, Count] = Field(description="Parts of the first, if it has any that can be told.")


class UserMessages(Document):
    """The messages of one user."""

    user: str = Field(description="The user's id: the first of traffic.csv.")
    ratings: Count = Field(description="Train ratings of the user.")
    messages: tuple[MessagesOfKind, ...] = Field(description="In the order of the first of each kind.")


def _parts(family: ReportFamily, report: bytes) -> dict[str, int]:
    """Return the bits of a report's parts; none where it is another kind of report than the family's."""
    parts = family.parts(report) if report else {}
    return parts if 0 <= 8 * len(report) - sum(parts.values()) < 8 else {}


def messages_of(
    protocol: Protocol, train: Ratings, traffic: TrafficLedger, seed: int, dataset: str
) -> UserMessages | None:
    """Return the messages of the first user of a simulation with some seed; None if there are none.

    Their contents only where the kind of the data set says that users are made up: a page is passed on, and
    of a person it would tell an item set, or ratings, that no epsilon covers.
    """
    if not traffic.first_user:
        return None
    held = protocol.held_ratings(train, seed)
    family = protocol.setup().family(held.scale, held.n_items)
    masked = protocol.guarantee((train.n_users, train.n_items)).trust == "secure-aggregation"
    kinds = tuple(
        MessagesOfKind(
            kind=kind,
            up=up,
            messages=own.messages,
            payload_bytes=own.payload_bytes,
            message_bytes=own.message_bytes,
            # A simulation draws no masks, so what it adds up is not what would be sent.
            begins="" if (masked and up) or dataset not in _MADE_UP else own.example[:_BEGINNING].hex(),
            bits=_parts(family, own.example) if family and up and kind == REPORT else {},
        )
        for (kind, up), own in traffic.first_user.items()
    )
    return UserMessages(user=str(train.user_ids[0]), ratings=int(train.counts[0]), messages=kinds)
