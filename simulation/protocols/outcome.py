"""What a protocol produces: predictions, and what they cost in bytes and privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import (
    ChannelDraws,
    Guarantee,
    NoisySum,
    PrivacyAccountant,
    ShuffledProfiles,
    ShuffledReports,
)
from dprec.accounting.events import composed_losses
from dprec.predictions import Predict, PredictRows
from dprec.reports import DeviceChannel
from dprec.wire import TrafficLedger
from strategies.round_record import RoundRecord


@dataclass(frozen=True, eq=False, kw_only=True)
class ServerOutcome:
    """What a server knows of a protocol that has ended."""

    traffic: TrafficLedger
    privacy: PrivacyAccountant
    """What is proved of the losses; infinite where nothing is."""
    guarantee: Guarantee
    rounds: tuple[RoundRecord, ...]
    """Empty where nothing is sent."""
    claimed: PrivacyAccountant | None = None
    """The losses that are claimed without a proof; None where none are."""
    releases: tuple[ChannelDraws, ...] = ()
    """All that was drawn about the users, where that is independent draws; empty where only the sum of the
    losses is known.
    """
    losses_at: Callable[[float], NDArray[np.float64]] | None = None
    """From delta to the loss of every user, where the protocol composes what it released itself."""
    shuffled: ShuffledReports | ShuffledProfiles | None = None
    """The reports that came through shufflers, and how many hide each; None without shufflers."""
    to_everybody: NoisySum | None = None
    """What was released with noise to all users, beside what their devices drew; None if nothing was."""
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

    def composed(self, delta: float) -> NDArray[np.float64]:
        """Return the loss of every user by composition, shape (users,): at most the sum in the ledger.

        What was released to everybody has half of delta, and the reports have the other half.
        """
        if self.to_everybody is None:
            return self._composed_reports(delta)
        released = self.to_everybody.losses(delta / 2)
        return np.minimum(self.privacy.per_user, self._composed_reports(delta / 2) + released)

    def _composed_reports(self, delta: float) -> NDArray[np.float64]:
        losses = self.privacy.per_user
        if self.losses_at is not None:
            losses = np.minimum(losses, self.losses_at(delta))
        if self.releases:
            losses = np.minimum(losses, composed_losses(self.releases, delta))
        return losses if self.shuffled is None else np.minimum(losses, self.shuffled.per_user(delta))

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
