"""What a protocol produces: predictions, and what they cost in bytes and privacy."""

from dataclasses import dataclass, field
from typing import Any

from dprec.accounting import (
    Guarantee,
    PrivacyAccountant,
)
from dprec.predictions import Predict, PredictRows
from dprec.reports import DeviceChannel
from dprec.wire import TrafficLedger
from strategies.participation import RoundRecord


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerOutcome:
    """What a server knows of a protocol that has ended."""

    traffic: TrafficLedger
    accountant: PrivacyAccountant
    """What was released about the users, and what is proved of their losses."""
    guarantee: Guarantee
    rounds: tuple[RoundRecord, ...]
    """Empty where nothing is sent."""
    channel: DeviceChannel | None = None
    """The channel that the devices applied to their ratings; None if it adds no noise."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""
    diagnostics: dict[str, Any] = field(default_factory=dict)
    """What the completion learned; JSON values only."""
    distance: dict[str, float | None] = field(default_factory=dict)
    """Root mean square difference between the reports and the ratings, and a bound on it, if a paper gives
    one.
    """
    seconds: float = 0.0
    """How long the protocol took in this process, measured by the caller."""

    @property
    def clients_seconds(self) -> float:
        """Seconds of the rounds, in which the devices work, including rounds before an interruption."""
        return sum(record.seconds for record in self.rounds)

    @property
    def server_seconds(self) -> float:
        """Seconds outside the rounds; 0 if rounds before an interruption outweigh them."""
        return max(0.0, self.seconds - self.clients_seconds)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome(ServerOutcome):
    """What a protocol produces in a simulation, which knows what every device predicts."""

    predict: Predict
    """From arrays of users and items to predicted ratings, not clipped."""
    predict_rows: PredictRows | None = None
    """From users and the number of items to predicted ratings of all items, where that is cheaper than cell
    by cell.
    """
    hidden: Predict | None = None
    """From arrays of users and items to the entries of the hidden matrix behind the ratings, if the
    completion models one.
    """
