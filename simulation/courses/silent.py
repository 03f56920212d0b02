"""How a protocol runs of which nothing is sent."""

from __future__ import annotations

from dprec.accounting import PrivacyAccountant
from dprec.protocols.silent import SilentProtocol
from dprec.wire import TrafficLedger
from simulation.courses.base import Course
from simulation.courses.task import Grid, Outcome, Task
from simulation.courses.transcripts import transcript_of


class SilentCourse(Course[SilentProtocol]):
    """Devices predict; there is no round, no byte and no loss."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Predict on every device; the grid is not used."""
        counts = task.train.counts
        ratings = task.judged if task.tested is None else task.judged.beside(task.tested)
        accountant = PrivacyAccountant(rated=counts > 0)
        accountant.step(0, counts >= 0, 0.0, 0.0)
        return Outcome(
            **vars(self.protocol.alone(ratings, task.catalogue, task.public_seed)),
            traffic=TrafficLedger(task.n_users),
            accountant=accountant,
            guarantee=self.protocol.guarantee((task.n_users, task.n_items)),
            rounds=(),
            transcript=transcript_of(task) if task.attacked else None,
        )
