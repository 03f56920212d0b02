"""How contributions become sums with noise: who adds up, who adds the noise, and what travels.

A device encodes its contribution as its report; whoever adds up reads the reports of a partition and returns
their sum in integers, so that the sums of partitions can be added; a release is the sum of everybody with
Gaussian noise. Noise is given as a multiplier: its standard deviation where contributions have a norm of 1 at
most.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dprec.components import Options
from dprec.gradients import Aggregate, RoundDraws
from dprec.privacy.guarantee import Trust
from dprec.private_als.statistics import Contributions, StatisticsLayout
from dprec.randomness import ReleaseDraws


@dataclass(frozen=True)
class FurtherMessages:
    """Payload bytes of the messages of a release besides its request and its report, for each device."""

    downlink: tuple[int, ...] = ()
    uplink: tuple[int, ...] = ()
    """What every device that is asked receives and sends before it reports."""
    downlink_after: tuple[int, ...] = ()
    uplink_after: tuple[int, ...] = ()
    """What a device whose report arrived receives and sends then."""


@dataclass(frozen=True, kw_only=True)
class Aggregation(Options):
    """Base of the ways to add up contributions."""

    kind: str = ""
    without_loss: ClassVar[frozenset[str] | None] = frozenset({"papers"})
    trust: ClassVar[Trust] = "central"
    reason: ClassVar[str] = ""
    """Why the loss is proved, for the guarantee: what follows a colon, to its full stop."""
    deploys: ClassVar[bool] = True
    """Whether devices and server can do it on a deployment."""

    def among(self, users: int) -> Self:
        """Return the aggregation of a run with so many users, as it is installed on their devices.

        Raises
        ------
        SettingError
            When they are too few.
        """
        return self

    def check(self, layout: StatisticsLayout, multiplier: float) -> None:
        """Refuse settings that do not suit a release, once they are for a number of users; see `among`.

        Raises
        ------
        SettingError
            When there is one; it names the setting.
        """

    def notes(self) -> tuple[str, ...]:
        """Return what else a reader of the figures must know."""
        return ()

    def further_messages(self) -> FurtherMessages:
        """Return the bytes of what is exchanged around a report."""
        return FurtherMessages()

    def whole(
        self, sizes: NDArray[np.int64], layout: StatisticsLayout, multiplier: float
    ) -> NDArray[np.bool_]:
        """Return which reports, of so many bytes each, are whole as far as their size tells."""
        return np.ones(sizes.size, dtype=np.bool_)

    def can_release(
        self, present: NDArray[np.bool_], added_up: int, round_index: int, public_seed: int
    ) -> bool:
        """Return whether a release succeeds; if it fails, its budget is spent all the same.

        Parameters
        ----------
        present : ndarray of bool, shape (users,)
            Whose whole report arrived, of all who were to take part.
        added_up : int
            How many reports are in the sum.
        round_index, public_seed : int
            See `RoundDraws`.
        """
        return True

    @abstractmethod
    def multiplier(self, epsilon: float, delta: float) -> float:
        """Return the smallest noise multiplier with which one release is (epsilon, delta)-private per user.

        Releases with multipliers m_t cost as much as one with the multiplier (sum of m_t^-2)^-1/2.
        """

    @abstractmethod
    def epsilon(self, multiplier: float, delta: float) -> float:
        """Return what one release costs a user; infinite without noise. The inverse of `multiplier`."""

    @abstractmethod
    def encode(
        self, contributions: Contributions, layout: StatisticsLayout, multiplier: float, draws: RoundDraws
    ) -> list[bytes]:
        """Return every user's report.

        Parameters
        ----------
        multiplier : float
            Noise of the release, of which devices may have to add a share; 0 if nothing is protected.
        """

    @abstractmethod
    def decode(
        self, reports: Sequence[bytes], layout: StatisticsLayout, multiplier: float
    ) -> tuple[NDArray[np.bool_], Aggregate]:
        """Validate and add up the reports of a partition.

        Returns
        -------
        valid : ndarray of bool, shape (reports,)
            Malformed reports are rejected without an exception and contribute nothing.
        aggregate : Aggregate
            Sum of the valid ones, of the shape `sum_shape`.
        """

    def sum_shape(self, layout: StatisticsLayout) -> tuple[int, ...]:
        """Return the shape of a sum of reports."""
        return layout.n_items, layout.width

    @abstractmethod
    def possible(self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float) -> bool:
        """Return whether valid reports can have a sum, of the right shape, that somebody else added up."""

    @abstractmethod
    def length(self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float) -> float:
        """Return the norm of a sum without noise, in units of the largest contribution of a user."""

    @abstractmethod
    def release(
        self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float, draws: ReleaseDraws
    ) -> NDArray[np.float64]:
        """Return the sums with noise.

        Parameters
        ----------
        aggregate : Aggregate
            Of everybody who takes part.
        multiplier : float
            At least 0; without noise, 0.
        draws : ReleaseDraws
            The server's, for this release alone.

        Returns
        -------
        ndarray of float64, shape (items, width)
            In the units of the statistics; the noise of each number has the standard deviation
            ``multiplier * layout.scales``.
        """

    @abstractmethod
    def report_bits(self, layout: StatisticsLayout, ratings: int, multiplier: float) -> int:
        """Return the size in bits of the report of a user with that many chosen ratings, evenly spread."""
