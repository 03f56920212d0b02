"""Lists from sums: devices contribute item sets, the server learns how items go together, devices rank."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Pieces, Uint64s, find, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, option
from dprec.errors import SettingError, within
from dprec.lists.contributions import (
    PairLayout,
    PopularityLayout,
    ProductLayout,
    SetContributions,
    SetLayout,
)
from dprec.lists.gram import (
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
from dprec.lists.products import COLUMNS, TasteModel, popularity_of_products, share_of_tastes, taste_weights
from dprec.randomness import words
from dprec.ratings import POSITIVE, RatingScale
from dprec.sums import LEAST_SHARE, Contributions, DeviceHalf, Layout, Learner, Releases, SummedMethod
from dprec.wire import decode_item_sets, encode_item_sets

FEWEST = "Items that every set counts as having at least, which bounds what one user adds to a number."

_UNKNOWN_SHARE = 0.1
"""Any share will do where the sizes of a population are not known: all compose to the same."""


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """How devices are asked about the items that go together.

    What is left out follows from public numbers: users, items, budget and who adds up; see
    `TableOptions.suited`.
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

    def suited(self, deviation: float, n_items: int, most_pairs: int | None = None) -> Self:
        """Return the options with what follows from public numbers.

        ``deviation``: tau, the noise of a number of one sum that has the whole budget, over the users;
        ``most_pairs``: numbers that a table by rule may have where these are sampled, which is noise beside,
        and more of it on what is popular.
        """
        ruled = GramSettings.of(deviation, n_items, content=self.content).table_items
        if most_pairs is not None:
            ruled = min(ruled, (math.isqrt(8 * most_pairs + 1) - 1) // 2)
        coherent = self.coherent_share
        if most_pairs is not None and coherent is None:
            coherent = 0.5
        items = min(ruled if self.items is None else self.items, n_items)
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

    def check_bounded(self) -> None:
        """Raise SettingError for profiles that are as long as they happen to be."""
        if not self.normalised:
            accepted = "true with a budget, or where others than a trusted server add up"
            raise SettingError("normalised", "false", accepted)

    def of_popularity(self, n_items: int) -> PopularityLayout:
        """Return the layout of the popularity of so many items."""
        return PopularityLayout(n_items, self.normalised, self.fewest)

    def first_items(self, n_items: int) -> Int32s:
        """Return the items of a table before any is known to be popular: the first ones, or all."""
        return np.arange(min(self.items or 0, n_items), dtype=np.int32)


@dataclass(frozen=True, kw_only=True)
class ListMethod(SummedMethod):
    """Popularity in one round, and a table of the popular items in another."""

    kind: Literal["lists"] = "lists"
    options: TableOptions = option("Which items take part, suited to the population.")
    of_features: bool = option(
        "Whether the table is of these items and public features, not of their pairs.", False
    )

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends; see `SummedMethod.shares`."""
        return self.options.shares

    @property
    def farthest(self) -> float:
        """The root of 2, as no number of a contribution is negative; see `SummedMethod.farthest`."""
        return math.sqrt(2)

    def check_bounded(self) -> None:
        """Refuse profiles that are not normalised; see `SummedMethod.check_bounded`."""
        with within("options"):
            self.options.check_bounded()

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> "ListDevice":
        """Read what was sent, a table's items or all that was learned; see `SummedMethod.device`."""
        kind, rest = received[:1], received[1:]
        if self.of_features:
            if kind != _TASTES:
                raise ValueError(f"{len(received)} bytes that are no model of tastes")
            tastes = TasteModel.decode(rest, n_items)
            if tastes.items.size != self.options.first_items(n_items).size:
                raise ValueError(f"a table of {tastes.items.size} items, not of {self.options.items}")
            return ListDevice(self.options, n_items, tastes.items, tastes)
        if kind == _NOTHING and not rest:
            return ListDevice(self.options, n_items, self.options.first_items(n_items), None)
        if kind == _ITEMS:
            valid, _, items, ends = decode_item_sets(Pieces.of([rest]), n_items)
            if (
                not valid.all()
                or ends[0] != len(rest)
                or items.size != self.options.first_items(n_items).size
            ):
                raise ValueError(f"{len(rest)} bytes that are no set of {self.options.items} items")
            return ListDevice(self.options, n_items, items, None)
        if kind == _LEARNED:
            return ListDevice(self.options, n_items, _NO_ITEMS, ListModel.decode(rest, n_items))
        raise ValueError(f"{len(received)} bytes that are neither items nor a list model")

    def largest_layouts(self, releases: Releases) -> tuple[SetLayout, ...]:
        """Return the layouts, which depend on public numbers alone; see `SummedMethod.largest_layouts`."""
        n_items = releases.n_items
        size = n_items if self.options.items is None else self.options.items
        popularity = self.options.of_popularity(n_items)
        table: SetLayout = PairLayout(min(size, n_items), self.options.fewest)
        if self.of_features:
            items = np.arange(min(size, n_items), dtype=np.int32)
            table = ProductLayout(n_items, items, np.ones((n_items, COLUMNS)), self.options.fewest)
        return tuple(
            table if _asks_table(self.options, round_index) else popularity
            for round_index in range(1, self.rounds + 1)
        )

    def learner(self, releases: Releases, catalogue: Catalogue | None, seed: int) -> "ListLearner":
        """Return the server's half; see `SummedMethod.learner`."""
        known = catalogue if self.options.content else None
        return (TasteLearner if self.of_features else ListLearner)(self.options, releases, known)

    def probes(self, seed: int) -> Iterator[tuple[Layout, Contributions[Any]]]:
        """Yield what users contribute who have 1 item, 2 items, and so on."""
        for layout in self.largest_layouts(Releases(_USERS, _CATALOGUE, POSITIVE)):
            counts = 1 + np.arange(_USERS) * layout.n_items // _USERS
            drawn = words(seed, "items of users", 0, _USERS * layout.n_items).reshape(_USERS, -1)
            order = zip(np.argsort(drawn, axis=1), counts, strict=True)
            items = np.concatenate([np.sort(row[:count]) for row, count in order])
            yield layout, SetContributions(offsets(counts), items.astype(np.int32))


_NOTHING, _ITEMS, _LEARNED, _TASTES = b"\0", b"\1", b"\2", b"\3"
_NO_ITEMS = np.zeros(0, dtype=np.int32)
_USERS, _CATALOGUE = 48, 64
"""Users and items of an audit of how long contributions are."""


def _asks_table(options: TableOptions, round_index: int) -> bool:
    return options.items != 0 and round_index == len(options.shares)


@dataclass(frozen=True, eq=False)
class ListDevice(DeviceHalf):
    """What devices do: contribute their sets, and rank by them."""

    options: TableOptions
    n_items: int
    items: Int32s
    """Those of the table, ascending, as far as they are known; shape (table's items,)."""
    model: ListModel | TasteModel | None
    """None before the end where tables are of pairs."""

    def layout(self, round_index: int) -> SetLayout:
        """Return popularity or a table; see `DeviceHalf.layout`."""
        if not _asks_table(self.options, round_index):
            return self.options.of_popularity(self.n_items)
        if isinstance(self.model, TasteModel):
            return ProductLayout(self.n_items, self.items, self.model.features, self.options.fewest)
        return PairLayout(self.items.size, self.options.fewest)

    def contributions(
        self, profiles: Profiles, layout: SetLayout, round_index: int, random_words: Uint64s
    ) -> Contributions[Any]:
        """Return the sets, of the table's items where pairs are asked for; see `DeviceHalf.contributions`."""
        if not isinstance(layout, PairLayout):
            return SetContributions(profiles.indptr, profiles.items)
        places, taking_part = find(self.items, profiles.items)
        counts = np.bincount(profiles.users[taking_part], minlength=profiles.n_users)
        return SetContributions(offsets(counts), places[taking_part].astype(np.int32))

    def about(self, items: AnyInts, layout: SetLayout) -> Bools:
        """Return the items, or their pairs or features; see `DeviceHalf.about`."""
        return layout.about(items if layout.n_items == self.n_items else self._places(items))

    def _places(self, items: AnyInts) -> Ints:
        """Return the places in the table of those that take part."""
        places, taking_part = find(self.items, items)
        return places[taking_part]

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items; see `DeviceHalf.predictions`."""
        if self.model is None:
            raise ValueError("devices that have not received what was learned")
        return self.model.scores(profiles.to_sets())


_LEAST_DEVIATION = 1e-6
"""Where there is no noise: contributions are integer multiples of less."""


@dataclass(eq=False)
class ListLearner(Learner):
    """What the server learns of the items."""

    options: TableOptions
    releases: Releases
    catalogue: Catalogue | None
    _popularity: Floats = field(init=False)
    """Of every item, in the units of a sum; shape (items,)."""
    _noise: float = field(init=False)
    """The deviation of popularity's."""
    _items: Int32s = field(init=False)
    _table: ItemTable = field(init=False)

    def __post_init__(self) -> None:
        n_items = self.releases.n_items
        self._popularity, self._noise, self._table = np.ones(n_items), math.inf, ItemTable.nothing()
        self._items = self.options.first_items(n_items)

    def layout(self, round_index: int) -> Layout:
        """Return popularity or pairs; see `Learner.layout`."""
        if _asks_table(self.options, round_index):
            return PairLayout(self._items.size, self.options.fewest)
        return self.options.of_popularity(self.releases.n_items)

    def learn(self, round_index: int, released: Floats, layout: Layout, deviation: float, users: int) -> None:
        """Estimate popularity, or how items go together; see `Learner.learn`."""
        sums, noise = released[:, 0], max(deviation, _LEAST_DEVIATION)
        if _asks_table(self.options, round_index):
            tau = min(deviation * math.sqrt(self.options.shares[-1]) / users, LARGEST_TAU)
            self._learn_table(sums, noise, tau, users)
            return
        self._popularity, self._noise = popularity_estimate(sums, noise), noise
        self._items = popular_items(self._popularity, self.options.items or 0).astype(np.int32)

    def _learn_table(self, sums: Floats, deviation: float, tau: float, users: int) -> None:
        everything = len(self.options.shares) == 1
        n_items, content = self.releases.n_items, self.catalogue is not None
        settings = GramSettings.of(tau, n_items, content=content)
        known = None
        if not everything:
            known = joined_popularity(self._popularity[self._items], self._noise, sums, deviation)
            self._popularity[self._items] = known
        coherent = self.options.coherent_share
        if coherent is None:
            coherent = settings.coherent_share
        table = denoised_table(sums, deviation, known, coherent)
        if everything:
            self._popularity = table.popularity
        share = min(settings.share_of_weights, LARGEST)
        self._table = ItemTable.of(self._items, table, ridge_of(sums, deviation, users), share)

    def model_bytes(self) -> bytes:
        """Return which items are in the table, once these are known; see `Learner.model_bytes`."""
        if np.array_equal(self._items, self.options.first_items(self.releases.n_items)):
            return _NOTHING
        indptr = np.array([0, self._items.size])
        return _ITEMS + encode_item_sets(indptr, self._items, self.releases.n_items).data

    def learned_bytes(self) -> bytes:
        """Return what devices rank by; see `Learner.learned_bytes`."""
        return _LEARNED + ListModel.of(self._popularity, self.catalogue, self._table).encode()


@dataclass(eq=False)
class TasteLearner(ListLearner):
    """What the server learns of the items' users, from products with public features."""

    _first: Floats = field(init=False)
    """Popularity after its round, by which numbers are parted; shape (items,)."""
    _weights: Floats = field(init=False)
    _share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._first, self._weights = self._popularity, np.zeros((self._items.size, 0))

    def _tastes(self) -> TasteModel:
        public = ListModel.of(self._popularity, self.catalogue, self._table, self._first)
        return TasteModel(public, self._items, self._weights, self._share)

    def layout(self, round_index: int) -> Layout:
        """Return popularity or products; see `Learner.layout`."""
        if _asks_table(self.options, round_index):
            return ProductLayout(
                self.releases.n_items, self._items, self._tastes().features, self.options.fewest
            )
        return super().layout(round_index)

    def learn(self, round_index: int, released: Floats, layout: Layout, deviation: float, users: int) -> None:
        """Estimate popularity, or what the users of items like; see `Learner.learn`."""
        super().learn(round_index, released, layout, deviation, users)
        if not _asks_table(self.options, round_index):
            self._first = self._popularity.copy()

    def _learn_table(self, sums: Floats, deviation: float, tau: float, users: int) -> None:
        noisy, features = sums.reshape(self._items.size, -1), self._tastes().features
        known = popularity_of_products(self._popularity[self._items], self._noise, noisy, deviation)
        self._popularity[self._items] = known
        shares = self._popularity / self._popularity.sum()
        self._weights = taste_weights(noisy, deviation, known, features, shares)
        self._share = share_of_tastes(tau)

    def model_bytes(self) -> bytes:
        """Return what is public, and which items are in the table; see `Learner.model_bytes`."""
        return self.learned_bytes()

    def learned_bytes(self) -> bytes:
        """Return what devices rank by; see `Learner.learned_bytes`."""
        return _TASTES + self._tastes().encode()
