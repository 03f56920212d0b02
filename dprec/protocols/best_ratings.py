"""What keeps a promise about ratings: candidates, and the public rules by which they are compared.

Of single ratings, benchmarks/choosing/best.py holds the rule against validation ratings of MovieLens 100K.
Where numbers of ratings are public, information decides beyond it: counts serve a server up to a larger
epsilon where items have many ratings, and a bit may say more than symbols about levels whose shares are not
public. Of cells and whole profiles, benchmarks/choosing/best_promises.py holds the rules against ratings that
are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from dprec import mechanisms
from dprec.accounting import LEAST_TRUST_FIRST, PrivacyUnit, Trust
from dprec.arrays import AnyInts, Floats
from dprec.completion import Calibrated
from dprec.errors import SettingError
from dprec.mechanisms.fisher_optimal import information
from dprec.ordinal import level_shares
from dprec.protocols.base import Public
from dprec.protocols.baselines import NothingSentProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.picking import ItemSet, Offer, PickingProtocol, Rule
from dprec.protocols.secret_sets import SecretSetOptions, SecretSetProtocol
from dprec.ratings import RatingScale
from dprec.sums import (
    Aggregation,
    CentralAggregation,
    LocalAggregation,
    SecureAggregation,
    ShuffledAggregation,
)

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
        per_count = (1 - mechanism.bits) * self.of_users / mechanism.groups
        noise = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
        signal = per_count**2 * self.information(bit, _NO_NOISE) * _COUNTED_VARIANCE
        of_counts = mechanism.groups * signal / (noise + per_count * _COUNTED_VARIANCE)
        return self._error(mechanism.bits * self.information(bit, epsilon), of_counts)

    def _error(self, fisher: float, of_counts: Floats) -> float:
        of_users, of_items = self.of_users * fisher, self.of_items * fisher
        biases = (1 / (1 / _USERS + of_users + of_counts)).mean() + (1 / (1 / _ITEMS + of_items)).mean()
        return float(biases + _FACTORS * (1 - _learned(of_users).mean() * _learned(of_items).mean()))


def _of_a_rating(counts: AnyInts) -> Floats:
    """Return quantiles of counts, each as often as it counts."""
    ordered = np.sort(counts)
    cumulative = np.cumsum(ordered)
    places = np.searchsorted(cumulative, np.array(_QUANTILES) * cumulative[-1])
    quantiles: Floats = ordered[places].astype(np.float64)
    return quantiles


def _learned(fisher: Floats) -> Floats:
    """Return the share of the factors that so much information leaves known, for users or for items."""
    of_each = fisher * _FACTORS / _DIMENSIONS
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

AGGREGATIONS: Mapping[Trust, Aggregation] = {
    "local": LocalAggregation(),
    "shuffle": ShuffledAggregation(),
    "secure-aggregation": SecureAggregation(),
    "central": CentralAggregation(),
}
"""Who adds up, by whom users trust."""


def one_report(promise: PickingProtocol, mechanism: mechanisms.Mechanism) -> OneShotProtocol:
    """Return the protocol in which every device reports once, by a mechanism that keeps the promise."""
    reports = mechanism.report_family
    completion = Calibrated(histogram=PUBLIC, factors=_RANK if reports.of_single_ratings() else 0)
    if reports.hides_items and reports.by_cell:
        completion = replace(completion, sweeps=_HIDDEN_SWEEPS)
    privacy = promise.privacy if reports.composes else replace(promise.privacy, composition="sum")
    return OneShotProtocol(
        privacy=privacy,
        mechanism=mechanism,
        completion=completion,
        personalization="on-device" if promise.predicts == "device" else "none",
        item_embeddings=promise.item_embeddings,
        guard=promise.guard,
        max_bytes_down=promise.max_bytes_down,
    )


def values_one_by_one(promise: PickingProtocol, public: Public | None) -> Offer:
    """Offer symbols, bits or counts about single ratings, whichever say most."""
    mechanism = most_telling(promise, None if public is None else Sizes.of(public))
    who = "devices predict" if promise.predicts == "device" else "the server predicts"
    why = {
        "bits-and-counts": f"{who}, and epsilon per rating is at most {COUNTS_UP_TO[promise.predicts]:g}, or "
        "so small that counts tell more of these ratings, by Fisher information",
        "threshold-bit": "of these levels, whose shares are not public, a bit tells most at this epsilon",
        "fisher-optimal": "its symbols say most about a rating at any epsilon",
    }
    return Offer(one_report(promise, mechanism), why[mechanism.kind])


def most_telling(promise: PickingProtocol, sizes: Sizes | None) -> mechanisms.Mechanism:
    """Return what tells most about single ratings at a budget, of which these sizes are public."""
    epsilon, by_counts = promise.privacy.epsilon, mechanisms.BitsAndCounts()
    # The most informative symbols, or a bit if it tells more where no shares are public.
    symbols: mechanisms.Mechanism = mechanisms.FisherOptimal(histogram=PUBLIC)
    if sizes is not None:
        bit = mechanisms.ThresholdBit()
        of_symbols = sizes.information(symbols, epsilon)
        symbols = bit if sizes.information(bit, epsilon) > _MORE * of_symbols else symbols
    if promise.privacy.own:
        return symbols
    if epsilon <= COUNTS_UP_TO[promise.predicts]:
        return by_counts
    if sizes is None or promise.predicts == "device":
        return symbols  # a device knows its user's level
    error_of_counts = sizes.error_of_counts(by_counts, epsilon)
    return by_counts if error_of_counts < sizes.error_of_symbols(symbols, epsilon) else symbols


def all_values_together(promise: PickingProtocol, public: Public | None) -> Offer:
    """Offer bits about what a user's ratings are above its own mean."""
    why = "all values of a user are protected together, and the item set is seen"
    return Offer(one_report(promise, mechanisms.ResidualBits()), why)


def every_cell(promise: PickingProtocol, public: Public | None) -> Offer | None:
    """Offer an answer about every cell: not rated, low or high."""
    why = "every cell is reported, rated or not, which tells most of these items at this epsilon"
    worth = 0.0 if public is None else worth_of_cells(promise.privacy.epsilon, public)
    offer = Offer(one_report(promise, mechanisms.HiddenThreshold()), why, worth)
    return _report_of_profile(promise, public, offer)


def some_answers(promise: PickingProtocol, public: Public | None) -> Offer | None:
    """Offer an answer or a few about a whole profile, from some epsilon on."""
    if public is not None and promise.privacy.epsilon < ANSWERS_FROM and promise.predicts == "device":
        return None
    why = "an answer or a few about a whole profile need no trust, and tell more than sums that need none"
    worth = 0.0 if public is None else worth_of_sums(summed(promise, "local"), public)
    offer = Offer(one_report(promise, mechanisms.UserLevelBit()), why, worth)
    return _report_of_profile(promise, public, offer)


def _report_of_profile(promise: PickingProtocol, public: Public | None, offer: Offer) -> Offer | None:
    """Return what is offered to devices that know something of the items; None where that is worth more."""
    if public is None or not public.content or promise.predicts == "server" or offer.worth >= TELLING:
        return offer
    # Where little is learned, devices rely on what is public as those do that send nothing.
    protocol = replace(offer.protocol, process=NothingSentProtocol().process)  # type: ignore[call-arg]
    return replace(offer, protocol=protocol) if offer.worth >= WORTH else None


def sums(promise: PickingProtocol, public: Public | None) -> Offer | None:
    """Offer sums of whole profiles, by whom users trust to add up; a promise per user holds per cell, too.

    Where these are too large, by somebody who needs less trust.
    """
    if promise.predicts == "server":
        return None
    why = "sums of whole profiles tell most of these items, for their noise"
    if public is None:
        return Offer(summed(promise, promise.trust), why)
    # Where nobody is trusted, cells tell more, and answers do at some epsilon.
    start = 0 if promise.privacy.per == "user" and promise.privacy.epsilon < ANSWERS_FROM else 1
    for trust in reversed(LEAST_TRUST_FIRST[start : LEAST_TRUST_FIRST.index(promise.trust) + 1]):
        protocol = within_bytes(summed(promise, trust), public, promise.max_bytes_up)
        if protocol is not None:
            worth = worth_of_sums(protocol, public)
            if public.content and worth < WORTH:
                return None
            return Offer(protocol, why, worth if promise.privacy.per == "user" else WORTH_TRUST * worth)
    return None


def summed(promise: PickingProtocol, trust: Trust) -> SecretSetProtocol:
    """Return sums that keep the promise for a whole profile, by who is trusted to add up."""
    aggregation = AGGREGATIONS[trust]
    composition: Literal["sum", "pld"] = "sum" if aggregation.by_itself else "pld"
    return SecretSetProtocol(
        privacy=replace(promise.privacy, per="user", composition=composition),
        adjacency=promise.adjacency,
        aggregation=aggregation,
        sums=SecretSetOptions(histogram=PUBLIC),
        max_bytes_down=promise.max_bytes_down,
    )


def within_bytes(protocol: SecretSetProtocol, public: Public, max_bytes: int) -> SecretSetProtocol | None:
    """Return sums of so many features that a user sends no more bytes than the most; None where none do."""
    features = protocol.sums.features
    while features:
        reduced = replace(protocol, sums=replace(protocol.sums, features=features))
        try:
            reduced.suited(public).check(public)
        except SettingError:  # for so few users, or so little budget, there is no sum
            return None
        report = reduced.sent(public, min(RATINGS, public.n_items))
        if report.reports * report.bits <= 8 * max_bytes:
            return reduced
        features //= 2
    return None


def nothing(promise: PickingProtocol, public: Public | None) -> Offer | None:
    """Offer that devices predict alone, by what is public."""
    if promise.predicts == "server":
        return None
    why = "what may be said tells less, for its noise, than devices know by themselves"
    return Offer(NothingSentProtocol(shares=True), why)


RATINGS = 50
"""Ratings that a user has: an assumption, since nothing says it where item sets are hidden."""

WORTH = 0.003
"""What has to be told of an item to be worth more than what is public about the items. Where nothing is,
reports of which nothing is learned leave devices as they are.
"""

TELLING = 1.0
"""From which on devices rely on what was told, and less on what is public."""

WORTH_TRUST = 0.5
"""What sums tell counts so much beside answers about cells, which take no trust."""

OF_RESIDUALS = 0.45
"""Share of a budget that sums of residuals have where it is small."""

ANSWERS_FROM = 2.0
"""The epsilon per user from which on some answers tell more than sums where nobody is trusted."""


def raters(public: Public) -> float:
    """Return how many users rate an item, on average, if they rate as many as is assumed."""
    return public.n_users * min(RATINGS / public.n_items, 1.0)


def worth_of_cells(epsilon: float, public: Public) -> float:
    """Return what answers about all cells tell of an item, in ratings that are read as they are.

    With the probability (e - 1) / (e + 2), e = exp(epsilon), an answer of three is true, and else any.
    """
    odds, rated = math.exp(min(epsilon, _NO_NOISE)), min(RATINGS / public.n_items, 1.0)
    noise = 2 / (odds + 2)
    return raters(public) * rated * ((odds - 1) / (odds + 2)) ** 2 / (noise + rated)


def worth_of_sums(protocol: SecretSetProtocol, public: Public) -> float:
    """Return the same of noisy sums, to which a rating of n adds one over the root of n."""
    suited = protocol.suited(public)
    tau = suited.tau(suited.largest(public)[0], public.n_users)
    of_noise = RATINGS * OF_RESIDUALS / (public.n_items * tau) ** 2
    return 1 / (1 / of_noise + 1 / raters(public))


KEPT_BY: Mapping[tuple[PrivacyUnit, ItemSet], tuple[Rule, ...]] = {
    ("rating", "revealed"): (values_one_by_one,),
    ("user", "revealed"): (all_values_together,),
    ("cell", "hidden"): (every_cell, sums, nothing),
    ("user", "hidden"): (sums, some_answers, nothing),
}
"""What can keep a promise, by what is protected."""
