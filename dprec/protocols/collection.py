"""Protocols whose devices send one report each, of the family of a mechanism at a budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dprec.accounting import MatchedBudget, PrivacyAccountant
from dprec.arrays import Bools, Ints
from dprec.components import option
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Protocol, Public
from dprec.protocols.components import AnyMechanism
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily, ReportSize
from dprec.sent_symbols import SentSymbols


@dataclass(frozen=True, kw_only=True)
class CollectionProtocol(Protocol):
    """Base of the protocols whose devices send their perturbed profile once, or as it is.

    Sizes, losses, influence and symbols of the reports are those of `family`. A protocol with a mechanism of
    its own has it as a class variable.
    """

    mechanism: AnyMechanism = option("What the device applies to each rating.")

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what devices report.

        Raises SettingError under the protocol's keys when mechanism and budget are incompatible.
        """
        return self.mechanism.family(self.privacy, scale, n_items)

    @property
    def facts(self) -> Facts:
        """What the names of mechanism and completion say; it is private if the mechanism is."""
        return self.facts_of(private=self.mechanism.private)

    def check(self, train: Any) -> None:
        """Refuse a budget and a catalogue for which there is no report."""
        self.family(train.scale, train.n_items).check()

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; if the item set is hidden, per rating means per cell."""
        return replace(self, privacy=sharing.mechanism_budget(self.mechanism, self.privacy, budget))

    def audited(self) -> Protocol:
        """Return the protocol as it is, if its mechanism is private; see `Protocol.audited`."""
        sharing.check_private(self.mechanism)
        return self

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the one report."""
        return self.family(public.scale, public.n_items).size(ratings)

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the ratings, or all cells if reports hide which of them are rated."""
        return self.mechanism.report_family.seen_cells(users, items, ratings)

    @property
    def hides_rated_items(self) -> bool:
        """Whether the mechanism hides them, or is about whole profiles."""
        return self.mechanism.report_family.hides_items

    @property
    def sends_values(self) -> bool:
        """Whether the mechanism does."""
        return self.mechanism.sends_values

    @property
    def adds_values(self) -> bool:
        """Whether the server adds up values that it decodes, and not log likelihood ratios of symbols."""
        return self.sends_values

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a report, by what is read of it."""
        family = self.family(train.scale, train.n_items)
        return family.influence_of_one(train.counts, of_values=self.adds_values)

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, loss_inputs: Ints | None = None
    ) -> PrivacyAccountant:
        """Return the account of everybody's report, of a family; see `ReportFamily.accountant`.

        ``loss_inputs``: what reports say of each user beside the ratings, or what was asked after them.
        """
        return family.accountant(counts, sent, loss_inputs)

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return what can be read in the reports."""
        family, rated = self.family(people.scale, people.n_items), np.unique(people.items)
        return SentSymbols(
            lambda number, reports: family.audited_symbols(number, reports, rated.astype(np.int64)),
            family.channel,
            family.exact_losses,
            fewest_items=family.fewest_items,
            drawn=not family.by_cell,
            linked=family.asks_further,
        )
