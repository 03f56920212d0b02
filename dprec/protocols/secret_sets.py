"""Ratings predicted on the device, from a table that was learned from sums of whole, hidden profiles.

Two or three releases. The first sums counts and residuals; devices are then sent item biases and features
of the items, and the second sums residuals from these biases, by item and by feature, and the profiles and
tastes of those who rated an item. Where noise is low, the third sums profiles and tastes once more, in the
features that were learned, as a step of subspace iteration does. What is learned is the table from which
devices predict (`dprec.personalization`).

Let e be the ratings of a user less what is known of the items, centred to mean 0, and f_i what is public of
item i, or was learned of it. The parts of a contribution, each of norm 1 at most, are

    counts      1 / sqrt(n) at each of the n rated items,
    residuals   e over its norm,
    features    sum_i e_i f_i, divided by its norm,
    profiles    sum_{j != i} f_j at each rated item i, divided by the norm of all of them together,
    tastes      e_i sum_{j != i} e_j f_j, likewise.

Each is weighted by the root of its share of the release. Vectors are normalised, not clipped, since clipped
ones would say less: those of users with many ratings are small in each number anyway.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import scipy
from pydantic import BeforeValidator, Field

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import AnyInts, Bools, Floats, Ints, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, as_tuple, option
from dprec.errors import SettingError, within
from dprec.ordinal import Histogram, cut_points, expected_rating, level_shares
from dprec.personalization import BroadcastDevices, OrdinalProcess
from dprec.protocols.base import Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sharing import COMPARED, MAX_BYTES_DOWN
from dprec.protocols.sums import LEAST_SHARE, LimitedServer, SummedDevice, SumsProtocol
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale
from dprec.secret_sets.biases import PRIOR_SPREAD, BiasPosterior, FeatureSum, ResidualSum, learned_biases
from dprec.secret_sets.embedding import embeddings_of
from dprec.secret_sets.popularity import Counts, standardised
from dprec.sums import Release, SecureAggregation
from dprec.wire import ItemTable

Part = Literal["counts", "residuals", "features", "profiles", "tastes"]
Parts = tuple[tuple[Part, float], ...]

Split = tuple[float, float, float, float, float, float, float, float]
"""Shares of counts and first residuals; of second residuals, residuals by feature, profiles and tastes; of
profiles and tastes in learned features.
"""

_FIRST: Split = (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0)
_LAST: Split = (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3)

_SPLITS: dict[bool, tuple[tuple[float, Split], ...]] = {
    True: ((2e-3, _FIRST), (3e-4, (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0)), (0.0, _LAST)),
    False: ((2e-4, _FIRST), (0.0, _LAST)),
}
"""The least tau at which each is used, where anything is public about the items, and where nothing is: who
rated what is then seen in popularity alone, until noise is low.
"""

_SAMPLED = (0.2, 0.15, 0.65, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of sums of which devices say a few numbers: none of a number for each feature of an item."""


def split_at(tau: float, *, sampled: bool = False, content: bool = True) -> Split:
    """Return what each sum spends; benchmarks/choosing/settings.py chose the splits on validation ratings.

    ``tau``: standard deviation of a number's noise in a sum of unit contributions that has the whole budget,
    over the number of users.
    """
    if sampled:
        return _SAMPLED
    return next(split for least, split in _SPLITS[content] if tau >= least)


_ROUNDING = 1e-9
_Shares = Annotated[tuple[Annotated[float, Field(ge=0)], ...], BeforeValidator(as_tuple)]
_Variance = Annotated[float, Field(gt=0, le=100)]
_Variances = Annotated[tuple[_Variance, _Variance, _Variance], BeforeValidator(as_tuple)]


@dataclass(frozen=True, kw_only=True)
class SecretSetOptions(Options):
    """What is summed, and what is assumed of ratings."""

    split: _Shares | None = option(
        "Shares of the squared distance of means: counts, first residuals; second residuals, residuals by "
        "feature, profiles and tastes of raters; profiles and tastes in learned features. By default a "
        "public rule of users and budget.",
        None,
    )
    features: int = option("Most features of an item that devices are sent to contribute with.", 27, ge=1)
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest; by default equal. Not those of the protected ratings.",
        None,
    )
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)
    process: OrdinalProcess = option("What a device assumes of its user.", OrdinalProcess())
    bias_variances: _Variances = option(
        "Prior variances of the coefficients of an item bias on popularity, its square, and each column of "
        "what is public.",
        (0.1, 0.04, 0.04),
    )

    @property
    def parts(self) -> tuple[Parts, ...]:
        """The parts of each round, with their shares of the squared distance of means."""
        counts, first, second, by_feature, profiles, tastes, *further = self.split or split_at(0.0)
        rounds: tuple[Parts, ...] = (
            (("counts", counts), ("residuals", first)),
            (("residuals", second), ("features", by_feature), ("profiles", profiles), ("tastes", tastes)),
            (("profiles", further[0]), ("tastes", further[1])),
        )
        spending = (tuple(part for part in parts if part[1] > 0) for parts in rounds)
        return tuple(parts for parts in spending if parts)

    def cuts(self, scale: RatingScale) -> Floats:
        """Return where latent ratings change level; SettingError for another number of levels."""
        return cut_points(level_shares(self.histogram, scale.levels), self.variance)

    def suited(self, deviation: float, *, sampled: bool = False) -> Self:
        """Return the options with the split that follows from public numbers.

        ``deviation``: tau, the noise of a number of one sum that has the whole budget, over the users;
        ``sampled``: whether devices say a few numbers of a contribution.
        """
        return self if self.split is not None else replace(self, split=split_at(deviation, sampled=sampled))

    def check(self, scale: RatingScale) -> None:
        """Raise SettingError for a histogram of another scale, and a split that leaves out what is needed."""
        self.cuts(scale)
        if self.split is None:
            return
        complete = len(self.split) == len(split_at(0.0)) and abs(sum(self.split) - 1) < _ROUNDING
        learned_before = complete and (sum(self.split[4:6]) > 0 or sum(self.split[6:]) == 0)
        large_enough = all(share == 0 or share >= LEAST_SHARE for share in self.split)
        if not (learned_before and large_enough and min(self.split[:2]) > 0 and sum(self.split[2:4]) > 0):
            accepted = (
                f"eight shares, 0 or at least {LEAST_SHARE:g}, that add up to 1, those of counts and "
                "residuals above 0, and the last two 0 if the two before are"
            )
            raise SettingError("split", str(list(self.split)), accepted)


_NOTHING = 1e-6
"""A norm, relative to what it is of, below which it is rounding alone, and nothing is contributed."""

_BELOW_ONE = 1 - 2.0**-40
"""So that rounding makes no contribution longer than 1."""


@dataclass(frozen=True, kw_only=True)
class SecretSetProtocol(SumsProtocol):
    """Devices contribute to sums of which items are rated and how, and predict from the table they teach."""

    kind: Literal["sums-on-device"] = "sums-on-device"
    learns: ClassVar[str] = "item-biases-and-embeddings"
    privacy: PrivacyBudget | None = option("What is promised for all rounds together, per user.", None)
    adjacency: Adjacency = option(COMPARED.format("twice the"), "add-or-remove-one")
    sums: SecretSetOptions = option("What is summed, and what is assumed of ratings.", SecretSetOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())
    max_bytes_down: int | None = option(MAX_BYTES_DOWN, None, reader="server", ge=1)

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends."""
        return tuple(sum(share for _, share in parts) for parts in self.sums.parts)

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol with the sums that a public rule of users and budget picks."""
        if self.sums.split is not None:
            return self
        sampled = self.aggregation.affordable(self.whole_multiplier) is not None
        largest = max(self.largest(public), key=lambda layout: layout.n_rows)
        split = split_at(self.tau(largest, public.n_users), sampled=sampled, content=public.content)
        return replace(self, sums=replace(self.sums, split=split))

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse shares that leave nothing to learn from, and a histogram of another scale."""
        with within("sums"):
            self.sums.check(train.scale)

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> ProfileDevice:
        """Return a table of which nothing is known, with as many features as there may be."""
        # Sizes do not depend on where latent ratings change level.
        cuts = np.zeros(0) if public.scale.implicit else self.sums.cuts(public.scale)
        return ProfileDevice(self.sums, table_before(cuts, public.n_items, self.sums.features), public.scale)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ProfileDevice:
        """Read a table; nothing before any is learned."""
        cuts = self.sums.cuts(scale)
        if not received:
            return ProfileDevice(self.sums, table_before(cuts, n_items, 0), scale)
        table = ItemTable.decode(received, n_levels=scale.levels, n_items=n_items)
        return ProfileDevice(self.sums, table, scale)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> TableServer:
        """Return the server before the first round."""
        cuts = self.sums.cuts(public.scale)
        settings = self.sums, public.n_items, public.scale, cuts, catalogue, seed
        server = TableServer(*settings, most_bytes=self.max_bytes_down)
        # What is public alone must fit, before anybody is asked.
        server.learned.encode()
        return server


def table_before(cuts: Floats, n_items: int, features: int) -> ItemTable:
    """Return what is known before any release: biases of 0, and features of 0."""
    nothing = np.zeros(n_items)
    return replace(ItemTable.of_biases(cuts, nothing, nothing), embeddings=np.zeros((n_items, features)))


@dataclass(frozen=True, eq=False)
class ProfileDevice(SummedDevice):
    """What devices do with a table: item biases in units of ratings, and features as embeddings."""

    options: SecretSetOptions
    table: ItemTable
    scale: RatingScale
    has_table: bool = True
    """False before the first release."""

    def encode(self) -> bytes:
        """Return the table; nothing before any is learned."""
        return self.table.encode() if self.has_table else b""

    @property
    def features(self) -> Floats:
        """Shape (items, features)."""
        return self.table.embeddings[:, : self.options.features]

    def parts(self, round_index: int) -> list[tuple[Part, float, int]]:
        """Return the parts of a round, the share of a contribution's squared norm of each, and its size."""
        n_items, width = int(self.table.means.size), int(self.features.shape[1])
        products = n_items * width
        sizes: dict[Part, int] = {"features": width, "profiles": products, "tastes": products}
        parts = self.options.parts[round_index - 1]
        total = sum(share for _, share in parts)
        return [(part, share / total, sizes.get(part, n_items)) for part, share in parts]

    def release(self, round_index: int) -> Release:
        """Return the numbers of all parts, one after another."""
        rows = sum(size for _, _, size in self.parts(round_index))
        return Release(self, round_index, rows, self.table.means.size, self.scale, negative=True)

    def cells(self, profiles: Profiles, release: Release, words: Uint64s) -> tuple[Ints, AnyInts, Floats]:
        """Return the parts of normalised profiles."""
        residuals = self._residual(profiles)
        owners, rows, numbers, start = [], [], [], 0
        for part, share, size in self.parts(release.round_index):
            users, places, values = residuals.part(part)
            owners.append(users)
            rows.append(places + start)
            numbers.append(values * (np.sqrt(share) * _BELOW_ONE))
            start += size
        of_users = np.concatenate(owners)
        order = np.argsort(of_users, kind="stable")
        indptr = offsets(np.bincount(of_users, minlength=profiles.n_users))
        return indptr, np.concatenate(rows)[order], np.concatenate(numbers)[order]

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return the numbers of all parts: of each rating, and of what is summed over all of them."""
        sizes = {part: size for part, _, size in self.parts(release.round_index)}
        n_features = sizes.pop("features", 0)
        return counts * (sum(sizes.values()) // release.n_items) + n_features

    def _residual(self, profiles: Profiles) -> _Residuals:
        """Return ratings less biases, centred for each user."""
        counts, levels = np.diff(profiles.indptr), self.scale.level_of(profiles.values)
        deviations = self.scale.values[levels.astype(np.int64) - 1] - self.table.means[profiles.items]
        means = _row_sums(deviations, profiles.indptr) / np.maximum(counts, 1)
        residuals: Floats = deviations - np.repeat(means, counts)
        # What rounding leaves of equal numbers is no residual.
        residuals[np.abs(residuals) < _NOTHING * (self.scale.high - self.scale.low)] = 0.0
        return _Residuals(profiles.indptr, profiles.items, residuals, profiles.n_items, self.features)

    def about(self, items: AnyInts, layout: Release) -> Bools:
        """Return which rows count ratings of some items, or add up their residuals."""
        matches = np.isin(np.arange(layout.n_items), items)
        of_items = ("counts", "residuals")
        parts = self.parts(layout.round_index)
        return np.concatenate(
            [matches if part in of_items else np.zeros(size, dtype=np.bool_) for part, _, size in parts]
        )

    @cached_property
    def whole_table(self) -> ItemTable:
        """The table with public data among the embeddings, so that alike items share a taste.

        Devices make it of numbers and categories, so that it need not be sent.
        """
        table = self.table
        if not table.numbers.shape[1]:
            return table
        popularity = np.exp(np.clip(table.numbers[:, 0], -_FARTHEST, _FARTHEST))
        shares = popularity / popularity.sum()
        public = _bent(table.numbers[:, 1:], table.categories, shares)
        public_embeddings = _PUBLIC_DEVIATION * standardised(public, shares, np.sqrt(_LEAST_SHARE))
        return replace(table, embeddings=np.hstack([table.embeddings, public_embeddings]))

    def devices(self, ratings: Ratings) -> BroadcastDevices:
        """Return the devices of users who hold these ratings; of no user anything is known."""
        return BroadcastDevices(self.options.process, self.whole_table, ratings)

    def predicting(self, ratings: Ratings) -> dict[str, Any]:
        """Return what predicts cell by cell, each on its user's device."""
        return {"predict": self.devices(ratings).predict}

    def predictions(self, profiles: Profiles) -> Floats:
        """Predict from each user's own ratings."""
        shape = profiles.n_users, profiles.n_items
        levels = self.scale.level_of(profiles.values)
        ids = np.arange(shape[0]), np.arange(shape[1])
        ratings = Ratings(profiles.indptr, profiles.items, levels, self.scale, *ids)
        users, items = (indices.ravel() for indices in np.indices(shape))
        return self.devices(ratings).predict(users, items).reshape(shape)


def _row_sums(values: Floats, indptr: Ints) -> Floats:
    """Return the sum over each user's ratings, one after another, so that it depends on no other user."""
    ones, ratings = np.ones(len(values)), np.arange(len(values))
    sums: Floats = (
        scipy.sparse.csr_array((ones, ratings, indptr), shape=(indptr.size - 1, len(values))) @ values
    )
    return sums


@dataclass(frozen=True, eq=False)
class _Residuals(Profiles):
    """Profiles with residuals as values, and what contributions are made of besides."""

    features: Floats
    """Shape (items, features)."""

    def part(self, part: Part) -> tuple[Ints, Ints, Floats]:
        """Return the users, cells and numbers of a part of norm 1 at most, by user and then by cell."""
        items, users = self.items.astype(np.int64), self.users
        if part == "counts":
            return users, items, self._normalised(np.ones((items.size, 1)))
        if part == "residuals":
            return users, items, self._normalised(self.values[:, None])
        width = self.features.shape[1]
        features = self.features[items]
        if part == "features":
            sums = _row_sums(features * self.values[:, None], self.indptr)
            norms = np.sqrt((sums**2).sum(axis=1, keepdims=True))
            everybody = np.arange(self.n_users)
            nonzero = np.flatnonzero(norms[:, 0] > _NOTHING)
            sums = sums[nonzero] / norms[nonzero]
            places = np.tile(np.arange(width), nonzero.size)
            return np.repeat(everybody[nonzero], width), places, sums.ravel()
        weights = self.values[:, None] if part == "tastes" else np.ones((items.size, 1))
        features = features * weights
        others = (_row_sums(features, self.indptr)[users] - features) * weights
        places = (items[:, None] * width + np.arange(width)).ravel()
        return np.repeat(users, width), places, self._normalised(others)

    def _normalised(self, values: Floats) -> Floats:
        """Return the numbers of every rating, divided by the norm of those of its user, one after another."""
        norms = np.sqrt(_row_sums((values**2).sum(axis=1), self.indptr))
        inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > _NOTHING)
        scaled: Floats = values * inverse[self.users][:, None]
        return scaled.ravel()


_LEAST_DEVIATION = 1e-3
"""Where there is hardly any noise, what a count is known up to."""

_LATENT_VARIANCE = 0.3
"""Of a rating's latent rating about what is known of its item."""

_SCALES: dict[Part, float] = {"profiles": 1.0, "tastes": 0.5}
"""Deviation of the strongest embedding from each sum."""

_PUBLIC_DEVIATION = 0.15
"""Deviation of what is public of an item among the embeddings."""

_FARTHEST = 5.0
"""What a standardised number is cut at before it is squared."""

_LEAST_SHARE = 0.1
"""A category of fewer or more than all but this share of ratings is scaled as one of this share."""


@dataclass(eq=False)
class TableServer(LimitedServer):
    """What is known of the items after each release."""

    options: SecretSetOptions
    n_items: int
    scale: RatingScale
    cuts: Floats
    catalogue: Catalogue | None
    seed: int
    """Of what the server draws."""
    residuals: list[ResidualSum] = field(init=False, default_factory=list)
    biases: BiasPosterior | None = field(init=False, default=None)
    embeddings: Floats = field(init=False)
    table: ItemTable = field(init=False)
    """What devices contribute with in the next round, as they decode it."""

    def __post_init__(self) -> None:
        self.embeddings = np.zeros((self.n_items, 0))
        self.table = table_before(self.cuts, self.n_items, 0)

    @property
    def held(self) -> ProfileDevice:
        """What the next contributions are computed with."""
        return ProfileDevice(self.options, self.table, self.scale, has_table=self.biases is not None)

    def learn(
        self, layout: Release, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Learn counts, biases from all residuals so far, and embeddings from the profiles of raters."""
        noise, sums, start = max(deviation, _LEAST_DEVIATION), {}, 0
        for part, share, size in self.held.parts(round_index):
            # In units of its own, with noise that grew with that.
            growth = float(1 / np.sqrt(share))
            sums[part] = released[start : start + size, 0] / np.sqrt(share), noise * growth
            start += size
        counts = None if self.biases is None else self.biases.counts
        if round_index == 1:
            public = _public_columns(self.catalogue, np.full(self.n_items, 1 / self.n_items))
            counts = Counts.of(*sums["counts"], public, users)
        if counts is None:
            return  # the first release failed, so that nothing is known to learn with
        features = self.held.features
        if "residuals" in sums or "features" in sums or self.biases is None:
            means = self.table.means / self._slope
            if "residuals" in sums:
                self.residuals.append(ResidualSum(*sums["residuals"], means))
            of_features = None
            if "features" in sums and features.shape[1]:
                of_features = FeatureSum(*sums["features"], features, means)
            self.biases = learned_biases(counts, self.residuals, of_features, *self._design(counts), users)
        if features.shape[1]:
            embeddings = self._embedded(sums, self.biases.counts.means, users)
            self.embeddings = embeddings if embeddings.shape[1] else self.embeddings
        self.table = self._table_for_round(self.biases)

    def _embedded(self, sums: dict[Part, tuple[Floats, float]], counts: Floats, users: int) -> Floats:
        """Return the embeddings from who rated an item, and from who liked it; shape (items, dimensions)."""
        embeddings = [np.zeros((counts.size, 0))]
        for part, scale in _SCALES.items():
            if part in sums:
                numbers, deviation = sums[part]
                by_item = numbers.reshape(counts.size, -1)
                embeddings.append(scale * embeddings_of(by_item, deviation, counts, users))
        return np.hstack(embeddings)

    @property
    def _slope(self) -> float:
        """By how much an expected rating grows with the latent rating."""
        ends = np.array([-0.1, 0.1])
        variances = np.full(2, _LATENT_VARIANCE)
        low, high = expected_rating(ends, variances, self.cuts, self.scale.values).tolist()
        return float((high - low) / (ends[1] - ends[0]))

    def _design(self, counts: Counts) -> tuple[Floats, Floats]:
        """Return the columns on which biases are regressed, and the variances of their coefficients."""
        popularity = counts.popularity
        of_items = np.column_stack([popularity, popularity**2 - 1])
        public = _public_columns(self.catalogue, counts.shares)
        *of_popularity, of_others = self.options.bias_variances
        return np.hstack([of_items, public]), np.append(of_popularity, np.full(public.shape[1], of_others))

    def _table_for_round(self, learned: BiasPosterior) -> ItemTable:
        """Return what devices contribute to the next release with: biases of ratings, and features.

        Features are what is public of an item and its popularity, or embeddings once some are learned. Where
        two releases learn these, random ones fill up the first.
        """
        no_columns, max_features = np.zeros((self.n_items, 0)), self.options.features
        shares = learned.counts.shares
        features = standardised(self._design(learned.counts)[0], shares, np.sqrt(_LEAST_SHARE))
        if self.embeddings.shape[1]:
            features = standardised(self.embeddings, shares)
        elif len(self.options.parts) == 3:
            # As many as there is room for beside others, from which the next release learns the space.
            draws = generator(self.seed, "random features of items")
            random = draws.standard_normal((self.n_items, max(0, max_features - features.shape[1])))
            features = np.hstack([features, random])
        no_categories, no_variances = no_columns.astype(np.bool_), np.zeros(self.n_items)
        means, features = learned.means * self._slope, features[:, :max_features]
        table = ItemTable(self.cuts, means, no_variances, features, no_columns, no_columns, no_categories)
        return ItemTable.decode(table.encode(), n_levels=self.cuts.size + 1, n_items=self.n_items)

    @property
    def learned(self) -> ProfileDevice:
        """The table from which devices predict, with embeddings from raters, and what is public."""
        return ProfileDevice(self.options, self.whole.within(self.most_bytes), self.scale)

    @property
    def whole(self) -> ItemTable:
        """What is known of all items, and what is public."""
        biases, catalogue = self.biases, self.catalogue
        means, deviations = np.zeros(self.n_items), np.full(self.n_items, PRIOR_SPREAD)
        numbers, embeddings = np.zeros((self.n_items, 0)), self.embeddings
        if biases is not None:
            means, deviations = biases.means, np.sqrt(biases.variances)
            numbers = biases.counts.popularity[:, None]
        categories = np.zeros((self.n_items, 0), dtype=np.bool_)
        if catalogue is not None:
            numbers, categories = np.hstack([numbers, catalogue.numbers]), catalogue.categories
        no_factors = np.zeros((self.n_items, 0))
        return ItemTable(self.cuts, means, deviations, embeddings, no_factors, numbers, categories)


def _public_columns(catalogue: Catalogue | None, shares: Floats) -> Floats:
    """Return public numbers, each also squared, and categories, with mean 0 over ratings, a row each.

    Of categories, the ones that divide ratings most evenly come first.
    """
    if catalogue is None:
        return np.zeros((shares.size, 0))
    return _bent(catalogue.numbers, catalogue.categories, shares)


def _bent(numbers: Floats, categories: Bools, shares: Floats) -> Floats:
    bends = (np.clip(numbers, -_FARTHEST, _FARTHEST) ** 2 - 1) * (numbers != 0)
    even = np.abs(shares @ categories - 0.5)
    categories = categories[:, np.argsort(even, kind="stable")]
    bent = standardised(np.hstack([numbers, bends]), shares)
    return np.hstack([bent, categories - shares @ categories])
