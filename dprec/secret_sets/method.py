"""The method of secret sets: both halves, and what an audit looks at.

Two or three releases. The first sums counts and residuals; devices are then sent item biases and features
of the items, and the second sums residuals from these biases, by item and by feature, and the profiles and
tastes of those who rated an item. Where noise is low, the third sums profiles and tastes once more, in the
features that were learned, as a step of subspace iteration does. What is learned is the table from which
devices predict (`dprec.personalization`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BeforeValidator, Field

from dprec.arrays import AnyInts, Bools, Floats, Uint64s, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.components import Options, as_tuple, option
from dprec.errors import SettingError
from dprec.ordinal import Histogram, cut_points, level_shares
from dprec.personalization import Devices, OrdinalProcess
from dprec.randomness import uniform_below, uniforms, words
from dprec.ratings import POSITIVE, Ratings, RatingScale
from dprec.secret_sets.contributions import Part, ProfileContributions, ProfileLayout
from dprec.secret_sets.learner import TableLearner
from dprec.sums import LEAST_SHARE, Contributions, DeviceHalf, Releases, SummedMethod
from dprec.wire import ItemTable

Split = tuple[float, float, float, float, float, float, float, float]
"""Shares of counts and first residuals; of second residuals, residuals by feature, profiles and tastes; of
profiles and tastes in learned features.
"""

_SPLITS: tuple[tuple[float, Split], ...] = (
    (2e-3, (0.4, 0.15, 0.3, 0.15, 0.0, 0.0, 0.0, 0.0)),
    (3e-4, (0.2, 0.1, 0.35, 0.05, 0.3, 0.0, 0.0, 0.0)),
    (0.0, (0.05, 0.05, 0.2, 0.05, 0.1, 0.1, 0.15, 0.3)),
)
"""The least tau at which each is used."""

_SAMPLED = (0.2, 0.15, 0.65, 0.0, 0.0, 0.0, 0.0, 0.0)
"""Of sums of which devices say a few numbers: none of a number for each feature of an item."""


def split_at(tau: float, *, sampled: bool = False) -> Split:
    """Return what each sum spends; benchmarks/choosing/settings.py chose the splits on validation ratings.

    ``tau``: standard deviation of a number's noise in a sum of unit contributions that has the whole budget,
    over the number of users.
    """
    if sampled:
        return _SAMPLED
    return next(split for least, split in _SPLITS if tau >= least)


_ROUNDING = 1e-9
_Shares = Annotated[tuple[Annotated[float, Field(ge=0)], ...], BeforeValidator(as_tuple)]


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

    @property
    def parts(self) -> tuple[tuple[tuple[Part, float], ...], ...]:
        """The parts of each round, with their shares of the squared distance of means."""
        counts, first, second, by_feature, profiles, tastes, *further = self.split or split_at(0.0)
        rounds: tuple[tuple[tuple[Part, float], ...], ...] = (
            (("counts", counts), ("residuals", first)),
            (("residuals", second), ("features", by_feature), ("profiles", profiles), ("tastes", tastes)),
            (("profiles", further[0]), ("tastes", further[1])),
        )
        spending = (tuple(part for part in each if part[1] > 0) for each in rounds)
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

    def largest_layout(self, n_items: int) -> ProfileLayout:
        """Return the layout of most numbers, of any scale."""
        table = table_before(np.zeros(0), n_items, self.features)
        layouts = (ProfileLayout.of_parts(parts, table, POSITIVE) for parts in self.parts)
        return max(layouts, key=lambda layout: layout.n_rows)

    def check(self, scale: RatingScale) -> None:
        """Raise SettingError for a histogram of another scale, and a split that leaves out what is needed."""
        self.cuts(scale)
        if self.split is None:
            return
        whole = len(self.split) == len(split_at(0.0)) and abs(sum(self.split) - 1) < _ROUNDING
        learned_before = whole and (sum(self.split[4:6]) > 0 or sum(self.split[6:]) == 0)
        large = all(each == 0 or each >= LEAST_SHARE for each in self.split)
        if not (learned_before and large and min(self.split[:2]) > 0 and sum(self.split[2:4]) > 0):
            accepted = (
                f"eight shares, 0 or at least {LEAST_SHARE:g}, that add up to 1, those of counts and "
                "residuals above 0, and the last two 0 if the two before are"
            )
            raise SettingError("split", str(list(self.split)), accepted)


@dataclass(frozen=True, eq=False)
class ProfileDevice(DeviceHalf):
    """What devices do with a table."""

    options: SecretSetOptions
    table: ItemTable
    scale: RatingScale

    def layout(self, round_index: int) -> ProfileLayout:
        """Return what is summed in a round; see `DeviceHalf.layout`."""
        features = self.table.embeddings[:, : self.options.features]
        table = replace(self.table, embeddings=features)
        return ProfileLayout.of_parts(self.options.parts[round_index - 1], table, self.scale)

    def contributions(
        self, profiles: Profiles, layout: ProfileLayout, round_index: int, random_words: Uint64s
    ) -> ProfileContributions:
        """Return normalised profiles; see `DeviceHalf.contributions`."""
        return ProfileContributions(profiles.indptr, profiles.items, self.scale.level_of(profiles.values))

    def about(self, items: AnyInts, layout: ProfileLayout) -> Bools:
        """Return the rows of counts and residuals; see `DeviceHalf.about`."""
        return layout.about(items)

    def devices(self, ratings: Ratings) -> Devices:
        """Return the devices of users who hold these ratings; of no user anything is known."""
        return Devices(self.options.process, self.table, ratings)

    def predictions(self, profiles: Profiles) -> Floats:
        """Predict from each user's own ratings; see `DeviceHalf.predictions`."""
        shape = profiles.n_users, profiles.n_items
        levels = self.scale.level_of(profiles.values)
        ids = np.arange(shape[0]), np.arange(shape[1])
        own = Ratings(profiles.indptr, profiles.items, levels, self.scale, *ids)
        users, items = (each.ravel() for each in np.indices(shape))
        return self.devices(own).predict(users, items).reshape(shape)


def table_before(cuts: Floats, n_items: int, features: int) -> ItemTable:
    """Return what is known before any release: biases of 0, and features of 0."""
    nothing = np.zeros(n_items)
    table = ItemTable.of_biases(cuts, nothing, nothing)
    return replace(table, embeddings=np.zeros((n_items, features)))


@dataclass(frozen=True, kw_only=True)
class SecretSets(SummedMethod):
    """A table for devices that predict, learned from sums of normalised profiles."""

    kind: Literal["secret-sets"] = "secret-sets"
    options: SecretSetOptions = option("What is summed, suited to the population.")

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends; see `SummedMethod.shares`."""
        return tuple(sum(share for _, share in parts) for parts in self.options.parts)

    @property
    def farthest(self) -> float:
        """Two, as the residuals of two users may be opposite; see `SummedMethod.farthest`."""
        return 2.0

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> ProfileDevice:
        """Read a table; see `SummedMethod.device`."""
        cuts = self.options.cuts(scale)
        if not received:
            return ProfileDevice(self.options, table_before(cuts, n_items, 0), scale)
        table = ItemTable.decode(received, n_levels=scale.levels, n_items=n_items)
        return ProfileDevice(self.options, table, scale)

    def largest_layouts(self, releases: Releases) -> tuple[ProfileLayout, ...]:
        """Return layouts with as many features as there may be; see `SummedMethod.largest_layouts`."""
        table = table_before(self.options.cuts(releases.scale), releases.n_items, self.options.features)
        return tuple(ProfileLayout.of_parts(parts, table, releases.scale) for parts in self.options.parts)

    def learner(self, releases: Releases, catalogue: Catalogue | None, seed: int) -> TableLearner:
        """Return the server's half; see `SummedMethod.learner`."""
        parts = self.options.parts
        cuts = self.options.cuts(releases.scale)
        return TableLearner(releases, catalogue, cuts, self.options.features, parts, seed)

    def probes(self, seed: int) -> Iterator[tuple[ProfileLayout, Contributions[Any]]]:
        """Yield what users contribute who have rated 1 item, 2 items, and so on."""
        scale = RatingScale.evenly(1, 5, 1)
        order = np.argsort(
            words(seed, "items of profiles", 0, _USERS * _ITEMS).reshape(_USERS, _ITEMS), axis=1
        )
        counts = 1 + np.arange(_USERS) * _ITEMS // _USERS
        items = [np.sort(row[:count]) for row, count in zip(order, counts.tolist(), strict=True)]
        levels = 1 + uniform_below(5, words(seed, "levels", 0, int(counts.sum())))
        features = uniforms(words(seed, "features", 0, _ITEMS * _WIDTH)) - 0.5
        table = table_before(self.options.cuts(scale), _ITEMS, _WIDTH)
        table = replace(table, embeddings=features.reshape(_ITEMS, _WIDTH))
        for parts in self.options.parts:
            layout = ProfileLayout.of_parts(parts, table, scale)
            rated = np.concatenate(items).astype(np.int32)
            yield layout, ProfileContributions(offsets(counts), rated, levels.astype(np.uint8))


_USERS, _ITEMS, _WIDTH = 48, 64, 3
"""Of whom an audit sees how long their contributions are."""
