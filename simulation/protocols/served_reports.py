"""What the server of a one-shot protocol holds at the end, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.completion import CalibratedModel, Completed, EmbeddingRelease, ItemBiasesModel
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.device_channel import device_channel
from dprec.wire import ItemTable
from simulation.protocols.accounting import notes_on_failures
from simulation.protocols.counting import AfterReports
from simulation.protocols.seen_set import notes_on_catalogue
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class SentTable:
    """What devices that predict were sent, as they decode it."""

    table: ItemTable
    priors: NDArray[np.float64]
    """What each user's rated items say about its level and its factors; shape (users, 1 + factors)."""


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server of a one-shot protocol holds at the end."""

    calibrated: CalibratedMechanism
    """The mechanism that the devices apply."""
    collected: Collected
    """The reports."""
    after: AfterReports
    """What is known once there is nothing more to ask for."""
    completed: Completed
    record: RoundRecord
    """Of the round of the reports, with the bytes of what devices were sent."""
    sent_table: SentTable | None
    """None if the server predicts."""
    embedding_release: EmbeddingRelease
    """What the table may say of everybody's item sets."""

    @property
    def seen_counts(self) -> NDArray[np.int64]:
        """Cells that each user's report shows as rated, shape (users,)."""
        observed = self.after.observations
        return np.bincount(observed.users, minlength=observed.shape[0])

    def facts(self, counts: NDArray[np.int64]) -> dict[str, Any]:
        """Return the entries of a `ServerOutcome`, without its guarantee and distance.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
            Number of ratings of each user, as far as it is known.
        """
        sent, embedding_release = self.collected.sent, self.embedding_release
        accountant = self.after.accountant(self.calibrated, counts, sent)
        if embedding_release.epsilon is not None:
            accountant.step(1, sent, 0.0, embedding_release.epsilon, embedding_release.released)
        notes = self.completed.notes + notes_on_failures([self.record]) + self.after.notes
        if isinstance(self.completed, CalibratedModel | ItemBiasesModel):
            notes += notes_on_catalogue(self.completed.catalogue)
        return {
            "traffic": self.collected.traffic,
            "accountant": accountant,
            "rounds": (self.record, *self.after.rounds),
            "channel": device_channel(self.calibrated, counts),
            "notes": notes,
            "diagnostics": self.completed.diagnostics,
        }
