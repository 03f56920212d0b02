"""Families whose report is a number of independent draws, each from a channel that its budget allows.

A budget per rating or per cell gives one channel for everybody. A budget per user is divided evenly among the
draws about the user, by their sum or by what they cost when composed, so users with different numbers of
draws apply different channels of the same kind; the server sees how many there are anyway.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.errors import InputError, SettingError, within
from dprec.exact_loss import even_share
from dprec.privacy.calibration import LARGEST_CELL_EPSILON, PrivacyBudget
from dprec.privacy.pairwise import worst_pair
from dprec.privacy.releases import Releases
from dprec.reports.base import ReportFamily
from dprec.reports.device_channel import DeviceChannel

_SMALLEST_EPSILON = 1e-9

_ROUNDING = 1 + 1e-9
"""What losses of profiles of different sizes may differ by when they are rounded."""


@dataclass(frozen=True, eq=False)
class IndependentDraws(ReportFamily):
    """A family whose losses are those of so many draws from one channel; see `ReportFamily`."""

    _channels: dict[int, Channel] = field(default_factory=dict, init=False)

    @abstractmethod
    def cells(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many draws are sent of users who have ``counts`` ratings, shape (users,)."""

    def channel(self, cells: int) -> Channel:
        """Return the channel of each draw about a user of whom so many are sent."""
        key = cells if self.budget and self.budget.per == "user" else 1
        if key not in self._channels:
            self._channels[key] = self._built(key)
        return self._channels[key]

    @property
    def reference_channel(self) -> Channel:
        """The channel for which the wire format is made; per user, that of the longest report."""
        return self.channel(self.n_items)

    def _built(self, cells: int) -> Channel:
        """Return the channel of one of ``cells`` draws, after checking that it keeps to its budget."""
        if self.budget is None:
            with within("mechanism"):
                return self.mechanism.channel(self.scale, math.inf)
        # Users with few draws may have more budget than a channel can spend; the rest stays unspent.
        epsilon = self._share(self.budget, cells)
        channel = self._within(epsilon)
        if channel is None:
            shares = f"{self.budget.epsilon:g} leaves {epsilon:g} per cell"
            raise SettingError(
                "privacy.epsilon",
                f"{shares}, which {self.mechanism.kind} cannot keep",
                "a larger epsilon, or fewer symbols",
            )
        return channel

    def _within(self, epsilon: float) -> Channel | None:
        """Return the channel at epsilon; None if whole draws are too coarse, or it costs more."""
        if epsilon < _SMALLEST_EPSILON:
            return None
        try:
            with within("mechanism"):
                channel = self._at(epsilon)
        except InputError:
            raise
        except ValueError:
            return None
        return channel if channel.epsilon <= epsilon else None

    def _at(self, epsilon: float) -> Channel:
        """Return the channel at the budget of one draw."""
        return self.mechanism.channel(self.scale, epsilon)

    def _share(self, budget: PrivacyBudget, cells: int) -> float:
        """Return the budget of one of ``cells`` draws."""
        even = even_share(budget.epsilon, cells)
        if even < _SMALLEST_EPSILON:
            return even
        try:
            with within("mechanism"):
                return budget.share(
                    self._at,
                    cells,
                    most=LARGEST_CELL_EPSILON,
                    guess=self._guess(budget, cells),
                )
        except InputError:
            raise
        except ValueError:
            # Whole draws are too coarse for a share that was tried.
            return even

    def _guess(self, budget: PrivacyBudget, cells: int) -> float | None:
        """Return where to look for a composed share: near that of the power of two below the draws."""
        power = 1 << (cells.bit_length() - 1)
        if budget.composition == "sum" or power == cells:
            return None
        return self.channel(power).epsilon * math.sqrt(power / cells)

    def protects(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of which users anything is sent."""
        sent: NDArray[np.bool_] = self.cells(counts) > 0
        return sent

    def losses(
        self, counts: NDArray[np.int64], asked: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings.

        Draws are independent, so a whole profile costs their sum. If the rated items are revealed, profiles
        are compared on the same items, and a user without ratings has spent nothing and has no loss per
        rating (NaN).
        """
        cells = self.cells(counts)
        sizes, of_user = np.unique(cells, return_inverse=True)
        per_cell = np.array([self.channel(size).epsilon if size else np.nan for size in sizes.tolist()])
        per_rating = per_cell[of_user]
        return per_rating, np.where(cells > 0, per_rating * np.maximum(cells, 1), 0.0)

    def releases(
        self,
        counts: NDArray[np.int64],
        sent: NDArray[np.bool_],
        asked: NDArray[np.int64] | None = None,
    ) -> Releases:
        """Return the draws about users whose report arrived: one for each of their cells."""
        cells = self.cells(counts)
        sizes, places = np.unique(np.maximum(cells, 1), return_inverse=True)
        channels = [self.channel(size) for size in sizes.tolist()]
        distinct = list(dict.fromkeys(channels))
        numbers = np.array([distinct.index(channel) for channel in channels])
        return Releases(tuple(distinct), numbers[places], np.where(sent, cells, 0))

    def most_losses(self) -> tuple[float, float]:
        """Return what no profile loses more than.

        Between the shortest and the longest profile, the share of a rating only falls and their sum only
        rises, but for rounding. A budget that is divided is exceeded by neither.
        """
        budget = self.budget
        if budget is not None and budget.per == "user" and budget.composition == "sum":
            return budget.epsilon, budget.epsilon
        per_rating, per_user = self.losses(np.array([1, self.n_items]))
        rounding = 1.0 if budget is None or budget.per != "user" else _ROUNDING
        return float(per_rating.max()) * rounding, float(per_user.max()) * rounding

    def device_channel(self, counts: NDArray[np.int64]) -> DeviceChannel | None:
        """Return the channel of the user with the median number of ratings; None if there is no noise."""
        if self.budget is None:
            return None
        median = max(1, round(float(np.median(counts))))
        cells = int(self.cells(np.array([median]))[0])
        return DeviceChannel(self.channel(cells), cells, self.budget.per == "user")

    def answers_about(self, entries: int) -> int:
        """Return how many answers depend on so many entries of a profile that has no others."""
        return entries

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield the loss of the worst two levels, once for each answer that depends on them."""
        loss = worst_pair(self.channel(entries).weights)[0] * self.answers_about(entries)
        yield "all pairs of levels, from the matrix" + (f", {entries} entries" if entries > 1 else ""), loss
