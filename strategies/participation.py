"""What is kept of a round. The configuration needs this module, so it knows nothing of Flower."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from dprec.errors import RunError


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
    epsilon: float | None = None
    """Largest loss per user of all rounds up to this one, at the run's delta; None where none is finite."""
    observed: Mapping[str, float] = field(default_factory=dict)
    """What a simulation computes of the round besides, by name: `norm`, a median of updates before clipping,
    `clip`, `loss`, and how many updates are `not_finite`. No device sends any of it.
    """

    @property
    def asked(self) -> int:
        """Users who were asked."""
        return self.replies + self.failures

    def with_traffic(self, more: dict[str, int]) -> Self:
        """Return the record with bytes added to it, under the names of the fields."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})


class NoReportError(RunError):
    """Nobody sent a report that can be used; ``record`` says why."""

    def __init__(self, text: str, record: RoundRecord) -> None:
        super().__init__(text)
        self.record = record

    def __reduce__(self) -> tuple[type[Self], tuple[str, RoundRecord]]:
        """Return what another process makes the error of."""
        return type(self), (str(self), self.record)
