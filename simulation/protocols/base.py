"""Protocols that are their own course."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dprec.protocols import base
from dprec.ratings import Ratings
from simulation.protocols.task import Grid, Outcome, ServerOutcome, ServerTask, Task


@dataclass(frozen=True, kw_only=True)
class Protocol(base.Protocol):
    """A protocol that says how it runs itself."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the protocol on the nodes of a grid: serve, then add what only the simulation knows."""
        return self.simulated(task, self.serve(grid, task.for_server()))

    def serve(self, grid: Grid, task: ServerTask) -> Any:
        """Do all that the server does, and return what it holds: ask devices, learn, tell them."""
        raise NotImplementedError

    def served(self, task: ServerTask, held: Any) -> ServerOutcome:
        """Return what the server knows at the end, where nobody knows more."""
        raise NotImplementedError

    def simulated(self, task: Task, held: Any) -> Outcome:
        """Return the outcome in a simulation, which knows the ratings that the devices hold."""
        raise NotImplementedError

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train
