"""A promise that is asked for, and a protocol that keeps it: what is run is what is picked.

What is asked for stands here, and how candidates are compared; which candidates there are stands in
`best_ratings` and `best_lists`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from dprec.accounting import Adjacency, AnyBudget, Guarantee, Trust
from dprec.completion import Guard
from dprec.components import option
from dprec.lists.gram import MOST_ITEMS
from dprec.observations import EmbeddingRelease
from dprec.protocols.base import Facts, Promise, Protocol, Public
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.searches import FEWEST
from dprec.protocols.sharing import COMPARED, GUARD, MAX_BYTES_DOWN
from dprec.ratings import POSITIVE, Ratings, RatingScale
from dprec.reports import ReportSize

ItemSet = Literal["hidden", "revealed"]
Predicts = Literal["device", "server"]

_STARS = RatingScale.evenly(1, 5, 1)
"""Of ratings before their scale is known."""


@dataclass(frozen=True)
class Offer:
    """A protocol that keeps a promise."""

    protocol: Protocol
    why: str
    """Why it is taken, in words that follow a colon."""
    worth: float = 0.0
    """What public numbers let expect that it tells of an item; candidates are compared by it alone."""

    @property
    def name(self) -> str:
        """Name of what is picked: of a report, its mechanism."""
        protocol = self.protocol
        return protocol.mechanism.kind if isinstance(protocol, OneShotProtocol) else protocol.kind


Rule = Callable[[Any, Public | None], Offer | None]
"""From a promise that is asked for, and public numbers once these are known, to what one candidate offers;
None where it cannot keep the promise.
"""


@dataclass(frozen=True, kw_only=True)
class PickingProtocol(Protocol):
    """Base of a protocol that states a promise: what is run is what keeps it best."""

    undeployable: ClassVar[str] = ""
    scales: ClassVar[bool] = True
    privacy: AnyBudget = option("What is promised, and for what; see protocol one-shot.")
    trust: Trust = option(
        "Whom users trust; what needs less is taken where nothing better is known.", "local"
    )
    item_set: ItemSet | None = option(
        "Whether the server sees which items are in a user's set. By default it follows from what is "
        "protected: hidden, but for single ratings.",
        None,
    )
    predicts: Predicts = option("Who predicts.", "device")
    max_bytes_up: int = option(
        "Bytes of payload that a user sends at most; what needs more is not taken.", 300_000, ge=1
    )
    max_bytes_down: int | None = option(MAX_BYTES_DOWN, None, ge=1)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    item_embeddings: EmbeddingRelease = option(
        "What devices that predict are sent of everybody's item sets, where these are revealed.",
        EmbeddingRelease(),
    )
    guard: Guard | None = option(f"{GUARD} Of ratings that are reported one by one.", None)
    fewest: int = option(f"{FEWEST} Of lists.", 1, ge=1, le=MOST_ITEMS)

    @abstractmethod
    def pick(self, public: Public | None) -> tuple[Protocol, str]:
        """Return the protocol that is picked, and why, in a sentence; ``public``: None before it is known.

        Raises SettingError for a promise that means nothing.
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
        public = Public(*shape, POSITIVE if self.predicted == "lists" else _STARS)
        guarantee = self.suited(public).guarantee(shape)
        return replace(guarantee, notes=(*guarantee.notes, *self.reasons(public)))

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of the picked protocol."""
        return self.suited(Public.of(train)).influence_of_one(train)

    def sent(self, public: Public, ratings: int) -> ReportSize | None:
        """Return what the picked protocol sends."""
        return self.suited(public).sent(public, ratings)

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the cells that the picked protocol shows."""
        return self.picked.seen_cells(users, items, ratings)

    def model_bytes(self, public: Public) -> float:
        """Return the memory in which the picked protocol learns."""
        return self.pick(public)[0].model_bytes(public)

    @property
    def of_single_ratings(self) -> Any:
        """The picked protocol, if its reports can be read with those of other times."""
        return self.picked.of_single_ratings
