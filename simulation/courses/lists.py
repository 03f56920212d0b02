"""How protocols run whose server orders items for every set that it receives."""

from __future__ import annotations

import numpy as np
import scipy

from dprec.arrays import AnyInts, Floats
from dprec.predictions import cells_from_rows
from dprec.protocols.references import ClearSetsProtocol
from dprec.reports import Wanted
from simulation.courses.base import NOT_DELIVERED
from simulation.courses.collection import CollectionCourse
from simulation.courses.task import Grid, Outcome, Task
from simulation.courses.transcripts import transcript_of_reports


class ReceivedSetsCourse(CollectionCourse[ClearSetsProtocol]):
    """Devices send their sets, as they are or not; nobody is sent anything back."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the sets, and order items for each."""
        collected = self.collect(grid, task, Wanted(symbols=task.attacked))
        observed, charged = collected.observations, self.charged(task, collected, task.train.counts)
        sets = scipy.sparse.csr_array(
            (np.ones(observed.items.size), observed.items, observed.indptr), observed.shape
        )
        order = self.protocol.learn(sets, task.server_seed, task.progress)
        ranked = sets if task.judged is task.train else task.judged.to_sets()

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            return order.scores(ranked[users])

        notes, _ = self.family(task).against_truth(task.train, observed, collected.accepted)
        trusted = charged["guarantee"].trusts_server
        return Outcome(
            predict=cells_from_rows(predict_rows, task.n_items),
            predict_rows=predict_rows,
            diagnostics=order.diagnostics,
            transcript=transcript_of_reports(task, observed, trusted=trusted, broadcast=order.learned),
            **charged | {"notes": (*charged["notes"], *notes, *order.notes, NOT_DELIVERED)},
        )
