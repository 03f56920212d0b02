"""The second part of a report at a budget: counts over the ratings that its first part left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import ChannelDraws, PrivacyAccountant, dominating_channel
from dprec.arrays import rows_of
from dprec.errors import SettingError
from dprec.mechanisms.bits_and_counts import BitsAndCounts
from dprec.mechanisms.count_noise import CountNoise
from dprec.mechanisms.noisy_counts import NoisyCounts
from dprec.privacy.calibration import CalibratedMechanism
from dprec.wire import FixedFields


@dataclass(frozen=True, eq=False)
class CalibratedCounts:
    """The counts of a mechanism at a budget, for one scale and one catalogue.

    A count loses no more when one of its ratings changes than the channel of the same user does, and no
    rating is in both, so a rating costs what the channel says. A whole profile costs its bits and counts.
    """

    calibrated: CalibratedMechanism
    """Of the first part."""
    mechanism: BitsAndCounts

    @classmethod
    def of(cls, calibrated: CalibratedMechanism) -> Self | None:
        """Return the counts of a mechanism; None if it has none.

        Raises
        ------
        SettingError
            When the draws of a user are to share a budget by composition, which bits gain from and counts
            do not, or the budget is too small for a count of the whole catalogue.
        """
        mechanism, budget = calibrated.mechanism, calibrated.budget
        if not isinstance(mechanism, BitsAndCounts):
            return None
        if budget is not None and budget.composition == "pld":
            raise SettingError("privacy.composition", f"'pld', with mechanism {mechanism.kind}", "'sum'")
        counts, epsilon = cls(calibrated, mechanism), calibrated.reference_channel.epsilon
        try:
            counts._noise(epsilon)
        except ValueError:
            found = f"{epsilon:g} for a rating, too little for a count of {calibrated.n_items} ratings"
            raise SettingError("privacy.epsilon", found, "a larger epsilon") from None
        return counts

    @property
    def least_level(self) -> int:
        """The lowest level that is counted."""
        return self.mechanism.least_counted_level(self.calibrated.scale)

    def left(self, symbols: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which cells of the first part are left for the counts: those with the last symbol."""
        chosen: NDArray[np.bool_] = symbols == self.calibrated.reference_channel.symbols - 1
        return chosen

    def grouped(
        self, cells: NDArray[np.int64], groups: NDArray[np.int64], counted: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """Count cells by user and group, shape (users, groups of the mechanism).

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells of each user.
        groups : ndarray of int64, shape (sum of cells,)
            The group of each cell's item.
        counted : ndarray of bool, shape (sum of cells,)
        """
        width = self.mechanism.groups
        places = (rows_of(cells) * width + groups)[counted]
        return np.bincount(places, minlength=cells.size * width).reshape(cells.size, width)

    def perturb(
        self,
        cells: NDArray[np.int64],
        counts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        random_words: NDArray[np.uint64],
    ) -> NDArray[np.int64]:
        """Add each user's noise to its counts.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells of each user's first part, counted or not.
        counts, sizes : ndarray of int64, shape (users, groups)
            Ratings that reach the least level, and all that are counted.
        random_words : ndarray of uint64, shape (users, groups)
        """
        noisy = np.zeros_like(counts)
        epsilons = self.epsilons(cells)
        for epsilon in np.unique(epsilons).tolist():
            own = epsilons == epsilon
            noisy[own] = self._noise(epsilon).perturb(counts[own], sizes[own], random_words[own])
        return noisy

    def received(
        self,
        users: NDArray[np.integer],
        groups: NDArray[np.int64],
        counted: NDArray[np.bool_],
        cells: NDArray[np.int64],
        values: NDArray[np.int64],
    ) -> NoisyCounts:
        """Return the counts that a server has received of at least one rating.

        Parameters
        ----------
        users, groups : ndarray of int, shape (observed cells,)
            The user of each cell, and the group of its item.
        counted : ndarray of bool, shape (observed cells,)
            Which cells are in a count that arrived.
        cells : ndarray of int64, shape (users,)
        values : ndarray of int64, shape (users, groups)
            The noisy counts.
        """
        width, places = self.mechanism.groups, np.flatnonzero(counted)
        owners = users[places].astype(np.int64) * width + groups[places]
        rows, row_of, sizes = np.unique(owners, return_inverse=True, return_counts=True)
        return NoisyCounts(
            places,
            row_of,
            users=rows // width,
            values=values.ravel()[rows],
            sizes=sizes,
            epsilons=self.epsilons(cells)[rows // width],
            least_level=self.least_level,
        )

    def epsilons(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what a changed rating costs users, shape (users,); of one rating where there is none."""
        return self.calibrated.losses(np.maximum(cells, 1))[0]

    def count_epsilon(self, cells: int, size: int) -> float:
        """Return the exact loss of a count of ``size`` of a user's cells when all of its ratings change."""
        return self._loss(float(self.epsilons(np.array([cells]))[0]), size)

    @property
    def codec(self) -> FixedFields:
        """The encoder and decoder of the counts of a user."""
        return FixedFields(self.mechanism.groups, self.calibrated.n_items)

    @property
    def group_codec(self) -> FixedFields:
        """The encoder and decoder of the groups of all items, which are one row."""
        return FixedFields(self.calibrated.n_items, self.mechanism.groups - 1)

    def drawn(self, cells: NDArray[np.int64], sizes: NDArray[np.int64]) -> ChannelDraws:
        """Return what is drawn about every user, given which part each rating is in.

        The parts do not depend on values, so the losses hold given the parts. The loss of a count is added:
        it occurs with a probability of about a half if all of its ratings change.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
            Cells of users whose first part arrived; 0 for others.
        sizes : ndarray of int64, shape (users, groups)
            Ratings in each count, 0 where none was asked for.
        """
        epsilons, of_user = np.unique(self.epsilons(cells), return_inverse=True)
        bits = tuple(dominating_channel(epsilon) for epsilon in epsilons.tolist())
        kinds = np.column_stack([np.repeat(of_user, sizes.shape[1]), sizes.ravel()])
        distinct, numbers = np.unique(kinds, axis=0, return_inverse=True)
        losses = np.array([self._loss(float(epsilons[place]), size) for place, size in distinct.tolist()])
        added = losses[numbers.ravel()].reshape(sizes.shape).sum(axis=1)
        return ChannelDraws(bits, of_user, cells - sizes.sum(axis=1), added)

    def accountant(
        self, cells: NDArray[np.int64], sizes: NDArray[np.int64], sent: NDArray[np.bool_]
    ) -> PrivacyAccountant:
        """Return the accountant of users whose first part arrived: their bits, and the counts asked for.

        Parameters
        ----------
        cells : ndarray of int64, shape (users,)
        sizes : ndarray of int64, shape (users, groups)
        sent : ndarray of bool, shape (users,)
        """
        accountant = PrivacyAccountant(rated=cells > 0)
        drawn, per_rating = self.drawn(cells, sizes), self.epsilons(cells)
        assert drawn.added is not None, "counts without their losses"
        accountant.step(1, sent, per_rating, per_rating * drawn.draws + drawn.added, drawn)
        return accountant

    def _loss(self, epsilon: float, size: int) -> float:
        """Return the exact loss of a count of so many ratings when all change.

        None and all of the ratings are told apart best by the two ends, 1 and all by a count between them:
        far from the true count, single counts are less probable than all beyond them.
        """
        extreme = np.unique([0, min(1, size), size])
        return self._noise(epsilon).channel(size, extreme).epsilon if size else 0.0

    def _noise(self, epsilon: float) -> CountNoise:
        return CountNoise.of(epsilon, self.calibrated.n_items)
