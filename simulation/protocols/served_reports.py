"""What the server of a one-shot protocol holds at the end, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Completed
from dprec.observations import Observations, Placement
from dprec.privacy.gaussian import GaussianReleases
from dprec.privacy.ledger import PrivacyLedger
from dprec.privacy.releases import Releases
from dprec.reports import ReportFamily
from dprec.wire.item_table import ItemTable
from simulation.protocols.accounting import mechanism_ledger, notes_on_failures
from simulation.protocols.seen_set import notes_on_catalogue
from simulation.protocols.task import ServerTask
from strategies.round_record import RoundRecord

if TYPE_CHECKING:
    from flwr.serverapp import Grid

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
class AfterReports:
    """What a server knows of one-shot devices once there is nothing more to ask for.

    Parameters
    ----------
    observations : Observations
    asked : ndarray of int64, shape (users, ...), or None
        What was asked of each user after the reports; None if nothing.
    rounds : tuple of RoundRecord
        Those after the reports.
    notes : tuple of str
    """

    observations: Observations
    asked: NDArray[np.int64] | None = None
    rounds: tuple[RoundRecord, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, grid: Grid, task: ServerTask, family: ReportFamily, collected: Collected) -> AfterReports:
        """Ask for what follows the reports of a family, if anything does."""
        from strategies.report_collection import FollowUpCollection

        follow_up = family.follow_up
        if follow_up is None:
            return cls(collected.observations)
        further = FollowUpCollection(follow_up, task.group).collect(grid, task.roster, collected)
        notes = notes_on_failures([further.record], follow_up.answers_called)
        return cls(further.observations, further.asked, (further.record,), notes)

    def losses(
        self, family: ReportFamily, counts: NDArray[np.int64], sent: NDArray[np.bool_]
    ) -> tuple[PrivacyLedger, Releases]:
        """Return what was lost, and what was drawn about users.

        Parameters
        ----------
        family : ReportFamily
        counts : ndarray of int64, shape (users,)
            Number of ratings of each user.
        sent : ndarray of bool, shape (users,)
            Users whose report arrived.
        """
        ledger = mechanism_ledger(family, counts, sent, self.asked)
        return ledger, family.releases(counts, sent, self.asked)


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server of a one-shot protocol holds at the end.

    Parameters
    ----------
    family : ReportFamily
        What the devices report.
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

    family: ReportFamily
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
        privacy, releases = self.after.losses(self.family, counts, sent)
        to_everybody = None
        if placement.epsilon is not None:
            to_everybody = GaussianReleases(placement.distance, sent)
            privacy.charge(1, sent, 0.0, placement.epsilon)
        notes = self.completed.notes + notes_on_failures([self.record]) + self.after.notes
        notes += notes_on_catalogue(self.completed.public_data)
        return {
            "traffic": self.collected.traffic,
            "privacy": privacy,
            "releases": (releases,),
            "to_everybody": to_everybody,
            "rounds": (self.record, *self.after.rounds),
            "channel": self.family.device_channel(counts),
            "notes": notes,
            "diagnostics": self.completed.diagnostics,
        }
