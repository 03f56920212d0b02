"""Protocols whose server needs no ratings: it runs deployed as it does in the simulation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from dprec.personalization import OrdinalProcess
from simulation.protocols.base import Protocol
from simulation.protocols.outcome import Outcome, ServerOutcome
from simulation.protocols.task import ServerTask, Sizes, Task

if TYPE_CHECKING:
    from flwr.serverapp import Grid

ServedT = TypeVar("ServedT")
"""What a server holds at the end."""


@dataclass(frozen=True, kw_only=True)
class DeployableProtocol(Protocol, Generic[ServedT]):
    """Base of the protocols in two parts: what the server does, and what the simulation adds to it."""

    @property
    def assumed(self) -> OrdinalProcess | None:
        """What a device assumes about tastes when it predicts; None if it assumes nothing."""
        return None

    @abstractmethod
    def check(self, train: Sizes) -> None:
        """Refuse settings that do not suit the catalogue and the users; see `Protocol.check`."""

    def check_deployed(self) -> None:
        """Refuse settings that need more than a server knows.

        Raises
        ------
        SettingError
            Naming the protocol's key.
        """

    @abstractmethod
    def serve(self, grid: Grid, task: ServerTask) -> ServedT:
        """Do all that the server does: ask the devices, learn from what they send, tell them."""

    @abstractmethod
    def served(self, task: ServerTask, held: ServedT) -> ServerOutcome:
        """Return what the server knows at the end, where nobody knows more."""

    @abstractmethod
    def simulated(self, task: Task, held: ServedT) -> Outcome:
        """Return the outcome in a simulation, which knows the ratings that the devices hold."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Serve, then add what only the simulation knows."""
        return self.simulated(task, self.serve(grid, task.for_server()))
