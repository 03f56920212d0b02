"""Bytes that cross the network for every user: payloads, messages, and what a network adds.

Flower's deployment engine moves a message as objects (an envelope, its contents, its record), each in a
request of its own with some 800 bytes of headers, a key and a signature among them. A device polls for a
message, pulls its objects and confirms it, then pushes the envelope of its reply and the objects, so that
each message costs bytes in both directions. They are those of TCP's payload, without headers of TCP and IP.
"""

import math
from dataclasses import dataclass
from functools import partialmethod
from typing import NamedTuple

import numpy as np

from dprec.arrays import AnyInts, Bools, Ints
from dprec.components import Options, option

Users = AnyInts | Bools | slice

WITHOUT_RECORD, WITH_RECORD = 2, 3
"""Objects of a message: an envelope and its contents, which may be a record."""


@dataclass
class Exchanged:
    """Messages of one kind between the server and the first user, one way."""

    messages: int = 0
    payload_bytes: int = 0
    message_bytes: int = 0
    """Of all of them."""
    example: bytes = b""
    """The payload of the first; empty where a simulation does not make it."""

    def include(self, other: "Exchanged") -> None:
        """Add other messages of the kind."""
        self.messages += other.messages
        self.payload_bytes += other.payload_bytes
        self.message_bytes += other.message_bytes
        self.example = self.example or other.example


class TrafficLedger:
    """Bytes of every user in both directions, and what the first user is sent and sends.

    ``uplink_payload``, ``uplink_message``, ``downlink_payload`` and ``downlink_message`` are bytes from the
    device and to it: a payload is the encoded content, a message is what carries it when the user is alone on
    its node. ``messages`` counts both directions, ``requests`` those to the device; ``uplink_objects`` and
    ``downlink_objects`` are the objects that Flower makes of them. All have shape (users,).
    ``first_user`` has the messages of user 0, by their kind and whether they go up, as each first occurs.
    """

    def __init__(self, users: int) -> None:
        octets, counts = np.zeros((4, users), dtype=np.int64), np.zeros((4, users), dtype=np.int32)
        self.uplink_payload, self.uplink_message, self.downlink_payload, self.downlink_message = octets
        self.messages, self.requests, self.uplink_objects, self.downlink_objects = counts
        self.first_user: dict[tuple[str, bool], Exchanged] = {}

    @property
    def columns(self) -> dict[str, AnyInts]:
        """The counts of every user, by name."""
        return {name: column for name, column in vars(self).items() if name != "first_user"}

    def add(self, other: "TrafficLedger") -> None:
        """Add all charges of another ledger of the same users."""
        for name, more in other.columns.items():
            self.columns[name][:] += more
        for key, exchanged in other.first_user.items():
            self.first_user.setdefault(key, Exchanged()).include(exchanged)

    def clear(self, users: Bools) -> None:
        """Take back all charges of users whom nothing has reached."""
        for column in self.columns.values():
            column[users] = 0
        if users[0]:
            self.first_user.clear()

    def _charge(
        self,
        up: bool,
        users: Users,
        payload: Ints | int,
        message: Ints | int,
        *,
        objects: int = WITH_RECORD,
        kind: str = "",
        example: bytes = b"",
    ) -> None:
        """Add one message from each of the users, or to each, each of them once.

        ``example`` is the payload of the first of them.
        """
        columns, way = self.columns, "uplink" if up else "downlink"
        columns[f"{way}_objects"][users] += objects
        if np.any(payload):  # else the column takes no memory
            columns[f"{way}_payload"][users] += payload
        columns[f"{way}_message"][users] += message
        self.messages[users] += 1
        if not up:
            self.requests[users] += 1
        # What concerns the first user, who comes first where users are listed.
        if isinstance(users, slice):
            concerned = not users.start
        else:
            concerned = users.size > 0 and bool(users[0] if users.dtype == np.bool_ else users[0] == 0)
        if concerned:
            first_bytes = int(np.ravel(payload)[0]), int(np.ravel(message)[0])
            self.first_user.setdefault((kind, up), Exchanged()).include(Exchanged(1, *first_bytes, example))

    charge_uplink = partialmethod(_charge, True)
    charge_downlink = partialmethod(_charge, False)

    def recharge_uplink(self, users: Ints, kind: str, messages: Ints, payload: Ints, message: Ints) -> None:
        """Charge users so many messages, and bytes in all, in place of the one that was charged before.

        Parameters
        ----------
        users, messages, payload, message : ndarray of int64, shape (users,)
        """
        self.uplink_objects[users] = messages * WITH_RECORD
        self.uplink_payload[users] = payload
        self.uplink_message[users] = message
        self.messages[users] += messages - 1
        if users.size and users[0] == 0:
            first_figures = int(messages[0]), int(payload[0]), int(message[0])
            # The report that was divided into several messages is not what any of them holds.
            example = self.first_user[kind, True].example if first_figures[0] == 1 else b""
            self.first_user[kind, True] = Exchanged(*first_figures, example)


class Octets(NamedTuple):
    """Bytes from a device and to it."""

    up: float
    down: float


class NetworkConstants(NamedTuple):
    """What requests cost beyond the bytes of Flower's messages, of flwr 1.41 and a device of a pilot.

    As `benchmarks/network.py` of commit 757efef4 measured it.
    """

    handshake: Octets = Octets(594, 1195)
    """A TLS connection, with a certificate of P-256."""
    poll: Octets = Octets(895, 150)
    """The question for messages when there is none."""
    heartbeat: Octets = Octets(910, 174)
    """The request that takes a device online, or keeps it there."""
    received: Octets = Octets(1865, 217)
    """A message to the device: the poll that it answers, and its confirmation."""
    pulled: Octets = Octets(970, 398)
    """Each of its objects."""
    sent: Octets = Octets(900, 286)
    """A message from the device: the push of its envelope."""
    pushed: Octets = Octets(1225, 240)
    """Each of its objects."""
    kept_seconds: float = 5.0
    """How long a connection is kept without a request."""
    heartbeat_seconds: float = 24.0
    """Time between the heartbeats of a device that stays online."""


MEASURED = NetworkConstants()


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(Options):
    """How devices would be connected in a deployment: what the network bytes assume."""

    minutes_per_round: float = option(
        "Minutes that a device polls in each round; with 0 it connects, answers what waits, and leaves.",
        0.0,
        ge=0,
        le=525_600,
    )
    poll_seconds: float = option("Time between two polls.", 3.0, ge=0.01, le=86_400)

    def contacts(self, requests: AnyInts) -> "Contacts":
        """Return how often each user's device connects and asks.

        A device picks up each message in a visit of its own, in which the last poll finds nothing.
        """
        seconds = self.minutes_per_round * 60
        polls = max(1, math.floor(seconds / self.poll_seconds))
        heartbeats = min(polls, 1 + math.floor(seconds / MEASURED.heartbeat_seconds))
        again = polls if seconds and self.poll_seconds >= MEASURED.kept_seconds else 0
        return Contacts(*(requests.astype(np.int64) * visits for visits in (1 + again, polls, heartbeats)))


@dataclass(frozen=True, eq=False)
class Contacts:
    """How often devices connect and ask, beyond what their messages need."""

    connections: Ints | int
    polls: Ints | int
    heartbeats: Ints | int
    """TLS connections, polls that found nothing, and heartbeats; shape (users,), or int."""


def network_bytes(traffic: TrafficLedger, contacts: Contacts) -> tuple[Ints, Ints]:
    """Return the bytes that a network carries from and to every user's device, shape (users,) each."""
    counts = (
        (MEASURED.handshake, contacts.connections),
        (MEASURED.poll, contacts.polls),
        (MEASURED.heartbeat, contacts.heartbeats),
        (MEASURED.received, traffic.requests),
        (MEASURED.pulled, traffic.downlink_objects),
        (MEASURED.sent, traffic.messages - traffic.requests),
        (MEASURED.pushed, traffic.uplink_objects),
    )
    up = traffic.uplink_message + sum(np.asarray(count) * cost.up for cost, count in counts)
    down = traffic.downlink_message + sum(np.asarray(count) * cost.down for cost, count in counts)
    return np.rint(up).astype(np.int64), np.rint(down).astype(np.int64)


KEY_BYTES, TAG_BYTES, SEED_BYTES = 32, 16, 16
"""Of an X25519 public key, of a Poly1305 tag, and of what a share is expanded from."""


def record_bytes(n_items: int, symbols: int) -> int:
    """Return the size of one item and one symbol, in whole bytes, whichever they are."""
    bits = max(1, (n_items - 1).bit_length()) + max(0, symbols - 1).bit_length()
    return -(-bits // 8)


def onion_bytes(content: int, hops: int) -> int:
    """Return the size of a message as it leaves the device, on its way through so many shufflers.

    A layer holds an ephemeral public key of X25519, the next layer encrypted with the key that follows from
    it, and the tag of ChaCha20-Poly1305. Every message enters with the same size, takes the same route and
    loses a layer with each shuffler, so that none can be told from another by its size.
    """
    return content + (hops + 1) * (KEY_BYTES + TAG_BYTES)


def hidden_batch_bytes(payloads: Ints, shufflers: int) -> Ints:
    """Return the sizes of batches of messages as they leave the devices, for shufflers that mix them jointly.

    A batch is the sum of shares, of which each shuffler is sent one in a layer of its own: one share is as
    long as the batch, and the others are seeds. Shufflers permute the messages of all batches while they are
    shares, so that none of them learns a message, nor whose it is, nor what came with it, unless all collude
    (Chase, Ghosh and Poburinnaya [chase2020], for two of them). What they send each other is not charged.

    ``payloads``, shape (batches,): bytes of all messages of a batch; ``shufflers``: at least 2.
    """
    return payloads + (shufflers - 1) * SEED_BYTES + shufflers * (KEY_BYTES + TAG_BYTES)
