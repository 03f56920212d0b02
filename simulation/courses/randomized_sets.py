"""How randomised sets are collected, and what is learned from them delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dprec.arrays import Ints
from dprec.attacks import Transcript
from dprec.lists.model import ListModel
from dprec.observations import SetReports
from dprec.protocols.predicting import predictions_on_devices
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.sharing import note_on_limit
from simulation.courses.collection import CollectionCourse
from simulation.courses.task import Grid, Outcome, ServerOutcome, ServerTask, Task
from simulation.courses.transcripts import of_newcomers, transcript_of

if TYPE_CHECKING:
    from strategies.report_collection import Collected


@dataclass(frozen=True, eq=False)
class ServedSets:
    """What the server holds at the end."""

    collected: Collected
    spent: dict[str, int]
    """Bytes of what devices were sent."""
    reports: SetReports
    """What arrived."""
    model: ListModel
    """What devices rank by, as they decode it."""
    notes: tuple[str, ...]
    """What the limit of what they are sent costs."""


class RandomizedSetsCourse(CollectionCourse[RandomizedSetsProtocol]):
    """Devices send their sets once, and are sent what they rank by."""

    def serve(self, grid: Grid, task: ServerTask) -> ServedSets:
        """Collect the randomised sets, learn from them, and send everybody what was learned."""
        from strategies.rounds import broadcast_parameters

        collected = self.collect(grid, task)
        reports = collected.observations.evidence
        assert isinstance(reports, SetReports)
        limit, full_model = self.protocol.max_bytes_down, self.protocol.learn(reports, task.catalogue)
        learned = full_model.within(limit).encode()
        spent = broadcast_parameters(grid, task.roster, task.group, learned, collected.traffic)
        model = self.protocol.device(learned, task.n_items, task.scale)
        notes = note_on_limit(limit, full_model)
        return ServedSets(collected, spent, reports, model, notes)

    def served(self, task: ServerTask, state: ServedSets) -> ServerOutcome:
        """Return what the server knows."""
        return ServerOutcome(**self._known(task, state))

    def simulated(self, task: Task, state: ServedSets) -> Outcome:
        """Add how the devices rank, from their clean sets."""
        predicted = predictions_on_devices(task.judged, state.model.predictions)
        transcript = self._transcript(task, state) if task.attacked else None
        return Outcome(**predicted, transcript=transcript, **self._known(task, state))

    def _known(self, task: ServerTask, state: ServedSets) -> dict[str, Any]:
        # Answers are about all items, whatever a user has, so that no count of any user is needed.
        counts: Ints = np.zeros(task.n_users, dtype=np.int64)
        record = state.collected.record.with_traffic(state.spent)
        charged = self.charged(task, state.collected, counts, record=record)
        notes = (*charged["notes"], *state.notes)
        return charged | {"notes": notes, "diagnostics": {"table_items": int(state.model.table.items.size)}}

    def _transcript(self, task: Task, state: ServedSets) -> Transcript:
        """Return the answers, each read as a report on its cell."""
        nobody = task.judged.select(np.zeros(task.judged.count, dtype=np.bool_))
        predicted = predictions_on_devices(nobody, state.model.predictions)
        observed, accepted = state.collected.observations, state.collected.accepted
        return transcript_of(
            task,
            reports=(state.reports.of_rows(observed, accepted),),
            newcomer=of_newcomers(predicted["predict"]),
        )
