"""Reports of which not every rating is answered about: a rated item is shown, and nothing is said of it.

Which items are rated is not hidden by these reports, so a cap on answers spares the values, and what the
server learns from the item sets remains. One symbol more than the channel has says that there is no answer.

**An answer about each of some ratings.** A profile has level 0 where there is none, and which ratings these
are does not depend on values: the symbol costs nothing.

**Bits about a few ratings of a profile**, whether each is above the mean of the user's own. One answer is
reported about each of a few ratings, drawn at random. Two profiles on the same items that differ in any
values differ in the answers alone: the ratings that are drawn do not depend on values. Each answer costs at
most an even share of the budget, whatever the others are, so all of them together cost at most the budget.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import ChannelDraws, PrivacyUnit
from dprec.arrays import Bools, Floats, Ints, Uint8s, Uint16s, Uint64s, places_of, rows_of
from dprec.channel import Channel
from dprec.observations import Evidence, ResidualReports, SymbolReports
from dprec.randomness import shuffled_within
from dprec.ratings import RatingScale
from dprec.reports.base import (
    REPORT_ROUND,
    DrawsFor,
    HasChannel,
    ProfileLevels,
    ReportReader,
    ReportSize,
    Wanted,
)
from dprec.reports.cells import CellFamily
from dprec.reports.profiles import residuals
from dprec.wire import ReportCodec


@dataclass(frozen=True, eq=False)
class UnansweredFamily(CellFamily):
    """Base of the families whose reports show ratings without an answer; see `ReportFamily`."""

    @property
    def silent(self) -> int:
        """The symbol of a rating without an answer."""
        return self.reference_channel.symbols

    @property
    def middle(self) -> float:
        """What is read of such a rating: the middle of the scale."""
        return (self.scale.low + self.scale.high) / 2

    @property
    @abstractmethod
    def coded_rows(self) -> Floats:
        """The shares of symbols that the code is made for, `silent` the last, shape (inputs, symbols + 1)."""

    @cached_property
    def codec(self) -> ReportCodec:
        """What encodes reports, the channel's symbols and one more for a rating without an answer."""
        channel, values = self.reference_channel, np.append(self.reference_channel.values, self.middle)
        coded = Channel.from_probabilities(self.coded_rows, channel.inputs, values, np.inf)
        return ReportCodec(coded, self.n_items)


_UNANSWERED = 1 / 2
"""Share of the ratings without an answer for which the code is made: one bit says whether there is one."""


@dataclass(frozen=True, eq=False)
class PartlyAnsweredFamily(UnansweredFamily):
    """A symbol for each rated item, or that there is none; ``asked`` of losses are the users' answers."""

    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating",)
    units_reason: ClassVar[str] = "not every rating of a user is answered about"
    further_notes: ClassVar[tuple[str, ...]] = (
        "A rating beyond a user's last answer is reported as rated, and nothing is said of its value.",
    )

    @property
    def coded_rows(self) -> Floats:
        """Those of the channel, for the ratings with an answer."""
        channel = self.reference_channel
        silence = np.full(channel.inputs.size, _UNANSWERED)
        return np.column_stack([(1 - _UNANSWERED) * channel.probabilities, silence])

    # The device.

    def perturb(self, cells: Ints, levels: Uint8s, random_words: Uint64s) -> Uint16s:
        """Send levels through the channel; at level 0 there is no answer."""
        symbols = super().perturb(cells, np.maximum(levels, 1), random_words)
        return np.where(levels > 0, symbols, self.silent).astype(np.uint16)

    def loudest(self, profiles: ProfileLevels) -> Uint16s:
        """Return the symbols that say most for profiles; at level 0 there is no answer."""
        answers = super().loudest(replace(profiles, levels=np.maximum(profiles.levels, 1)))
        return np.where(profiles.levels > 0, answers, self.silent).astype(np.uint16)

    def report_losses(self, profiles: ProfileLevels, draws: DrawsFor) -> tuple[Floats, Floats]:
        """Return what devices charge themselves: only for answers."""
        users = rows_of(profiles.counts)[profiles.levels > 0]
        return self.losses(np.bincount(users, minlength=profiles.counts.size))

    # The server.

    def answered(self, symbols: Uint16s) -> Bools:
        """Return which symbols are answers."""
        return symbols < self.silent

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the value that each symbol stands for; the middle of the scale without an answer."""
        return np.append(self.reference_channel.values, self.middle)[symbols]

    def likelihood(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the probability of each symbol given each level; without an answer, all are as likely."""
        rows: Floats = np.vstack([self.reference_channel.probabilities.T, np.ones(self.scale.levels)])
        return rows[symbols]

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> SymbolReports:
        """Return symbols with their channel; where there is no answer, with one that says nothing."""
        channels = self.reference_channel.probabilities, np.ones((self.scale.levels, 1))
        answered = self.answered(symbols)
        return SymbolReports(channels, np.where(answered, symbols, 0).astype(np.int64), 1 - answered)

    # What it loses, and what it costs.

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses of so many answers; where nothing else is known, as many as ratings."""
        per_rating, per_user = super().losses(counts if asked is None else asked)
        return np.where(self.protects(counts), np.nan_to_num(per_rating), np.nan), per_user

    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return a draw for each answer."""
        return super().draws_about(counts if asked is None else asked)

    def size(self, ratings: int) -> ReportSize:
        """Return a report with an answer about every rating."""
        size = super().size(ratings)
        return replace(size, bits=size.bits + ratings)


_ANSWERED = 1 / 16
"""Share of the ratings with an answer for which the code of a report is made; about s in n."""


class AsksAboutFew(HasChannel, Protocol):
    """A mechanism that says about how many ratings it asks."""

    def asked(self, epsilon: float) -> int:
        """Return how many ratings a user with a budget reports on, if it has so many."""


@dataclass(frozen=True, eq=False)
class ResidualBitFamily(UnansweredFamily):
    """Whether a few ratings are above the mean of their user's, at a budget per user; these are its draws."""

    mechanism: AsksAboutFew
    by_cell: ClassVar[bool] = False
    evidence: ClassVar[type[Evidence]] = ResidualReports
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("user",)
    units_reason: ClassVar[str] = "a rating moves the mean that every answer depends on"
    on_items: ClassVar[str] = (
        "Which items a user rated is not hidden; epsilon protects the values of all ratings of a user "
        "together: however many of them change, the report's probability changes by at most a factor of "
        "e^epsilon."
    )

    @property
    def most(self) -> int:
        """Answers of a user with enough ratings."""
        assert self.budget is not None, "answers without a budget"
        return min(self.mechanism.asked(self.budget.epsilon), self.n_items)

    def cells(self, counts: Ints) -> Ints:
        """Return how many answers users give who have ``counts`` ratings, shape (users,)."""
        return np.minimum(counts, self.most)

    def channel(self, cells: int) -> Channel:
        """Return the channel of a user who has ``cells`` ratings, or more than it answers about."""
        return super().channel(min(cells, self.most))

    @property
    def reference_channel(self) -> Channel:
        """The channel of each answer of a user with enough ratings."""
        return self.channel(self.most)

    @property
    def coded_rows(self) -> Floats:
        """The same whatever a rating is."""
        channel = self.reference_channel
        shares = np.append(_ANSWERED * channel.marginal(), 1 - _ANSWERED)
        return np.tile(shares, (channel.inputs.size, 1))

    def drawn(self, profiles: ProfileLevels, draws: DrawsFor) -> Uint16s:
        """Return an answer, or none, about every rated item, shape (ratings,)."""
        counts, items = profiles.counts, profiles.items
        choice = draws("choice").per_cell(counts, items, REPORT_ROUND)
        noise = draws("report").per_cell(counts, items, REPORT_ROUND)
        return self.answers(counts, profiles.levels, choice, noise)

    def answers(self, counts: Ints, levels: Uint8s, choice: Uint64s, noise: Uint64s) -> Uint16s:
        """Draw some ratings of every user and answer about them, shape (ratings,)."""
        # All choices of so many ratings are equally likely.
        order = shuffled_within(rows_of(counts), choice)
        is_drawn = np.zeros(levels.size, dtype=np.bool_)
        is_drawn[order[places_of(counts) < self.most]] = True
        symbols = np.full(levels.size, self.silent, dtype=np.uint16)
        sides = sides_of_the_mean(counts, levels, self.scale)
        symbols[is_drawn] = self.perturb(self.cells(counts), sides[is_drawn], noise[is_drawn])
        return symbols

    def loudest(self, profiles: ProfileLevels) -> Uint16s:
        """Return true answers about as many ratings as a report has, those farthest from the mean."""
        counts, levels = profiles.counts, profiles.levels
        order = np.lexsort((-np.abs(residuals(counts, levels, self.scale)), rows_of(counts)))
        answered = order[places_of(counts) < self.most]
        symbols = np.full(levels.size, self.silent, dtype=np.uint16)
        symbols[answered] = sides_of_the_mean(counts, levels, self.scale)[answered] > 1
        return symbols

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return the evidence of an answer about one rating, and of a share of the ratings' answers."""
        strongest, mean = super().evidence_of_one(counts, of_values=of_values)
        ratings = max(1.0, float(np.median(counts[counts > 0]))) if counts.any() else 1.0
        return strongest, mean * min(1.0, self.most / ratings)

    def reader(self, n_users: int, wanted: Wanted) -> ReportReader:
        """Return what reads the reports; the answers are kept, as there is no likelihood of a level."""
        return super().reader(n_users, replace(wanted, likelihood=False, symbols=True))

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the value that each symbol stands for; the middle of the scale without an answer."""
        values = np.full(symbols.size, self.middle)
        answered = self._answered(cells, symbols)
        answer_counts = np.bincount(np.repeat(np.arange(cells.size), cells)[answered], minlength=cells.size)
        values[answered] = super().read(answer_counts, symbols[answered])
        return values

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> ResidualReports:
        """Return the answers in the reports of users with so many ratings."""
        answered = self._answered(cells, symbols)
        sizes, of_user = np.unique(np.maximum(self.cells(cells), 1), return_inverse=True)
        lies = np.array([self.channel(size).probabilities[0, 1] for size in sizes.tolist()])
        above, lying = symbols[answered] == 1, np.repeat(lies[of_user], cells)[answered]
        return ResidualReports(np.flatnonzero(answered), above, lying)

    def _answered(self, counts: Ints, symbols: Uint16s) -> Bools:
        """Return which cells have an answer, without users who give another number than they should."""
        answered = symbols != self.silent
        users = np.repeat(np.arange(counts.size), counts)
        answer_counts = np.bincount(users[answered], minlength=counts.size)
        return answered & (answer_counts == self.cells(counts))[users]

    def noise_variance(self, cells: Ints) -> float | None:
        """Return the mean variance of the value read for an answer; see the base class."""
        return super().noise_variance(self.cells(cells))

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings."""
        per_answer, per_user = super().losses(counts)
        return np.where(np.isnan(per_answer), np.nan, per_user), per_user

    def size(self, ratings: int) -> ReportSize:
        """Return a report of a few answers and the set of rated items."""
        cells = int(self.cells(np.array([ratings]))[0])
        channel, bits = self.channel(cells), self.codec.expected_bits(ratings)
        return ReportSize(channel.symbols, cells, bits, channel.epsilon, "user")

    def answers_about(self, entries: int) -> int:
        """Return the answers of a profile with so many ratings: all of them depend on each."""
        return int(self.cells(np.array([entries]))[0])


def sides_of_the_mean(counts: Ints, levels: Uint8s, scale: RatingScale) -> Uint8s:
    """Return the highest level for ratings above the mean of their user's, the lowest for the others."""
    return np.where(residuals(counts, levels, scale) > 0, scale.levels, 1).astype(np.uint8)
