"""The byte ledger: what crossed the network for every user, separately for payloads and whole messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Users = NDArray[np.integer] | NDArray[np.bool_] | slice

WITHOUT_RECORD, WITH_RECORD = 2, 3
"""Objects of a message: an envelope and its contents, which may be a record."""


class TrafficLedger:
    """Bytes of every user in both directions.

    Attributes
    ----------
    uplink_payload, uplink_message, downlink_payload, downlink_message : ndarray of int64, shape (users,)
        Bytes from the device and to it. A payload is the encoded content; a message is what carries it
        when the user is alone on its node.
    messages, requests : ndarray of int64, shape (users,)
        Messages in both directions, and those of them to the device.
    uplink_objects, downlink_objects : ndarray of int64, shape (users,)
        Objects that Flower's deployment engine makes of the messages.
    """

    def __init__(self, users: int) -> None:
        self.uplink_payload = np.zeros(users, dtype=np.int64)
        self.uplink_message = np.zeros(users, dtype=np.int64)
        self.downlink_payload = np.zeros(users, dtype=np.int64)
        self.downlink_message = np.zeros(users, dtype=np.int64)
        self.messages = np.zeros(users, dtype=np.int64)
        self.requests = np.zeros(users, dtype=np.int64)
        self.uplink_objects = np.zeros(users, dtype=np.int64)
        self.downlink_objects = np.zeros(users, dtype=np.int64)

    def clear(self, users: NDArray[np.bool_]) -> None:
        """Take back all charges of users whom nothing has reached."""
        for column in vars(self).values():
            column[users] = 0

    def charge_uplink(
        self,
        users: Users,
        payload: NDArray[np.int64] | int,
        message: NDArray[np.int64] | int,
        *,
        objects: int = WITH_RECORD,
    ) -> None:
        """Add one message from each of the users, each of them once."""
        self.uplink_objects[users] += objects
        self.uplink_payload[users] += payload
        self.uplink_message[users] += message
        self.messages[users] += 1

    def charge_downlink(
        self,
        users: Users,
        payload: NDArray[np.int64] | int,
        message: NDArray[np.int64] | int,
        *,
        objects: int = WITH_RECORD,
    ) -> None:
        """Add one message to each of the users, each of them once."""
        self.downlink_objects[users] += objects
        self.requests[users] += 1
        self.downlink_payload[users] += payload
        self.downlink_message[users] += message
        self.messages[users] += 1
