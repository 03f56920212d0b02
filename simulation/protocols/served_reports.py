"""What the server of a one-shot protocol holds at the end, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Completed
from dprec.completion.calibrated.completion import CalibratedModel
from dprec.completion.calibrated.item_effects import ItemEffectsModel
from dprec.completion.placement import Placement
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.device_channel import device_channel
from dprec.wire.item_table import ItemTable
from simulation.protocols.accounting import notes_on_failures
from simulation.protocols.counting import AfterReports
from simulation.protocols.seen_set import notes_on_catalogue
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class SentTable:
    """What devices that predict were sent, as they decode it.

    Parameters
    ----------
    table : ItemTable
    priors : ndarray of float64, shape (users, 1 + factors)
        What each user's rated items say about its level and its factors.
    """

    table: ItemTable
    priors: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server of a one-shot protocol holds at the end.

    Parameters
    ----------
    calibrated : CalibratedMechanism
        The mechanism that the devices apply.
    collected : Collected
        The reports.
    after : AfterReports
        What is known once there is nothing more to ask for.
    completed : Completed
    record : RoundRecord
        Of the round of the reports, with the bytes of what devices were sent.
    sent_table : SentTable or None
        None if the server predicts.
    placement : Placement
        What the table may say of everybody's item sets.
    """

    calibrated: CalibratedMechanism
    collected: Collected
    after: AfterReports
    completed: Completed
    record: RoundRecord
    sent_table: SentTable | None
    placement: Placement

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
        sent, placement = self.collected.sent, self.placement
        accountant = self.after.accountant(self.calibrated, counts, sent)
        if placement.epsilon is not None:
            accountant.step(1, sent, 0.0, placement.epsilon, placement.released)
        notes = self.completed.notes + notes_on_failures([self.record]) + self.after.notes
        if isinstance(self.completed, CalibratedModel | ItemEffectsModel):
            notes += notes_on_catalogue(self.completed.catalogue)
        return {
            "traffic": self.collected.traffic,
            "accountant": accountant,
            "rounds": (self.record, *self.after.rounds),
            "channel": device_channel(self.calibrated, counts),
            "notes": notes,
            "diagnostics": self.completed.diagnostics,
        }
