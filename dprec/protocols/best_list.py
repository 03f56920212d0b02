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
from dprec.lists.gram import MOST_ITEMS
from dprec.protocols.base import Predicted, Protocol, Public
from dprec.protocols.gram import (
    FEWEST,
    GramProtocol,
    PairsInBlanketProtocol,
    PairTableOptions,
    PopularityProtocol,
    TableProtocol,
)
from dprec.protocols.picking import PickingProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.sharing import COMPARED, budget_at
from dprec.sums import (
    Aggregation,
    CentralAggregation,
    LocalAggregation,
    SecureAggregation,
    ShuffledAggregation,
)

MOST_NOISE = {True: 2.5e-3, False: 6.5e-3}
"""Noise of a number and of a user up to which a table is best, where anything is public about the items, and
where nothing is."""

_AGGREGATIONS: dict[Trust, Aggregation] = {
    "local": LocalAggregation(),
    "shuffle": ShuffledAggregation(),
    "secure-aggregation": SecureAggregation(),
    "central": CentralAggregation(),
}


@dataclass(frozen=True, kw_only=True)
class BestListProtocol(PickingProtocol):
    """The protocol of lists that is best at a budget for whom users trust; it says which, and why."""

    kind: Literal["best-list"] = "best-list"
    predicted: ClassVar[Predicted] = "lists"
    folds_in: ClassVar[bool] = True
    privacy: PrivacyBudget = option("What is promised, of whole sets or of single items.")
    trust: Trust = option(
        "Whom users trust. What is promised of single items takes no trust, whatever stands here.",
        "secure-aggregation",
    )
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)

    def pick(self, public: Public | None) -> tuple[Protocol, str]:
        """Return a table or popularity, by the noise of a sum; of single items, randomised sets."""
        if self.privacy.per != "user":
            why = "what is promised of single items takes no trust"
            return RandomizedSetsProtocol(privacy=self.privacy), f"Best picked randomized-sets: {why}."
        aggregation = _AGGREGATIONS[self.trust]
        kind = PairsInBlanketProtocol if self.trust == "shuffle" else GramProtocol
        table: TableProtocol = kind(
            privacy=replace(self.privacy, composition="sum" if aggregation.by_itself else "pld"),
            adjacency=self.adjacency,
            aggregation=aggregation,
            table=PairTableOptions(fewest=self.fewest),
        )
        if public is None:
            return table, "Best picks by users, items and what is public about these."
        suited = table.suited(public)
        noise, most = suited.noise_of_tables(public)(suited.table.items or 0), MOST_NOISE[public.content]
        picked: Protocol = table
        if noise > most:
            picked = PopularityProtocol(
                privacy=table.privacy,
                adjacency=self.adjacency,
                content=True,
                fewest=self.fewest,
                aggregation=aggregation,
            )
        what = "something is" if public.content else "nothing is"
        return picked, (
            f"Best picked {picked.kind} under {self.trust}: the noise of a sum, over {public.n_users:,} "
            f"users, is {noise:.2g}, and a table is best up to {most:g} where {what} public about the items."
        )

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; per rating means per cell."""
        per: PrivacyUnit = "user" if budget.unit == "user" else "cell"
        return replace(self, privacy=budget_at(self.privacy, budget, per))
