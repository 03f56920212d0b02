"""Lists from one noisy table of items and public features: what tastes the users of an item have.

Devices contribute popularity first, then, for each of their items that take part, the public features of
their other items. The server removes from the table what popularity and an average user explain, and what
noise alone explains. What is left, over the covariance of features among items, says how an item's scores
follow the features of a set (`dprec.lists.products`): fewer numbers than pairs of items have, and by what is
public of them, of items that are in few sets too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Uint64s, find, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import option
from dprec.lists.gram import LARGEST_TAU, popular_items, popularity_estimate, standardised
from dprec.lists.model import (
    LARGEST,
    ListModel,
    PairTable,
    check_least_bytes,
    too_few_bytes,
)
from dprec.lists.popular import PopularitySearch
from dprec.lists.products import (
    COLUMNS,
    popularity_of_products,
    public_features,
    share_of_tastes,
    taste_weights,
)
from dprec.protocols.base import Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.gram import ListTableOptions, TableProtocol
from dprec.protocols.searches import (
    LEAST_DEVIATION,
    NOTHING_PUBLIC,
    SearchSum,
)
from dprec.protocols.sums import LimitedServer, SummedDevice, SummedServer
from dprec.ratings import Ratings, RatingScale
from dprec.sums import Release, SecureAggregation
from dprec.wire import MOST_TIMES, Reader, encode_items, encode_numbers, fitted, step_of

_BELOW_ONE = 1 - 2.0**-40
"""So that rounding makes no contribution longer than 1."""

_TASTES = b"\3"
_COUNT, _NUMBER = np.dtype("<u4"), np.dtype("<f4")

TASTES_STEP = 0.1
"""Step of weights, in root mean squares; benchmarks/choosing/sent_tables.py judges it."""


def _bytes_of_items(n_items: int) -> int:
    """Return bytes that suffice for which items a table has, and weights of 0."""
    return 64 + n_items // 8


@dataclass(frozen=True, kw_only=True)
class PublicStartProtocol(TableProtocol):
    """Devices contribute the public features of their sets, item by item, and rank by what these teach."""

    kind: Literal["public-start"] = "public-start"
    learns: ClassVar[str] = "tastes-by-item"
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())

    def table_rows(self, items: int) -> int:
        """Return the features of so many items."""
        return items * COLUMNS

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Say where there is nothing to learn from."""
        return () if self.table.content and catalogue is not None else (NOTHING_PUBLIC,)

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> SummedDevice:
        """Return what is public, about the first items: none is known to be popular."""
        return self.server(public, catalogue, 0).held

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> SummedDevice:
        """Read what `TasteDevice.encode` returned."""
        if received[:1] != _TASTES:
            raise ValueError(f"{len(received)} bytes that are no model of tastes")
        reader = Reader(received[1:])
        size, columns = self.table.first_items(n_items).size, int(reader.numbers(_COUNT, 1)[0])
        if columns not in (0, COLUMNS):
            raise ValueError(f"a table of {columns} features")
        share = float(reader.numbers(_NUMBER, 1)[0])
        items = reader.item_set(n_items, size)
        weights, step = reader.rounded((size, columns))
        # Not a number is in no range; a number of at most 1 is rounded by less.
        if not ((np.abs(weights) <= 2).all() and math.fabs(share) <= LARGEST):
            raise ValueError("a model of tastes with numbers out of range")
        public = ListModel.decode(reader.rest(), n_items)
        return TasteDevice(self.table, public, items, weights, share, step)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> SummedServer:
        """Return the server before the first round."""
        public_catalogue = catalogue if self.table.content else None
        check_least_bytes(
            self.max_bytes_down, public.n_items, public_catalogue, _bytes_of_items(public.n_items)
        )
        return TasteServer(self.table, public.n_items, public_catalogue, most_bytes=self.max_bytes_down)


@dataclass(frozen=True, eq=False)
class TasteDevice(SummedDevice):
    """What devices rank by: what they know without the table, and how scores follow features."""

    table: ListTableOptions
    public: ListModel
    """Popularity, and what is public of the items."""
    items: Int32s
    """Those of the table, ascending; shape (table's items,)."""
    weights: Floats
    """Shape (table's items, COLUMNS), from -1 to 1; without columns before they are known."""
    share: float
    """What a standard deviation of the scores by features counts for."""
    step: float | None = None
    """Of the weights, as devices are sent them; by default the shortest that matters."""

    @cached_property
    def features(self) -> Floats:
        """Shape (items, COLUMNS)."""
        return public_features(self.public.categories, self.public.bins)

    @property
    def _popularity(self) -> SearchSum:
        search = PopularitySearch.of_all(self.public.popularity.size)
        return SearchSum(search, 0, self.table.fewest, self.table.normalised)

    def encode(self) -> bytes:
        """Return the bytes that devices are sent, the weights rounded to steps."""
        step, n_items = self.step or step_of(self.weights, TASTES_STEP), self.public.popularity.size
        parts = (
            np.array([self.weights.shape[1]], dtype=_COUNT).tobytes(),
            np.array([self.share], dtype=_NUMBER).tobytes(),
            encode_items(self.items, n_items),
            encode_numbers(self.weights, step),
        )
        return _TASTES + b"".join(parts) + self.public.encode()

    def within(self, most: int | None) -> TasteDevice:
        """Return the model in steps in which it has at most so many bytes."""
        if most is None or len(self.encode()) <= most:
            return self
        step = self.step or step_of(self.weights, TASTES_STEP)

        def tried(times: float) -> TasteDevice:
            return replace(self, step=times * step, public=self.public.with_steps(times))

        device = fitted(tried, lambda model: len(model.encode()), most, MOST_TIMES)
        if device is None:
            raise too_few_bytes(most, len(tried(MOST_TIMES).encode()))
        return device

    def release(self, round_index: int) -> Release:
        """Return popularity, or a number for each item of the table and each feature."""
        n_items, fewest = self.public.popularity.size, self.table.fewest
        if not self.table.asks_table(round_index):
            return self._popularity.release(self, round_index)
        rows, most = self.items.size * COLUMNS, 1 / math.sqrt(fewest)

        def honest(counts: Ints) -> Floats:
            return (counts > 1) / np.sqrt(np.maximum(counts, fewest))

        return Release(self, round_index, rows, n_items, most=most, fewest=fewest, honestly=honest)

    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Ints, AnyInts, Floats]:
        """Return popularity, or for each item of a set the features of all its others, of norm 1 together."""
        if not self.table.asks_table(release.round_index):
            return self._popularity.cells(profiles)
        n_users, features = profiles.n_users, self.features
        places, present = find(self.items, profiles.items)
        owners, places = profiles.users[present], places[present]
        counts = np.bincount(owners, minlength=n_users)
        others = (profiles.to_sets() @ features)[owners] - features[profiles.items[present]]
        squares = (others**2).sum(axis=1)
        # What is smaller is rounding alone.
        sizes = np.maximum(counts, release.fewest)[owners]
        lengths = np.where(squares > 1e-12, np.sqrt(squares * sizes), np.inf)
        numbers = np.maximum(others, 0.0) * (_BELOW_ONE / lengths)[:, None]
        rows = places[:, None] * COLUMNS + np.arange(COLUMNS)
        return offsets(counts * COLUMNS), rows.ravel(), numbers.ravel()

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return the numbers, if all items take part."""
        return counts * COLUMNS if self.table.asks_table(release.round_index) else counts

    def about(self, items: AnyInts, layout: Release) -> Bools:
        """Return the items, or the features of those that take part."""
        if not self.table.asks_table(layout.round_index):
            return self._popularity.about(items)
        return np.repeat(np.isin(self.items, items), COLUMNS)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items."""
        sets = profiles.to_sets()
        scores = np.array(self.public.scores(sets))
        if self.weights.size:
            popularity, features = np.exp(self.public.popularity), self.features
            average = popularity / popularity.sum() @ features
            tastes = sets @ features - np.diff(sets.indptr)[:, None] * average
            scores[:, self.items] += self.share * standardised(tastes @ self.weights.T)
        return scores


@dataclass(eq=False)
class TasteServer(LimitedServer):
    """Learns popularity, then what the users of items like, from products with public features."""

    options: ListTableOptions
    n_items: int
    catalogue: Catalogue | None

    def __post_init__(self) -> None:
        self.items = self.options.first_items(self.n_items)
        self.popularity = self.first = np.ones(self.n_items)
        """Popularity as it is known, and as it was after its round, by which numbers are parted."""
        self.noise, self.weights, self.share = math.inf, np.zeros((self.items.size, 0)), 0.0

    @property
    def held(self) -> TasteDevice:
        """What devices rank by, as far as it is known."""
        return self.whole.within(self.most_bytes)

    @property
    def whole(self) -> TasteDevice:
        """What devices rank by."""
        public = ListModel.of(self.popularity, self.catalogue, PairTable.nothing(), parted_by=self.first)
        return TasteDevice(self.options, public, self.items, self.weights, self.share)

    def learn(
        self, layout: Release, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Estimate popularity, or tastes."""
        noise = max(deviation, LEAST_DEVIATION)
        if not self.options.asks_table(round_index):
            self.popularity, self.noise = popularity_estimate(released[:, 0], noise), noise
            self.first = self.popularity.copy()
            self.items = popular_items(self.popularity, self.items.size).astype(np.int32)
            return
        tau = min(deviation * math.sqrt(self.options.shares[-1]) / users, LARGEST_TAU)
        noisy, features = released[:, 0].reshape(self.items.size, -1), self.held.features
        popularity = popularity_of_products(self.popularity[self.items], self.noise, noisy, noise)
        self.popularity = self.popularity.copy()
        self.popularity[self.items] = popularity
        shares = self.popularity / self.popularity.sum()
        self.weights = taste_weights(noisy, noise, popularity, features, shares)
        self.share = share_of_tastes(tau)
