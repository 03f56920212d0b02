"""Lists from sums of item sets: popularity, a noisy table of which items occur together, and groups.

Devices contribute popularity first, then the pairs of the popular items; where items are many beside the
table's, they say last which groups of its items all others are found with (`dprec.lists.groups`). They rank
by what these teach (`dprec.lists.gram`). Every profile has the same length, whatever its size, so that none
has to be clipped: clipped ones would say less. That gives one who has a single item, or says so, the weight
of hundreds in that item's number; where sets count as having some items at least, that of a few.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import AnyInts, Bools, Floats, Int32s, Ints, Uint64s
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, option
from dprec.errors import SettingError, within
from dprec.lists.departures import departure_of_sum, ridge_of
from dprec.lists.gram import (
    LARGEST_TAU,
    MOST_ITEMS,
    GramSettings,
    denoised_table,
    joined_popularity,
    joined_sums,
    popular_items,
    popularity_of_pairs,
    popularity_share,
    table_items,
    worth_a_table,
)
from dprec.lists.groups import (
    FEWEST_SEARCHED,
    MOST_BESIDE_GROUPS,
    MOST_GROUPS,
    NO_GROUP,
    SEARCHED,
    ItemGroups,
    grouped_at,
    groups_at,
    groups_of,
)
from dprec.lists.model import LARGEST, ListModel, PairTable, check_least_bytes
from dprec.lists.popular import PopularityPlan, PopularitySearch
from dprec.protocols.base import Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.item_sums import GroupSum, PairSum, pairs_of
from dprec.protocols.searches import (
    FEWEST,
    LEAST_DEVIATION,
    MAX_BYTES_UP,
    SearchOptions,
    SearchSum,
    bytes_of_search,
    bytes_up,
    decode_found,
    decode_search,
    encode_found,
    encode_search,
)
from dprec.protocols.sharing import COMPARED, MAX_BYTES_DOWN
from dprec.protocols.sums import LEAST_SHARE, LimitedServer, SummedDevice, SummedServer, SumsProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.sums import Layout, Release, SecureAggregation, ShuffledAggregation
from dprec.wire import Reader, encode_items

_BYTES_A_NUMBER = 340.0
"""Of memory, for a table's noisy numbers, their estimates and all between; tests hold runs to it."""

_COMPOSED_BYTES = 200e6
"""Of memory, for the spectra of losses on a grid of which the size hardly depends on the messages."""

_UNKNOWN_SHARE = 0.1
"""Any share will do where the sizes of a population are not known: all compose to the same."""


@dataclass(frozen=True, kw_only=True)
class ListTableOptions(Options):
    """Which items take part in a table, and what is spent to find them.

    What is left out follows from public numbers: users, items, budget and who adds up; see
    `TableProtocol.suited_to_noise`.
    """

    items: int | None = option(
        "Most popular items that take part; by default a public rule.", None, ge=0, le=MOST_ITEMS
    )
    popularity_share: float | None = option(
        "Share of the squared distance of means that is spent to find them; by default a public rule. A "
        "table of all items may do with 0.",
        None,
        ge=0,
        le=0.999,
    )
    normalised: bool = option(
        "Whether every profile has norm 1, as a budget requires, or counts 1 for each item.", True
    )
    content: bool = option("Whether public categories and numbers of the items are used.", True)
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)

    @property
    def shares(self) -> tuple[float, ...]:
        """What the rounds of popularity and of the table spend; 0 and 1 make one of them.

        Before they are `suited`, those of a catalogue of which not all items take part.
        """
        return (*self.popularity_shares, *([self.left] if self.items != 0 else []))

    @property
    def popularity_shares(self) -> tuple[float, ...]:
        """What the rounds that look for popular items spend."""
        return (1 - self.left,) if self.left < 1 else ()

    @property
    def left(self) -> float:
        """What is left beside these."""
        if self.items == 0:
            return 0.0
        return 1 - (_UNKNOWN_SHARE if self.popularity_share is None else self.popularity_share)

    def asks_table(self, round_index: int) -> bool:
        """Return whether a round is after those of popularity."""
        return self.items != 0 and round_index > len(self.popularity_shares)

    def suited(self, items: int, tau: float, n_items: int) -> Self:
        """Return the options of a table of so many items, with what follows from public numbers.

        ``tau``: the noise of a number of one sum that has the whole budget, over the users.
        """
        items, share = min(items, n_items), self.popularity_share
        if share is None:
            share = popularity_share(tau, n_items, content=self.content)
        return replace(self, items=items, popularity_share=share)

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


@dataclass(frozen=True, kw_only=True)
class TableProtocol(SumsProtocol):
    """Base of the protocols in which item sets become one noisy table of popular items."""

    predicted: ClassVar[Predicted] = "lists"
    signed: ClassVar[bool] = False
    learns: ClassVar[str] = "item-table"
    privacy: PrivacyBudget | None = option("What is promised for all rounds together, per user.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    max_bytes_up: int = option(MAX_BYTES_UP, 300_000, ge=1)
    table: ListTableOptions = option("Which items take part.", ListTableOptions())
    max_bytes_down: int | None = option(MAX_BYTES_DOWN, None, reader="server", ge=1)

    def __post_init__(self) -> None:
        """Refuse profiles that are as long as they happen to be where others rely on their norm."""
        super().__post_init__()
        if self.bounded and not self.table.normalised:
            accepted = "true with a budget, or where others than a trusted server add up"
            raise SettingError("table.normalised", "false", accepted)

    @property
    def shares(self) -> tuple[float, ...]:
        """What the rounds of popularity and those of the table spend."""
        return self.table.shares

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse a table whose items nobody finds."""
        with within("table"):
            self.table.check(train.n_items)

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol with the items that take part, by a public rule of the sizes and the budget.

        Without content where there is none: rules of the noise differ with it. The largest table is taken
        that is not too large for its own noise, nor for the bytes of a user.
        """
        options = replace(self.table, content=self.table.content and public.content)
        noise_of, n_items = self.noise_of_tables(public), public.n_items
        affordable = self.aggregation.affordable(self.whole_multiplier)

        def ruled_size(size: int) -> int:
            return table_items(noise_of(size), n_items, content=options.content, most_numbers=affordable)

        def bytes_of(size: int) -> int:
            changes: dict[str, Any] = {"table": self.table_of(options, size, noise_of(size), public)}
            return replace(self, **changes).most_bytes_up(public)

        def suits(size: int) -> bool:
            return size <= ruled_size(size) and bytes_of(size) <= self.max_bytes_up

        size = options.items
        if size is None:
            # Noise grows with a table, or falls where numbers are sampled, and then no table is larger than
            # what suits the largest.
            largest, size = min(n_items, MOST_ITEMS), 0
            if affordable is not None:
                ruled = ruled_size(largest)
                size = largest = ruled if suits(ruled) else 0
            size = largest - bisect_left(range(largest, size, -1), True, key=suits)
        if (n_bytes := bytes_of(size)) > self.max_bytes_up:
            purpose = f"a table of {size:,} items" if size else "popularity alone"
            accepted = f"at least {n_bytes:,}, for {purpose}"
            raise SettingError("max_bytes_up", f"{self.max_bytes_up:,}", accepted)
        return replace(self, table=self.table_of(options, size, noise_of(size), public))

    def table_of(self, options: ListTableOptions, size: int, tau: float, public: Public) -> ListTableOptions:
        """Return the options of a table of so many items; see `ListTableOptions.suited`."""
        return options.suited(size, tau, public.n_items)

    def most_bytes_up(self, public: Public) -> int:
        """Return the bytes that a device sends in all rounds."""
        return bytes_up(self.adding_up, zip(self.may_ask(public), self.multipliers, strict=True))

    @abstractmethod
    def table_rows(self, items: int) -> int:
        """Return how many numbers a table of so many items has."""

    def noise_of_tables(self, public: Public) -> Callable[[int], float]:
        """Return the noise per user of tables by their number of items: tau, with the whole budget.

        The aggregation knows the users, who all take part.
        """
        layout, multiplier = self.begin(public).release(self.rounds), self.whole_multiplier
        assert isinstance(layout, Release)
        users, deviation = public.n_users, self.aggregation.deviation

        def noise_of(size: int) -> float:
            # Without a table there is popularity alone.
            rows = self.table_rows(size) if size else public.n_items
            return deviation(replace(layout, rows=rows), multiplier, users) / max(users, 1)

        return noise_of

    def model_bytes(self, public: Public) -> float:
        """Return what it takes to count and denoise the numbers of the larger release."""
        return _BYTES_A_NUMBER * self.most_numbers(public)


@dataclass(frozen=True, kw_only=True)
class PairTableOptions(ListTableOptions):
    """How devices are asked about the items that go together."""

    coherent_share: float | None = option(
        "What an estimate of the table without a look at single cells counts for; by default a public rule.",
        None,
        ge=0,
        le=1,
    )
    search: SearchOptions = option("How popular items are found.", SearchOptions())
    groups: int | None = option(
        "Groups of the table's items with which a last round finds others; 0 for no such round; by default a "
        "public rule.",
        None,
        ge=0,
        le=MOST_GROUPS,
    )
    grouped_items: int | None = option(
        "Most popular items that are found with groups; by default a public rule.", None, ge=1
    )
    groups_share: float = option(
        "Share of the squared distance of means that the round of groups spends.", 0.2, gt=0, lt=0.999
    )

    @property
    def shares(self) -> tuple[float, ...]:
        """What the rounds of popularity, of pairs and of groups spend."""
        if not (self.items and self.groups):
            return super().shares
        return (*self.popularity_shares, self.left - self.groups_share, self.groups_share)

    @property
    def popularity_shares(self) -> tuple[float, ...]:
        """What the rounds of the search spend."""
        return tuple(share * part for share in super().popularity_shares for part in self.search.shares)

    def kind_of(self, round_index: int) -> int:
        """Return 0 of a round of popularity, 1 of that of pairs, 2 of that of groups."""
        after = round_index - len(self.popularity_shares)
        return min(max(after, 0), 2) if self.items != 0 else 0

    def grouped(self, size: int, tau: float, n_items: int) -> Self:
        """Return the options with groups where a rule has some; see `suited`."""
        groups = groups_at(size, tau, n_items) if self.groups is None else min(self.groups, size)
        if not groups:
            return replace(self, groups=0)
        items = grouped_at(size, groups, n_items) if self.grouped_items is None else self.grouped_items
        return replace(self, groups=groups, grouped_items=min(max(items, size), n_items))

    def check(self, n_items: int) -> None:
        """Raise SettingError for rounds that nothing is left for; see `ListTableOptions.check`."""
        super().check(n_items)
        if self.items and self.groups and self.left - self.groups_share < LEAST_SHARE:
            found = f"{self.groups_share:g}, of {self.left:g} that popularity leaves"
            raise SettingError("groups_share", found, "less than that")


@dataclass(frozen=True, kw_only=True)
class GramProtocol(TableProtocol):
    """Devices contribute their item sets to one noisy table of popular items, and rank by it."""

    kind: Literal["gram"] = "gram"
    table: PairTableOptions = option("Which items take part.", PairTableOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol with what follows from public numbers; see `TableProtocol.suited_to_noise`."""
        with within("table"), within("search"):
            self.table.search.check(public.n_items)
        return super().suited_to_noise(public)

    def table_rows(self, items: int) -> int:
        """Return the pairs, itself and itself included."""
        return pairs_of(items)

    def table_of(self, options: ListTableOptions, size: int, tau: float, public: Public) -> PairTableOptions:
        """Return the options of a table, with the groups and the search that suit it."""
        table = super().table_of(options, size, tau, public)
        assert isinstance(table, PairTableOptions)
        if self.aggregation.affordable(self.whole_multiplier) is not None:
            table = replace(
                table,
                coherent_share=0.5 if table.coherent_share is None else table.coherent_share,
                groups=table.groups or 0,
            )
        table = table.grouped(size, tau, public.n_items)
        if self.table.items is not None:
            # Before there is noise for shares that are below 0.
            with within("table"):
                table.check(public.n_items)

        def searching(plan: PopularityPlan) -> bool:
            if size:
                return plan.rows <= max(SEARCHED * size, FEWEST_SEARCHED)
            device = SetDevice.begun(table, public.n_items, plan)
            return bytes_of_search(self, device, plan) <= self.max_bytes_up

        return replace(table, search=table.search.suited(public.n_items, searching))

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> SummedDevice:
        """Return the first items: none is known to be popular."""
        return SetDevice.begun(self.table, public.n_items)

    def may_ask(self, public: Public) -> tuple[tuple[Layout, ...], ...]:
        """Return all layouts of each round; those after the search may go on with it."""
        device = replace(SetDevice.begun(self.table, public.n_items), again=True)
        searched = len(self.table.popularity_shares)
        return tuple(
            (*layouts, device.release(number)) if number > searched > 0 else layouts
            for number, layouts in enumerate(super().may_ask(public), start=1)
        )

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> SummedDevice:
        """Read how far a search has come, a table's items and their groups, or all that was learned."""
        return SetDevice.decode(received, self.table, n_items)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> SummedServer:
        """Return the server before the first round."""
        public_catalogue = catalogue if self.table.content else None
        check_least_bytes(self.max_bytes_down, public.n_items, public_catalogue)
        deviation, users = self.adding_up.among(public.n_users).deviation, public.n_users
        rounds = zip(self.largest(public), self.multipliers, strict=True)
        noises = tuple(max(deviation(*release, users), LEAST_DEVIATION) for release in rounds)
        device = SetDevice.begun(self.table, public.n_items)
        return SetServer(device, public_catalogue, seed, noises, most_bytes=self.max_bytes_down)


@dataclass(frozen=True, kw_only=True)
class PairsInBlanketProtocol(GramProtocol):
    """Devices send a few pairs of their items as anonymous messages among fakes, and rank by the counts."""

    kind: Literal["pairs-in-blanket"] = "pairs-in-blanket"  # type: ignore[assignment]
    aggregation: AnyAggregation = option("Who counts the messages.", ShuffledAggregation())

    def model_bytes(self, public: Public) -> float:
        """Return that of a table, and of what the losses of the counts are composed with."""
        return super().model_bytes(public) + _COMPOSED_BYTES


_SEARCHING, _PAIRS, _LEARNED, _GROUPS, _AGAIN = b"\0", b"\1", b"\2", b"\3", b"\4"


@dataclass(frozen=True, eq=False)
class SetDevice(SummedDevice):
    """What devices do: contribute their sets, and rank by them."""

    table: PairTableOptions
    n_items: int
    search: PopularitySearch
    pairs: PairSum
    """Of the items of the table, as far as they are known."""
    groups: GroupSum | None = None
    """None before they are known."""
    again: bool = False
    """Whether all rounds that are left ask for popularity, as no table, or no groups, are worth having."""
    model: ListModel | None = None
    """None before the end."""

    @classmethod
    def begun(cls, table: PairTableOptions, n_items: int, plan: PopularityPlan | None = None) -> Self:
        """Return what devices hold at first: the first items, as none is known to be popular.

        ``plan``: of the search; by default that of the table.
        """
        search = PopularitySearch.begun(plan or table.search.plan(n_items))
        return cls(table, n_items, search, PairSum(table.first_items(n_items), table.fewest))

    def encode(self) -> bytes:
        """Return how far the search has come, the table's items, their groups, or what devices rank by."""
        if self.model is not None:
            return _LEARNED + encode_found(self.search, self.model)
        if self.again:
            return _AGAIN + encode_search(self.search)
        if self.groups is not None:
            return _GROUPS + self.groups.encode(self.n_items)
        if np.array_equal(self.pairs.items, self.table.first_items(self.n_items)):
            return _SEARCHING + encode_search(self.search)
        return _PAIRS + encode_items(self.pairs.items, self.n_items)

    @classmethod
    def decode(cls, received: bytes, table: PairTableOptions, n_items: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        kind, payload, start = received[:1], received[1:], cls.begun(table, n_items)
        if kind in (_SEARCHING, _AGAIN):
            return replace(start, search=decode_search(payload, start.search.plan), again=kind == _AGAIN)
        if kind == _PAIRS:
            reader = Reader(payload)
            items = reader.item_set(n_items, start.pairs.items.size)
            reader.end()
            return replace(start, pairs=PairSum(items, table.fewest))
        if kind == _GROUPS and table.groups:
            return replace(start, groups=GroupSum.decode(payload, start.group_sizes, n_items, table.fewest))
        if kind == _LEARNED:
            search, model = decode_found(payload, start.search.plan)
            return replace(start, search=search, model=model)
        raise ValueError(f"{len(received)} bytes that are neither a search, items, nor a list model")

    @property
    def group_sizes(self) -> tuple[int, int, int]:
        """Items that are found with groups, those of the table among them, and groups."""
        size = self.pairs.items.size
        return min(max(self.table.grouped_items or size, size), self.n_items), size, self.table.groups or 0

    def asked(self, round_index: int) -> SearchSum | PairSum | GroupSum:
        """Return the sum of a round; rounds after the last stage of a search may ask that one again."""
        kind = 0 if self.again else self.table.kind_of(round_index)
        if kind:
            return self.pairs if kind == 1 else self.known_groups
        stage = self.search.plan.stage_of(round_index)
        return SearchSum(self.search, stage, self.table.fewest, self.table.normalised)

    @property
    def known_groups(self) -> GroupSum:
        """The groups; before they are known, of the first items, all of them in one."""
        if self.groups is not None:
            return self.groups
        size, in_table, count = self.group_sizes
        groups = np.where(np.arange(size) < in_table, 0, NO_GROUP).astype(np.uint8)
        return GroupSum(np.arange(size, dtype=np.int32), groups, count, self.table.fewest)

    def release(self, round_index: int) -> Release:
        """Return popularity, a number for each pair, or for each item and group."""
        return self.asked(round_index).release(self, round_index)

    def taking_part(self, profiles: Profiles, release: Release) -> Profiles:
        """Return the sets, where a table or groups are asked for as places among their items."""
        return self.asked(release.round_index).taking_part(profiles)

    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Ints, AnyInts, Floats]:
        """Return what users add to the sum of a round."""
        return self.asked(release.round_index).cells(profiles)

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return how many numbers users with so many items add."""
        return self.asked(release.round_index).work(counts)

    def about(self, items: AnyInts, layout: Release) -> Bools:
        """Return the numbers that say something about some items."""
        return self.asked(layout.round_index).about(items)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items."""
        if self.model is None:
            raise ValueError("devices that have not received what was learned")
        return self.model.scores(profiles.to_sets())


@dataclass(eq=False)
class SetServer(LimitedServer):
    """Learns popularity, then how items go together, then which groups others are found with."""

    device: SetDevice
    catalogue: Catalogue | None
    seed: int
    """Of the starts of groups."""
    noises: tuple[float, ...] = ()
    """Of the sums of rounds, as public numbers let expect."""
    sums: dict[int, tuple[Floats, float]] = field(default_factory=dict)
    """Of each stage of the search that has succeeded: its numbers, and the deviation of their noise."""
    tasteless: tuple[Floats, float] | None = field(init=False, default=None)
    """A sum of pairs that shows no tastes, and the deviation of its noise: it tells of popularity alone."""

    def __post_init__(self) -> None:
        self.popularity, self.noise = np.ones(self.device.n_items), math.inf
        self.table, self.groups = PairTable.nothing(), ItemGroups.nothing()

    @property
    def held(self) -> SetDevice:
        """What is known of the items of the table."""
        return self.device

    @property
    def learned(self) -> SetDevice:
        """What devices rank by."""
        return replace(self.device, model=self.whole.within(self.most_bytes))

    @property
    def whole(self) -> ListModel:
        """What devices rank by."""
        exact, groups = self.noise <= LEAST_DEVIATION, self.groups
        return ListModel.of(self.popularity, self.catalogue, self.table, groups=groups, exact=exact)

    def learn(
        self, layout: Release, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Estimate popularity, how items go together, or with which groups others are found."""
        sums, noise = released[:, 0], max(deviation, LEAST_DEVIATION)
        kind = 0 if self.device.again else self.device.table.kind_of(round_index)
        (self._learn_popularity, self._learn_pairs, self._learn_groups)[kind](round_index, sums, noise, users)

    def _learn_popularity(self, round_index: int, sums: Floats, noise: float, users: int) -> None:
        stage = self.device.search.plan.stage_of(round_index)
        if stage in self.sums:
            sums, noise = joined_sums(*self.sums[stage], sums, noise)
        self.sums[stage] = sums, noise
        search, pairs, again = self.device.search.narrowed(stage, sums), self.device.pairs, self.device.again
        self.popularity, self.noise = search.popularity(self.sums), noise
        if self.tasteless is not None:
            popularity = self.popularity[pairs.items]
            self.popularity[pairs.items] = joined_popularity(popularity, noise, *self.tasteless)
        if round_index == len(self.device.table.popularity_shares) and self.device.table.items:
            pairs = replace(pairs, items=popular_items(self.popularity, pairs.items.size).astype(np.int32))
            this_noise, next_noise = self.noises[round_index - 1 : round_index + 1]
            again = not worth_a_table(self.popularity, pairs.items, noise * next_noise / this_noise, users)
        self.device = replace(self.device, search=search, pairs=pairs, again=again)

    def _learn_pairs(self, round_index: int, sums: Floats, noise: float, users: int) -> None:
        pairs, options = self.device.pairs, self.device.table
        # What the noise would be with the whole budget, over the users.
        tau = min(noise * math.sqrt(options.shares[round_index - 1]) / users, LARGEST_TAU)
        settings = GramSettings.of(tau, self.device.n_items, content=self.catalogue is not None)
        if found := bool(options.popularity_shares):
            popularity = joined_popularity(self.popularity[pairs.items], self.noise, sums, noise)
        else:
            popularity = popularity_of_pairs(sums, noise)
        self.popularity[pairs.items] = popularity
        coherent = settings.coherent_share if options.coherent_share is None else options.coherent_share
        table = denoised_table(sums, noise, popularity, coherent, of_another=found)
        departed = departure_of_sum(sums, noise, users, pairs.most)
        most = MOST_BESIDE_GROUPS if options.groups else LARGEST
        share = min(settings.share_by(departed.lower_bound), most)
        if options.groups and found and not share:
            # Groups of a table that shows nothing would count for nothing.
            self.tasteless, self.device = (sums, noise), replace(self.device, again=True)
        elif options.groups:
            self.device = replace(self.device, groups=self._groups_by(table.pairs))
        self.table = PairTable.of(pairs.items, table, ridge_of(sums, noise, users, departed), share)

    def _learn_groups(self, round_index: int, sums: Floats, noise: float, users: int) -> None:
        groups = self.device.known_groups
        noisy, popularity = sums.reshape(groups.items.size, groups.count), self.popularity[groups.items]
        self.groups = ItemGroups.of(groups.items, noisy, noise, popularity, self.table.share)

    def _groups_by(self, pairs: Floats) -> GroupSum:
        """Return the groups of the table's items, among all the popular ones."""
        in_table, (size, _, count) = self.device.pairs.items, self.device.group_sizes
        others = np.setdiff1d(np.arange(self.device.n_items), in_table)
        more = others[popular_items(self.popularity[others], size - in_table.size)]
        items = np.sort(np.concatenate([in_table, more])).astype(np.int32)
        groups = np.full(size, NO_GROUP, dtype=np.uint8)
        groups[np.isin(items, in_table)] = groups_of(pairs, count, self.seed)
        return GroupSum(items, groups, count, self.device.table.fewest)
