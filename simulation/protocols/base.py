"""What a protocol is, and what it answers about itself: all that others ask of one is a method here."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dprec.accounting import DELTA, Guarantee, MatchedBudget, PrivacyBudget
from dprec.components import Options, as_values, is_ours, option
from dprec.errors import SettingError
from dprec.exchange import Setup
from dprec.mechanisms import Mechanism
from dprec.personalization import OrdinalProcess
from dprec.ratings import Ratings
from dprec.renamed import first_names
from simulation.protocols.audited import Auditor, Finding, Promise
from simulation.protocols.outcome import Outcome, ServerOutcome
from simulation.protocols.sent import Example, Sent
from simulation.protocols.task import Grid, ServerTask, Task

BASELINES = ("nothing-sent", "global-mean", "item-average", "sets-only")
"""Presets that a protocol has to beat to be worth any privacy or bytes; see `Protocol.baseline`."""

_AFTER_REPORTS = frozenset({"delivery", "shuffler", "item_embeddings"})
"""Settings with and without which devices draw and send the same."""


@dataclass(frozen=True, kw_only=True)
class Protocol(Options):
    """How devices and server arrive at predictions together.

    A protocol has to say what it takes and promises, what is installed on devices, and how it runs. It runs
    in three parts: `serve` is all that its server does, from a `ServerTask` in which there is no rating;
    `served` is what the server knows then; `simulated` adds what only a simulation knows. One whose server
    needs ratings, or trust, defines `run` alone, and cannot be deployed.
    """

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers", "mechanism_name", "completion_name"})
    learns_parameters: ClassVar[bool] = False
    """Whether devices are asked about parameters that the server learns, other ones in every run."""
    not_deployed: ClassVar[str] = "whose server needs ratings or trust"
    """Why it cannot be deployed; empty if it can."""
    privacy: PrivacyBudget | None = option("What is promised; left out if nothing is.", None)

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether the protocol takes a privacy budget."""

    @property
    @abstractmethod
    def mechanism_name(self) -> str:
        """Name of what protects the users, for the summary."""

    @property
    @abstractmethod
    def completion_name(self) -> str:
        """Name of what completes the matrix, for the summary."""

    @abstractmethod
    def check(self, train: Any) -> None:
        """Refuse settings that do not suit the ratings; one that is deployed is given `Sizes` alone.

        Raises SettingError naming the protocol's key.
        """

    @abstractmethod
    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol calibrated to a budget in a unit that all protocols share; see `budget_at`."""

    @abstractmethod
    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Return what everybody who takes part is promised, among so many users and items."""

    @abstractmethod
    def sent(self, example: Example) -> Sent | None:
        """Return what a device sends before anything is asked back; None if nothing."""

    @abstractmethod
    def setup(self) -> Setup:
        """Return what is installed on the devices."""

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

    def check_deployed(self) -> None:
        """Refuse to deploy what `not_deployed` says, or settings, as `check` does."""
        if self.not_deployed:
            found, kinds = f"{self.kind!r}, {self.not_deployed}", ", ".join(_deploying(Protocol))
            raise SettingError("kind", found, f"a kind that deploys: {kinds}")

    def audited(self) -> Protocol:
        """Return the protocol for an audit, with as little work as possible but the same reports.

        Raises SettingError when the devices themselves do not protect what they send.
        """
        accepted = "a protocol whose devices protect what they send"
        raise SettingError("kind", repr(self.kind), accepted)

    def audited_on(self, items: int, *, separating: bool = False) -> Self:
        """Return an audited protocol for a few items; ``separating`` where parameters tell profiles apart."""
        return self

    def audit(self, auditor: Auditor) -> Iterator[Finding]:
        """Yield what an audit of `audited` finds: by default, about what devices send."""
        return auditor.of_devices()

    def promise(self) -> Promise:
        """Return what is promised, read from what is configured and from nothing that a run computes."""
        assert self.privacy is not None, "a protocol without a budget"
        delta = self.privacy.delta if self.privacy.composition == "pld" else 0.0
        return Promise(self.privacy.epsilon, self.privacy.per, self.setup().hides_rated_items, delta)

    def suited_to(self, train: Ratings) -> Self:
        """Return the protocol for train ratings, of which only the scale and the rated items are read."""
        return self

    def held_ratings(self, train: Ratings, seed: int) -> Ratings:
        """Return the ratings that are installed on the devices."""
        return train

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return how many cells the server may see as rated, at most; memory is estimated from them."""
        return ratings

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

    @property
    def baseline(self) -> str | None:
        """Which of the `BASELINES` it is, whatever it is called; None for any other protocol."""
        return None

    @property
    def shared_fit(self) -> Options | None:
        """What is fitted to the ratings as they are, alike in all runs; None if a draw changes the fit."""
        return None

    @property
    def mechanism_of_ratings(self) -> Mechanism | None:
        """What devices apply to each rating by itself, so that its noise can be sampled; None if nothing."""
        return None

    @property
    def assumed(self) -> OrdinalProcess | None:
        """What a device assumes about preferences when it predicts; None if it assumes nothing."""
        return None


def _deploying(base: type[Protocol]) -> list[str]:
    """Return the kinds of ours, derived from a class, that deploy."""
    own = [base.kind] if is_ours(base) and not base.not_deployed else []
    return [*own, *(kind for each in base.__subclasses__() for kind in _deploying(each))]
