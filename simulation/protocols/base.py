"""What every protocol provides to the simulation."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from dprec.accounting import DELTA, Guarantee, MatchedBudget, PrivacyBudget
from dprec.components import Options, as_values, option
from dprec.errors import SettingError
from dprec.exchange import Setup
from dprec.ratings import Ratings
from dprec.renamed import first_names
from simulation.protocols.outcome import Outcome
from simulation.protocols.sent import Example, Sent
from simulation.protocols.task import Task

if TYPE_CHECKING:
    from flwr.serverapp import Grid

_AFTER_REPORTS = frozenset({"delivery", "shuffler", "item_embeddings"})
"""Settings with and without which devices draw and send the same."""


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """Base of the protocols: how devices and server arrive at predictions together."""

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers", "mechanism_name", "completion_name"})
    privacy: PrivacyBudget | None = option("What is promised; left out if nothing is.", None)

    @property
    def draws_noise(self) -> bool:
        """Whether devices or server draw noise that protects somebody."""
        return self.private

    @property
    def delta(self) -> float:
        """Delta at which losses are composed."""
        return DELTA if self.privacy is None else self.privacy.delta

    @property
    def identity(self) -> str:
        """All settings that devices' draws depend on, as text: not what becomes of their reports."""
        values = {key: value for key, value in as_values(self).items() if key not in _AFTER_REPORTS}
        return json.dumps(first_names(values))

    @property
    def picked(self) -> Protocol:
        """The protocol that is run: this one, unless it picks another."""
        return self

    def suited_to(self, train: Ratings) -> Self:
        """Return the protocol for train ratings, of which only the scale and the rated items are read."""
        return self

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether the protocol takes a privacy budget."""

    @abstractmethod
    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol calibrated to a budget in a unit that all protocols share.

        Parameters
        ----------
        budget : MatchedBudget
            With a delta, draws that compose share it by composition; see `budget_at` in
            `simulation.protocols.accounting`.
        """

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """Name of what protects the users, for the summary."""

    @property
    @abstractmethod
    def completion_name(self) -> str:
        """Name of what completes the matrix, for the summary."""

    @property
    def shared_fit(self) -> Options | None:
        """What is fitted to the ratings as they are, without a draw; None if noise or a seed changes the fit.

        Runs on the same ratings that fit the same have the same fit.
        """
        return None

    @abstractmethod
    def check(self, train: Ratings) -> None:
        """Refuse settings that do not suit the ratings, before anything runs.

        Raises
        ------
        SettingError
            Naming the protocol's key.
        """

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return how many cells the server may see as rated, at most."""
        return ratings

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train

    def audited(self) -> Protocol:
        """Return the protocol for an audit, with as little work as possible but the same reports.

        Raises
        ------
        SettingError
            When the devices themselves do not protect what they send.
        """
        accepted = "a protocol whose devices protect what they send"
        raise SettingError("kind", repr(self.kind), accepted)

    @abstractmethod
    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Return what everybody who takes part is promised.

        Parameters
        ----------
        shape : tuple of int
            Users and items.
        """

    @abstractmethod
    def sent(self, example: Example) -> Sent | None:
        """Return what a device sends before anything is asked back; None if nothing."""

    @abstractmethod
    def setup(self) -> Setup:
        """Return what is installed on the devices."""

    @abstractmethod
    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the protocol on the nodes of a grid."""
