"""The simplest completions: the average rating of the item, or of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Completed, Completion
from dprec.observations import Observations
from dprec.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Averages(Completed):
    """One number per user or per item."""

    means: NDArray[np.float64]
    """Shape (users,) or (items,)."""
    by_item: bool

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict the ratings of the given cells, shape (cells,)."""
        predictions: NDArray[np.float64] = self.means[items if self.by_item else users]
        return predictions

    def predict_rows(self, users: NDArray[np.integer], n_items: int) -> NDArray[np.float64]:
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


def _means(
    observations: Observations, owners: NDArray[np.int32], size: int
) -> tuple[NDArray[np.float64], int]:
    counts = np.bincount(owners, minlength=size)
    sums = np.bincount(owners, weights=observations.values, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), observations.mean)
    return means, int((counts == 0).sum())
