"""Reports of independent draws, each from a channel that the budget allows; one symbol for each rated item.

A budget per rating or per cell gives one channel for everybody. A budget per user is divided evenly among the
draws about the user, by their sum or by what they cost when composed, so users with different numbers of
draws apply different channels of the same kind; the server sees how many there are anyway.

One symbol for each rated item, beside the set of these, is the family of most published mechanisms.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from dprec.accounting import LARGEST_CELL_EPSILON, ChannelDraws, PrivacyBudget, PrivacyUnit, worst_pair
from dprec.arrays import (
    Bools,
    Floats,
    GrowingArray,
    Ints,
    Pieces,
    Uint8s,
    Uint16s,
    Uint64s,
    blocks,
    different,
    offsets,
    rows_of,
)
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.components import is_ours
from dprec.errors import InputError, SettingError, within
from dprec.influence import loudest, mean_evidence, most_evidence
from dprec.observations import Evidence, Observations, RowReports, SymbolReports
from dprec.randomness import even_share
from dprec.ratings import Ratings, RatingScale
from dprec.reports.base import (
    REPORT_ROUND,
    DeviceChannel,
    DrawsFor,
    ProfileLevels,
    ReportFamily,
    ReportReader,
    ReportSize,
    Wanted,
)
from dprec.wire import ReportCodec

_SMALLEST_EPSILON = 1e-9

_CELLS_AT_ONCE = 1 << 18

_ROUNDING = 1 + 1e-9
"""What losses of profiles of different sizes may differ by when they are rounded."""


@dataclass(frozen=True, eq=False)
class IndependentDraws(ReportFamily):
    """A family whose losses are those of so many draws from one channel; see `ReportFamily`."""

    _channels: dict[int, Channel] = field(default_factory=dict, init=False)

    @abstractmethod
    def cells(self, counts: Ints) -> Ints:
        """Return how many draws are sent of users who have ``counts`` ratings, shape (users,)."""

    def channel(self, cells: int) -> Channel:
        """Return the channel of each draw about a user of whom so many are sent."""
        key = cells if self.budget and self.budget.per == "user" else 1
        if key in self._channels:
            return self._channels[key]
        if self.budget is None:
            with within("mechanism"):
                channel = self.mechanism.channel(self.scale, math.inf)
        else:
            # Users with few draws may have more budget than a channel can spend; the rest stays unspent.
            epsilon = self._share(self.budget, key)
            calibrated = self._within(epsilon)
            if calibrated is None:
                shares = f"{self.budget.epsilon:g} leaves {epsilon:g} per cell"
                found = f"{shares}, which {self.mechanism.kind} cannot keep"
                accepted = "a larger epsilon, or fewer symbols"
                if not is_ours(type(self.mechanism)):
                    accepted = (
                        "a larger epsilon, or a mechanism whose channels cost no more than they are given"
                    )
                raise SettingError("privacy.epsilon", found, accepted)
            channel = calibrated
        self._channels[key] = channel
        return channel

    @property
    def reference_channel(self) -> Channel:
        """The channel for which the wire format is made; per user, that of the longest report."""
        return self.channel(self.n_items)

    def _within(self, epsilon: float) -> Channel | None:
        """Return the channel at epsilon; None if integer weights are too coarse, or it costs more."""
        if epsilon < _SMALLEST_EPSILON:
            return None
        try:
            with within("mechanism"):
                channel = self._at(epsilon)
        except InputError:
            raise
        except ValueError:
            return None
        return channel if channel.epsilon <= epsilon else None

    def _at(self, epsilon: float) -> Channel:
        return self.mechanism.channel(self.scale, epsilon)

    def _share(self, budget: PrivacyBudget, cells: int) -> float:
        even = even_share(budget.epsilon, cells)
        if even < _SMALLEST_EPSILON:
            return even
        try:
            with within("mechanism"):
                return budget.share(
                    self._at,
                    cells,
                    most=LARGEST_CELL_EPSILON,
                    guess=self._guess(budget, cells),
                )
        except InputError:
            raise
        except ValueError:
            # Whole draws are too coarse for a share that was tried.
            return even

    def _guess(self, budget: PrivacyBudget, cells: int) -> float | None:
        """Return where to look for a composed share: near that of the power of two below the draws."""
        power = 1 << (cells.bit_length() - 1)
        if budget.composition == "sum" or power == cells:
            return None
        return self.channel(power).epsilon * math.sqrt(power / cells)

    def protects(self, counts: Ints) -> Bools:
        """Return of which users anything is sent."""
        return self.cells(counts) > 0

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings.

        Draws are independent, so a whole profile costs their sum. If the rated items are revealed, profiles
        are compared on the same items, and a user without ratings has spent nothing and has no loss per
        rating (NaN).
        """
        cells = self.cells(counts)
        sizes, of_user = different(cells)
        per_cell = np.array([self.channel(size).epsilon if size else np.nan for size in sizes.tolist()])
        per_rating = per_cell[of_user]
        return per_rating, np.where(cells > 0, per_rating * np.maximum(cells, 1), 0.0)

    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return a draw for each cell of every user."""
        cells = self.cells(counts)
        sizes, places = different(np.maximum(cells, 1))
        channels = [self.channel(size) for size in sizes.tolist()]
        distinct = list(dict.fromkeys(channels))
        numbers = np.array([distinct.index(channel) for channel in channels])
        return ChannelDraws(tuple(distinct), numbers[places], cells)

    def most_losses(self) -> tuple[float, float]:
        """Return what no profile loses more than.

        Between the shortest and the longest profile, the share of a rating only falls and their sum only
        rises, but for rounding. A budget that is divided is exceeded by neither.
        """
        budget = self.budget
        if budget is not None and budget.per == "user" and budget.composition == "sum":
            return budget.epsilon, budget.epsilon
        per_rating, per_user = self.losses(np.array([1, self.n_items]))
        rounding = 1.0 if budget is None or budget.per != "user" else _ROUNDING
        return float(per_rating.max()) * rounding, float(per_user.max()) * rounding

    def device_channel(self, counts: Ints) -> DeviceChannel | None:
        """Return the channel of the user with the median number of ratings; None if there is no noise."""
        if self.budget is None:
            return None
        median = max(1, round(float(np.median(counts))))
        cells = int(self.cells(np.array([median]))[0])
        return DeviceChannel(self.channel(cells), cells, self.budget.per == "user")

    def answers_about(self, entries: int) -> int:
        """Return how many answers depend on so many entries of a profile that has no others."""
        return entries

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield the loss of the worst two levels, once for each answer that depends on them."""
        loss = worst_pair(self.channel(entries).weights)[0] * self.answers_about(entries)
        yield "all pairs of levels, from the matrix" + (f", {entries} entries" if entries > 1 else ""), loss


@dataclass(frozen=True, eq=False)
class CellFamily(IndependentDraws):
    """A symbol for each rated item, drawn from the channel of its user; see `ReportFamily`."""

    one_channel: ClassVar[bool] = False
    """Whether everybody's reports are read through one channel, `reference_channel`."""

    def check(self) -> None:
        """Refuse a budget for which there is no channel, or a catalogue that reports cannot represent."""
        _ = self.codec

    def sent(self, cells: int) -> Channel:
        """Return the channel from a level to the symbol that is sent of a user with so many cells."""
        return self.reference_channel if self.one_channel else self.channel(cells)

    def cells(self, counts: Ints) -> Ints:
        """Return the ratings: each is a draw, shape (users,)."""
        return counts

    @cached_property
    def codec(self) -> ReportCodec:
        """The encoder and decoder of the reports, with words for the symbols of any user's channel."""
        return ReportCodec(self.reference_channel, self.n_items, self.channel(1).symbols)

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return the set of rated items of every user, with a symbol for each."""
        return self.codec.encode(offsets(profiles.counts), profiles.items, self.drawn(profiles, draws))

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return the set of rated items of every profile, with the symbol for each that says most."""
        return self.codec.encode(offsets(profiles.counts), profiles.items, self.loudest(profiles))

    def loudest(self, profiles: ProfileLevels) -> Uint16s:
        """Return the symbols that say most for profiles, shape (ratings,)."""
        symbols = np.empty(profiles.levels.size, dtype=np.uint16)
        for channel, which in self._by_channel(profiles.counts):
            symbols[which] = loudest(channel)[profiles.levels[which] - channel.first_level]
        return symbols

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return the evidence of a symbol, among as many others as serve a malicious user best.

        Whoever reports on one rating alone has most budget for it; the less there is, the farther apart are
        values that undo the noise.
        """
        lengths = self.cells(np.array([1, self.n_items])).tolist()
        strongest = max(most_evidence(self.sent(length), of_values=of_values) for length in lengths)
        # Of the user with the median number of ratings, if it has any.
        median = round(float(np.median(counts[counts > 0]))) if counts.any() else 1
        usual = int(self.cells(np.array([median]))[0])
        return strongest, mean_evidence(self.sent(usual), of_values=of_values)

    def answered(self, symbols: Uint16s) -> Bools | None:
        """Return which symbols are answers, where losses follow from how many are; None where all are."""
        return None

    def drawn(self, profiles: ProfileLevels, draws: DrawsFor) -> Uint16s:
        """Return the symbols of the rated items, the same whenever they are computed, shape (ratings,)."""
        noise = draws("report").per_cell(profiles.counts, profiles.items, REPORT_ROUND)
        return self.perturb(profiles.counts, profiles.levels, noise)

    def perturb(self, cells: Ints, levels: Uint8s, random_words: Uint64s) -> Uint16s:
        """Send users' cells, of level 0 if "not rated", through their channels, shape (sum of cells,)."""
        symbols = np.empty(levels.size, dtype=np.uint16)
        for channel, which in self._by_channel(cells):
            symbols[which] = channel.sample(levels[which], random_words[which])
        return symbols

    def reader(self, n_users: int, wanted: Wanted) -> ReportReader:
        """Return what reads the reports of so many users."""
        return CellReader(self, n_users, wanted)

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the value that each symbol stands for, undoing the encoding of `perturb`, not its noise."""
        values = np.empty(symbols.size)
        for channel, which in self._by_channel(cells):
            values[which] = channel.values[symbols[which]]
        return values

    def likelihood(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the probability of each symbol given each level of the scale, shape (cells, levels)."""
        likelihoods = np.empty((symbols.size, self.scale.levels))
        for channel, which in self._by_channel(cells):
            likelihoods[which] = channel.probabilities[1 - channel.first_level :, symbols[which]].T
        return likelihoods

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> Evidence:
        """Return symbols with the channels through which they were sent."""
        of_cell, channels = np.zeros(symbols.size, dtype=np.int64), []
        for number, (channel, which) in enumerate(self._by_channel(cells)):
            channels.append(channel.probabilities)
            of_cell[which] = number
        channels = channels or [self.reference_channel.probabilities]
        return SymbolReports(tuple(channels), symbols.astype(np.int64), of_cell)

    def together(self, collected: Observations) -> Observations:
        """Return what bits say together that were drawn anew about the same ratings: how many are 1.

        They are independent given the rating and not given what it follows from, such as an item's bias.
        Reports of more symbols are returned as they are, as if each were about a rating of its own.
        """
        reports = collected.symbols
        if reports is None or {channel.shape[1] for channel in reports.channels} != {2}:
            return collected
        begins, times = collected.repeats
        if begins.size == reports.symbols.size or len(reports.channels) > 1:
            return collected
        ones, variance = np.add.reduceat(reports.symbols, begins), collected.noise_variance
        numbers, channel_of = np.unique(times, return_inverse=True)
        channels = tuple(_how_many(number, reports.channels[0][:, 1:]) for number in numbers.tolist())
        variance = None if variance is None else variance * float((1 / times).mean())
        return collected.merged(SymbolReports(channels, ones, channel_of), variance)

    def noise_variance(self, cells: Ints) -> float | None:
        """Return the mean variance of the value read for a rating; None without reports or noise."""
        if self.budget is None or not cells.any():
            return None
        if self.hides_items:
            return mean_variance(self.reference_channel)
        sizes, users = np.unique(cells[cells > 0], return_counts=True)
        variances = [mean_variance(self.channel(size)) for size in sizes.tolist()]
        return float(np.average(variances, weights=sizes * users))

    def size(self, ratings: int) -> ReportSize:
        """Return a report of so many symbols and the set of their items, or of one for every item."""
        answers = int(self.cells(np.array([ratings]))[0])
        channel = self.channel(answers)
        bits = ReportCodec(channel, self.n_items).expected_bits(ratings)
        epsilon = None if self.budget is None else channel.epsilon
        per: PrivacyUnit = "cell" if self.hides_items else "rating"
        return ReportSize(channel.symbols, answers, bits, epsilon, per)

    def parts(self, report: bytes) -> dict[str, int]:
        """Return the bits of the set of rated items and of their symbols."""
        return self.codec.parts(report)

    def audited_symbols(self, exchange: int, reports: Sequence[bytes], items: Ints) -> Ints:
        """Return one more than the symbol of every item; 0 where there is none."""
        decoded = self.codec.decode(reports)
        symbols = np.zeros((len(reports), self.n_items), dtype=np.int64)
        symbols[rows_of(np.diff(decoded.indptr)), decoded.items] = decoded.symbols.astype(np.int64) + 1
        # A symbol that the channel does not have stands for a rating without an answer.
        return np.where(symbols > self.reference_channel.symbols, 0, symbols)

    def _by_channel(self, cells: Ints) -> Iterator[tuple[Channel, Ints | slice]]:
        """Yield the channels of users with so many cells, each with the cells that it is for."""
        sizes = np.unique(cells[cells > 0]).tolist()
        if len({id(self.sent(size)) for size in sizes}) == 1:
            yield self.sent(sizes[0]), slice(None)
            return
        size_of_cell = np.repeat(cells, cells)
        for size in sizes:
            yield self.sent(size), np.flatnonzero(size_of_cell == size)


def _how_many(number: int, probability: Floats) -> Floats:
    """Return the binomial probabilities of 0 to ``number``, shape (levels, number + 1)."""
    from scipy.special import gammaln, xlog1py, xlogy

    ones = np.arange(number + 1)
    ways = gammaln(number + 1) - gammaln(ones + 1) - gammaln(number - ones + 1)
    logarithms = ways + xlogy(ones, probability) + xlog1py(number - ones, -probability)
    weights = np.exp(logarithms)
    return weights / weights.sum(axis=1, keepdims=True)


def mean_variance(channel: Channel) -> float:
    """Return the variance of the value read for a rating, averaged over the levels."""
    return float(channel.variance()[~np.isnan(channel.inputs)].mean())


class CellReader(ReportReader):
    """Reports of cells as they arrive; see `ReportReader`."""

    def __init__(self, family: CellFamily, n_users: int, wanted: Wanted) -> None:
        self._family, self._wanted = family, wanted
        if family.answered(np.zeros(0, dtype=np.uint16)) is not None:
            self.told = np.zeros(n_users, dtype=np.int64)
        self._accepted = np.zeros(n_users, dtype=np.bool_)
        self._counts = np.zeros(n_users, dtype=np.int64)
        self._items, self._symbols = GrowingArray(np.int32), GrowingArray(np.uint16)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode reports, and keep the items that they show with the symbols for them."""
        decoded = self._family.codec.decode(reports)
        self._accepted[users], self._counts[users] = decoded.valid, np.diff(decoded.indptr)
        self._items.extend(decoded.items)
        self._symbols.extend(decoded.symbols)
        answered = self._family.answered(decoded.symbols)
        if answered is not None:
            assert self.told is not None
            self.told[users] = np.bincount(rows_of(self._counts[users])[answered], minlength=users.size)
        return decoded.valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return the cells that are shown as rated, with what a completion wants to know of their symbols."""
        family, counts, symbols = self._family, self._counts, self._symbols.take()
        return Observations(
            offsets(counts),
            self._items.take(),
            partial(_values, family, counts, symbols),
            (counts.size, family.n_items),
            family.scale,
            noise_variance=family.noise_variance(counts),
            likelihood=family.likelihood(counts, symbols) if self._wanted.likelihood else None,
            evidence=family.evidence_of(counts, symbols, self._accepted) if self._wanted.symbols else None,
            catalogue=catalogue,
        )


def _values(family: CellFamily, counts: Ints, symbols: Uint16s) -> Iterator[Floats]:
    """Yield the values that symbols stand for, those of a part of the users at a time."""
    ends = offsets(counts)
    for users in blocks(counts, _CELLS_AT_ONCE):
        yield family.read(counts[users], symbols[ends[users.start] : ends[users.stop]])


TOLERANCE = 0.05
"""Probability with which a bound on the distance of reports may fail (gamma in [zheng2016])."""

RATING_NOISE = 0.0
"""Difference between a given rating and the true one (rho_0); here the given rating is the true one."""


@dataclass(frozen=True, eq=False)
class HiddenRowFamily(CellFamily):
    """A symbol for every item of the catalogue, all drawn from one channel; see `ReportFamily`.

    "Not rated" is an input of the channel. A report is the row of symbols, or the items that it shows as
    rated with theirs, whichever is shorter.
    """

    one_channel: ClassVar[bool] = True
    hides_items: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = RowReports
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating", "cell", "user")
    on_items: ClassVar[str] = (
        "Which items a user rated is hidden: epsilon holds for every cell, rated or not."
    )

    @classmethod
    def matched_unit(cls, unit: PrivacyUnit) -> PrivacyUnit:
        """Return the unit; a rating is a cell."""
        return "cell" if unit == "rating" else unit

    @classmethod
    def channel_inputs(cls, scale: RatingScale) -> Floats:
        """Return NaN for "not rated", and the levels."""
        return np.concatenate([[np.nan], scale.values])

    @classmethod
    def seen_cells(cls, users: int, items: int, ratings: int) -> int:
        """Return all cells: which of them are rated is hidden."""
        return users * items

    def cells(self, counts: Ints) -> Ints:
        """Return the items of the catalogue, for every user."""
        return np.full_like(counts, self.n_items)

    work = cells

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return the symbols of all items of the catalogue, rated or not."""
        return self._encoded(self._rows(profiles, draws).ravel())

    def _rows(self, profiles: ProfileLevels, draws: DrawsFor) -> Uint16s:
        """Return the symbol that is drawn of every item, shape (users, items)."""
        n_users, n_items = profiles.counts.size, self.n_items
        cells = self.cells(profiles.counts)
        levels: Uint8s = np.zeros((n_users, n_items), dtype=np.uint8)
        levels[rows_of(profiles.counts), profiles.items] = profiles.levels
        noise = draws("report").per_cell(cells, np.tile(np.arange(n_items), n_users), REPORT_ROUND)
        return self.perturb(cells, levels.ravel(), noise).reshape(n_users, n_items)

    def _encoded(self, symbols: Uint16s) -> Pieces:
        """Return the reports of rows of symbols, shape (users * items,)."""
        sent_cells, n_items = np.flatnonzero(~np.isnan(self.reference_channel.values[symbols])), self.n_items
        counts = np.bincount(sent_cells // n_items, minlength=symbols.size // n_items)
        return self.codec.encode(offsets(counts), sent_cells % n_items, symbols[sent_cells])

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return rows in which the symbols of rated items say most for them; others are drawn."""
        nothing = ProfileLevels(np.zeros_like(profiles.counts), profiles.items[:0], profiles.levels[:0])
        rows = self._rows(nothing, draws)
        rows[rows_of(profiles.counts), profiles.items] = self.loudest(profiles)
        return self._encoded(rows.ravel())

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> RowReports:
        """Return the symbols that are shown, and what is known of all others."""
        channel = self.reference_channel
        return RowReports(
            (channel.probabilities[1:],),
            symbols.astype(np.int64),
            np.zeros(symbols.size, dtype=np.int64),
            unrated=channel.probabilities[0],
            unsent=np.isnan(channel.values),
            reported=accepted,
        )

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Say how many ratings are made up and lost, and how far they are from the true ones if a paper does.

        The distance is rho = ||P(Theta - Z)||_F per cell (Zheng [zheng2016], Theorem 3). Bound and measured
        distance are root mean squares in rating units, comparable to an RMSE. The bound covers all reported
        cells, true or made up. The measured distance is that between the report and the train rating, on the
        reported cells that are truly rated: a made-up cell has no known truth.
        """
        among_reported, among_rated = rated_cells(train, observed)
        reported, true = observed.values.size, among_rated.size
        note = (
            f"The server sees {reported} ratings: {reported - true} are fake (the cell is not rated), "
            f"and {train.count - true} of the {train.count} true ones are lost."
        )
        users, ratings = int(accepted.sum()), int(train.counts[accepted].sum())
        epsilon = self.reference_channel.epsilon
        bound = self.mechanism.distance_bound(users, self.n_items, ratings, self.scale, epsilon, TOLERANCE)
        if bound is None:
            return (note,), {}
        errors = observed.values[among_reported] - train.values[among_rated]
        return (note,), {
            "shown_cells": reported,
            "rated_cells": errors.size,
            "bound": bound / np.sqrt(reported) if reported else None,
            "measured": float(np.sqrt(np.mean(errors**2))) if errors.size else None,
            "tolerance": TOLERANCE,
            "rating_noise": RATING_NOISE,
        }


def rated_cells(train: Ratings, observed: Observations) -> tuple[Ints, Ints]:
    """Return where cells are that are both reported as rated and truly rated; only a simulation knows them.

    Their places among the observations, and among the ratings that devices hold, shape (cells,) each.
    """
    reported = observed.users.astype(np.int64) * train.n_items + observed.items
    among = np.intersect1d(reported, train.cells, assume_unique=True, return_indices=True)
    return among[1], among[2]
