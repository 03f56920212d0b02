"""The byte ledger: what crossed the network for every user, separately for payloads and whole messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Users = NDArray[np.integer] | NDArray[np.bool_] | slice


class TrafficLedger:
    """Bytes of every user in both directions.

    Parameters
    ----------
    users : int

    Attributes
    ----------
    uplink_payload, uplink_message, downlink_payload, downlink_message : ndarray of int64, shape (users,)
        Bytes from the device and to it. A payload is the encoded content; a message is what carries it
        when the user is alone on its node.
    messages : ndarray of int64, shape (users,)
        Messages in both directions.
    """

    def __init__(self, users: int) -> None:
        self.uplink_payload = np.zeros(users, dtype=np.int64)
        self.uplink_message = np.zeros(users, dtype=np.int64)
        self.downlink_payload = np.zeros(users, dtype=np.int64)
        self.downlink_message = np.zeros(users, dtype=np.int64)
        self.messages = np.zeros(users, dtype=np.int64)

    def charge_uplink(
        self, users: Users, payload: NDArray[np.int64] | int, message: NDArray[np.int64] | int
    ) -> None:
        """Add one message from each of the users, each of them once."""
        self.uplink_payload[users] += payload
        self.uplink_message[users] += message
        self.messages[users] += 1

    def charge_downlink(
        self, users: Users, payload: NDArray[np.int64] | int, message: NDArray[np.int64] | int
    ) -> None:
        """Add one message to each of the users, each of them once."""
        self.downlink_payload[users] += payload
        self.downlink_message[users] += message
        self.messages[users] += 1
