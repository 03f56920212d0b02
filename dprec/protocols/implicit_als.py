"""Private alternating least squares on sets: the factors of iALS, from sums over users with noise.

The published method (Chien et al. [chien2021], Algorithm 1, for sets with the weights of Krichene et al.
[krichene2023], Algorithm 2), with the settings that its authors publish for MovieLens 20M at epsilon 1:

1. Items are counted, each device choosing so many of its items; the most popular of them take part.
2. In every round a device solves for its user's factors u, from the items v of its set among these:
   (sum of v v^T + alpha0 V^T V + lambda I) u = sum of v, and clips them to a norm.
3. The server sums w u u^T and w u for every item, and u u^T of all users, where the weights of a user's items
   are inversely proportional to a power of their noisy counts, and their squares have the same sum for
   everybody. Gram matrices are projected to positive semidefinite ones; every item solves as the users do.

An item that takes no part has no factors, so its score is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.arrays import Bools, Float32s, Floats, Ints, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles, packed_outer, products_of_rows, solve_user_factors, unpack
from dprec.components import Options, option
from dprec.private_als.statistics import (
    TARGET_BITS,
    UNIT_WEIGHT,
    StatisticsContributions,
    StatisticsLayout,
    chosen_ratings,
    clipped,
)
from dprec.private_als.steps import semidefinite
from dprec.protocols.base import Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.private_als import AlsProtocol
from dprec.protocols.sums import SummedDevice, SummedServer
from dprec.randomness import generator
from dprec.ratings import RatingScale
from dprec.sums import UNIT, CentralAggregation, Vectors
from dprec.wire import Reader

_COUNTED = 1 << TARGET_BITS
"""The target of every pair: 1."""

_ITEMS_AT_ONCE = 8
"""Items whose factors are solved for together: as many as a processor keeps at hand."""

_PART_OF_RIDGE = 1e-2
"""What eigenvalues of an item's matrix may be off by: next to nothing beside the ridge that is added."""


@dataclass(frozen=True, kw_only=True)
class ImplicitAlsOptions(Options):
    """How factors are learned from sets; the defaults are those published for MovieLens 20M at epsilon 1."""

    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    rank: int = option("Number of factors.", 64, ge=1, le=1024)
    rounds: int = option("Rounds in which factors are learned.", 3, ge=1, le=1000)
    count_share: float = option(
        "Share of the squared distance of means that the counts spend: 0.036 is a noise of 200 at epsilon 1 "
        "and delta 8e-6.",
        0.036,
        ge=1e-3,
        le=0.999,
    )
    item_share: float = option("Share of the items that have factors, the most popular.", 0.1, gt=0, le=1)
    pairs: int = option(
        "Pairs of a user that are counted, and the sum of its squared weights: k in the paper.", 100, ge=1
    )
    exponent: float = option(
        "Power of an item's noisy count to which its weight is inversely proportional.", 1 / 3, ge=0, le=2
    )
    clip: float = option("Largest norm of a user's factors.", 0.05, gt=0)
    unobserved: float = option(
        "alpha0: weight of cells about which nothing is known, beside 1 of a pair.", 0.4, gt=0
    )
    ridge: float = option("Ridge of the factors.", 30.0, gt=0)
    deviation: float = option("Standard deviation of the first factors.", 0.1, gt=0)
    gramian_share: float = option(
        "Share of a contribution's squared norm that belongs to the Gram matrix of all users; by default, it "
        "has the noise of an item's.",
        1 / 201,
        gt=0,
        lt=1,
    )

    def normal(self, gramian: Floats) -> Floats:
        """Return what a user or an item adds to its own normal equations, shape (rank, rank)."""
        return self.unobserved * gramian + self.ridge * np.eye(self.rank)


@dataclass(frozen=True, eq=False)
class ImplicitLayout(StatisticsLayout):
    """The statistics of the items, and in a last row the Gram matrix of all users."""

    gramian_share: float = 0.0

    @property
    def n_rows(self) -> int:
        """Number of items, and one."""
        return self.n_items + 1

    @property
    def item_share(self) -> float:
        """What the Gram matrix of all users leaves; see `StatisticsLayout.item_share`."""
        return 1 - self.gramian_share

    @cached_property
    def scales(self) -> Floats:
        """As for the items alone; what a symmetric matrix has twice counts twice in its norm."""
        upper, lower = np.triu_indices(self.rank)
        scales = np.full(self.width, self.norm * self.clip / np.sqrt(1 - self.matrix_share))
        twice = np.where(upper == lower, 1.0, np.sqrt(2))
        scales[: self.matrix_width] = self.norm**2 / np.sqrt(self.matrix_share) / twice
        return scales

    def rows_of_sum(self, contributions: StatisticsContributions) -> tuple[Ints, Ints]:
        """Return those of items that anybody has, and the last; see `StatisticsLayout.rows_of_sum`."""
        items, numbers = super().rows_of_sum(contributions)
        everybody = np.zeros(self.width, dtype=np.int64)
        for users in self.blocks(contributions.n_users):
            everybody += _of_everybody(contributions.of_users(users), self).sum(axis=0)
        return np.append(items, self.n_items), np.vstack([numbers, everybody])


@dataclass(frozen=True, eq=False)
class ImplicitContributions(StatisticsContributions):
    """What users contribute to the statistics of the items, and to the Gram matrix of all."""

    def vectors(self, layout: StatisticsLayout) -> Vectors:
        """Return the numbers of every item, and of the last row; see `Contributions.vectors`."""
        items = super().vectors(layout)
        if not isinstance(layout, ImplicitLayout):
            return items
        # A user without an item sends nothing at all.
        rated = np.diff(items.indptr) > 0
        ends, numbers = items.indptr[1:][rated], _of_everybody(self, layout)[rated]
        return Vectors(
            items.indptr + offsets(rated.astype(np.int64)),
            np.insert(items.rows, ends, layout.n_items).astype(np.int32),
            np.insert(items.numbers, ends, numbers, axis=0),
        )


def _of_everybody(contributions: StatisticsContributions, layout: ImplicitLayout) -> Ints:
    """Return what every user adds to the Gram matrix of all, in units of `UNIT`, shape (users, width)."""
    products = packed_outer(contributions.factors.astype(np.float64))
    part = np.sqrt(layout.gramian_share / layout.matrix_share) / layout.scales[: layout.matrix_width]
    numbers = np.zeros((contributions.n_users, layout.width), dtype=np.int64)
    numbers[:, : layout.matrix_width] = np.trunc(products * (part / UNIT))
    return numbers


_NUMBER, _WEIGHT = np.dtype("<f4"), np.dtype("<u2")


@dataclass(frozen=True, eq=False)
class ImplicitModel:
    """What devices are sent."""

    weights: Ints
    """From 1 to `UNIT_WEIGHT` for items with factors, 0 for the others; shape (items,)."""
    factors: Floats
    """In the order of the items; shape (items with factors, rank)."""

    @cached_property
    def popular(self) -> Bools:
        """Which items have factors, shape (items,)."""
        return self.weights > 0

    @cached_property
    def places(self) -> Ints:
        """Where these items are, shape (items with factors,)."""
        return np.flatnonzero(self.popular)

    def encode(self) -> bytes:
        """Return the bytes that are sent to the devices; before items are counted, none."""
        if not len(self.factors):
            return b""
        return self.weights.astype(_WEIGHT).tobytes() + self.factors.astype(_NUMBER).tobytes()

    @classmethod
    def decode(cls, data: bytes, n_items: int, rank: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        if not data:
            return cls(np.zeros(n_items, dtype=np.int64), np.zeros((0, rank)))
        reader = Reader(data)
        weights = reader.numbers(_WEIGHT, n_items).astype(np.int64)
        popular = int((weights > 0).sum())
        factors = reader.floats(_NUMBER, popular * rank).reshape(popular, rank)
        reader.end()
        if (weights > UNIT_WEIGHT).any() or not np.isfinite(factors).all():
            raise ValueError("weights of items out of range, or factors that are not finite")
        return cls(weights, factors)


@dataclass(frozen=True, kw_only=True)
class ImplicitAlsProtocol(AlsProtocol):
    """Users contribute their sets to sums with Gaussian noise, from which the server solves for the items."""

    kind: Literal["dp-ials"] = "dp-ials"
    predicted: ClassVar[Predicted] = "lists"
    learns: ClassVar[str] = "private-implicit-als"
    factorization: ImplicitAlsOptions = option("What is learned, and from what.", ImplicitAlsOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", CentralAggregation())

    @property
    def shares(self) -> tuple[float, ...]:
        """What the counts and each round of factors spend."""
        share, rounds = self.factorization.count_share, self.factorization.rounds
        return (share, *((1 - share) / rounds,) * rounds)

    def model_bytes(self, public: Public) -> float:
        """Return that of the numbers of a release: added up, with noise, and what is learned from."""
        return 20.0 * self.most_numbers(public)

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> ImplicitDevice:
        """Return a model in which as many items have factors as will."""
        taking_part = max(1, int(self.factorization.item_share * public.n_items))
        weights = np.zeros(public.n_items, dtype=np.int64)
        weights[:taking_part] = 1
        model = ImplicitModel(weights, np.zeros((taking_part, self.factorization.rank)))
        return ImplicitDevice(self.factorization, model)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ImplicitDevice:
        """Read a model."""
        model = ImplicitModel.decode(received, n_items, self.factorization.rank)
        return ImplicitDevice(self.factorization, model)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> ImplicitServer:
        """Return the server before the first round, which reads nothing of the catalogue."""
        return ImplicitServer(self.factorization, public.n_items, seed)


@dataclass(frozen=True, eq=False)
class ImplicitDevice(SummedDevice):
    """What devices do with a model of the items."""

    options: ImplicitAlsOptions
    model: ImplicitModel

    def encode(self) -> bytes:
        """Return the model."""
        return self.model.encode()

    def release(self, round_index: int) -> StatisticsLayout:
        """Return counts, then the statistics of factors."""
        options, weights = self.options, self.model.weights
        if round_index == 1:
            weights = np.full(weights.size, UNIT_WEIGHT)
            return StatisticsLayout(weights, 0, 1.0, 1.0, 0.0, options.pairs, sends_targets=False)
        return ImplicitLayout(
            weights[weights > 0],
            options.rank,
            1.0,
            1.0,
            0.5,
            sends_targets=False,
            gramian_share=options.gramian_share,
            round_index=round_index,
        )

    def contributions(
        self, profiles: Profiles, layout: StatisticsLayout, random: Uint64s
    ) -> ImplicitContributions:
        """Return chosen items, or all that take part and the user's factors; see `SummedDevice`."""
        if layout.round_index == 1:
            candidates = np.ones(profiles.items.size, dtype=np.bool_)
            chances, limit = np.zeros(profiles.items.size, dtype=np.int64), self.options.pairs
            chosen = chosen_ratings(profiles, candidates, chances, limit, random)
            user_factors = np.ones((profiles.n_users, 1), dtype=np.float32)
            items = profiles.items[chosen]
            counts = np.bincount(profiles.users[chosen], minlength=profiles.n_users)
        else:
            sets = self._among_popular(profiles)
            solved = solve_user_factors(sets, self.model.factors, self._penalty)
            user_factors = clipped(solved / self.options.clip)
            items, counts = sets.items, np.diff(sets.indptr)
        return ImplicitContributions(offsets(counts), items, np.full(items.size, _COUNTED), user_factors)

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items."""
        user_factors = solve_user_factors(self._among_popular(profiles), self.model.factors, self._penalty)
        scores = np.zeros((profiles.n_users, self.model.weights.size))
        scores[:, self.model.places] = products_of_rows(user_factors, self._by_factor.T)
        return scores

    @cached_property
    def _by_factor(self) -> Floats:
        """The model's factors, shape (rank, items with factors): products with them read this way."""
        return np.ascontiguousarray(self.model.factors.T)

    @cached_property
    def _penalty(self) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.options.normal(self.model.factors.T @ self.model.factors)

    def _among_popular(self, profiles: Profiles) -> Profiles:
        """Return the sets among items with factors, with a rating of 1 for every pair."""
        chosen = self.model.popular[profiles.items]
        counts = np.bincount(profiles.users[chosen], minlength=profiles.n_users)
        places = np.searchsorted(self.model.places, profiles.items[chosen]).astype(np.int32)
        return Profiles(offsets(counts), places, np.ones(places.size), self.model.places.size)


@dataclass(eq=False)
class ImplicitServer(SummedServer):
    """What the server knows from releases alone."""

    options: ImplicitAlsOptions
    n_items: int
    seed: int
    """Of what the server draws."""
    model: ImplicitModel = field(init=False)

    def __post_init__(self) -> None:
        self.model = ImplicitModel.decode(b"", self.n_items, self.options.rank)

    @property
    def held(self) -> ImplicitDevice:
        """The items that take part, with their factors."""
        decoded = ImplicitModel.decode(self.model.encode(), self.n_items, self.options.rank)
        return ImplicitDevice(self.options, decoded)

    def lesson(self, released: Floats) -> Float32s:
        """Return the numbers in single precision, as devices receive what is made of them."""
        return released.astype(np.float32)

    def learn(
        self, layout: StatisticsLayout, round_index: int, released: Float32s, deviation: float, users: int
    ) -> None:
        """Choose the items that take part, or solve for their factors."""
        if round_index == 1:
            self._begin(released[:, 0] * np.sqrt(self.options.pairs))
        elif isinstance(layout, ImplicitLayout):
            self.model = replace(self.model, factors=self._solved(released, layout))

    def _solved(self, released: Float32s, layout: ImplicitLayout) -> Floats:
        """Return the items' factors from statistics of user factors as shares of the clip.

        Raises LinAlgError for numbers out of the range of single precision.
        """
        options, width = self.options, layout.matrix_width
        weight = np.sqrt(options.pairs / layout.item_share)
        unit = max(weight * options.clip**2, np.finfo(np.float32).tiny)
        of_gramian = np.sqrt(layout.matrix_share / layout.gramian_share) * options.clip**2
        (gramian,) = semidefinite(unpack(released[-1:, :width].astype(np.float64))) * of_gramian
        with np.errstate(over="ignore"):
            normal = (options.normal(gramian) / unit).astype(np.float32)
            error = _PART_OF_RIDGE * np.float64(options.ridge) / unit
        factors = np.empty((len(released) - 1, layout.rank))
        for start in range(0, len(factors), _ITEMS_AT_ONCE):
            items = slice(start, min(start + _ITEMS_AT_ONCE, len(factors)))
            matrices = semidefinite(unpack(released[items, :width]), error) + normal
            factors[items] = np.linalg.solve(matrices, released[items, width:, None])[:, :, 0]
        if not np.isfinite(factors).all():
            raise np.linalg.LinAlgError("factors that are not finite")
        return factors / options.clip

    def _begin(self, counts: Floats) -> None:
        size = max(1, int(self.options.item_share * self.n_items))
        popular = np.argsort(-counts, kind="stable")[:size]
        shares = np.maximum(counts[popular], 1.0) ** -self.options.exponent
        weights = np.zeros(self.n_items, dtype=np.int64)
        weights[popular] = np.clip(np.rint(shares / shares.max() * UNIT_WEIGHT), 1, UNIT_WEIGHT)
        start = generator(self.seed, "first factors of items").standard_normal((size, self.options.rank))
        self.model = ImplicitModel(weights, start * self.options.deviation)
