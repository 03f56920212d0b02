"""Mechanisms that compare a user's ratings, at a budget for all of them together.

The set of rated items is reported, and one answer about each of a few ratings, drawn at random. Two profiles
on the same items that differ in any values differ in the answers alone: the ratings that are drawn do not
depend on values. Each answer costs at most an even share of the budget, whatever the others are, so all of
them together cost at most the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.residual_bits import ResidualBits, drawn_ratings, sides_of_the_mean
from dprec.mechanisms.symbol_reports import ResidualReports
from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.ratings import RatingScale
from dprec.wire.report import ReportCodec

_ANSWERED = 1 / 16
"""Share of the ratings with an answer for which the code of a report is made; about s in n."""


@dataclass(frozen=True, eq=False)
class CalibratedResiduals(CalibratedMechanism):
    """`ResidualBits` at a budget per user; see `CalibratedMechanism`.

    Where that class speaks of the cells that a user reports, these are the cells with an answer.
    """

    compares_ratings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_per_user("a rating moves the mean that every answer depends on")

    @property
    def most(self) -> int:
        """Answers of a user with enough ratings."""
        assert isinstance(self.mechanism, ResidualBits)
        assert self.budget is not None
        return min(self.mechanism.asked(self.budget.epsilon), self.n_items)

    def cells(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many answers users give who have ``counts`` ratings, shape (users,)."""
        return np.minimum(counts, self.most)

    def channel(self, cells: int) -> Channel:
        """Return the channel of a user who has ``cells`` ratings, or more than it answers about."""
        return super().channel(min(cells, self.most))

    @property
    def reference_channel(self) -> Channel:
        """The channel of each answer of a user with enough ratings."""
        return self.channel(self.most)

    @property
    def _silent(self) -> int:
        """The symbol of a rating without an answer."""
        return self.reference_channel.symbols

    def codec(self) -> ReportCodec:
        """Return the code of reports: the channel's symbols, and one for a rating without an answer."""
        channel = self.reference_channel
        shares = np.append(_ANSWERED * channel.marginal(), 1 - _ANSWERED)
        middle = (self.scale.low + self.scale.high) / 2
        rows = np.tile(shares, (channel.inputs.size, 1))
        coded = Channel.from_probabilities(rows, channel.inputs, np.append(channel.values, middle), np.inf)
        return ReportCodec(coded, self.n_items)

    def answers(
        self,
        counts: NDArray[np.int64],
        levels: NDArray[np.uint8],
        choice: NDArray[np.uint64],
        noise: NDArray[np.uint64],
    ) -> NDArray[np.uint16]:
        """Draw some ratings of every user and answer about them.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
            Ratings of each user.
        levels : ndarray of uint8, shape (ratings,)
            By user.
        choice, noise : ndarray of uint64, shape (ratings,)
            Independent random words: for which ratings are drawn, and for the answers.

        Returns
        -------
        ndarray of uint16, shape (ratings,)
        """
        drawn = drawn_ratings(counts, self.most, choice)
        symbols = np.full(levels.size, self._silent, dtype=np.uint16)
        sides = sides_of_the_mean(counts, levels, self.scale)
        symbols[drawn] = self.perturb(self.cells(counts), sides[drawn], noise[drawn])
        return symbols

    def read(self, cells: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.float64]:
        """Return the value that each symbol stands for; the middle of the scale without an answer."""
        values = np.full(symbols.size, (self.scale.low + self.scale.high) / 2)
        answered = self._answered(cells, symbols)
        given = np.bincount(np.repeat(np.arange(cells.size), cells)[answered], minlength=cells.size)
        values[answered] = super().read(given, symbols[answered])
        return values

    def residual_reports(self, counts: NDArray[np.int64], symbols: NDArray[np.uint16]) -> ResidualReports:
        """Return the answers in the reports of users with ``counts`` ratings; see `read`."""
        answered = self._answered(counts, symbols)
        sizes, of_user = np.unique(np.maximum(self.cells(counts), 1), return_inverse=True)
        lies = np.array([self.channel(size).probabilities[0, 1] for size in sizes.tolist()])
        return ResidualReports(
            np.flatnonzero(answered),
            symbols[answered] == 1,
            np.repeat(lies[of_user], counts)[answered],
        )

    def _answered(self, counts: NDArray[np.int64], symbols: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Return which cells have an answer, without users who give another number than they should."""
        answered = symbols != self._silent
        users = np.repeat(np.arange(counts.size), counts)
        given = np.bincount(users[answered], minlength=counts.size)
        read: NDArray[np.bool_] = answered & (given == self.cells(counts))[users]
        return read

    def noise_variance(self, cells: NDArray[np.int64]) -> float | None:
        """Return the mean variance of the value read for an answer; see the base class."""
        return super().noise_variance(self.cells(cells))

    def losses(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings.

        They are the same: one rating can move the mean past all that are answered about.
        """
        per_answer, per_user = super().losses(counts)
        return np.where(np.isnan(per_answer), np.nan, per_user), per_user


def calibrated_for(
    mechanism: Mechanism, budget: PrivacyBudget | None, scale: RatingScale, n_items: int
) -> CalibratedMechanism:
    """Return a mechanism at a budget: of a class for mechanisms that compare ratings, if it does."""
    if mechanism.reports_profiles:
        return CalibratedProfiles(mechanism, budget, scale, n_items)
    kind = CalibratedResiduals if mechanism.compares_ratings else CalibratedMechanism
    return kind(mechanism, budget, scale, n_items)
