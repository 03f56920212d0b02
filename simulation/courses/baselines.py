"""How the protocols run that others are held against: one mean, a server that is trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy

from dprec.completion import Averages, one_mean_per_user
from dprec.protocols.baselines import GlobalMeanProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.randomness import seed_for
from dprec.ratings import Ratings
from simulation.courses.base import NOT_DELIVERED
from simulation.courses.collection import CollectionCourse
from simulation.courses.delivering import attacked_lists, deliver
from simulation.courses.task import Grid, Outcome, Task
from simulation.courses.transcripts import transcript_of, transcript_of_reports


class GlobalMeanCourse(CollectionCourse[GlobalMeanProtocol]):
    """Devices send their means once; everybody is predicted what is learned from them."""

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return what devices report: their means."""
        return one_mean_per_user(train)

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the means and predict their mean."""
        means = one_mean_per_user(task.train)
        task_of_means = replace(task, n_items=means.n_items, scale=means.scale)
        collected = self.collect(grid, task_of_means)
        observed, charged = collected.observations, self.charged(task_of_means, collected, means.counts)
        mean = self.protocol.learn(observed.mean, charged["channel"])
        everybody = Averages(np.full(task.judged.n_users, mean), by_item=False)
        transcript = None
        if task.attacked:
            # Of users, none of which is of an item.
            cells = observed.users, np.zeros(observed.users.size, dtype=np.int64)
            vectors = scipy.sparse.coo_array((observed.values, cells), shape=(task.n_users, 1)).tocsr()
            transcript = transcript_of(task, trusted=charged["guarantee"].trusts_server, vectors=vectors)
        return Outcome(
            predict=everybody.predict,
            predict_rows=everybody.predict_rows,
            diagnostics={"mean": mean},
            transcript=transcript,
            **charged | {"notes": (*charged["notes"], NOT_DELIVERED)},
        )


class TrustedServerCourse(CollectionCourse[TrustedServerProtocol]):
    """Devices send true signs; a trusted server completes the matrix with noise, and sends lists."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the signs and complete the matrix with noise."""
        protocol, name = self.protocol, self.protocol.facts.learns
        collected = self.collect(grid, task)
        received, record = collected.observations, collected.record
        seed = seed_for(task.server_seed, received.users, received.items, received.values)
        completed = protocol.learn(received, seed, task.progress)
        seen_cells = received.counts, received.items
        lists = attacked_lists(protocol.delivery, task, completed, seen_cells, name)
        if protocol.delivery is not None:
            spent = deliver(protocol.delivery, grid, task, completed, seen_cells, collected.traffic, name)
            record = record.with_traffic(spent)
        charged = self.charged(task, collected, task.train.counts, record=record)
        scale = protocol.noise(received.shape).scale
        return Outcome(
            predict=completed.predict,
            predict_rows=completed.predict_rows,
            hidden=completed.hidden,
            diagnostics={**completed.diagnostics, "noise_scale": scale},
            transcript=transcript_of_reports(task, received, trusted=True, lists=lists),
            **charged | {"notes": completed.notes + charged["notes"]},
        )
