"""Protocols of lists from sums: popularity, and a table of how items go together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.components import option
from dprec.errors import within
from dprec.lists import ListMethod, TableOptions
from dprec.lists.gram import MOST_ITEMS
from dprec.lists.method import FEWEST
from dprec.protocols.base import Facts, Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sharing import COMPARED
from dprec.ratings import POSITIVE
from dprec.sums import Releases, SecureAggregation, ShuffledAggregation, TrustedAggregation
from simulation.protocols.sums import SummedProtocol
from simulation.protocols.task import Sizes, Task

_NOTHING_PUBLIC = (
    "Nothing is public about the items, so they are ordered by popularity alone (dataset.items)."
)


@dataclass(frozen=True, kw_only=True)
class TableProtocol(SummedProtocol):
    """Base of the protocols in which item sets become one noisy table of popular items."""

    predicted: ClassVar[Predicted] = "lists"
    privacy: PrivacyBudget | None = option("What is promised for both rounds together, per user.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    table: TableOptions = option("Which items take part.", TableOptions())

    @property
    def facts(self) -> Facts:
        """A table of items that go together."""
        return self.facts_of(learns="item-table")

    @property
    def method(self) -> ListMethod:
        """The table's."""
        return ListMethod(options=self.table)

    def suited(self, public: Public) -> Self:
        """Return the protocol with the items that take part, by a public rule of the sizes and the budget.

        Without content where there is none: rules of the noise differ with it.
        """
        users, items = public.n_users, public.n_items
        among = super().suited(public)
        among = replace(among, table=replace(self.table, content=self.table.content and public.content))
        if self.table.items is not None:
            return replace(among, table=among._suited(self.table.items, users, items))

        def suits(size: int) -> int:
            return among._suited(size, users, items).items or 0

        # The largest table that is not too large for its own noise: that grows with it, or falls where
        # numbers are sampled, and then no table is larger than what suits the largest.
        most = min(items, MOST_ITEMS)
        least = min(suits(most), most)
        size = least if suits(least) >= least else 0
        while size < most:
            middle = -(-(size + most) // 2)
            size, most = (middle, most) if suits(middle) >= middle else (size, middle - 1)
        sized = replace(among, table=replace(among.table, items=size))
        return replace(among, table=sized._suited(size, users, items))

    def tau_among(self, users: int, items: int, size: int | None = None) -> float:
        """Return the noise per user of a table, by default of as many items as take part; see `tau`."""
        table = self.table if size is None else replace(self.table, items=size)
        layouts = replace(self.method, options=table).largest_layouts(Releases(users, items, POSITIVE))
        return self.tau(layouts[-1], users)

    def _suited(self, size: int, users: int, items: int) -> TableOptions:
        """Return what follows from the noise of a table of so many items."""
        most = self.aggregation.affordable(self.whole_multiplier)
        return self.table.suited(self.tau_among(users, items, size), items, most)

    def check(self, train: Sizes) -> None:
        """Refuse a budget that cannot be kept to, and a table whose items nobody finds."""
        with within("table"):
            self.table.check(train.n_items)
            if self.bounded:
                self.table.check_bounded()
        super().check(train)


@dataclass(frozen=True, kw_only=True)
class GramProtocol(TableProtocol):
    """Devices contribute their item sets to one noisy table of popular items, and rank by it."""

    kind: Literal["gram"] = "gram"
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())


@dataclass(frozen=True, kw_only=True)
class PairsInBlanketProtocol(TableProtocol):
    """Devices send a few pairs of their items as anonymous messages among fakes, and rank by the counts."""

    kind: Literal["pairs-in-blanket"] = "pairs-in-blanket"
    aggregation: AnyAggregation = option("Who counts the messages.", ShuffledAggregation())


@dataclass(frozen=True, kw_only=True)
class PublicStartProtocol(TableProtocol):
    """Devices contribute the public features of their sets, item by item, and rank by what these teach."""

    kind: Literal["public-start"] = "public-start"
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())

    @property
    def facts(self) -> Facts:
        """Tastes, by public features."""
        return self.facts_of(learns="tastes-by-item")

    @property
    def method(self) -> ListMethod:
        """The products'."""
        return ListMethod(options=self.table, of_features=True)

    def notes_on(self, task: Task) -> tuple[str, ...]:
        """Say where there is nothing to learn from."""
        if self.table.content and task.catalogue is not None:
            return ()
        return (_NOTHING_PUBLIC,)


@dataclass(frozen=True, kw_only=True)
class PopularityProtocol(SummedProtocol):
    """Devices contribute their item sets to the popularity of items, and rank by it."""

    kind: Literal["popularity"] = "popularity"
    predicted: ClassVar[Predicted] = "lists"
    privacy: PrivacyBudget | None = option("What is promised, per user; left out, nothing.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    content: bool = option(
        "Whether a device weighs what is popular by public data that its user's items share.", False
    )
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", TrustedAggregation())

    @property
    def facts(self) -> Facts:
        """Popularity, which is a baseline in the clear."""
        learned = "popularity-by-content" if self.content else "popularity"
        return self.facts_of(learns=learned, baseline=None if self.privacy else "popularity")

    @property
    def method(self) -> ListMethod:
        """One of no table."""
        options = TableOptions(items=0, normalised=self.bounded, content=self.content, fewest=self.fewest)
        return ListMethod(options=options)

    def notes_on(self, task: Task) -> tuple[str, ...]:
        """Say where content counts for nothing."""
        if not self.content or task.catalogue is not None:
            return ()
        return (_NOTHING_PUBLIC,)
