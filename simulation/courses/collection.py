"""How protocols run whose devices send one report each: it is asked for, read, and charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dprec.arrays import Ints
from dprec.catalogue import Catalogue
from dprec.protocols.collection import CollectionProtocol
from dprec.reports import ReportFamily, Wanted
from simulation.courses.base import Course, notes_on_failures
from simulation.courses.task import Grid, ServerTask
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.report_collection import Collected

CollectionT = TypeVar("CollectionT", bound=CollectionProtocol)


@dataclass(frozen=True)
class CollectionCourse(Course[CollectionT]):
    """Base of the courses of protocols with one report."""

    def family(self, task: ServerTask) -> ReportFamily:
        """Return what devices report."""
        return self.protocol.family(task.scale, task.n_items)

    def collect(
        self,
        grid: Grid,
        task: ServerTask,
        wanted: Wanted = Wanted(),  # noqa: B008 (it is frozen)
        *,
        catalogue: Catalogue | None = None,
        required: bool = True,
    ) -> Collected:
        """Ask everybody for a report.

        ``wanted``: what is read beside values; ``catalogue``: what observations know of the items. Raises
        RunError when none can be used, if one is ``required``.
        """
        from strategies.report_collection import ReportCollection

        collection = ReportCollection(self.family(task), task.group, wanted, catalogue, required)
        return collection.collect(grid, task.roster)

    def charged(
        self,
        task: ServerTask,
        collected: Collected,
        counts: Ints,
        *,
        record: RoundRecord | None = None,
        told: Ints | None = None,
    ) -> dict[str, Any]:
        """Return the entries of a `ServerOutcome` that follow from the reports.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
            Ratings of each user, as far as they are known.
        record : RoundRecord, optional
            Of the round, with what was charged after it; by default that of the reports.
        told : ndarray of int64, shape (users, ...), optional
            What losses follow from beside the counts; see `ReportFamily.losses`.
        """
        family, last = self.family(task), record or collected.record
        return {
            "traffic": collected.traffic,
            "accountant": self.protocol.accountant(family, counts, collected.sent, told),
            "guarantee": self.protocol.guarantee((task.n_users, task.n_items)),
            "rounds": (last,),
            # Sets have no values that noise could change.
            "channel": None if task.scale.implicit else family.device_channel(counts),
            "notes": (*family.note_on_unspent(), *notes_on_failures([last])),
        }
