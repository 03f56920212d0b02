"""A report of two disjoint parts: symbols about some ratings, then noisy counts over the others.

A symbol of the channel says that a rating is left for the counts. When the server has grouped the items,
devices count the left ratings that reach a level, by group. A count loses no more when one of its ratings
changes than the channel of the same user does, and no rating is in both, so a rating costs what the channel
says. A whole profile costs its symbols and counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import ChannelDraws, dominating_channel
from dprec.arrays import AnyInts, Bools, Floats, Ints, Pieces, Uint64s, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.errors import SettingError
from dprec.observations import NoisyCounts, Observations
from dprec.randomness import DRAWS, integer_weights, loss_of_draws
from dprec.ratings import RatingScale
from dprec.reports.base import (
    FOLLOW_UP_ROUND,
    Asking,
    DrawsFor,
    FollowUp,
    HasChannel,
    ProfileLevels,
    ReportReader,
    Wanted,
)
from dprec.reports.cells import CellFamily
from dprec.wire import FixedFields

LEAST_EPSILON = 1e-5
"""Smallest loss of one rating for which the table is fine enough."""

_MARGIN = 1e-4
"""Share of epsilon that rounding to integer weights may take."""

_FEWEST = 1 << 30
"""Fewest draws of a noisy count; more where rounding these could change a ratio by more than its margin."""


_NEARLY = 2.0**-50
"""Relative error of a ratio in floating point, and more."""


@dataclass(frozen=True, eq=False)
class CountNoise:
    """Noise k with Pr(k) proportional to ``exp(-epsilon |k|)``, on counts of up to some number of ratings.

    The count is clamped to those that are possible, which costs no information: everything below 0 favours
    one true count over another as 0 does, and everything above the largest as that one (Ghosh, Roughgarden
    and Sundararajan [ghosh2012]). As for a `Channel`, the loss is that of the integers with which devices
    draw.
    """

    tails: Ints
    """Draws out of 2**60 whose noise is at least 1, 2, ..., most; as many have at most -1, -2, ..., -most;
    shape (most,).
    """

    @classmethod
    def of(cls, epsilon: float, largest: int) -> "CountNoise":
        """Return noise for which a count of up to ``largest`` loses at most epsilon when it changes by 1.

        Raises ValueError when epsilon is below `LEAST_EPSILON`, or integer weights are too coarse for so long
        a count.
        """
        if epsilon < LEAST_EPSILON:
            raise ValueError(f"epsilon {epsilon:g} for a count")
        fewest = max(_FEWEST, 4 / (_MARGIN * epsilon)) / DRAWS
        used = (1 - _MARGIN) * epsilon
        middle = np.tanh(used / 2)
        shares = np.maximum(middle * np.exp(-used * np.arange(1, largest)), fewest)
        beyond = np.exp(-used * largest) / (1 + np.exp(-used))
        beyond = max(beyond, fewest, shares[-1:].sum() / np.expm1(used))
        total = middle + 2 * (shares.sum() + beyond)
        # What rounding down leaves over goes to the ends, whose share is the largest.
        single = np.floor(DRAWS / total * shares).astype(np.int64)
        end_draws = (DRAWS - int(DRAWS / total * middle)) // 2 - int(single.sum())
        noise = cls(np.append(single, end_draws)[::-1].cumsum()[::-1])
        if end_draws < 1 or noise.epsilon > epsilon:
            raise ValueError(f"a count of {largest} ratings at epsilon {epsilon:g}")
        return noise

    @property
    def most(self) -> int:
        """Ratings of the longest count."""
        return self.tails.size

    @property
    def epsilon(self) -> float:
        """Exact loss of a count of any size when it changes by 1, rounded up."""
        reaching = np.concatenate([[DRAWS - self.tails[0]], self.tails])
        single = np.concatenate([[DRAWS - 2 * self.tails[0]], -np.diff(self.tails)])
        pairs = np.vstack([np.column_stack([draws[:-1], draws[1:]]) for draws in (reaching, single)])
        larger, smaller = pairs.max(axis=1), pairs.min(axis=1)
        # Floating point finds the ratios that may be the largest, integers the one that is.
        growths = (larger - smaller) / smaller
        worst = np.flatnonzero(growths >= growths.max() * (1 - _NEARLY))
        worst_pairs = zip(larger[worst].tolist(), smaller[worst].tolist(), strict=True)
        return loss_of_draws(*max(set(worst_pairs), key=lambda pair: Fraction(*pair)))

    def perturb(self, counts: Ints, sizes: Ints, random_words: Uint64s) -> Ints:
        """Add noise to counts, and clamp them to 0 and to the sizes, which are at most `most`."""
        ends = np.concatenate([self.tails[::-1], DRAWS - self.tails])
        draws = integer_weights(random_words).astype(np.int64)
        noise = np.searchsorted(ends, draws, side="right") - self.most
        return np.clip(counts + noise, 0, sizes)

    def channel(self, size: int, counts: AnyInts) -> Channel:
        """Return the channel of a count of ``size`` ratings, with the given true counts as its rows."""
        steps = np.arange(size) - counts[:, None]
        # Draws whose noise is at most a step: the lower tail, or all but the upper one.
        below = self.tails[np.where(steps < 0, -steps, steps + 1) - 1]
        cumulative = np.where(steps < 0, below, DRAWS - below)
        ends = np.full((counts.size, 1), DRAWS)
        weights = np.diff(np.hstack([0 * ends, cumulative, ends]), axis=1)
        return Channel(weights.astype(np.uint64), counts.astype(np.float64), np.arange(size + 1.0))


class LeavesRatings(HasChannel, Protocol):
    """A mechanism whose channel has a last symbol for ratings that are left to be counted."""

    @property
    def groups(self) -> int:
        """Groups of items, each with a count of its own."""

    def least_counted_level(self, scale: RatingScale) -> int:
        """Return the lowest level that is counted."""


@dataclass(frozen=True, eq=False)
class CountFamily(CellFamily):
    """Symbols about some ratings, and counts of the others; see the module and `ReportFamily`."""

    mechanism: LeavesRatings
    composes: ClassVar[bool] = False
    asks_further: ClassVar[bool] = True
    further_notes: ClassVar[tuple[str, ...]] = (
        "Chance alone decides whether a rating is in one bit or in one noisy count; it loses at most epsilon "
        "in either. The counts are sent when the server has grouped the items. Against a whole profile, a "
        "count costs at most the sum over its ratings.",
    )

    def check(self) -> None:
        """Refuse a budget that is too small for a count, or that draws are to share by composition."""
        super().check()
        name = self.mechanism.kind
        if self.budget is not None and self.budget.composition == "pld":
            raise SettingError("privacy.composition", f"'pld', with mechanism {name}", "'sum'")
        epsilon = self.reference_channel.epsilon
        try:
            self.noise_at(epsilon)
        except ValueError:
            found = f"{epsilon:g} for a rating, too little for a count of {self.n_items} ratings"
            raise SettingError("privacy.epsilon", found, "a larger epsilon") from None

    @property
    def follow_up(self) -> "CountFollowUp":
        """The counts."""
        return CountFollowUp(self)

    def reader(self, n_users: int, wanted: Wanted) -> ReportReader:
        """Return what reads the reports; the symbols say which ratings are left."""
        return super().reader(n_users, replace(wanted, symbols=True))

    def left(self, symbols: AnyInts) -> Bools:
        """Return which cells of the first part are left for the counts: those with the last symbol."""
        return symbols == self.reference_channel.symbols - 1

    def epsilons(self, cells: Ints) -> Floats:
        """Return what a changed rating costs users, shape (users,); of one rating where there is none."""
        return super().losses(np.maximum(cells, 1))[0]

    def noise_at(self, epsilon: float) -> CountNoise:
        """Return the noise on a count of up to the whole catalogue; see `CountNoise.of`."""
        return CountNoise.of(epsilon, self.n_items)

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses; ``asked``, shape (users, groups), has the ratings in each count."""
        if asked is None:
            return super().losses(counts)
        per_rating, draws = self.epsilons(counts), counts - asked.sum(axis=1)
        return per_rating, per_rating * draws + self.added(counts, asked)

    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return what is drawn about every user, given which part each rating is in.

        The parts do not depend on values, so the losses hold given the parts. The loss of a count is added:
        it occurs with a probability of about a half if all of its ratings change.
        """
        if asked is None:
            return super().draws_about(counts)
        epsilons, of_user = np.unique(self.epsilons(counts), return_inverse=True)
        bits = tuple(dominating_channel(epsilon) for epsilon in epsilons.tolist())
        return ChannelDraws(bits, of_user, counts - asked.sum(axis=1), self.added(counts, asked))

    def added(self, cells: Ints, sizes: Ints) -> Floats:
        """Return what counts of so many of a user's cells lose together when all change, shape (users,)."""
        epsilons, of_user = np.unique(self.epsilons(cells), return_inverse=True)
        kinds = np.column_stack([np.repeat(of_user, sizes.shape[1]), sizes.ravel()])
        distinct, numbers = np.unique(kinds, axis=0, return_inverse=True)
        losses = np.array(
            [self.count_epsilon(float(epsilons[place]), size) for place, size in distinct.tolist()]
        )
        return losses[numbers.ravel()].reshape(sizes.shape).sum(axis=1)

    def report_losses(self, profiles: ProfileLevels, draws: DrawsFor) -> tuple[Floats, Floats]:
        """Return what devices charge for their symbols, without the ratings that are left for counts."""
        for_counts = self.left(self.drawn(profiles, draws))
        symbols = np.bincount(rows_of(profiles.counts)[~for_counts], minlength=profiles.counts.size)
        epsilons = self.epsilons(profiles.counts)
        return np.where(profiles.counts > 0, epsilons, np.nan), epsilons * symbols

    def count_epsilon(self, epsilon: float, size: int) -> float:
        """Return the exact loss of a count of so many ratings when all change.

        None and all of the ratings are told apart best by the two ends, 1 and all by a count between them:
        far from the true count, single counts are less probable than all beyond them.
        """
        extreme = np.unique([0, min(1, size), size])
        return self.noise_at(epsilon).channel(size, extreme).epsilon if size else 0.0

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield the losses of symbols, and that of a count in which so many ratings change."""
        yield from super().exact_losses(entries)
        loss = self.count_epsilon(float(self.epsilons(np.array([entries]))[0]), entries)
        yield f"counts that differ by {entries}, from the table", loss

    def audited_symbols(self, exchange: int, reports: Sequence[bytes], items: Ints) -> Ints:
        """Return the symbols, and then the counts of all groups."""
        if exchange:
            return self.follow_up.codec.decode(reports)[1]
        return super().audited_symbols(exchange, reports, items)


class CountFollowUp(FollowUp):
    """The second exchange: noisy counts of the ratings that were left, by groups of items.

    `codec` is of the counts of a user, and `group_codec` of the groups of all items, which are one row.
    """

    answers_called: ClassVar[str] = "counts"

    def __init__(self, family: CountFamily) -> None:
        self.family, self.groups = family, family.mechanism.groups
        self.least_level = family.mechanism.least_counted_level(family.scale)
        self.codec = FixedFields(self.groups, family.n_items)
        self.group_codec = FixedFields(family.n_items, self.groups - 1)

    def accepts(self, question: bytes) -> bool:
        """Return whether a question names a group for every item."""
        return bool(self.group_codec.decode([question])[0].all())

    def grouped(self, cells: Ints, groups: Ints, counted: Bools) -> Ints:
        """Count cells by user and group, shape (users, groups)."""
        places = (rows_of(cells) * self.groups + groups)[counted]
        shape = cells.size, self.groups
        return np.bincount(places, minlength=cells.size * self.groups).reshape(shape)

    def encode(self, profiles: ProfileLevels, question: bytes, draws: DrawsFor) -> Pieces:
        """Return noisy counts of the ratings that each user's report left out.

        A rating about which a symbol was sent is in no count, and every other one in exactly one.
        """
        cells, (for_counts, of_rating) = profiles.counts, self._left(profiles, question, draws)
        sizes = self.grouped(cells, of_rating, for_counts)
        counts = self.grouped(cells, of_rating, for_counts & (profiles.levels >= self.least_level))
        words = draws("counts").asked(question)
        columns = [words.per_user(group, FOLLOW_UP_ROUND) for group in range(self.groups)]
        noise_words, epsilons = np.column_stack(columns), self.family.epsilons(cells)
        for epsilon in np.unique(epsilons).tolist():
            users = epsilons == epsilon
            counts[users] = self.family.noise_at(epsilon).perturb(
                counts[users], sizes[users], noise_words[users]
            )
        return self.codec.encode(counts)

    def _left(self, profiles: ProfileLevels, question: bytes, draws: DrawsFor) -> tuple[Bools, Ints]:
        """Return which ratings the reports left out, and the group of each rating's item."""
        groups = self.group_codec.decode([question])[1]
        return self.family.left(self.family.drawn(profiles, draws)), groups[0, profiles.items]

    def losses(self, profiles: ProfileLevels, question: bytes, draws: DrawsFor) -> Floats:
        """Return what the counts of each user lose together.

        A rating is in a symbol or in a count and loses at most epsilon in either, which the report was
        charged. A whole profile loses no more by its symbols and counts than by symbols alone, which is what
        the report could have cost any profile.
        """
        for_counts, of_rating = self._left(profiles, question, draws)
        return self.family.added(profiles.counts, self.grouped(profiles.counts, of_rating, for_counts))

    def asking(self, observed: Observations) -> "CountsAsked":
        """Return what groups the items by how often reports show them as rated, and reads the counts."""
        return CountsAsked(self, observed)

    def received(
        self, users: AnyInts, groups: Ints, counted: Bools, cells: Ints, values: Ints
    ) -> NoisyCounts:
        """Return the counts that a server has received of at least one rating.

        ``values``, shape (users, groups): the noisy counts; ``counted``, shape (observed cells,): which cells
        are in one.
        """
        width, places = self.groups, np.flatnonzero(counted)
        owners = users[places].astype(np.int64) * width + groups[places]
        rows, row_of, sizes = np.unique(owners, return_inverse=True, return_counts=True)
        return NoisyCounts(
            places,
            row_of,
            users=rows // width,
            values=values.ravel()[rows],
            sizes=sizes,
            epsilons=self.family.epsilons(cells)[rows // width],
            least_level=self.least_level,
        )


class CountsAsked(Asking):
    """The server's side of the counts, about observations with the reports' symbols; see `Asking`."""

    def __init__(self, counts: CountFollowUp, observed: Observations) -> None:
        assert observed.symbols is not None, "reports without their symbols"
        self._counts, self._observed, self._symbols = counts, observed, observed.symbols
        n_users, n_items = observed.shape
        groups = popularity_groups(np.bincount(observed.items, minlength=n_items), counts.groups)
        self._cells = np.bincount(observed.users, minlength=n_users)
        self._groups, self._left = groups[observed.items], counts.family.left(self._symbols.symbols)
        self.asked = counts.grouped(self._cells, self._groups, self._left)
        self.question = counts.group_codec.encode(groups[None])[0]
        self._values, self._accepted = np.zeros_like(self.asked), np.zeros(n_users, dtype=np.bool_)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode counts; one above the number of ratings that it is over is refused."""
        valid, read = self._counts.codec.decode(reports)
        valid = valid & (read <= self.asked[users]).all(axis=1)
        self._accepted[users], self._values[users] = valid, read
        return valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return what the reports say, with the counts."""
        observed = self._observed
        counted = self._left & self._accepted[observed.users]
        noisy = self._counts.received(observed.users, self._groups, counted, self._cells, self._values)
        return replace(observed, evidence=replace(self._symbols, counts=noisy))


def popularity_groups(ratings: Ints, groups: int) -> Ints:
    """Return the group of every item, from 0 for the most rated; each has about as many ratings."""
    order = np.argsort(-ratings, kind="stable")
    before = np.cumsum(ratings[order]) - ratings[order]
    result = np.empty(ratings.size, dtype=np.int64)
    result[order] = np.minimum(before * groups // max(int(ratings.sum()), 1), groups - 1)
    return result
