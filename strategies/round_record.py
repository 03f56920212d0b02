"""What is kept of a round: who answered, how accurate it was, and its bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class RoundRecord:
    """One round of a protocol."""

    round: int
    """From 1."""
    replies: int
    failures: int
    """Users whose report was accepted, and users who were asked but had none accepted."""
    accuracy: dict[str, float | None] | None
    """Only if the round was evaluated."""
    uplink_payload_bytes: int
    uplink_message_bytes: int
    downlink_payload_bytes: int
    downlink_message_bytes: int
    """Sums over the users, for this round alone."""
    seconds: float
    causes: dict[str, int] = field(default_factory=dict)
    """Why the failures failed: how many were absent, late or malformed, or why devices refused."""

    def with_traffic(self, more: dict[str, int]) -> RoundRecord:
        """Return the record with bytes added to it, under the names of the fields."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})
