"""Private alternating least squares: items are learned from sums over users with noise, round by round.

A device fits its user's level and factors to all its ratings, for itself and for the sums. All that others
see are sums with noise; what a device predicts from its own ratings, it alone sees, so the privacy is joint:
of each user against all the others (Chien et al. [chien2021], section 2). What is summed is in
`dprec.private_als.statistics`, the steps that items take are in `dprec.private_als.steps`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import Bools, Floats, Ints, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Guard, Profiles, check_rank, predicted_rows, solve_user_factors, unpack
from dprec.components import Options, option
from dprec.errors import within
from dprec.private_als.statistics import (
    TARGET_BITS,
    UNIT_WEIGHT,
    StatisticsContributions,
    StatisticsLayout,
    chosen_ratings,
    clipped,
)
from dprec.private_als.steps import orthogonal, root_of_moment, shrunken_biases, shrunken_factors
from dprec.protocols.base import Facts, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.predicting import OwnFactors
from dprec.protocols.sharing import COMPARED, GUARD
from dprec.protocols.sums import SummedDevice, SummedServer, SumsProtocol
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale
from dprec.sums import CentralAggregation
from dprec.wire import Reader, decode_cautions, encode_cautions


@dataclass(frozen=True, kw_only=True)
class FactorizationOptions(Options):
    """How item biases and factors are learned from sums over the users.

    The rounds of Chien et al. [chien2021] with the weights of Krichene et al. [krichene2023]. Item biases
    come first, from all items; factors follow, of items that are popular enough for the noise. Lengths are in
    shares of the rating scale's span, so that the same settings serve every scale.
    """

    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    rank: int = option("Number of factors; 0 for item biases alone.", 3, ge=0)
    bias_rounds: int = option("Rounds in which item biases are learned.", 2, ge=1, le=1000)
    factor_rounds: int = option("Rounds in which factors are learned, if there are any.", 8, ge=1, le=1000)
    bias_share: float = option(
        "Share of the squared distance of means that the rounds of item biases spend, if there are factors.",
        0.4,
        ge=1e-3,
        le=0.999,
    )
    ratings_per_user: int = option("Most ratings of a user in a round, chosen on the device.", 200, ge=1)
    sampling: Literal["uniform", "tail"] = option(
        "How a device chooses: with equal chances, or in proportion to the items' weights.", "uniform"
    )
    weights: Literal["uniform", "adaptive"] = option(
        "What a rating counts: the same for all, or its weight, with squares that sum to 1 for every user.",
        "adaptive",
    )
    fewest: int = option(
        "Ratings of equal weights than one of which no rating counts more, in adaptive weights; this bounds "
        "what one user adds to a number.",
        1,
        ge=1,
        le=1_000_000,
    )
    exponent: float = option(
        "Power of an item's noisy count to which its weight is inversely proportional.", 0.5, ge=0, le=2
    )
    rating_clip: float = option("Largest target of the first round.", 0.5, ge=1e-3, le=1)
    residual_clip: float = option("Largest target of later rounds.", 0.3, ge=1e-3, le=1)
    matrix_share: float = option(
        "Share of a contribution's squared norm that belongs to the Gram matrices.", 0.2, ge=1e-3, le=0.999
    )
    noise: float = option("Standard deviation of a rating about its prediction.", 0.22, ge=1e-6, le=1e3)
    bias_deviation: float = option("Prior standard deviation of an item bias.", 0.1, ge=1e-6, le=1e3)
    factor_deviation: float = option(
        "Prior standard deviation of what the factors add to a prediction.", 0.25, ge=1e-6, le=1e3
    )
    level_ridge: float = option("Ratings that a user's own level is shrunk by.", 3.0, ge=1e-6, le=1e6)
    search_ridge: float = option(
        "Ratings that a user's factors are shrunk by while the items' are learned.", 30.0, ge=1e-6, le=1e6
    )
    predict_ridge: float = option(
        "Squared deviations that a user's factors are shrunk by in predictions.", 0.1, ge=1e-6, le=1e6
    )
    length: float = option(
        "Root mean square of the factors that are aimed at, before they are clipped to a norm of 1.",
        1.2,
        ge=1e-6,
        le=1e3,
    )
    popular_from: float = option(
        "Deviations of the noise that an item's count has to exceed for the item to have factors.", 6.0, ge=0
    )

    @property
    def rounds(self) -> int:
        """Number of rounds, each of them one release."""
        return self.bias_rounds + (self.factor_rounds if self.rank else 0)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the squared distance of means that each round spends; their sum is 1."""
        if not self.rank:
            return (1 / self.bias_rounds,) * self.bias_rounds
        biases = (self.bias_share / self.bias_rounds,) * self.bias_rounds
        return biases + ((1 - self.bias_share) / self.factor_rounds,) * self.factor_rounds


@dataclass(frozen=True, kw_only=True)
class AlsProtocol(SumsProtocol):
    """Base of the protocols of private alternating least squares."""

    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    privacy: PrivacyBudget | None = option(
        "What is promised for all rounds together, per user and by composition.", None
    )
    adjacency: Adjacency = option(
        COMPARED.format("twice the"),
        "add-or-remove-one",
        published="add-or-remove-one",
        source="chien2021, section 2",
    )


@dataclass(frozen=True, kw_only=True)
class PrivateAlsProtocol(AlsProtocol):
    """Users contribute to sums with Gaussian noise, from which the server solves for the items."""

    kind: Literal["dp-als"] = "dp-als"
    factorization: FactorizationOptions = option("What is learned, and from what.", FactorizationOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", CentralAggregation())
    guard: Guard | None = option(GUARD, None, reader="result")

    @property
    def facts(self) -> Facts:
        """Factors, or biases alone."""
        return self.facts_of(learns="private-als" if self.factorization.rank else "private-item-effects")

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends."""
        return self.factorization.shares

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse a rank that ratings cannot have."""
        with within("factorization"):
            if self.factorization.rank:
                check_rank(self.factorization.rank, (train.n_users, train.n_items))

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> ItemDevice:
        """Return a model in which every item has factors."""
        model = ItemModel.begin(public.n_items, self.factorization.rank, 0.0)
        model = replace(model, weights=np.ones(public.n_items, dtype=np.int64))
        return ItemDevice(self.factorization, model, public.scale.high - public.scale.low)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ItemDevice:
        """Read a model."""
        model = ItemModel.decode(received, n_items, self.factorization.rank)
        return ItemDevice(self.factorization, model, scale.high - scale.low)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> ItemServer:
        """Return the server before the first round, which reads nothing of the catalogue."""
        malicious = 0 if self.guard is None else self.guard.most(public.n_users)
        return ItemServer(self.factorization, public.scale, public.n_items, seed, malicious)

    def most_ratings(self, ratings: int) -> int:
        """Return the ratings that are chosen."""
        return min(ratings, self.factorization.ratings_per_user)

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Say how many contribute everything."""
        limit = self.factorization.ratings_per_user
        n_complete = int((train.counts <= limit).sum())
        return (
            f"{n_complete} of {train.n_users} users have at most {limit} ratings and contribute all in a "
            "round.",
        )


_NUMBER, _WEIGHT = np.dtype("<f4"), np.dtype("<u2")
_HEADER = 2
"""Numbers before those of the items: the mean and the gain."""


@dataclass(frozen=True, eq=False)
class ItemModel:
    """What devices are sent."""

    mean: float
    """Of all ratings."""
    biases: Floats
    """What is added to the mean; shape (items,)."""
    weights: Ints
    """From 1 to `UNIT_WEIGHT` for items with factors, 0 for the others; shape (items,)."""
    factors: Floats
    """In the order of the items; shape (items with factors, rank)."""
    gain: float = 1.0
    """What devices multiply their own factors by before they clip them."""
    cautions: Floats | None = None
    """By how much items are lowered in lists, in ratings, at least 0; shape (items,)."""

    @classmethod
    def begin(cls, n_items: int, rank: int, middle: float) -> Self:
        """Return what is public before the first round: the middle of the scale."""
        no_weights = np.zeros(n_items, dtype=np.int64)
        return cls(middle, np.zeros(n_items), no_weights, np.zeros((0, rank)))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.biases.size

    @property
    def popular(self) -> Bools:
        """Which items have factors, shape (items,)."""
        return self.weights > 0

    @property
    def all_factors(self) -> Floats:
        """The factors of all items, 0 for those without, shape (items, rank)."""
        factors = np.zeros((self.n_items, self.factors.shape[1]))
        factors[self.popular] = self.factors
        return factors

    def encode(self) -> bytes:
        """Return the bytes that are sent to the devices."""
        numbers = np.concatenate([[self.mean, self.gain], self.biases]).astype(_NUMBER)
        cautions = b"" if self.cautions is None else encode_cautions(self.cautions)
        return (
            numbers.tobytes()
            + self.weights.astype(_WEIGHT).tobytes()
            + self.factors.astype(_NUMBER).tobytes()
            + cautions
        )

    @classmethod
    def decode(cls, data: bytes, n_items: int, rank: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        reader = Reader(data)
        numbers = reader.floats(_NUMBER, _HEADER + n_items)
        weights = reader.numbers(_WEIGHT, n_items).astype(np.int64)
        popular = int((weights > 0).sum())
        factors = reader.floats(_NUMBER, popular * rank).reshape(popular, rank)
        cautions = decode_cautions(reader.rest(), n_items)
        if not (np.isfinite(numbers).all() and np.isfinite(factors).all()):
            raise ValueError("item factors with numbers that are not finite")
        if numbers[1] < 0 or (weights > UNIT_WEIGHT).any():
            raise ValueError("weights of items out of range")
        return cls(float(numbers[0]), numbers[_HEADER:], weights, factors, float(numbers[1]), cautions)


@dataclass(frozen=True, eq=False)
class ItemDevice(SummedDevice):
    """What devices do with a model of the items."""

    options: FactorizationOptions
    model: ItemModel
    span: float
    """Largest rating less the smallest."""

    def encode(self) -> bytes:
        """Return the model."""
        return self.model.encode()

    def release(self, round_index: int) -> StatisticsLayout:
        """Return what is summed in a round.

        Later rounds of item biases need no counts: these are of the same ratings, or of as many chosen at
        random, so those of the first round serve all, and what was released costs nothing to use again. Gram
        matrices of factors change with the users' factors, so every round releases them.
        """
        options, model = self.options, self.model
        limit = options.ratings_per_user if options.weights == "uniform" else None
        clip = (options.rating_clip if round_index == 1 else options.residual_clip) * self.span
        share, rank = options.matrix_share, options.rank
        if round_index <= options.bias_rounds:
            weights, rank = np.full(model.n_items, UNIT_WEIGHT), 0
            share = share if round_index == 1 else 0.0
        else:
            weights = model.weights[model.popular]
            if options.weights == "uniform":
                weights = np.full_like(weights, UNIT_WEIGHT)
        return StatisticsLayout(
            weights, rank, 1.0, clip, share, limit, fewest=options.fewest, round_index=round_index
        )

    def contributions(
        self, profiles: Profiles, layout: StatisticsLayout, random: Uint64s
    ) -> StatisticsContributions:
        """Return chosen ratings and factors; see `SummedDevice.contributions`."""
        model, options, round_index = self.model, self.options, layout.round_index
        # Biases are estimated as a whole in each of their rounds, factors from what biases leave.
        users = profiles.users
        residuals = profiles.values - model.mean - model.biases[profiles.items]
        if round_index <= options.bias_rounds:
            candidates, positions = np.ones(users.size, dtype=np.bool_), np.arange(profiles.n_items)
            factors = np.ones((profiles.n_users, 1), dtype=np.float32)
            # The first round estimates the mean, so it takes ratings as they are.
            levels = np.zeros(profiles.n_users)
            if round_index > 1:
                # How far each user rates above the item biases, shrunk.
                sums = np.bincount(users, residuals, minlength=profiles.n_users)
                levels = sums / (np.diff(profiles.indptr) + options.level_ridge)
            residuals = residuals + model.biases[profiles.items]
        else:
            candidates, positions = model.popular[profiles.items], np.cumsum(model.popular) - 1
            levels, user_factors = self._own_factors(profiles, residuals)
            factors = clipped(user_factors * model.gain)
        chances = model.weights[profiles.items] if options.sampling == "tail" else np.zeros_like(users)
        chosen = chosen_ratings(profiles, candidates, chances, options.ratings_per_user, random)
        targets = (residuals - levels[users])[chosen] / layout.clip
        return StatisticsContributions(
            offsets(np.bincount(users[chosen], minlength=profiles.n_users)),
            positions[profiles.items[chosen]].astype(np.int32),
            np.trunc(np.clip(targets, -1, 1) * 2.0**TARGET_BITS).astype(np.int64),
            factors,
        )

    def _own_factors(self, profiles: Profiles, residuals: Floats) -> tuple[Floats, Floats]:
        """Return the level and factors that fit each user's ratings, shapes (users,) and (users, rank)."""
        options = self.options
        of_items = with_level(self.model.all_factors, options.search_ridge, options.level_ridge)
        residual = Profiles(profiles.indptr, profiles.items, residuals, profiles.n_items)
        solved = solve_user_factors(residual, of_items, options.search_ridge)
        return solved[:, 0] * of_items[0, 0], solved[:, 1:]

    @property
    def ridge(self) -> float:
        """What a user's factors are shrunk by in predictions, in squared ratings."""
        return self.options.predict_ridge * self.span**2

    @property
    def item_factors(self) -> Floats:
        """The factors of all items, with a constant of which users fit a multiple; see `with_level`."""
        return with_level(self.model.all_factors, self.ridge, self.options.level_ridge)

    @property
    def base(self) -> Floats:
        """What is predicted without factors, shape (items,)."""
        return self.model.mean + self.model.biases

    def predictions(self, profiles: Profiles) -> Floats:
        """Predict with the factors that fit each user."""
        return predicted_rows(profiles, self.item_factors, self.ridge, self.base)

    def predicting(self, ratings: Ratings) -> dict[str, Any]:
        """Return what predicts cell by cell, with factors that fit each user once."""
        predict, cautions = OwnFactors(ratings, self.item_factors, self.ridge, self.base), self.model.cautions
        if cautions is None:
            return {"predict": predict}
        return {"predict": predict, "scores": lambda users, items: predict(users, items) - cautions[items]}


def with_level(factors: Floats, ridge: float, level_ridge: float) -> Floats:
    """Return item factors with a constant before them, of which users fit a multiple as their level.

    The constant is such that the ridge of the factors shrinks the level by ``level_ridge``.
    """
    constant = np.full((len(factors), 1), np.sqrt(ridge / level_ridge))
    return np.hstack([constant, factors])


_SMALLEST_MOMENT = 0.02
"""Least mean square of a direction of user factors, which are at most 1 long."""

_SMALLEST_DIRECTION = 0.1
"""Least mean square of a direction of item factors, relative to the largest, that is enlarged to 1."""

_SMALLEST_COUNT = 1e-3
"""Least count of an item with factors, relative to the largest."""


@dataclass(eq=False)
class ItemServer(SummedServer):
    """What is known of the items: the model of the next round, and the best so far."""

    options: FactorizationOptions
    scale: RatingScale
    n_items: int
    seed: int
    """Of what the server draws."""
    malicious: int = 0
    """Users against whom lists are guarded."""
    model: ItemModel = field(init=False)
    best: ItemModel = field(init=False)
    _counts: Floats = field(init=False)
    _sums: Floats = field(init=False)
    _floored: Floats = field(init=False)
    _offset: float = field(init=False, default=0.0)
    _count_noise: float = field(init=False, default=0.0)
    _sum_noise: float = field(init=False, default=0.0)
    _users: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        middle = (self.scale.low + self.scale.high) / 2
        self.model = self.best = ItemModel.begin(self.n_items, self.options.rank, middle)

    @property
    def span(self) -> float:
        """Largest rating less the smallest."""
        return self.scale.high - self.scale.low

    @property
    def held(self) -> ItemDevice:
        """The model of the next round."""
        return self._as_decoded(self.model)

    @property
    def learned(self) -> ItemDevice:
        """The best model, which guards lists if it is told to."""
        return self._as_decoded(replace(self.best, cautions=self.cautions()) if self.malicious else self.best)

    def _as_decoded(self, model: ItemModel) -> ItemDevice:
        decoded = ItemModel.decode(model.encode(), self.n_items, self.options.rank)
        return ItemDevice(self.options, decoded, self.span)

    @property
    def diagnostics(self) -> dict[str, Any]:  # type: ignore[override]
        """How many items have factors."""
        return {"items_with_factors": int(self.best.popular.sum())}

    def learn(
        self, layout: StatisticsLayout, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Take the item step of a round, from sums with noise of shape (items, width)."""
        noise = deviation * layout.scales
        if round_index == 1:
            self._begin(released, noise, users)
        if round_index <= self.options.bias_rounds:
            self._learn_biases(released[:, -1], float(noise[-1]), first=round_index == 1)
        else:
            self._learn_factors(released, layout, noise)
        if round_index == self.options.bias_rounds and self.options.rank:
            counts, options = self._counts, self.options
            popular = counts > max(options.popular_from * self._count_noise, 0.0)
            popular[np.argmax(counts)] = True
            least = max(2 * self._count_noise, _SMALLEST_COUNT * float(counts.max()), np.finfo(float).tiny)
            floored = np.maximum(counts, least)
            shares = (floored / floored[popular].min()) ** -options.exponent * UNIT_WEIGHT
            weights = np.where(popular, np.clip(np.rint(shares), 1, UNIT_WEIGHT), 0).astype(np.int64)
            start = generator(self.seed, "initial item factors").standard_normal(
                (int(popular.sum()), options.rank)
            )
            self._floored = floored[popular]
            # What factors of chance have in a fit to so many ratings, which is all that is fitted at first.
            ratings = max(self._floored.sum() / self._mean_weight / max(self._users, 1), 1.0)
            spread = (
                options.noise * self.span * np.sqrt(options.rank * ratings) / (ratings + options.search_ridge)
            )
            self.model = replace(
                self.model, weights=weights, factors=start, gain=float(options.length / spread)
            )
            self.best = replace(self.model, factors=np.zeros_like(start))

    def _begin(self, released: Floats, noise: Floats, users: int) -> None:
        self._count_noise, self._users = float(noise[0]), users
        # No user weighs more than 1 in a count.
        self._counts = np.minimum(released[:, 0], float(users))
        total = max(float(self._counts.sum()), float(noise[0]), np.finfo(float).tiny)
        offset = float(np.clip(released[:, 1].sum() / total, -self.span / 2, self.span / 2))
        self.model = replace(self.model, mean=self.model.mean + offset)
        self._offset = offset

    def _learn_biases(self, sums: Floats, noise: float, *, first: bool) -> None:
        """Estimate the biases from the sums of all rounds so far, which have noise of their own each.

        Without noise, only those of the last round count: their targets are closest to the biases.
        """
        if first:
            self._sums, self._sum_noise = sums - self._offset * self._counts, noise
        else:
            before = noise**2 / (self._sum_noise**2 + noise**2) if noise > 0 else 0.0
            self._sums = before * self._sums + (1 - before) * sums
            self._sum_noise *= float(np.sqrt(before))
        biases = self._shrunken(self._counts, self._sums)
        self.model = self.best = replace(self.model, biases=biases)

    def _shrunken(self, counts: Floats, sums: Floats) -> Floats:
        return shrunken_biases(
            counts,
            sums,
            noise=self._sum_noise,
            count_noise=self._count_noise,
            residual=self._residual * self._mean_weight,
            prior=(self.options.bias_deviation * self.span) ** 2,
        )

    def cautions(self) -> Floats:
        """Return by how much items are lowered in lists, in ratings, shape (items,).

        A bias is s n / b(n), of a sum s and a count n with noise. Malicious users add at most a weight w to
        n, and at most w t to s, t being the largest target less the mean. Without them it is thus at least
        the least of (s - w t) n' / b(n') over the counts n' from n - w to n, where n' / b(n') rises to the
        root of what b has without n, and falls beyond. As many standard deviations of a bias as malicious
        users may have of the count are taken off as well: else items that nobody knows would come before
        those that lose something.
        """
        options, counts = self.options, np.maximum(self._counts, 0.0)
        weight = self.malicious * ItemDevice(options, self.model, self.span).release(1).largest
        target = max(options.rating_clip * self.span - self._offset, options.residual_clip * self.span)
        deviation, fewest = options.bias_deviation * self.span, np.maximum(counts - weight, 0.0)
        peak = np.sqrt(self._count_noise**2 + (self._sum_noise / deviation) ** 2)
        sums = self._sums - weight * target
        least = np.full(self.n_items, np.inf)
        for possible_counts in (fewest, np.clip(peak, fewest, counts), counts):
            least = np.minimum(least, self._shrunken(possible_counts, sums))
        shares = weight / np.maximum(counts, weight)
        return np.maximum(self.best.biases - least, 0.0) + shares * deviation

    def _of_features(self, root: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Return what public features of the items add to the statistics of a round: nothing.

        ``root``: L such that users' factors of the round are L times those that items solve for; ``weights``:
        those of a rating, shape (items with factors,).
        """
        return np.zeros(()), np.zeros(())

    @property
    def _residual(self) -> float:
        """Variance of a rating about its prediction."""
        return (self.options.noise * self.span) ** 2

    @property
    def _mean_weight(self) -> float:
        if self.options.weights == "uniform":
            return float(1 / np.sqrt(self.options.ratings_per_user))
        # Weights of users with n ratings are 1 / sqrt(n), so the counts sum to that of sqrt(n).
        return float(min(1.0, self._users / max(self._counts.sum(), 1.0)))

    def _learn_factors(self, released: Floats, layout: StatisticsLayout, noise: Floats) -> None:
        """Solve for the factors in coordinates in which those of the users have a mean square of 1."""
        options, width = self.options, layout.matrix_width
        matrices, sides = unpack(released[:, :width]), released[:, width:]
        weights = layout.weights / UNIT_WEIGHT
        # About b_u, the part of a weight that keeps the squares of a user's weights at most 1.
        of_users = self._mean_weight
        if options.weights != "uniform":
            square = float((self._floored * weights**2).sum() / self._floored.sum())
            of_users = float(of_users / np.sqrt(square))
        total = float((self._floored * weights).sum()) * of_users / self._mean_weight
        least = max(float(noise[0]) * np.sqrt(layout.n_rows) / total, _SMALLEST_MOMENT)
        root = root_of_moment(matrices.sum(axis=0) / total, min(least, 1.0))
        inverse = np.linalg.inv(root)
        stretch = float((inverse**2).sum() / options.rank)
        public_matrices, public_sides = self._of_features(root, weights * of_users)
        white = shrunken_factors(
            inverse @ matrices @ inverse.T + public_matrices,
            sides @ inverse.T + public_sides,
            noise=float(noise[-1]) * float(np.sqrt(stretch)),
            residual=self._residual * weights * of_users,
            prior=(options.factor_deviation * self.span) ** 2 / options.rank,
            matrix_noise=float(noise[0]) * stretch,
            largest=self._users / _SMALLEST_MOMENT,
        )
        self.best = replace(self.model, factors=white)
        self.model = replace(
            self.model,
            factors=orthogonal(white, self._floored, _SMALLEST_DIRECTION),
            gain=float(self.model.gain * options.length / np.sqrt((root**2).sum())),
        )
