"""The simplest completions: averages of the item, of the user, or of what a device has itself."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyInts, Floats, Int32s, offsets
from dprec.completion.base import Completed, Completion
from dprec.observations import Observations
from dprec.progress import Progress, silent
from dprec.ratings import Ratings, RatingScale


@dataclass(frozen=True, eq=False)
class Averages(Completed):
    """One number per user or per item."""

    means: Floats
    """Shape (users,) or (items,)."""
    by_item: bool

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the ratings of the given cells, shape (cells,)."""
        predictions: Floats = self.means[items if self.by_item else users]
        return predictions

    def predict_rows(self, users: AnyInts, n_items: int) -> Floats:
        """Predict the ratings of all items by some users, shape (users, items)."""
        means = self.means if self.by_item else self.means[users][:, None]
        return np.broadcast_to(means, (users.size, n_items))


@dataclass(frozen=True, kw_only=True)
class ItemAverage(Completion):
    """The mean of an item's observed ratings; the overall mean for an item without any."""

    kind: Literal["item-average"] = "item-average"
    works_unlinked: ClassVar[bool] = True

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Averages:
        """Complete the matrix; see `Completion.fit`."""
        means, unseen = _means(observations, observations.items, observations.shape[1])
        progress("completing", 1, 1)
        return Averages(means, True, diagnostics={"items_without_ratings": unseen})


@dataclass(frozen=True, kw_only=True)
class UserAverage(Completion):
    """The mean of a user's observed ratings; the overall mean for a user without any."""

    kind: Literal["user-average"] = "user-average"

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Averages:
        """Complete the matrix; see `Completion.fit`."""
        means, unseen = _means(observations, observations.users, observations.shape[0])
        progress("completing", 1, 1)
        return Averages(means, False, diagnostics={"users_without_ratings": unseen})


def _means(observations: Observations, owners: Int32s, size: int) -> tuple[Floats, int]:
    counts = np.bincount(owners, minlength=size)
    sums = np.bincount(owners, weights=observations.values, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), observations.mean)
    return means, int((counts == 0).sum())


_LEVELS_OF_MEANS = 201
"""Levels of the scale on which means are sent: 8 bits, the middle of the rating scale among them."""


def own_averages(train: Ratings, prior: float, prior_ratings: float) -> Averages:
    """Predict every rating of a user by the mean of the user's own, shrunk towards a public prior.

    For user u with n ratings it is ``(sum of the ratings + w prior) / (n + w)``, w being ``prior_ratings``;
    the prior itself where n + w is 0. ``train`` holds the ratings of both domains where there are two.
    """
    sums = np.bincount(train.users, weights=train.values, minlength=train.n_users)
    weights = train.counts + prior_ratings
    informed = weights > 0
    means = np.full(train.n_users, prior)
    means[informed] = (sums + prior_ratings * prior)[informed] / weights[informed]
    without = int((train.counts == 0).sum())
    return Averages(means, by_item=False, diagnostics={"prior": prior, "users_without_ratings": without})


def one_mean_per_user(train: Ratings) -> Ratings:
    """Return every user's mean as that user's rating of the only item of a catalogue.

    On a continuous scale of the same range with 201 levels, so that any mechanism can send a mean. A user
    without ratings has no mean.
    """
    scale = RatingScale(np.linspace(train.scale.low, train.scale.high, _LEVELS_OF_MEANS), continuous=True)
    rated = train.counts > 0
    means = train.user_means()[rated]
    return Ratings(
        indptr=offsets(rated.astype(np.int64)),
        items=np.zeros(means.size, dtype=np.int32),
        levels=scale.level_of(means),
        scale=scale,
        user_ids=train.user_ids,
        item_ids=np.zeros(1, dtype=np.int64),
        exact=means,
    )
