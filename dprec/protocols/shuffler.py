"""A shuffler between devices and server: what it may pass on, and what users lose if it is honest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Ints
from dprec.completion import Completion, ItemAverage, ItemBiases
from dprec.components import Options, option
from dprec.errors import SettingError
from dprec.mechanisms import Mechanism
from dprec.observations import Observations
from dprec.reports import ReportFamily

_ALONE = (
    "epsilon_per_rating and epsilon_per_user hold without a shuffler, also against the shufflers themselves; "
    "what users lose by composition (epsilon_composed) holds if one of them is honest and the reports that a "
    "report is hidden among are drawn as the protocol says."
)

_NOTHING_GAINED = 0.99
"""Share of the loss without a shuffler from which on nothing is gained to speak of."""

_UNLINKED = (
    "Every report on an item is a message of its own, sent at a time that says nothing: the server sees how "
    "often an item is rated and how often each symbol is sent, and not by whom."
)

_SETS_LINKED = (
    "Every report on an item is a message of its own, sent at a time that says nothing: the server sees how "
    "often each symbol is sent about an item, and not by whom. Which items a user rated is sent apart from "
    "that, under the user's own name."
)

_SETS_UNSENT = (
    "Which items a user rated is not among what epsilon protects; it stays hidden if a shuffler is honest."
)

_LINKED = (
    "A user's reports are one message, hidden only among messages that show the same items, or among all if "
    "messages show none: the server can tell any other by its items, however it is shuffled. What is sent "
    "back to one user takes the way of its message, which is not charged."
)


@dataclass(frozen=True, kw_only=True)
class Shuffler(Options):
    """Servers that take messages, mix them and pass them on, of which one has to be honest."""

    reports: Literal["per-item", "per-user"] = option(
        "What is one message: the report on one item, which nobody can link to the user's others, or all "
        "reports of a user, which stay linked.",
        "per-item",
    )
    item_sets: Literal["unsent", "linked"] = option(
        "Whether users also send, under their own names, which items they rated: this places items that the "
        "same people rate, and epsilon is about values in any case. Whole reports say it themselves.",
        "unsent",
    )
    known: float = option(
        "Share of the other messages in every mix that hide nothing, as the server knows them or made them.",
        0.0,
        ge=0,
        lt=1,
    )
    hops: int = option("Shufflers in a row, each with its layer of encryption.", 2, ge=1, le=16)

    @property
    def unlinks(self) -> bool:
        """Whether nobody can tell which reports are of one user."""
        return self.reports == "per-item"

    @property
    def says_sets(self) -> bool:
        """Whether users say apart from their reports which items they rated."""
        return self.unlinks and self.item_sets == "linked"

    def guaranteed(self, local: accounting.Guarantee) -> accounting.Guarantee:
        """Return what is promised, given what would be without a shuffler."""
        about_sets = local.notes if self.says_sets or not self.unlinks else (_SETS_UNSENT,)
        about_links = _LINKED if not self.unlinks else _SETS_LINKED if self.says_sets else _UNLINKED
        unlinked = self.unlinks and not self.says_sets
        notes = _ALONE, about_links, *about_sets
        assumes = replace(local.assumes, shufflers=self.hops, named_sets=self.says_sets)
        return replace(local, trust="shuffle", notes=notes, unlinked=unlinked, assumes=assumes)

    def check(
        self,
        mechanism: Mechanism,
        privacy: accounting.PrivacyBudget | None,
        completion: Completion,
        on_device: bool,
    ) -> None:
        """Refuse what no shuffler makes more private, or what needs each user's reports together."""
        name = mechanism.kind
        if privacy is None or not mechanism.sends_values:
            found = f"mechanism {name}, which draws nothing at random"
            raise SettingError("shuffler", found, "a private mechanism, or no shuffler")
        if privacy.own:
            found = "one, where reports begin with their users' own budgets"
            raise SettingError("shuffler", found, "one epsilon for everybody, or no shuffler")
        if mechanism.report_family.asks_further:
            found = f"mechanism {name}, whose counts are asked of each user"
            raise SettingError("shuffler", found, "a mechanism that reports on each rating")
        if self.unlinks:
            self._check_unlinked(mechanism, privacy, completion, on_device)

    def _check_unlinked(
        self, mechanism: Mechanism, privacy: accounting.PrivacyBudget, completion: Completion, on_device: bool
    ) -> None:
        """Refuse what needs to know which reports are of one user; see `check`."""
        name = mechanism.kind
        if not mechanism.report_family.of_single_ratings():
            found = f"per-item, with mechanism {name}"
            accepted = "per-user, or a mechanism that reports on each rating by itself"
            raise SettingError("shuffler.reports", found, accepted)
        if privacy.per == "user":
            found = "per-item, with a budget per user, which gives users different channels"
            raise SettingError("shuffler.reports", found, "per-user, or --set protocol.privacy.per=rating")
        if not completion.works_unlinked or (on_device and not completion.knows_items):
            kinds = [ItemBiases.kind] if on_device else [ItemBiases.kind, ItemAverage.kind]
            found = f"per-item, with completion {completion.kind}, which has to know whose the reports are"
            others = [f"--set 'protocol.completion={{kind: {kind}}}'" for kind in kinds]
            raise SettingError("shuffler.reports", found, " or ".join(["per-user", *others]))
        if completion.reads_item_sets and not self.says_sets:
            found = "unsent, with places of items, which follow from item sets"
            accepted = "linked, or --set protocol.completion.dimensions=0"
            raise SettingError("shuffler.item_sets", found, accepted)

    def received(self, observations: Observations) -> Observations:
        """Return what the server makes of the messages that arrive."""
        return observations.unlinked(with_sets=self.says_sets) if self.unlinks else observations

    def shuffled(
        self, family: ReportFamily, observed: Observations, accepted: Bools, losses: Floats
    ) -> accounting.ShuffledReports | accounting.ShuffledProfiles:
        """Return the accepted reports with those that they are hidden among.

        ``accepted``: whose report it is, shape (users,); ``losses``: what each user's costs unshuffled.
        """
        n_users, n_items = observed.shape
        if self.unlinks:
            raters = np.bincount(observed.items, minlength=n_items)
            mixed = self._hiding(raters)[observed.items]
            return accounting.ShuffledReports(family.channel(1), observed.users, mixed, n_users)
        if family.hides_items:
            alike = np.full(n_users, np.count_nonzero(accepted))
        else:
            counts = observed.counts
            alike = np.zeros(n_users, dtype=np.int64)
            alike[accepted] = accounting.with_the_same_items(counts[accepted], observed.items)
        return accounting.ShuffledProfiles(losses, np.where(accepted, self._hiding(alike), 0))

    def _hiding(self, messages: Ints) -> Ints:
        """Return how many of so many messages hide one of them, itself included; none of none."""
        others = np.maximum(messages - 1, 0)
        return np.minimum(messages, 1) + others - np.ceil(self.known * others).astype(np.int64)


def notes_on_ratings(
    accountant: accounting.PrivacyAccountant, family: ReportFamily, delta: float
) -> tuple[str, ...]:
    """Say what a rating loses among the reports on its item, if they are messages of their own."""
    losses = accountant.per_report(delta)
    if losses is None or not losses.size:
        return ()
    local = family.channel(1).epsilon
    n_exposed = np.count_nonzero(losses >= _NOTHING_GAINED * local)
    return (
        f"Among the reports on its item, a rating loses {losses.mean():.3g} on average (median "
        f"{np.median(losses):.3g}) with delta = {delta:g}, not {local:.3g}. Of {losses.size:,} reports, "
        f"{n_exposed:,} are on items that too few rate, and lose as much as without a shuffler.",
    )
