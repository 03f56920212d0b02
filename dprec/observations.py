"""What a server holds of reports: the cells that they show, and evidence beyond the values of these.

Families of reports (`dprec.reports`) make observations, and completions read them. Each kind of evidence is a
class; a completion that uses the likelihood is fitted to what is registered for the class
(`dprec.completion.calibrated.completion.fitted_to`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from dprec.accounting import NoisySum, PrivacyAccountant, gaussian_epsilon, largest_mu
from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Uint8s, offsets, rows_of, sum_of_parts
from dprec.catalogue import Catalogue
from dprec.components import Options, option
from dprec.errors import InputError
from dprec.ratings import RatingScale

if TYPE_CHECKING:
    import scipy.sparse as sp

LEAST_RATERS = 5
"""By default; benchmarks/choosing/least_raters.py holds it against others."""

_BETWEEN_PROFILES = float(np.sqrt(2))
"""How much further two profiles are apart than one is from none."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingRelease(Options):
    """From how many raters on items have embeddings that everybody is sent, and with what noise."""

    least_raters: int = option(
        "Raters without whom an item has no embedding. Whether it has one shows in the table.",
        LEAST_RATERS,
        ge=1,
    )
    epsilon: float | None = option(
        "Budget of a user's item set against all who are sent the table, for embeddings and popularity; by "
        "default they have no noise. The server sees the sets in any case.",
        None,
        gt=0,
        le=1000,
    )
    delta: float = option("Delta with which it holds.", 1e-6, gt=1e-12, lt=1)

    @property
    def distance(self) -> float:
        """How many standard deviations a profile moves what is released, at most; 0 without noise."""
        return 0.0 if self.epsilon is None else largest_mu(self.epsilon, self.delta)

    @property
    def epsilon_between_profiles(self) -> float:
        """What the releases cost, with the same delta, between any two profiles of a user."""
        return gaussian_epsilon(_BETWEEN_PROFILES * self.distance, self.delta)

    def charge(self, accountant: PrivacyAccountant, round_index: int, users: Bools) -> None:
        """Record what embeddings with noise tell everybody of the item sets of users, shape (users,)."""
        if self.epsilon is not None:
            released = NoisySum(self.distance, between_profiles=_BETWEEN_PROFILES)
            accountant.step(round_index, users, 0.0, np.inf, released)


AS_THEY_ARE = EmbeddingRelease(least_raters=1)
"""Where nobody but the server reads the places."""


class Evidence:
    """What reports say beyond the values that a published decoder reads.

    `has_values` states whether cells with values come with it, which any completion reads, and
    `of_single_ratings` whether each report is about one rating, of an item that is shown.
    """

    has_values: ClassVar[bool] = True
    of_single_ratings: ClassVar[bool] = False

    def unlinked(self, order: Ints) -> Evidence | None:
        """Return what is left if every cell is a message of its own, in another order; None for nothing."""
        return None


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Counts over disjoint sets of cells, each of one user: how many of their ratings reach a level."""

    cells: Ints
    row_of: Ints
    """Places among the observed cells of those that are counted, and the row of each; shape (cells,)."""
    users: Ints
    values: Ints
    sizes: Ints
    """The user of each row, its noisy count, and the number of its cells, at least 1; shape (rows,)."""
    epsilons: Floats
    """Of the two-sided geometric noise; a value is clamped to 0 and the size of its row; shape (rows,)."""
    least_level: int
    """The lowest level that is counted, from 2."""


@dataclass(frozen=True, eq=False)
class SymbolReports(Evidence):
    """Symbols, and the channels through which they were sent."""

    channels: tuple[Floats, ...]
    """Pr(symbol | level) of every channel; shape (levels, symbols)."""
    symbols: Ints
    channel_of: Ints
    """Of each cell, its symbol and the number of its channel; shape (cells,)."""
    counts: NoisyCounts | None = None
    """How many ratings of some cells reach a level; the symbols of these cells say nothing."""
    of_single_ratings: ClassVar[bool] = True

    def unlinked(self, order: Ints) -> Self:
        """Return the symbols in another order."""
        return replace(self, symbols=self.symbols[order], channel_of=self.channel_of[order])

    @property
    def columns(self) -> Ints:
        """The place of each cell's symbol among those of all channels in turn; shape (cells,)."""
        first = np.cumsum([0, *(channel.shape[1] for channel in self.channels[:-1])])
        return first[self.channel_of] + self.symbols

    @classmethod
    def joined(cls, parts: Sequence[SymbolReports], order: Ints) -> Self:
        """Return all symbols in an order, with every channel that differs from the others once."""
        numbers: dict[tuple[tuple[int, ...], bytes], int] = {}
        channels: list[Floats] = []
        channel_of = []
        for part in parts:
            places = np.zeros(len(part.channels), dtype=np.int64)
            for place, channel in enumerate(part.channels):
                key = channel.shape, channel.tobytes()
                if key not in numbers:
                    numbers[key] = len(channels)
                    channels.append(channel)
                places[place] = numbers[key]
            channel_of.append(places[part.channel_of])
        symbols = np.concatenate([part.symbols for part in parts])
        return cls(tuple(channels), symbols[order], np.concatenate(channel_of)[order])


@dataclass(frozen=True, eq=False, kw_only=True)
class RowReports(SymbolReports):
    """Symbols of reports on every item, which hide the items that were rated; there is one channel."""

    unrated: Floats
    """Pr(symbol | not rated); shape (symbols,)."""
    unsent: Bools
    """Symbols that are not sent: a cell that a report does not list holds one of them; shape (symbols,)."""
    reported: Bools
    """Whose report was accepted; shape (users,)."""
    of_single_ratings: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class ResidualReports(Evidence):
    """Answers to whether ratings are above the mean of their user's, through randomised response."""

    cells: Ints
    """Places, among the cells that are seen as rated, of those with an answer; shape (answers,)."""
    above: Bools
    """Shape (answers,)."""
    lies: Floats
    """Probability with which each answer is not the true one, below 1/2; shape (answers,)."""


@dataclass(frozen=True, eq=False)
class ProfileReports(Evidence):
    """Answers about whole profiles, counted by item and side of the users' means."""

    above: Ints
    below: Ints
    """Answers that name each item as rated above, and not above, the user's mean; shape (items,)."""
    answers: int
    """All of them."""
    unrated: tuple[float, float]
    """Bounds of the share of answers that name one side of an item that nobody has rated."""
    rated: float
    """Share of answers that name a side of an item that everybody has rated so."""
    has_values: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class SetReports(Evidence):
    """Randomised item sets: an answer about every item of the catalogue from each user."""

    bits: Uint8s
    """Whether each user is said to have each item, packed by eight; shape (reports, bytes)."""
    n_items: int
    had: float
    """Probability of a yes about an item that the user has."""
    not_had: float
    """Probability of a yes about any other; below `had`."""
    reported: Bools
    """Whose report was accepted; shape (users,)."""
    has_values: ClassVar[bool] = False

    def of_rows(self, observed: Observations, reported: Bools) -> Observations:
        """Return the answers as reports on every cell, of which those that are a yes are listed.

        ``observed``: with these answers; ``reported``: whose are there, in their order, shape (users,).
        """
        rows, items = np.unpackbits(self.bits, axis=1, count=self.n_items).nonzero()
        users = np.flatnonzero(reported)[rows]
        row_reports = RowReports(
            (np.tile([1 - self.had, self.had], (observed.scale.levels, 1)),),
            np.ones(users.size, dtype=np.int64),
            np.zeros(users.size, dtype=np.int64),
            unrated=np.array([1 - self.not_had, self.not_had]),
            unsent=np.array([True, False]),
            reported=reported,
        )
        ones = np.ones(users.size)
        return Observations.of(users, items, ones, observed.shape, observed.scale, evidence=row_reports)

    @property
    def variance(self) -> float:
        """Variance of an answer that is read without bias: (answer - not_had) / (had - not_had)."""
        return self.not_had * (1 - self.not_had) / (self.had - self.not_had) ** 2


@dataclass(frozen=True, eq=False)
class RatedSets:
    """Which items each user rated, where that is known apart from how."""

    users: Int32s
    items: Int32s
    """By user, items ascending within a user; shape (cells,)."""
    n_users: int

    @classmethod
    def union(cls, sets: Sequence[RatedSets], n_items: int) -> Self:
        """Return the sets of the same users, of a catalogue of so many items, together."""
        cells = [rated.users.astype(np.int64) * n_items + rated.items for rated in sets]
        users, items = np.divmod(np.unique(np.concatenate(cells)), n_items)
        return cls(users.astype(np.int32), items.astype(np.int32), sets[0].n_users)

    @property
    def counts(self) -> Ints:
        """Items of each user, shape (users,)."""
        return np.bincount(self.users, minlength=self.n_users)


@dataclass(frozen=True, eq=False)
class Observations:
    """The cells that the server saw as rated, by user, items ascending within a user."""

    indptr: Ints
    """The cells of user ``u`` are at ``indptr[u]:indptr[u + 1]``; shape (users + 1,)."""
    items: Int32s
    """Shape (cells,)."""
    read: Callable[[], Iterable[Floats]]
    """Returns `values` in parts: they take four times the memory of the symbols that most are read from."""
    shape: tuple[int, int]
    """Users and items of the whole catalogue, observed or not."""
    scale: RatingScale
    """The scale of the true ratings."""
    noise_variance: float | None = None
    """Mean variance of a value given the true rating, due to the mechanism alone, in squared rating units;
    None without noise, or if the server does not know the mechanism.
    """
    likelihood: Floats | None = None
    """Probability of what was received given each level of the scale, for completions that ask for it
    (`Completion.needs_likelihood`); shape (cells, levels).
    """
    evidence: Evidence | None = None
    """What the reports say beyond the values, for completions that ask for it (`Completion.needs_symbols`),
    and from families whose reports have no other use.
    """
    catalogue: Catalogue | None = None
    """Public data about the items, if the data set has any."""
    rated: RatedSets | None = None
    """Who rated which items, where that is not who reports on them: reports cannot be linked, or there are
    several about a rating; see `item_sets`.
    """
    embedding_release: EmbeddingRelease = AS_THEY_ARE
    """What completions may read from the item sets as a whole, where all devices are sent what they learn."""

    @classmethod
    def of(
        cls,
        users: AnyInts,
        items: AnyInts,
        values: Floats,
        shape: tuple[int, int],
        *args: Any,
        **kwargs: Any,
    ) -> Self:
        """Build from the user of each cell; see the class for the other parameters.

        Raises ValueError when the cells are not by user.
        """
        if np.any(users[1:] < users[:-1]):
            raise ValueError("cells that are not by user")
        indptr = offsets(np.bincount(users, minlength=shape[0]))
        return cls(indptr, items.astype(np.int32, copy=False), lambda: [values], shape, *args, **kwargs)

    @classmethod
    def joined(cls, parts: Sequence[Observations]) -> Self:
        """Join what several collections say of the same users and items, about other cells or the same ones.

        Parameters
        ----------
        parts : sequence of Observations
            At least one. Of one cell, the reports come in the order of the parts.

        Returns
        -------
        Observations
            By user, items ascending, with one cell for each report; `item_sets` is the union of all.

        Raises
        ------
        InputError
            When the parts are not of the same users, items and scale, or when reports cannot be linked, are
            not about single ratings, or have counts beside them.
        ValueError
            Without parts.
        """
        if not parts:
            raise ValueError("no observations to join")
        first = parts[0]
        for part in parts:
            part._check_joins(first)
        users = np.concatenate([part.users for part in parts])
        items = np.concatenate([part.items for part in parts])
        order = np.lexsort((items, users))
        likelihoods = [part.likelihood for part in parts if part.likelihood is not None]
        reports = [part.symbols for part in parts if part.symbols is not None]
        return cls(
            offsets(np.bincount(users, minlength=first.shape[0])),
            items[order],
            lambda: [np.concatenate([part.values for part in parts])[order]],
            first.shape,
            first.scale,
            noise_variance=_mean_of(parts),
            likelihood=np.concatenate(likelihoods)[order] if likelihoods else None,
            evidence=SymbolReports.joined(reports, order) if reports else None,
            catalogue=first.catalogue,
            rated=RatedSets.union([part.item_sets for part in parts], first.shape[1]),
            embedding_release=first.embedding_release,
        )

    def select(self, mask: Bools) -> Observations:
        """Return some of the cells, with what is known of each by itself; shape (cells,)."""
        evidence = self.symbols
        if evidence is not None:
            symbols, channel_of = evidence.symbols[mask], evidence.channel_of[mask]
            evidence = SymbolReports(evidence.channels, symbols, channel_of)
        return replace(
            self,
            indptr=offsets(np.bincount(self.users[mask], minlength=self.shape[0])),
            items=self.items[mask],
            read=lambda: [self.values[mask]],
            likelihood=None if self.likelihood is None else self.likelihood[mask],
            evidence=evidence,
        )

    @cached_property
    def repeats(self) -> tuple[Ints, Ints]:
        """Where the reports about each rating begin, and how many there are; shape (ratings,) each."""
        cells = self.users.astype(np.int64) * self.shape[1] + self.items
        begins = np.flatnonzero(np.diff(cells, prepend=-1))
        return begins, np.diff(begins, append=cells.size)

    def merged(self, evidence: SymbolReports, noise_variance: float | None) -> Observations:
        """Return a cell for each rating, with what its reports say together, and the mean of their values."""
        begins, times = self.repeats
        values = np.add.reduceat(self.values, begins) / times
        return replace(
            self,
            indptr=offsets(np.bincount(self.users[begins], minlength=self.shape[0])),
            items=self.items[begins],
            read=lambda: [values],
            noise_variance=noise_variance,
            likelihood=None if self.likelihood is None else np.hstack(evidence.channels).T[evidence.columns],
            evidence=evidence,
        )

    def _check_joins(self, first: Observations) -> None:
        """Refuse observations that cannot be joined with the first ones."""
        if self.shape != first.shape or not np.array_equal(self.scale.values, first.scale.values):
            template = "reports of {0[0]:,} users on {0[1]:,} items, {1}"
            found = template.format(self.shape, self.scale.describe())
            raise InputError("reports", found, template.format(first.shape, first.scale.describe()))
        if self.item_sets.n_users != self.shape[0]:
            raise InputError("reports", "such as cannot be linked", "reports of users who can be told apart")
        lacking = self.evidence is None, self.likelihood is None
        if lacking != (first.evidence is None, first.likelihood is None):
            raise InputError("reports", "evidence that some collections lack", "the same of every collection")
        if self.evidence is None:
            return
        if self.symbols is None or not self.evidence.of_single_ratings:
            found = f"{type(self.evidence).__name__}, which says more than one symbol of each rating"
            raise InputError("reports", found, "reports of single ratings, in several collections")
        if self.symbols.counts is not None:
            raise InputError("reports", "counts of ratings", "reports without counts, in several collections")

    @cached_property
    def values(self) -> Floats:
        """What the published decoder reads from reports, which may lie outside the scale; shape (cells,)."""
        values, first = np.empty(self.items.size), 0
        for part in self.read():
            values[first : first + part.size] = part
            first += part.size
        return values

    def parts(self) -> Iterable[Floats]:
        """Return `values` in parts, for who needs them once; they are not kept."""
        return [self.values] if "values" in vars(self) else self.read()

    @property
    def counts(self) -> Ints:
        """Cells of each user, shape (users,)."""
        return np.diff(self.indptr)

    @cached_property
    def users(self) -> Int32s:
        """The user of each cell, shape (cells,)."""
        return rows_of(self.counts, np.int32)

    @property
    def item_sets(self) -> RatedSets:
        """Who rated which items, as far as the server knows."""
        return self.rated or RatedSets(self.users, self.items, self.shape[0])

    @property
    def mean(self) -> float:
        """Mean observed value; the middle of the scale when nothing was observed."""
        size = self.items.size
        return sum_of_parts(self.parts(), size) / size if size else (self.scale.low + self.scale.high) / 2

    @property
    def symbols(self) -> SymbolReports | None:
        """The symbol of every cell, if the evidence has them."""
        return self.evidence if isinstance(self.evidence, SymbolReports) else None

    def unlinked(self, *, with_sets: bool) -> Observations:
        """Return what arrives if every cell is a message of its own, in an order that says nothing.

        Every report is that of a user of its own. They come by item, and of one item by their symbols, or by
        their values where nothing is known of the symbols.

        ``with_sets``: whether users say apart from that which items they rated.
        """
        reported = self.values if self.symbols is None else self.symbols.symbols
        order = np.lexsort((reported, self.items))
        return replace(
            self,
            indptr=np.arange(order.size + 1),
            items=self.items[order],
            read=lambda: [self.values[order]],
            shape=(order.size, self.shape[1]),
            likelihood=None if self.likelihood is None else self.likelihood[order],
            evidence=None if self.evidence is None else self.evidence.unlinked(order),
            rated=RatedSets(self.users, self.items, self.shape[0]) if with_sets else None,
        )

    @cached_property
    def by_user(self) -> sp.csr_array:
        """Pattern of the observed cells, users x items, with the position of each cell as data."""
        import scipy.sparse as sp

        # Short integers, if they are long enough, halve the memory and the time.
        integer = sp.get_index_dtype(maxval=max(self.items.size, *self.shape))
        places = np.arange(self.items.size, dtype=integer)
        return sp.csr_array((places, self.items, self.indptr.astype(integer)), shape=self.shape)

    @cached_property
    def by_item(self) -> sp.csr_array:
        """The same by item: items x users."""
        return self.by_user.T.tocsr()


def _mean_of(parts: Sequence[Observations]) -> float | None:
    """Return the mean variance of the noise over all cells; None if it is not known of some."""
    weighted = [(part.noise_variance, part.items.size) for part in parts if part.items.size]
    if not weighted or any(variance is None for variance, _ in weighted):
        return None
    variances, cells = zip(*weighted, strict=True)
    return float(np.average(variances, weights=cells))
