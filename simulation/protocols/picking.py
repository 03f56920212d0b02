"""Protocols that pick another one, by what is public before anything is sent, and say which and why."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from dprec.accounting import Guarantee, PrivacyBudget
from dprec.components import option
from dprec.exchange import Setup
from dprec.protocols import base
from dprec.protocols.base import Example, Promise, Sent
from dprec.ratings import Ratings
from simulation.protocols.base import Protocol
from simulation.protocols.course import course_of
from simulation.protocols.task import Grid, Outcome, Task


@dataclass(frozen=True, kw_only=True)
class PickingProtocol(Protocol):
    """Base of the protocols that are the best of some at a budget."""

    not_deployed: ClassVar[str] = ""
    private: ClassVar[bool] = True
    privacy: PrivacyBudget = option("What is promised.")

    @property
    @abstractmethod
    def picked(self) -> Protocol:
        """The protocol that is picked."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """What is picked, and why, in a sentence."""

    def among(self, users: int, items: int) -> Self:
        """Return the protocol that picks for so many users and items; refuse what leaves nothing to pick."""
        return self

    @property
    def mechanism_name(self) -> str:
        """What protects the users."""
        return self.picked.mechanism_name

    @property
    def completion_name(self) -> str:
        """What is learned."""
        return self.picked.completion_name

    def check(self, train: Any) -> None:
        """Refuse what leaves nothing to pick, and what the picked protocol refuses."""
        self.among(train.n_users, train.n_items).picked.check(train)

    def check_deployed(self) -> None:
        """Refuse what the picked protocol refuses."""
        self.picked.check_deployed()

    def audited(self) -> base.Protocol:
        """Return the picked protocol for an audit."""
        return self.picked.audited()

    def promise(self) -> Promise:
        """Return the promise of the picked protocol."""
        return self.picked.promise()

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise what the picked protocol does."""
        suited = self.among(*shape)
        return suited._with_reason(suited.picked.guarantee(shape))

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of the picked protocol."""
        return self.picked.influence_of_one(train)

    def sent(self, example: Example) -> Sent | None:
        """Return what the picked protocol sends."""
        return self.among(*example.shape).picked.sent(example)

    def setup(self) -> Setup:
        """Return what is installed for the picked protocol."""
        return self.picked.setup()

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Run the picked protocol."""
        outcome = course_of(self.picked).run(grid, task)
        return replace(outcome, guarantee=self._with_reason(outcome.guarantee))

    def _with_reason(self, guarantee: Guarantee) -> Guarantee:
        return replace(guarantee, notes=(*guarantee.notes, self.reason))
