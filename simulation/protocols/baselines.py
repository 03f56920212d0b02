"""How the protocols run that others are held against: one mean, a server that is trusted."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dprec.completion import Averages, one_mean_per_user
from dprec.protocols.baselines import GlobalMeanProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from simulation.protocols.course import NOT_DELIVERED, Course, notes_on_failures
from simulation.protocols.delivering import attacked_lists, deliver
from simulation.protocols.task import Grid, Outcome, Task
from simulation.protocols.transcripts import told, transcript_of


class GlobalMeanCourse(Course[GlobalMeanProtocol]):
    """Devices send their means once; everybody is predicted what is learned from them."""

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return what devices report: their means."""
        return one_mean_per_user(train)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the means and predict their mean."""
        from strategies.report_collection import ReportCollection

        means = one_mean_per_user(task.train)
        guarantee = self.protocol.guarantee((task.n_users, task.n_items))
        family = self.protocol.family(means.scale, means.n_items)
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        observed, channel = collected.observations, family.device_channel(means.counts)
        mean = self.protocol.learn(observed.mean, channel)
        everybody = Averages(np.full(task.judged.n_users, mean), by_item=False)
        transcript = None
        if task.attacked:
            # Of users, none of which is of an item.
            cells = observed.users, np.zeros(observed.users.size, dtype=np.int64)
            vectors = sp.coo_array((observed.values, cells), shape=(task.n_users, 1)).tocsr()
            transcript = transcript_of(task, trusted=guarantee.trusts_server, vectors=vectors)
        return Outcome(
            predict=everybody.predict,
            predict_rows=everybody.predict_rows,
            traffic=collected.traffic,
            accountant=family.accountant(means.counts, collected.sent),
            guarantee=guarantee,
            rounds=(collected.record,),
            channel=channel,
            notes=(*notes_on_failures([collected.record]), NOT_DELIVERED),
            diagnostics={"mean": mean},
            transcript=transcript,
        )


class TrustedServerCourse(Course[TrustedServerProtocol]):
    """Devices send true signs; a trusted server completes the matrix with noise, and sends lists."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the signs and complete the matrix with noise."""
        from strategies.report_collection import ReportCollection

        protocol, name = self.protocol, self.protocol.facts.learns
        family = protocol.family(task.scale, task.n_items)
        collected = ReportCollection(family, task.group).collect(grid, task.roster)
        received, record = collected.observations, collected.record
        cells = received.users, received.items
        seed = seed_for(task.server_seed, *cells, received.values)
        completed = protocol.learn(received, seed, task.progress)
        lists = attacked_lists(protocol.delivery, task, completed, cells, name)
        if protocol.delivery is not None:
            spent = deliver(protocol.delivery, grid, task, completed, cells, collected.traffic, name)
            record = record.with_traffic(spent)
        scale = protocol.noise(received.shape).scale
        return Outcome(
            predict=completed.predict,
            predict_rows=completed.predict_rows,
            traffic=collected.traffic,
            accountant=protocol.accountant(task.train.counts, collected.sent, task.n_items),
            guarantee=protocol.guarantee(received.shape),
            rounds=(record,),
            notes=completed.notes + notes_on_failures([record]),
            diagnostics={**completed.diagnostics, "noise_scale": scale},
            hidden=completed.hidden,
            transcript=told(task, received, trusted=True, lists=lists),
        )
