"""The best of this project's one-shot protocols at a budget, by a table and by what reports tell.

benchmarks/choosing/best.py holds the table against validation ratings of MovieLens 100K. Where a protocol
meets ratings (`suited_to`), information decides beyond the table: counts serve a server up to a larger
epsilon where items have many ratings, and a bit may say more than symbols about levels whose shares are not
public.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from dprec import mechanisms
from dprec.accounting import AnyBudget, MatchedBudget
from dprec.arrays import AnyInts, Floats
from dprec.completion import Calibrated, Guard
from dprec.components import option
from dprec.errors import SettingError
from dprec.mechanisms.fisher_optimal import information
from dprec.observations import EmbeddingRelease
from dprec.ordinal import level_shares
from dprec.protocols.base import Public
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.picking import PickingProtocol
from dprec.protocols.sharing import GUARD, budget_at
from dprec.ratings import RatingScale

PUBLIC: Literal["netflix"] = "netflix"
"""The public shares of the levels, of five stars."""

_STARS = 5

_USERS, _ITEMS, _FACTORS = 0.5, 0.2, 0.2
"""Variances of the biases and of the factors, in units of the noise on a rating.

An assumption: round numbers with which counts and symbols change places where they do on MovieLens 100K
and on generated ratings of a slider.
"""

_DIMENSIONS = 5
"""Of the factors, among which the information about a user is shared."""

_LATENT_VARIANCE = 0.5
"""As in the protocols that are compared."""

_COUNTED_VARIANCE = 0.25
"""Of one counted rating, which reaches the threshold or does not."""

_NO_NOISE = 20.0
"""An epsilon at which a bit is as good as true."""

_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, eq=False)
class Sizes:
    """What is public about ratings whose items are seen, and which mechanism says most about such ratings.

    A rating is a latent one with unit noise: a user bias, an item bias, and a product of factors. Symbols and
    bits tell as much about each as the Fisher information of their channel; a noisy count over m ratings
    tells about the user's bias alone, and that grows with the square of m. What is left of the three
    variances is compared, in the mean over ratings as they are spread over users and items.
    """

    of_users: Floats
    of_items: Floats
    """Ratings of the user, and of the item, of a rating: quantiles over all ratings."""
    scale: RatingScale

    @classmethod
    def of(cls, public: Public) -> Self | None:
        """Return the sizes of train ratings; None where they are not known."""
        train = public.ratings
        if train is None:
            return None
        per_item = np.bincount(train.items, minlength=train.n_items)
        return cls(_of_a_rating(train.counts), _of_a_rating(per_item), train.scale)

    def information(self, mechanism: mechanisms.Mechanism, epsilon: float) -> float:
        """Return what a symbol tells about a latent rating; levels without public shares count equally."""
        shares = level_shares(PUBLIC if self.scale.levels == _STARS else None, self.scale.levels)
        columns = mechanism.channel(self.scale, epsilon).probabilities
        return float(information(columns, shares, _LATENT_VARIANCE).sum())

    def error_of_symbols(self, mechanism: mechanisms.Mechanism, epsilon: float) -> float:
        """Return the variance that is left when every rating is reported by a symbol."""
        return self._error(self.information(mechanism, epsilon), np.zeros_like(self.of_users))

    def error_of_counts(self, mechanism: mechanisms.BitsAndCounts, epsilon: float) -> float:
        """Return the variance that is left by bits about some ratings and counts of the others."""
        bit = mechanisms.ThresholdBit(threshold=mechanism.threshold)
        counted = (1 - mechanism.bits) * self.of_users / mechanism.groups
        noise = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
        moved = counted**2 * self.information(bit, _NO_NOISE) * _COUNTED_VARIANCE
        of_counts = mechanism.groups * moved / (noise + counted * _COUNTED_VARIANCE)
        return self._error(mechanism.bits * self.information(bit, epsilon), of_counts)

    def _error(self, told: float, of_counts: Floats) -> float:
        of_users, of_items = self.of_users * told, self.of_items * told
        biases = (1 / (1 / _USERS + of_users + of_counts)).mean() + (1 / (1 / _ITEMS + of_items)).mean()
        return float(biases + _FACTORS * (1 - _learned(of_users).mean() * _learned(of_items).mean()))


def _of_a_rating(counts: AnyInts) -> Floats:
    """Return quantiles of counts, each as often as it counts."""
    ordered = np.sort(counts)
    reached = np.cumsum(ordered)
    places = np.searchsorted(reached, np.array(_QUANTILES) * reached[-1])
    reaching: Floats = ordered[places].astype(np.float64)
    return reaching


def _learned(told: Floats) -> Floats:
    """Return the share of the factors that so much information leaves known, for users or for items."""
    of_each = told * _FACTORS / _DIMENSIONS
    learned: Floats = of_each / (1 + of_each)
    return learned


COUNTS_UP_TO = {"device": 0.15, "server": 0.9}
"""The largest epsilon per rating at which bits and counts serve a device or a server better than symbols.

It was chosen on validation ratings of MovieLens 100K; a server's is larger where information says so.
"""

_MORE = 1.001
"""How many times as much a bit has to tell; where symbols are bits, rounding must not decide."""

_RANK, _HIDDEN_SWEEPS = 5, 20
"""As in the presets of the protocols that are picked."""


@dataclass(frozen=True, kw_only=True)
class BestProtocol(PickingProtocol):
    """The one-shot protocol that is best at the budget; it says which one that is, and why."""

    kind: Literal["best"] = "best"
    privacy: AnyBudget = option("What is promised; see protocol one-shot.")
    predicts: Literal["device", "server"] = option("Who predicts.", "device")
    item_set: Literal["revealed", "hidden"] = option(
        "Whether the server sees which items are rated.", "revealed"
    )
    item_embeddings: EmbeddingRelease = option(
        "What devices that predict are sent of everybody's item sets.", EmbeddingRelease()
    )
    guard: Guard | None = option(GUARD, None)

    def pick(self, public: Public | None) -> tuple[OneShotProtocol, str]:
        """Return the protocol that is picked, by the scale of ratings and by how many of them items have."""
        self._check_choices()
        mechanism = self._mechanism(None if public is None else Sizes.of(public))
        reports = mechanism.report_family
        completion = Calibrated(histogram="netflix", factors=_RANK if reports.of_single_ratings() else 0)
        if reports.hides_items and reports.by_cell:
            completion = replace(completion, sweeps=_HIDDEN_SWEEPS)
        picked = OneShotProtocol(
            privacy=self.privacy,
            mechanism=mechanism,
            completion=completion,
            personalization="on-device" if self.predicts == "device" else "none",
            item_embeddings=self.item_embeddings,
            guard=self.guard,
        )
        return picked, self._reason(mechanism.kind)

    def _mechanism(self, sizes: Sizes | None) -> mechanisms.Mechanism:
        if self.item_set == "hidden":
            return mechanisms.UserLevelBit() if self.privacy.per == "user" else mechanisms.HiddenThreshold()
        if self.privacy.per == "user":
            return mechanisms.ResidualBits()
        epsilon, by_counts = self.privacy.epsilon, mechanisms.BitsAndCounts()
        # The most informative symbols, or a bit if it tells more where no shares are public.
        symbols: mechanisms.Mechanism = mechanisms.FisherOptimal(histogram=PUBLIC)
        if sizes is not None:
            bit = mechanisms.ThresholdBit()
            told = sizes.information(symbols, epsilon)
            symbols = bit if sizes.information(bit, epsilon) > _MORE * told else symbols
        if self.privacy.own:
            return symbols
        if epsilon <= COUNTS_UP_TO[self.predicts]:
            return by_counts
        if sizes is None or self.predicts == "device":
            return symbols  # a device knows its user's level
        counted = sizes.error_of_counts(by_counts, epsilon)
        return by_counts if counted < sizes.error_of_symbols(symbols, epsilon) else symbols

    def _reason(self, kind: str) -> str:
        most = COUNTS_UP_TO[self.predicts]
        who = "devices predict" if self.predicts == "device" else "the server predicts"
        reasons = {
            "hidden-threshold": "the set of rated items is hidden, so that every cell is reported",
            "user-level-bit": "whole profiles are protected, and the set of rated items is hidden",
            "residual-bits": "all values of a user are protected together, and the item set is seen",
            "bits-and-counts": f"{who}, and epsilon per rating is at most {most:g}, or so small that "
            "counts tell more of these ratings, by Fisher information",
            "threshold-bit": "of these levels, whose shares are not public, a bit tells most at this epsilon",
            "fisher-optimal": "its symbols say most about a rating at any epsilon",
        }
        return f"Best picked {kind}: {reasons[kind]}."

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget; where the item set is hidden, per rating means per cell."""
        hidden = self.item_set == "hidden" and budget.unit == "rating"
        return replace(self, privacy=budget_at(self.privacy, budget, "cell" if hidden else budget.unit))

    def _check_choices(self) -> None:
        if self.privacy.per == "cell" and self.item_set == "revealed":
            raise SettingError(
                "item_set",
                "'revealed', with a budget per cell",
                "'hidden', --set protocol.privacy.per=rating or --set protocol.privacy.per=user",
            )
        if self.privacy.per == "user" and self.item_set == "revealed" and self.predicts == "server":
            found = "'server', with a budget per user and the item set revealed"
            raise SettingError("predicts", found, "'device', which knows its user's mean")
