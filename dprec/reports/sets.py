"""Reports on item sets: a randomised answer about every item, whether the user has it, or about some.

**About every item.** The server keeps an answer in a bit, and reads sets as a whole: how often items, and
pairs of them, are had.

**About a user's items and as many others**, drawn for each user. Müllner et al. [muellner2024] report sets
so. The answer about an item that is asked about costs epsilon, but which items are asked about follows from
the set, and that is left out. Let a device have n of N items, less than half. It reports an item that it has
with probability p = e^epsilon / (1 + e^epsilon), and another one with n / (N - n) (1 - p): read alone, an
item is reported e^epsilon (N - n) / n times as often by who has it. A whole report has at most n items that
the user does not have. So one with n + 1 items outside a set, of which another set of n items has one,
excludes the former set and not the latter: no epsilon bounds it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dprec.accounting import PrivacyUnit
from dprec.arrays import Bools, Floats, Ints, Pieces, Uint16s, Uint64s, blocks, offsets, rows_of
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.observations import Evidence, Observations, RowReports, SetReports
from dprec.ratings import Ratings
from dprec.reports.base import REPORT_ROUND, DrawsFor, ProfileLevels, ReportReader, ReportSize, Wanted
from dprec.reports.cells import HiddenRowFamily
from dprec.wire import ReportCodec

_CELLS_AT_ONCE = 1 << 24
"""Bounds the memory of answers before they are packed."""


@dataclass(frozen=True, eq=False)
class SetFamily(HiddenRowFamily):
    """An answer about every item of the catalogue, all drawn from one channel; see `ReportFamily`."""

    evidence: ClassVar[type[Evidence]] = SetReports
    on_items: ClassVar[str] = (
        "Which items a user has is hidden, item by item: epsilon holds for every cell. A set of n items and "
        "an empty one differ in n cells, and any two sets in all cells at most; the losses of cells add up."
    )

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return what a yes adds to the estimated number of those who have an item; a mean of one each."""
        not_had, had = self.reference_channel.probabilities[[0, -1], 1].tolist()
        return (1 - not_had) / (had - not_had), 1.0

    def reader(self, n_users: int, wanted: Wanted) -> "SetReader":
        """Return what reads the reports of so many users."""
        return SetReader(self, n_users)

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Say nothing: there are no cells."""
        return (), {}


class SetReader(ReportReader):
    """Randomised sets as they arrive, eight answers in a byte; see `ReportReader`."""

    def __init__(self, family: SetFamily, n_users: int) -> None:
        self._family = family
        self._accepted = np.zeros(n_users, dtype=np.bool_)
        self._bits = np.zeros((n_users, -(-family.n_items // 8)), dtype=np.uint8)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode sets, and keep which items they have."""
        n_items = self._family.n_items
        decoded = self._family.codec.decode(reports)
        counts = np.diff(decoded.indptr)
        for part in blocks(np.full(len(reports), n_items), _CELLS_AT_ONCE):
            had = np.zeros((part.stop - part.start, n_items), dtype=np.bool_)
            cells = slice(decoded.indptr[part.start], decoded.indptr[part.stop])
            had[rows_of(counts[part]), decoded.items[cells]] = True
            self._bits[users[part]] = np.packbits(had, axis=1)
        self._accepted[users] = decoded.valid
        return decoded.valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return no cells, and the sets as evidence."""
        family, nobody = self._family, np.zeros(0, dtype=np.int32)
        not_had, *had = family.reference_channel.probabilities[:, 1].tolist()
        return Observations.of(
            nobody,
            nobody,
            np.zeros(0),
            (self._accepted.size, family.n_items),
            family.scale,
            evidence=SetReports(self._bits[self._accepted], family.n_items, had[0], not_had, self._accepted),
            catalogue=catalogue,
        )


_DELTA = 1e-6
"""With which a note says what a whole report costs."""


def loss_of_an_item(size: int, n_items: int, epsilon: float) -> float:
    """Return the loss of one item of a set of some size, if nothing else is read of the report."""
    return epsilon + math.log(max(1.0, (n_items - size) / size))


def loss_of_a_report(size: int, n_items: int, epsilon: float, delta: float) -> float:
    """Return the least loss that holds with a delta if one item of a set is replaced by another.

    Take a report with the new item, without the old one, and with b others that neither set has. With m
    negatives of M candidates, counting subsets shows it e^(2 epsilon) (M - b) / (m - b) times as likely from
    the new set. Other reports are as likely from both, or less likely from the new one.
    """
    from scipy.optimize import brentq
    from scipy.stats import binom

    candidates = n_items - size
    negatives, truth_share = min(size, candidates), 1 / (1 + math.exp(-epsilon))
    others = np.arange(negatives + 1)
    shares = truth_share * binom.pmf(others, negatives, 1 - truth_share) * (1 - others / candidates)
    missing = negatives - others
    ratios = np.where(
        missing > 0, math.exp(2 * epsilon) * (candidates - others) / np.maximum(missing, 1), np.inf
    )
    certain = shares[np.isinf(ratios)].sum()
    if certain > delta:
        return math.inf
    largest = math.log(ratios[missing > 0].max(initial=1.0))

    def excess(loss: float) -> float:
        return float((shares * np.maximum(0.0, 1 - math.exp(loss) / ratios)).sum()) - delta

    return float(brentq(excess, 0.0, largest)) if excess(0.0) > 0 else 0.0


@dataclass(frozen=True, eq=False)
class SampledNegativesFamily(HiddenRowFamily):
    """The items whose answer is yes, of a user's own and of as many others; see `ReportFamily`."""

    by_cell: ClassVar[bool] = False
    composes: ClassVar[bool] = False
    loss_of_channel: ClassVar[bool] = False
    evidence: ClassVar[type[Evidence]] = Evidence
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("cell",)
    units_reason: ClassVar[str] = "the paper's epsilon is that of the answer about one item"
    on_items: ClassVar[str] = (
        "Epsilon is that of the answer about one item. Which items are asked about follows from the set: a "
        "device with n of N items reports one that it has e^epsilon (N - n) / n times as often as if it had "
        "n others, and never more than n others. So no epsilon bounds whole reports."
    )

    @cached_property
    def codec(self) -> ReportCodec:
        """The encoder and decoder of sets without symbols."""
        return ReportCodec(Channel.from_probabilities([[1.0]], [0.0], [np.nan], math.inf), self.n_items)

    def check(self) -> None:
        """Refuse a budget for which there is no answer, or a catalogue that reports cannot represent."""
        _ = self.codec, self.reference_channel

    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return the items of every user whose answer is yes."""
        counts, shape = profiles.counts, (profiles.counts.size, self.n_items)
        had = np.zeros(shape, dtype=np.bool_)
        had[rows_of(counts), profiles.items] = True
        every, cells = np.tile(np.arange(self.n_items), shape[0]), self.cells(counts)
        noise = draws("report").per_cell(cells, every, REPORT_ROUND)
        choice = draws("choice").per_cell(cells, every, REPORT_ROUND)
        yes = self.perturb(cells, had.ravel().astype(np.uint8), noise).reshape(shape) > 0
        users, items = np.nonzero(yes & (had | sampled(had, choice.reshape(shape))))
        counts = np.bincount(users, minlength=shape[0])
        return self.codec.encode(offsets(counts), items, np.zeros(items.size, dtype=np.uint16))

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Pieces:
        """Return the items of every profile, and no others."""
        nothing = np.zeros(profiles.items.size, dtype=np.uint16)
        return self.codec.encode(offsets(profiles.counts), profiles.items, nothing)

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return that an item is reported, and with which probability an honest user reports it."""
        return 1.0, float(self.reference_channel.probabilities[-1, 1])

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return NaN: sets have no values."""
        return np.full(symbols.size, np.nan)

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> RowReports:
        """Return how likely an item is shown that a user has, or has not, in the mean over the users."""
        (_, not_had), *_, (_, had) = self.reference_channel.probabilities.tolist()
        size = symbols.size / (max(1, int(accepted.sum())) * (had + not_had))
        not_had *= min(1.0, size / max(self.n_items - size, 1.0))
        likelihoods = np.array([[1 - not_had, not_had], *[[1 - had, had]] * self.scale.levels])
        ones, zeros = np.ones(symbols.size, dtype=np.int64), np.zeros(symbols.size, dtype=np.int64)
        unsent = np.array([True, False])
        return RowReports(
            (likelihoods[1:],), ones, zeros, unrated=likelihoods[0], unsent=unsent, reported=accepted
        )

    def noise_variance(self, cells: Ints) -> None:
        """Return None: sets have no values."""

    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return no bound, per rating and per user; see the module."""
        return np.full(counts.size, np.inf), np.full(counts.size, np.inf)

    def most_losses(self) -> tuple[float, float]:
        """Return no bound."""
        return math.inf, math.inf

    def size(self, ratings: int) -> ReportSize:
        """Return a report of as many items as the user has, as it is in the mean."""
        return ReportSize(1, 2 * ratings, self.codec.expected_bits(ratings), None, "user")

    @property
    def fewest_items(self) -> int:
        """Items of a catalogue in which a profile of one item is small."""
        return min(self.n_items, 64)

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield the loss of a set of one item, read alone."""
        if entries == 1:
            loss = loss_of_an_item(1, self.n_items, self.reference_channel.epsilon)
            yield f"an item of {self.n_items}, had or not, from the probabilities", loss

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Say what one item costs the user with the median number of items."""
        counts, n_items = train.counts[train.counts > 0], self.n_items
        epsilon = self.reference_channel.epsilon
        if not counts.size:
            return (), {}
        size = int(np.median(counts))
        item_epsilon = loss_of_an_item(size, n_items, epsilon)
        report_epsilon = loss_of_a_report(size, n_items, epsilon, _DELTA)
        note = (
            f"The median user has {size} of {n_items} items. Read alone, one of them is reported "
            f"{math.exp(item_epsilon):.3g} times as often as if the user had others: epsilon is "
            f"{item_epsilon:.3g} and not {epsilon:.3g}. With delta = {_DELTA:g}, the whole report costs "
            f"{report_epsilon:.3g} if one item is replaced by another, where answers about all items would "
            f"cost {2 * epsilon:.3g}."
        )
        return (note,), {}


def sampled(had: Bools, words: Uint64s) -> Bools:
    """Draw as many of the items that each user does not have as it has, if there are so many.

    All choices are equally likely; shape (users, items).
    """
    order = np.lexsort((words, had), axis=1)
    places = np.argsort(order, axis=1)
    return ~had & (places < had.sum(axis=1, keepdims=True))
