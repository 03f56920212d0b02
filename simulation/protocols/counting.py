"""The second exchange of a one-shot protocol whose mechanism leaves ratings for counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dprec.completion import Observations
from dprec.privacy.calibrated_counts import CalibratedCounts
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.ledger import PrivacyLedger
from dprec.privacy.releases import Releases, mechanism_releases
from simulation.protocols.accounting import mechanism_ledger, notes_on_failures
from simulation.protocols.task import Task

if TYPE_CHECKING:
    from flwr.serverapp import Grid

    from strategies.report_collection import Collected
    from strategies.round_record import RoundRecord


@dataclass(frozen=True, eq=False)
class AfterReports:
    """What a server knows and what was drawn about users, once there is nothing more to ask for.

    Parameters
    ----------
    observations : Observations
    privacy : PrivacyLedger
    releases : tuple of Releases
    rounds : tuple of RoundRecord
        Those after the reports.
    notes : tuple of str
    """

    observations: Observations
    privacy: PrivacyLedger
    releases: tuple[Releases, ...]
    rounds: tuple[RoundRecord, ...] = ()
    notes: tuple[str, ...] = ()


def after_reports(
    grid: Grid, task: Task, calibrated: CalibratedMechanism, collected: Collected
) -> AfterReports:
    """Ask for the counts of the ratings that the reports left out, if the mechanism has counts."""
    from strategies.count_collection import CountCollection

    counting, counts = CalibratedCounts.of(calibrated), task.train.counts
    if counting is None:
        releases = mechanism_releases(calibrated, counts, collected.sent)
        ledger = mechanism_ledger(calibrated, counts, collected.sent)
        return AfterReports(collected.observations, ledger, (releases,))
    counted = CountCollection(counting, task.group).collect(grid, task.roster, collected)
    return AfterReports(
        counted.observations,
        counting.ledger(counts, counted.sizes, collected.sent),
        (counting.releases(np.where(collected.sent, counts, 0), counted.sizes),),
        (counted.record,),
        notes_on_failures([counted.record], "counts"),
    )
