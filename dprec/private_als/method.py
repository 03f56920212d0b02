"""The method of private alternating least squares: both halves, and what an audit looks at."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec.arrays import Floats, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles, predicted_rows
from dprec.components import option
from dprec.private_als.device import (
    TARGET_BITS,
    UNIT_WEIGHT,
    FactorizationOptions,
    ItemModel,
    StatisticsContributions,
    StatisticsLayout,
    contributions_of,
    with_level,
)
from dprec.private_als.learner import ItemLearner
from dprec.randomness import uniform_below, uniforms, words
from dprec.ratings import RatingScale
from dprec.sums import DeviceHalf, Releases, SummedMethod


@dataclass(frozen=True, eq=False)
class ItemDevice(DeviceHalf):
    """What devices do with a model of the items."""

    options: FactorizationOptions
    model: ItemModel
    span: float
    """Largest rating less the smallest."""

    def layout(self, round_index: int) -> StatisticsLayout:
        """Return the statistics of a round; see `ItemModel.layout`."""
        return self.model.layout(self.options, round_index, self.span)

    def contributions(
        self, profiles: Profiles, layout: StatisticsLayout, round_index: int, random_words: Uint64s
    ) -> StatisticsContributions:
        """Return chosen ratings and factors; see `DeviceHalf.contributions`."""
        return contributions_of(profiles, self.model, self.options, layout, round_index, random_words)

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
        """Predict with the factors that fit each user; see `DeviceHalf.predictions`."""
        return predicted_rows(profiles, self.item_factors, self.ridge, self.base)


@dataclass(frozen=True, kw_only=True)
class PrivateAls(SummedMethod):
    """Item biases and factors, learned in alternation with those of the users."""

    kind: Literal["private-als"] = "private-als"
    options: FactorizationOptions = option("What is learned, and how ratings are chosen and clipped.")

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends; see `SummedMethod.shares`."""
        return self.options.shares

    def most_ratings(self, ratings: int) -> int:
        """Return the ratings that are chosen; see `SummedMethod.most_ratings`."""
        return min(ratings, self.options.ratings_per_user)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ItemDevice:
        """Read a model; see `SummedMethod.device`."""
        model = ItemModel.decode(received, n_items, self.options.rank)
        return ItemDevice(self.options, model, scale.high - scale.low)

    def largest_layouts(self, releases: Releases) -> tuple[StatisticsLayout, ...]:
        """Return layouts in which every item has factors; see `SummedMethod.largest_layouts`."""
        scale, everything = releases.scale, np.ones(releases.n_items, dtype=np.int64)
        model = replace(ItemModel.begin(releases.n_items, self.options.rank, 0.0), weights=everything)
        device = ItemDevice(self.options, model, scale.high - scale.low)
        return tuple(device.layout(round_index) for round_index in range(1, self.rounds + 1))

    def learner(self, releases: Releases, catalogue: Catalogue | None, seed: int) -> ItemLearner:
        """Return the server's half, which reads nothing of the catalogue; see `SummedMethod.learner`."""
        return ItemLearner(self.options, releases.scale, releases.n_items, seed)

    def probes(self, seed: int) -> Iterator[tuple[StatisticsLayout, StatisticsContributions]]:
        """Yield what users contribute who have rated 1 item, 2 items, and so on."""
        options = self.options
        weights = 1 + uniform_below(UNIT_WEIGHT, words(seed, "weights of items", 0, _ITEMS))
        model = replace(ItemModel.begin(_ITEMS, options.rank, 0.0), weights=weights)
        for round_index in (1, 2, options.rounds):
            layout = model.layout(options, round_index, 1.0)
            yield layout, _contributions(layout, options.ratings_per_user, seed)


_USERS = 64
_ITEMS = 96
"""So many that several share a place of a count sketch."""

_BELOW_ONE = 1 - 1e-6


def _contributions(layout: StatisticsLayout, most: int, seed: int) -> StatisticsContributions:
    """Return what users contribute who have rated 1 item, 2 items, and so on."""
    order = np.argsort(words(seed, "rated items", 0, _USERS * _ITEMS).reshape(_USERS, _ITEMS), axis=1)
    counts = np.minimum(1 + np.arange(_USERS) * _ITEMS // _USERS, most)
    items = [np.sort(row[:count]) for row, count in zip(order, counts.tolist(), strict=True)]
    signs = 2 * uniform_below(2, words(seed, "signs of targets", 0, int(counts.sum()))) - 1
    factors = np.ones((_USERS, 1))
    if layout.rank:
        factors = uniforms(words(seed, "factors of users", 0, _USERS * layout.rank)) - 0.5
        factors = factors.reshape(_USERS, layout.rank)
        factors *= _BELOW_ONE * layout.norm / np.linalg.norm(factors, axis=1, keepdims=True)
    return StatisticsContributions(
        offsets(counts),
        np.concatenate(items).astype(np.int32),
        signs << TARGET_BITS,
        factors.astype(np.float32),
    )
