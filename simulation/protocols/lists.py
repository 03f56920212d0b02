"""How protocols run whose server orders items for every set that it receives."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dprec.arrays import AnyInts, Floats
from dprec.predictions import cells_from_rows
from dprec.protocols.references import ClearSetsProtocol
from dprec.reports import Wanted
from simulation.protocols.course import NOT_DELIVERED, Course, notes_on_failures
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told


class ReceivedSetsCourse(Course[ClearSetsProtocol]):
    """Devices send their sets, as they are or not; nobody is sent anything back."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the sets, and order items for each."""
        from strategies.report_collection import ReportCollection

        family = self.protocol.family(task.scale, task.n_items)
        wanted = Wanted(symbols=task.attacked)
        collected = ReportCollection(family, task.group, wanted).collect(grid, task.roster)
        observed, record = collected.observations, collected.record
        sets = sp.csr_array((np.ones(observed.items.size), observed.items, observed.indptr), observed.shape)
        order = self.protocol.learn(sets, task.server_seed, task.progress)
        ranked = sets if task.judged is task.train else task.judged.to_sets()

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            return order.scores(ranked[users])

        guarantee = self.protocol.guarantee((task.n_users, task.n_items))
        said, _ = family.against_truth(task.train, observed, collected.accepted)
        return Outcome(
            predict=cells_from_rows(predict_rows, task.n_items),
            predict_rows=predict_rows,
            traffic=collected.traffic,
            accountant=self.protocol.accountant(task.train.counts, collected.sent, task.n_items),
            guarantee=guarantee,
            rounds=(record,),
            notes=(*notes_on_failures([record]), *said, NOT_DELIVERED),
            diagnostics=order.diagnostics,
            transcript=told(task, observed, trusted=guarantee.trusts_server, broadcast=order.learned),
        )
