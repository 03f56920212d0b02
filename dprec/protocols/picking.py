"""Protocols that pick another one, by what is public before anything is sent, and say which and why."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dprec.accounting import Guarantee, PrivacyBudget
from dprec.components import option
from dprec.protocols.base import Facts, Promise, Protocol, Public, Sent
from dprec.ratings import POSITIVE, Ratings


@dataclass(frozen=True, kw_only=True)
class PickingProtocol(Protocol):
    """Base of the protocols that are the best of some at a budget: what is run is what they pick."""

    undeployable: ClassVar[str] = ""
    scales: ClassVar[bool] = True
    privacy: PrivacyBudget = option("What is promised.")

    @abstractmethod
    def pick(self, public: Public | None) -> tuple[Protocol, str]:
        """Return the protocol that is picked, and why, in a sentence; ``public``: None before it is known.

        Raises SettingError for what leaves nothing to pick.
        """

    @property
    def picked(self) -> Protocol:
        """The protocol that is picked before any size is known."""
        return self.pick(None)[0]

    @property
    def facts(self) -> Facts:
        """What is picked says them, but for what is promised."""
        return replace(self.picked.facts, private=True, calibrated=not self.privacy.own)

    def suited(self, public: Public) -> Protocol:
        """Return the protocol that is picked, suited to the same."""
        return self.pick(public)[0].suited(public)

    def reasons(self, public: Public) -> tuple[str, ...]:
        """Return what is picked, and why, in a sentence."""
        return (self.pick(public)[1],)

    def check(self, train: Any) -> None:
        """Refuse what the picked protocol refuses."""
        self.suited(Public(train.n_users, train.n_items, train.scale)).check(train)

    def check_deployed(self) -> None:
        """Refuse what the picked protocol refuses."""
        self.picked.check_deployed()

    def audited(self) -> Protocol:
        """Return the picked protocol for an audit."""
        return self.picked.audited()

    def promise(self) -> Promise:
        """Return the promise of the picked protocol."""
        return self.picked.promise()

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise what the picked protocol does."""
        public = Public(*shape, POSITIVE)
        guarantee = self.suited(public).guarantee(shape)
        return replace(guarantee, notes=(*guarantee.notes, *self.reasons(public)))

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of the picked protocol."""
        return self.picked.influence_of_one(train)

    def sent(self, public: Public, ratings: int) -> Sent | None:
        """Return what the picked protocol sends."""
        return self.suited(public).sent(public, ratings)

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the cells that the picked protocol shows."""
        return self.picked.seen_cells(users, items, ratings)

    @property
    def of_single_ratings(self) -> Any:
        """The picked protocol, if its reports can be read with those of other times."""
        return self.picked.of_single_ratings
