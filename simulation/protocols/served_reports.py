"""What the server of a one-shot protocol holds at the end, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.completion import Completed
from dprec.observations import EmbeddingRelease, Observations
from dprec.reports import ReportFamily
from dprec.wire import ItemTable
from simulation.protocols.accounting import notes_on_failures
from simulation.protocols.seen_set import notes_on_catalogue
from simulation.protocols.task import Grid, ServerTask
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class SentTable:
    """What devices that predict were sent, as they decode it."""

    table: ItemTable
    priors: Floats
    """What each user's rated items say about its level and its factors; shape (users, 1 + factors)."""


@dataclass(frozen=True, eq=False)
class AfterReports:
    """What a server knows of one-shot devices once there is nothing more to ask for."""

    observations: Observations
    asked: Ints | None = None
    """What was asked of each user after the reports; None if nothing; shape (users, ...)."""
    rounds: tuple[RoundRecord, ...] = ()
    """Those after the reports."""
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


@dataclass(frozen=True, eq=False)
class ServedReports:
    """What the server of a one-shot protocol holds at the end."""

    family: ReportFamily
    """What the devices report."""
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
    def seen_counts(self) -> Ints:
        """Cells that each user's report shows as rated, shape (users,)."""
        observed = self.after.observations
        return np.bincount(observed.users, minlength=observed.shape[0])

    def facts(self, counts: Ints) -> dict[str, Any]:
        """Return the entries of a `ServerOutcome`, without its guarantee and distance."""
        sent, embedding_release = self.collected.sent, self.embedding_release
        accountant = self.family.accountant(counts, sent, self.after.asked)
        if embedding_release.epsilon is not None:
            accountant.step(1, sent, 0.0, embedding_release.epsilon, embedding_release.released)
        notes = self.completed.notes + notes_on_failures([self.record]) + self.after.notes
        notes += notes_on_catalogue(self.completed.public_data)
        return {
            "traffic": self.collected.traffic,
            "accountant": accountant,
            "rounds": (self.record, *self.after.rounds),
            "channel": self.family.device_channel(counts),
            "notes": notes,
            "diagnostics": self.completed.diagnostics,
        }
