"""Bytes that a network carries for Flower's messages: HTTP, TLS, object trees, polls and visits.

Flower's deployment engine moves a message as objects (an envelope, its contents, its record), each in a
request of its own with some 800 bytes of headers, a key and a signature among them. Devices ask, the server
answers: a device polls for a message, pulls its objects and confirms it, then pushes the envelope of its
reply and the objects. All of this costs bytes in both directions, whichever way the message goes.

Bytes are those of TCP's payload; the headers of TCP and IP are not counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options, option
from dprec.wire.traffic import TrafficLedger

_SECONDS_A_MINUTE = 60


class Octets(NamedTuple):
    """Bytes from a device and to it."""

    up: float
    down: float


@dataclass(frozen=True)
class NetworkConstants:
    """What requests cost beyond the bytes of Flower's messages, as `benchmarks/network.py` measures it."""

    handshake: Octets
    """A TLS connection, with a certificate of P-256."""
    poll: Octets
    """The question for messages when there is none."""
    heartbeat: Octets
    """The request that takes a device online, or keeps it there."""
    received: Octets
    """A message to the device: the poll that it answers, and its confirmation."""
    pulled: Octets
    """Each of its objects."""
    sent: Octets
    """A message from the device: the push of its envelope."""
    pushed: Octets
    """Each of its objects."""
    kept_seconds: float
    """How long a connection is kept without a request."""
    heartbeat_seconds: float
    """Time between the heartbeats of a device that stays online."""


MEASURED = NetworkConstants(
    handshake=Octets(594, 1195),
    poll=Octets(895, 150),
    heartbeat=Octets(910, 174),
    received=Octets(1865, 217),
    pulled=Octets(970, 398),
    sent=Octets(900, 286),
    pushed=Octets(1225, 240),
    kept_seconds=5.0,
    heartbeat_seconds=24.0,
)
"""Of flwr 1.41 and `dprec device`."""


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

    def contacts(self, requests: NDArray[np.int64], constants: NetworkConstants = MEASURED) -> Contacts:
        """Return how often each user's device connects and asks.

        A device picks up each message in a visit of its own, in which the last poll finds nothing.

        Parameters
        ----------
        requests : ndarray of int64, shape (users,)
            Messages to each user.
        """
        seconds = self.minutes_per_round * _SECONDS_A_MINUTE
        polls = max(1, math.floor(seconds / self.poll_seconds))
        heartbeats = min(polls, 1 + math.floor(seconds / constants.heartbeat_seconds))
        again = polls if seconds and self.poll_seconds >= constants.kept_seconds else 0
        return Contacts(requests * (1 + again), requests * polls, requests * heartbeats)


@dataclass(frozen=True, eq=False)
class Contacts:
    """How often devices connect and ask, beyond what their messages need."""

    connections: NDArray[np.int64] | int
    polls: NDArray[np.int64] | int
    heartbeats: NDArray[np.int64] | int
    """TLS connections, polls that found nothing, and heartbeats; shape (users,), or int."""


def network_bytes(
    traffic: TrafficLedger, contacts: Contacts, constants: NetworkConstants = MEASURED
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the bytes that a network carries for every user, up and down.

    Parameters
    ----------
    traffic : TrafficLedger
        The messages.

    Returns
    -------
    up, down : ndarray of int64, shape (users,)
        From the device and to it.
    """
    counts = (
        (constants.handshake, contacts.connections),
        (constants.poll, contacts.polls),
        (constants.heartbeat, contacts.heartbeats),
        (constants.received, traffic.requests),
        (constants.pulled, traffic.downlink_objects),
        (constants.sent, traffic.messages - traffic.requests),
        (constants.pushed, traffic.uplink_objects),
    )
    up = traffic.uplink_message + sum(np.asarray(count) * cost.up for cost, count in counts)
    down = traffic.downlink_message + sum(np.asarray(count) * cost.down for cost, count in counts)
    return np.rint(up).astype(np.int64), np.rint(down).astype(np.int64)
