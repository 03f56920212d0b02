"""State the promise, get the protocol: what keeps a promise best, by numbers that are public.

A promise says what is protected (a rating, a cell, a whole profile), whether the item set is hidden, whom
users trust, who predicts, and at which budget. Candidates stand in a table by what is protected, for ratings
(`best_ratings`) and for lists (`best_lists`); each says what public numbers let expect of it, and the largest
is taken. So trusting more, or a larger budget, leads to nothing that is expected to tell less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, MatchedBudget, PrivacyUnit
from dprec.errors import SettingError
from dprec.protocols import best_lists, best_ratings
from dprec.protocols.base import Predicted, Protocol, Public
from dprec.protocols.picking import ItemSet, PickingProtocol, Rule
from dprec.protocols.sharing import budget_at

KEPT_BY: dict[Predicted, Mapping[tuple[PrivacyUnit, ItemSet], tuple[Rule, ...]]] = {
    "ratings": best_ratings.KEPT_BY,
    "lists": best_lists.KEPT_BY,
}
"""What can keep a promise, by what the data hold, what is protected, and whether item sets are hidden."""


def promises(predicted: Predicted, unit: ComparableUnit) -> dict[str, dict[str, Any]]:
    """Return every promise about such data that a comparison can match in a unit, by what it is called.

    Values are those of `BestProtocol`, without an epsilon. What takes no trust stands once.
    """
    values_by_name = {}
    for per, item_set in KEPT_BY[predicted]:
        if unit == "user" and per != "user":
            continue
        for trust in LEAST_TRUST_FIRST if (per, item_set) == ("user", "hidden") else LEAST_TRUST_FIRST[:1]:
            values = {"kind": "best", "trust": trust, "item_set": item_set, "privacy": {"per": per}}
            name = f"best-{trust}-per-{per}"
            values_by_name[name if (per, item_set) != ("user", "revealed") else f"{name}-values"] = values
    return values_by_name


@dataclass(frozen=True, kw_only=True)
class BestProtocol(PickingProtocol):
    """What keeps a promise best, about ratings or lists as the data say; it says which protocol, and why."""

    kind: Literal["best"] = "best"
    follows_data: ClassVar[bool] = True

    def of_data(self, predicted: Predicted) -> BestProtocol:
        """Return the same promise, about data that hold ratings, or sets; see `_resolved` for errors."""
        protocol = _AS_DATA_SAY[predicted](**self.entries())
        protocol._resolved(predicted)
        return protocol

    def pick(self, public: Public | None) -> tuple[Protocol, str]:
        """Return what tells most of the candidates, and why, in a sentence."""
        predicted = self.predicted
        if public is not None:
            predicted = "lists" if public.scale.implicit else "ratings"
        promise = self._resolved(predicted)
        rules = KEPT_BY[predicted][promise.privacy.per, promise.item_set or "hidden"]
        offers = [offer for rule in rules if (offer := rule(promise, public)) is not None]
        if not offers:
            raise SettingError("predicts", "'server', for what is promised", "'device'")
        # Before any size is known, the first.
        best = offers[0] if public is None else max(offers, key=lambda offer: offer.worth)
        return best.protocol, f"Best picked {best.name}: {best.why}."

    def _resolved(self, predicted: Predicted) -> BestProtocol:
        """Return the promise with what follows from what is protected; SettingError if it means nothing."""
        per, item_set = self.privacy.per, self.item_set
        if predicted == "lists":
            per = "user" if per == "user" else "cell"
            refusals = {
                "item_set": (item_set == "revealed", "'hidden': item sets are all that lists are made from"),
                "predicts": (self.predicts == "server", "'device': no server ranks for sets that are hidden"),
            }
            for key, (means_nothing, accepted) in refusals.items():
                if means_nothing:
                    raise SettingError(key, f"{getattr(self, key)!r}, of lists", accepted)
        if per == "rating" and item_set == "hidden":
            per = "cell"
        if per == "cell" and item_set == "revealed":
            accepted = "'hidden', --set protocol.privacy.per=rating or --set protocol.privacy.per=user"
            raise SettingError("item_set", "'revealed', with a budget per cell", accepted)
        if (per, item_set, self.predicts) == ("user", "revealed", "server"):
            found = "'server', with a budget per user and the item set revealed"
            raise SettingError("predicts", found, "'device', which knows its user's mean")
        if self.privacy.own and per != "rating":
            raise SettingError("privacy.epsilon", "several", f"one number, per {per}; several, per rating")
        privacy = self.privacy if per == self.privacy.per else replace(self.privacy, per=per)
        return replace(
            self, privacy=privacy, item_set="revealed" if per == "rating" else item_set or "hidden"
        )

    @property
    def stated(self) -> dict[str, str]:
        """The promise, whatever keeps it."""
        promise = self._resolved(self.predicted)
        return {"per": promise.privacy.per, "item_set": promise.item_set or "hidden", "trust": promise.trust}

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; what protects more than a rating does so at the same epsilon."""
        per = "user" if budget.unit == "user" else self.privacy.per
        return replace(self, privacy=budget_at(self.privacy, budget, per))


class _OfLists(BestProtocol):
    """What keeps a promise best, about lists, as the data hold sets; it says which protocol, and why."""

    predicted: ClassVar[Predicted] = "lists"
    folds_in: ClassVar[bool] = True


_AS_DATA_SAY: dict[Predicted, type[BestProtocol]] = {"ratings": BestProtocol, "lists": _OfLists}
