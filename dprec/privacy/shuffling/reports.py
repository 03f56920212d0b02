"""All shuffled reports of a run: what each tells of its rating, and all of a user's of the user."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import ShuffledChannel
from dprec.accounting.pld import POINTS, compose_many
from dprec.accounting.shuffling import computed_for
from dprec.channel import Channel

_STEPS = 80
"""Points of the grid up to the epsilon of a report, averaged with those that tell most weighing most."""

_USERS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class ShuffledReports:
    """Reports through one channel, each a message that cannot be linked to another."""

    channel: Channel
    """With a finite epsilon above 0."""
    users: NDArray[np.integer]
    """Who sent each report, ascending; shape (reports,)."""
    mixed: NDArray[np.int64]
    """Among how many reports each is shuffled, itself included; shape (reports,)."""
    n_users: int

    @cached_property
    def _shuffled(self) -> ShuffledChannel:
        return ShuffledChannel.known(self.channel)

    @cached_property
    def _sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of reports for which bounds are computed, and the place of every report's among them."""
        sizes, places = np.unique(computed_for(self.mixed), return_inverse=True)
        return sizes, places

    def per_rating(self, delta: float) -> NDArray[np.float64]:
        """Return an epsilon for the rating of each report that holds with delta, shape (reports,)."""
        sizes, places = self._sizes
        return np.array([self._shuffled.epsilon(size, delta) for size in sizes.tolist()])[places]

    def per_user(self, delta: float) -> NDArray[np.float64]:
        """Return an epsilon for all that a user reports that holds with delta, shape (users,).

        The mixes are independent of each other, so that their losses add up. Infinite for users without an
        accepted report.

        Parameters
        ----------
        delta : float
            Above 0.
        """
        sizes, places = self._sizes
        composed = np.full(self.n_users, np.inf)
        if not places.size:
            return composed
        alone = self.per_rating(delta)
        typical = float((alone**2).sum() / alone.sum()) if alone.any() else self.channel.epsilon
        finer = max(0, math.ceil(math.log2(self.channel.epsilon / POINTS * _STEPS / typical)))
        step = self.channel.epsilon / POINTS / 2**finer
        kinds = [self._shuffled.losses(size, step) for size in sizes.tolist()]
        ends = np.searchsorted(self.users, np.arange(self.n_users + 1))
        for start in range(0, self.n_users, _USERS_AT_ONCE):
            stop = min(start + _USERS_AT_ONCE, self.n_users)
            reports = slice(ends[start], ends[stop])
            cells = (self.users[reports] - start) * sizes.size + places[reports]
            times = np.bincount(cells, minlength=(stop - start) * sizes.size).reshape(stop - start, -1)
            found = compose_many(kinds, times, delta)
            composed[start:stop] = np.where(times.any(axis=1), found, np.inf)
        return composed
