"""Lists from sums of item sets: popularity, and one noisy table of which items occur together.

Devices contribute popularity first, then the pairs of the popular items, and rank by what these teach
(`dprec.lists.gram`). Every profile has the same length, whatever its size, so that none has to be clipped:
clipped ones would say less (the vectors of users with many items are short anyway in each number). That gives
one who has a single item, or says so, the weight of hundreds in that item's number; where sets count as
having some items at least, it has the weight of a few.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import (
    AnyInts,
    Bools,
    Floats,
    Int32s,
    Ints,
    Pieces,
    Uint64s,
    find,
    offsets,
    places_of,
    rows_of,
    segments,
)
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, option
from dprec.errors import SettingError, within
from dprec.lists.gram import (
    DIAGONAL,
    LARGEST_TAU,
    MOST_ITEMS,
    GramSettings,
    denoised_table,
    joined_popularity,
    popular_items,
    popularity_estimate,
    popularity_share,
    ridge_of,
)
from dprec.lists.model import LARGEST, ItemTable, ListModel
from dprec.protocols.base import Facts, Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sharing import COMPARED
from dprec.protocols.sums import LEAST_SHARE, SummedDevice, SummedServer, SumsProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.sums import CentralAggregation, Release, SecureAggregation, ShuffledAggregation
from dprec.wire import decode_item_sets, encode_item_sets

FEWEST = "Items that every set counts as having at least, which bounds what one user adds to a number."

NOTHING_PUBLIC = "Nothing is public about the items, so they are ordered by popularity alone (dataset.items)."

_UNKNOWN_SHARE = 0.1
"""Any share will do where the sizes of a population are not known: all compose to the same."""

LEAST_DEVIATION = 1e-6
"""Where there is no noise: contributions are integer multiples of less."""


@dataclass(frozen=True, kw_only=True)
class PairTableOptions(Options):
    """How devices are asked about the items that go together.

    What is left out follows from public numbers: users, items, budget and who adds up; see
    `PairTableOptions.suited`.
    """

    items: int | None = option(
        "Most popular items that take part; by default a public rule.", None, ge=0, le=MOST_ITEMS
    )
    popularity_share: float | None = option(
        "Share of the squared distance of means that a first round spends to find them; by default a public "
        "rule: 0 where all items take part.",
        None,
        ge=0,
        le=0.999,
    )
    normalised: bool = option(
        "Whether every profile has norm 1, as a budget requires, or counts 1 for each item.", True
    )
    content: bool = option("Whether public categories and numbers of the items are used.", True)
    coherent_share: float | None = option(
        "What an estimate of the table without a look at single cells counts for; by default a public rule.",
        None,
        ge=0,
        le=1,
    )
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)

    @property
    def shares(self) -> tuple[float, ...]:
        """What the round of popularity and the round of the table spend; 0 and 1 make one of them.

        Before they are `suited`, those of a catalogue of which not all items take part.
        """
        if self.items == 0:
            return (1.0,)
        first = _UNKNOWN_SHARE if self.popularity_share is None else self.popularity_share
        return (first, 1 - first) if first else (1.0,)

    def asks_table(self, round_index: int) -> bool:
        """Return whether a round is that of the table, the last one, or that of popularity."""
        return self.items != 0 and round_index == len(self.shares)

    def items_at(self, deviation: float, n_items: int, most_pairs: int | None) -> int:
        """Return how many items a rule has take part; for arguments see `suited`."""
        ruled = GramSettings.of(deviation, n_items, content=self.content).table_items
        if most_pairs is not None:
            ruled = min(ruled, (math.isqrt(8 * most_pairs + 1) - 1) // 2)
        return min(ruled, n_items)

    def suited(self, items: int, deviation: float, n_items: int, most_pairs: int | None = None) -> Self:
        """Return the options of a table of so many items, with what follows from public numbers.

        ``deviation``: tau, the noise of a number of one sum that has the whole budget, over the users;
        ``most_pairs``: numbers that a table by rule may have where these are sampled, which is noise beside,
        and more of it on what is popular.
        """
        coherent = self.coherent_share
        if most_pairs is not None and coherent is None:
            coherent = 0.5
        items = min(items, n_items)
        share = self.popularity_share
        if share is None:
            share = 0.0 if items == n_items else popularity_share(deviation, content=self.content)
        return replace(self, items=items, popularity_share=share, coherent_share=coherent)

    def check(self, n_items: int) -> None:
        """Raise SettingError for a table of some items without a round, or hardly one, that finds them."""
        if 0 < (self.popularity_share or 0) < LEAST_SHARE:
            raise SettingError(
                "popularity_share", f"{self.popularity_share:g}", f"0, or {LEAST_SHARE:g} to 0.999"
            )
        if self.items and self.items < n_items and self.popularity_share == 0:
            accepted = f"more, or a table of all {n_items} items"
            raise SettingError("popularity_share", f"0 for {self.items} of the items", accepted)

    def first_items(self, n_items: int) -> Int32s:
        """Return the items of a table before any is known to be popular: the first ones, or all."""
        size = n_items if self.items is None else min(self.items, n_items)
        return np.arange(size, dtype=np.int32)


def popularity_release(device: SummedDevice, table: PairTableOptions, n_items: int) -> Release:
    """Return a number for each item: a user adds 1 / sqrt(n) to each of n items, or 1 if not normalised."""
    if not table.normalised:
        return Release(device, 1, n_items, n_items, bounded=False, honestly=np.ones_like)
    return Release(device, 1, n_items, n_items, most=1 / math.sqrt(table.fewest), fewest=table.fewest)


def popularity_cells(profiles: Profiles, release: Release) -> tuple[Ints, AnyInts, Floats]:
    """Return what users add to `popularity_release`."""
    counts = np.diff(profiles.indptr)
    each = 1 / np.sqrt(np.maximum(counts, release.fewest)) if release.bounded else np.ones(counts.size)
    return profiles.indptr, profiles.items, np.repeat(each, counts)


@dataclass(frozen=True, kw_only=True)
class SetsProtocol(SumsProtocol):
    """Base of the protocols that sum item sets: popularity in one round, a table in another."""

    predicted: ClassVar[Predicted] = "lists"
    signed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse profiles that are as long as they happen to be where others rely on their norm."""
        super().__post_init__()
        if self.bounded and not self.asked.normalised:
            accepted = "true with a budget, or where others than a trusted server add up"
            raise SettingError("table.normalised", "false", accepted)

    @property
    @abstractmethod
    def asked(self) -> PairTableOptions:
        """Which items take part in a table, if there is one."""

    @property
    def shares(self) -> tuple[float, ...]:
        """What the round of popularity and that of the table spend."""
        return self.asked.shares

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse a table whose items nobody finds."""
        with within("table"):
            self.asked.check(train.n_items)

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> SummedDevice:
        """Return the first items: none is known to be popular."""
        return SetDevice(self.asked, public.n_items, self.asked.first_items(public.n_items), None)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> SummedDevice:
        """Read a table's items, or all that was learned."""
        kind, rest, first = received[:1], received[1:], self.asked.first_items(n_items)
        if kind == _NOTHING and not rest:
            return SetDevice(self.asked, n_items, first, None)
        if kind == _LEARNED:
            return SetDevice(self.asked, n_items, first[:0], ListModel.decode(rest, n_items))
        if kind != _ITEMS:
            raise ValueError(f"{len(received)} bytes that are neither items nor a list model")
        valid, _, items, ends = decode_item_sets(Pieces.of([rest]), n_items)
        if not valid.all() or ends[0] != len(rest) or items.size != first.size:
            raise ValueError(f"{len(rest)} bytes that are no set of {self.asked.items} items")
        return SetDevice(self.asked, n_items, items, None)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> SummedServer:
        """Return the server before the first round."""
        return SetServer(self.asked, public.n_items, catalogue if self.asked.content else None)


_NOTHING, _ITEMS, _LEARNED = b"\0", b"\1", b"\2"


@dataclass(frozen=True, kw_only=True)
class TableProtocol(SetsProtocol):
    """Base of the protocols in which item sets become one noisy table of popular items."""

    learns: ClassVar[str] = "item-table"
    privacy: PrivacyBudget | None = option("What is promised for both rounds together, per user.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    table: PairTableOptions = option("Which items take part.", PairTableOptions())

    @property
    def asked(self) -> PairTableOptions:
        """The table's options."""
        return self.table

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol with the items that take part, by a public rule of the sizes and the budget.

        Without content where there is none: rules of the noise differ with it.
        """
        table = replace(self.table, content=self.table.content and public.content)
        noise_of, n_items = self.noise_of_tables(public), public.n_items
        affordable = self.aggregation.affordable(self.whole_multiplier)
        size = table.items
        if size is None:

            def suits(size: int) -> int:
                return table.items_at(noise_of(size), n_items, affordable)

            # The largest table that is not too large for its own noise: that grows with it, or falls where
            # numbers are sampled, and then no table is larger than what suits the largest.
            most = min(n_items, MOST_ITEMS)
            least = min(suits(most), most)
            size = least if suits(least) >= least else 0
            while size < most:
                middle = -(-(size + most) // 2)
                size, most = (middle, most) if suits(middle) >= middle else (size, middle - 1)
        return replace(self, table=table.suited(size, noise_of(size), n_items, affordable))

    @abstractmethod
    def table_rows(self, items: int) -> int:
        """Return how many numbers a table of so many items has."""

    def noise_of_tables(self, public: Public) -> Callable[[int], float]:
        """Return the noise per user of tables by their number of items: tau, with the whole budget.

        The aggregation knows the users, who all take part.
        """
        layout, multiplier = self.largest(public)[-1], self.whole_multiplier
        assert isinstance(layout, Release)
        users, deviation = public.n_users, self.aggregation.deviation

        def noise_of(size: int) -> float:
            # Without a table there is popularity alone.
            rows = self.table_rows(size) if size else public.n_items
            return deviation(replace(layout, rows=rows), multiplier, users) / max(users, 1)

        return noise_of


@dataclass(frozen=True, kw_only=True)
class GramProtocol(TableProtocol):
    """Devices contribute their item sets to one noisy table of popular items, and rank by it."""

    kind: Literal["gram"] = "gram"
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())

    def table_rows(self, items: int) -> int:
        """Return the pairs, itself and itself included."""
        return items * (items + 1) // 2


@dataclass(frozen=True, kw_only=True)
class PairsInBlanketProtocol(GramProtocol):
    """Devices send a few pairs of their items as anonymous messages among fakes, and rank by the counts."""

    kind: Literal["pairs-in-blanket"] = "pairs-in-blanket"  # type: ignore[assignment]
    aggregation: AnyAggregation = option("Who counts the messages.", ShuffledAggregation())


@dataclass(frozen=True, kw_only=True)
class PopularityProtocol(SetsProtocol):
    """Devices contribute their item sets to the popularity of items, and rank by it."""

    kind: Literal["popularity"] = "popularity"
    privacy: PrivacyBudget | None = option("What is promised, per user; left out, nothing.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    content: bool = option(
        "Whether a device weighs what is popular by public data that its user's items share.", False
    )
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", CentralAggregation())

    @property
    def facts(self) -> Facts:
        """Popularity, which is a baseline in the clear."""
        learned = "popularity-by-content" if self.content else "popularity"
        return self.facts_of(learns=learned, baseline=None if self.privacy else "popularity")

    @property
    def asked(self) -> PairTableOptions:
        """No table."""
        return PairTableOptions(items=0, normalised=self.bounded, content=self.content, fewest=self.fewest)

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Say where content counts for nothing."""
        return () if not self.content or catalogue is not None else (NOTHING_PUBLIC,)


@dataclass(frozen=True, eq=False)
class SetDevice(SummedDevice):
    """What devices do: contribute their sets, and rank by them."""

    table: PairTableOptions
    n_items: int
    items: Int32s
    """Those of the table, ascending, as far as they are known; shape (table's items,)."""
    model: ListModel | None
    """None before the end."""

    def encode(self) -> bytes:
        """Return which items are in the table, once these are known, or what devices rank by."""
        if self.model is not None:
            return _LEARNED + self.model.encode()
        if np.array_equal(self.items, self.table.first_items(self.n_items)):
            return _NOTHING
        return _ITEMS + encode_item_sets(np.array([0, self.items.size]), self.items, self.n_items).data

    def release(self, round_index: int) -> Release:
        """Return popularity, or a number for each pair: the upper triangle of a matrix, by row."""
        if not self.table.asks_table(round_index):
            return popularity_release(self, self.table, self.n_items)
        size, fewest = self.items.size, self.table.fewest
        most = 1.0 if fewest == 1 else float(_pair_weights(np.array([fewest]))[0])
        rows = size * (size + 1) // 2
        return Release(self, round_index, rows, size, most=most, fewest=fewest, honestly=self._honest)

    def _honest(self, counts: Ints) -> Floats:
        return _pair_weights(np.maximum(counts, self.table.fewest)) * np.where(counts > 1, 1.0, DIAGONAL)

    def taking_part(self, profiles: Profiles, release: Release) -> Profiles:
        """Return the sets as places in the table, where pairs are asked for."""
        if not self.table.asks_table(release.round_index):
            return profiles
        places, present = find(self.items, profiles.items)
        counts = np.bincount(profiles.users[present], minlength=profiles.n_users)
        chosen = places[present].astype(np.int32)
        return Profiles(offsets(counts), chosen, profiles.values[present], self.items.size)

    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Ints, AnyInts, Floats]:
        """Return popularity, or w at each pair and a quarter of w at each item with itself.

        Of n items that take part, w is 1 / sqrt(n / 16 + n (n - 1) / 2).
        """
        if not self.table.asks_table(release.round_index):
            return popularity_cells(profiles, release)
        items, counts = profiles.items, np.diff(profiles.indptr)
        own = places_of(counts)
        # Each item with itself and all after it.
        partners = counts[rows_of(counts)] - own
        first = np.repeat(items.astype(np.int64), partners)
        second = items[segments(np.arange(items.size), partners)].astype(np.int64)
        pairs = self.work(counts, release)
        before = first * release.n_items - first * (first - 1) // 2
        weights = np.repeat(_pair_weights(np.maximum(counts, release.fewest)), pairs)
        return offsets(pairs), before + second - first, np.where(first == second, DIAGONAL, 1.0) * weights

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return the items, or the pairs."""
        return counts * (counts + 1) // 2 if self.table.asks_table(release.round_index) else counts

    def about(self, items: AnyInts, layout: Release) -> Bools:
        """Return the items, or the pairs that one of them is in."""
        if not self.table.asks_table(layout.round_index):
            return np.isin(np.arange(self.n_items), items)
        places, present = find(self.items, items)
        first, second = np.triu_indices(self.items.size)
        asked = np.isin(np.arange(self.items.size), places[present])
        return asked[first] | asked[second]

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items."""
        if self.model is None:
            raise ValueError("devices that have not received what was learned")
        return self.model.scores(profiles.to_sets())


def _pair_weights(counts: Ints) -> Floats:
    """Return what sets of so many items add to each of their pairs."""
    weights: Floats = 1 / np.sqrt(DIAGONAL**2 * counts + counts * (counts - 1) / 2)
    return weights


@dataclass(eq=False)
class SetServer(SummedServer):
    """Learns popularity, then how items go together."""

    options: PairTableOptions
    n_items: int
    catalogue: Catalogue | None

    def __post_init__(self) -> None:
        self.items = self.options.first_items(self.n_items)
        self.popularity, self.noise = np.ones(self.n_items), math.inf
        self.table = ItemTable.nothing()

    @property
    def held(self) -> SetDevice:
        """The items of the table."""
        return SetDevice(self.options, self.n_items, self.items, None)

    @property
    def learned(self) -> SetDevice:
        """What devices rank by."""
        return replace(self.held, model=ListModel.of(self.popularity, self.catalogue, self.table))

    def learn(
        self, layout: Release, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Estimate popularity, or how items go together."""
        sums, noise = released[:, 0], max(deviation, LEAST_DEVIATION)
        if not self.options.asks_table(round_index):
            self.popularity, self.noise = popularity_estimate(sums, noise), noise
            self.items = popular_items(self.popularity, self.items.size).astype(np.int32)
            return
        everything, known = len(self.options.shares) == 1, None
        tau = min(deviation * math.sqrt(self.options.shares[-1]) / users, LARGEST_TAU)
        settings = GramSettings.of(tau, self.n_items, content=self.catalogue is not None)
        if not everything:
            known = joined_popularity(self.popularity[self.items], self.noise, sums, noise)
            self.popularity[self.items] = known
        coherent = self.options.coherent_share
        coherent = settings.coherent_share if coherent is None else coherent
        table = denoised_table(sums, noise, known, coherent)
        if everything:
            self.popularity = table.popularity
        share = min(settings.share_of_weights, LARGEST)
        self.table = ItemTable.of(self.items, table, ridge_of(sums, noise, users), share)
