"""Lists from item sets that are randomised item by item, on the device: one report, and a table back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import ChannelDraws, Guarantee, PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.components import option
from dprec.lists.gram import MOST_ITEMS
from dprec.lists.model import ListModel, check_least_bytes
from dprec.lists.randomized_sets import list_model
from dprec.mechanisms import RandomizedSet
from dprec.observations import SetReports
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Predicted
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import FixedMechanism
from dprec.ratings import POSITIVE, RatingScale

_RANDOMIZED = RandomizedSet()

_SIZES = (10, 100)
"""Of the sets whose loss is told as an example."""


@dataclass(frozen=True, kw_only=True)
class RandomizedSetsProtocol(CollectionProtocol):
    """Devices send a randomised answer about every item, and rank by the items that go together."""

    kind: Literal["randomized-sets"] = "randomized-sets"
    predicted: ClassVar[Predicted] = "lists"
    undeployable: ClassVar[str] = ""
    folds_in: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("gao2020",)
    mechanism: FixedMechanism = _RANDOMIZED
    privacy: PrivacyBudget = option("What is promised: of one item of a user, had or not, or of whole sets.")
    items: int | None = option(
        "Most popular items of the table; by default a public rule.",
        None,
        reader="server",
        ge=0,
        le=MOST_ITEMS,
    )
    content: bool = option(
        "Whether public categories and numbers of the items are used.", True, reader="server"
    )
    max_bytes_down: int | None = option(sharing.MAX_BYTES_DOWN, None, reader="server", ge=1)

    @property
    def facts(self) -> Facts:
        """A table of items that go together."""
        return self.facts_of(learns="item-table")

    def check(self, train: Any) -> None:
        """Refuse a limit in which popularity may not fit."""
        super().check(train)
        check_least_bytes(self.max_bytes_down, train.n_items, None)

    def audited(self) -> Self:
        """Return the protocol without a table; see `Protocol.audited`."""
        return replace(self, items=0)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of an answer, and say what whole sets cost.

        Sets of a few sizes are compared with an empty one, and then any two sets of the catalogue.
        """
        family, n_items = self.family(POSITIVE, shape[1]), shape[1]
        channel = family.channel(n_items)
        sizes = np.array([*(size for size in _SIZES if size < n_items), n_items])
        draws, everybody = ChannelDraws((channel,), 0, sizes), np.ones(sizes.size, dtype=np.bool_)
        composed = ChannelDraws.composed([(draws, everybody)], self.delta, "replace-one")
        *losses, any_two = np.minimum(composed, sizes * channel.epsilon).tolist()
        costs = (f"of {size} items {loss:.4g}, " for size, loss in zip(sizes, losses, strict=False))
        note = (
            f"With delta = {self.delta:g}, whole sets cost, beside none (add or remove one): {''.join(costs)}"
            f"and any two of them (replace one) {any_two:.4g}, for all {n_items} cells, which is what the "
            "ledger charges."
        )
        return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=(family.on_items, note))

    def learn(self, reports: SetReports, catalogue: Catalogue | None) -> ListModel:
        """Return what devices rank by, from at least one report."""
        return list_model(reports, catalogue if self.content else None, self.items)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ListModel:
        """Return by what devices rank that were sent these bytes; raises ValueError for what none is sent."""
        return ListModel.decode(received, n_items)
