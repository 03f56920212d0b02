"""What is recorded of every round, whatever the protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dprec.wire.traffic import TrafficLedger


@dataclass(frozen=True)
class RoundRecord:
    """One round of a protocol.

    Parameters
    ----------
    round : int
        From 1.
    replies, failures : int
        Users whose report was accepted, and users who were asked without one being accepted.
    accuracy : dict or None
        Where the round was evaluated.
    uplink_payload_bytes, uplink_message_bytes, downlink_payload_bytes, downlink_message_bytes : int
        Sums over the users, this round alone.
    seconds : float
    """

    round: int
    replies: int
    failures: int
    accuracy: dict[str, float | None] | None
    uplink_payload_bytes: int
    uplink_message_bytes: int
    downlink_payload_bytes: int
    downlink_message_bytes: int
    seconds: float

    def with_traffic(self, more: dict[str, int]) -> RoundRecord:
        """Return the record with bytes added to it, under the names of `traffic_totals`."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})


def traffic_totals(ledger: TrafficLedger) -> dict[str, int]:
    """Return the sums over all users, under the names that a `RoundRecord` uses."""
    return {
        "uplink_payload_bytes": int(ledger.uplink_payload.sum()),
        "uplink_message_bytes": int(ledger.uplink_message.sum()),
        "downlink_payload_bytes": int(ledger.downlink_payload.sum()),
        "downlink_message_bytes": int(ledger.downlink_message.sum()),
    }
