"""The best of this project's protocols of lists, by numbers that are public before anything is sent.

What a table of pairs is worth follows from the noise of a number of its sums, over the users, whoever adds
up: with little it is best at any budget, and with much the whole budget is better spent on popularity, which
a device weighs by what is public about its items. benchmarks/choosing/best_list.py chose where they change
places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from dprec.accounting import Adjacency, MatchedBudget, PrivacyBudget, PrivacyUnit, Trust
from dprec.components import option
from dprec.lists import TableOptions
from dprec.lists.gram import MOST_ITEMS
from dprec.lists.method import FEWEST
from dprec.protocols.base import Predicted
from dprec.protocols.sharing import COMPARED, budget_at
from dprec.ratings import Ratings
from dprec.sums import (
    Aggregation,
    LocalAggregation,
    SecureAggregation,
    ShuffledAggregation,
    TrustedAggregation,
)
from simulation.protocols.base import Protocol
from simulation.protocols.list_sums import (
    GramProtocol,
    PairsInBlanketProtocol,
    PopularityProtocol,
    TableProtocol,
)
from simulation.protocols.picking import PickingProtocol
from simulation.protocols.randomized_sets import RandomizedSetsProtocol

MOST_NOISE = {True: 2.5e-3, False: 6.5e-3}
"""Noise of a number and of a user up to which a table is best, where anything is public about the items, and
where nothing is."""

_AGGREGATIONS: dict[Trust, Aggregation] = {
    "local": LocalAggregation(),
    "shuffle": ShuffledAggregation(),
    "secure-aggregation": SecureAggregation(),
    "central": TrustedAggregation(),
}


@dataclass(frozen=True)
class Known:
    """What is public before anything is sent."""

    users: int
    items: int
    """0 before they are known."""
    content: bool
    """Whether categories or numbers of the items are public."""


@dataclass(frozen=True, kw_only=True)
class BestListProtocol(PickingProtocol):
    """The protocol of lists that is best at a budget for whom users trust; it says which, and why."""

    kind: Literal["best-list"] = "best-list"
    predicted: ClassVar[Predicted] = "lists"
    folds_in: ClassVar[bool] = True
    _known: ClassVar[Known] = Known(0, 0, False)
    privacy: PrivacyBudget = option("What is promised, of whole sets or of single items.")
    trust: Trust = option(
        "Whom users trust. What is promised of single items takes no trust, whatever stands here.",
        "secure-aggregation",
    )
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)

    def knowing_items(self, *, content: bool) -> Self:
        """Return the protocol that picks by whether anything is public about the items."""
        return self._knowing(Known(0, 0, content))

    def suited_to(self, train: Ratings) -> Self:
        """Return the protocol that picks by the sizes of train ratings."""
        return self.among(train.n_users, train.n_items)

    def resized(self, users: int, items: int) -> Self:
        """Return the protocol that picks by other sizes; see `Protocol.resized`."""
        return self.among(users, items)

    def among(self, users: int, items: int) -> Self:
        """Return the protocol that picks by some sizes."""
        return self._knowing(Known(users, items, self._known.content))

    def _knowing(self, known: Known) -> Self:
        suited = replace(self)
        object.__setattr__(suited, "_known", known)  # no setting: it follows from the data
        return suited

    @property
    def _table(self) -> TableProtocol:
        """The table under the trust, suited to the sizes if these are known."""
        aggregation = _AGGREGATIONS[self.trust]
        kind = PairsInBlanketProtocol if self.trust == "shuffle" else GramProtocol
        privacy = replace(self.privacy, composition="sum" if aggregation.by_itself else "pld")
        options = TableOptions(fewest=self.fewest)
        table = kind(privacy=privacy, adjacency=self.adjacency, aggregation=aggregation, table=options)
        table = table.knowing_items(content=self._known.content)
        return table.among(self._known.users, self._known.items) if self._known.users else table

    @property
    def noise(self) -> float:
        """Noise of a number of a table that has the whole budget, over the users, once these are known."""
        known = self._known
        return self._table.tau_among(known.users, known.items) if known.users else 0.0

    @property
    def picked(self) -> Protocol:
        """The protocol that is picked."""
        if self.privacy.per != "user":
            return RandomizedSetsProtocol(privacy=self.privacy)
        table = self._table
        if self.noise <= MOST_NOISE[self._known.content]:
            return table
        return PopularityProtocol(
            privacy=table.privacy,
            adjacency=self.adjacency,
            content=True,
            fewest=self.fewest,
            aggregation=table.aggregation,
        )

    @property
    def reason(self) -> str:
        """What is picked, and why, in a sentence."""
        if self.privacy.per != "user":
            return "Best picked randomized-sets: what is promised of single items takes no trust."
        kind, content = self.picked.kind, self._known.content
        public = "something is" if content else "nothing is"
        return (
            f"Best picked {kind} under {self.trust}: the noise of a sum, over {self._known.users:,} users, "
            f"is {self.noise:.2g}, and a table is best up to {MOST_NOISE[content]:g} where {public} public "
            "about the items."
        )

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; per rating means per cell."""
        per: PrivacyUnit = "user" if budget.unit == "user" else "cell"
        return replace(self, privacy=budget_at(self.privacy, budget, per))
