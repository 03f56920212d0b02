"""The second exchange of a one-shot protocol whose mechanism leaves ratings for counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import PrivacyAccountant
from dprec.completion import Observations
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism
from simulation.protocols.accounting import notes_on_failures
from simulation.protocols.task import ServerTask

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from strategies.participation import RoundRecord
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class AfterReports:
    """What a server knows of one-shot devices once there is nothing more to ask for."""

    observations: Observations
    sizes: NDArray[np.int64] | None = None
    """Ratings in each count that was asked for; None if the mechanism has no counts; shape (users, groups).
    """
    rounds: tuple[RoundRecord, ...] = ()
    """Those after the reports."""
    notes: tuple[str, ...] = ()

    def accountant(
        self, calibrated: CalibratedMechanism, counts: NDArray[np.int64], sent: NDArray[np.bool_]
    ) -> PrivacyAccountant:
        """Return the accountant of the reports, and of the counts that followed.

        Parameters
        ----------
        calibrated : CalibratedMechanism
            The mechanism that was applied.
        counts : ndarray of int64, shape (users,)
            Number of ratings of each user.
        sent : ndarray of bool, shape (users,)
            Users whose report arrived.
        """
        counting = CalibratedCounts.of(calibrated)
        if counting is None or self.sizes is None:
            return calibrated.accountant(counts, sent)
        return counting.accountant(counts, self.sizes, sent)


def after_reports(
    grid: Grid, task: ServerTask, calibrated: CalibratedMechanism, collected: Collected
) -> AfterReports:
    """Ask for the counts of the ratings that the reports left out, if the mechanism has counts."""
    from strategies.count_collection import CountCollection

    counting = CalibratedCounts.of(calibrated)
    if counting is None:
        return AfterReports(collected.observations)
    counted = CountCollection(counting, task.group).collect(grid, task.roster, collected)
    notes = notes_on_failures([counted.record], "counts")
    return AfterReports(counted.observations, counted.sizes, (counted.record,), notes)
