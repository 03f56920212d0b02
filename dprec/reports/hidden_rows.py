"""One symbol for every item of the catalogue, rated or not, which hides which items were rated."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np

from dprec.accounting import PrivacyUnit
from dprec.arrays import Bools, Floats, Ints, Uint8s, Uint16s, offsets, rows_of
from dprec.observations import Evidence, Observations, RowReports
from dprec.ratings import Ratings, RatingScale
from dprec.reports.base import REPORT_ROUND, DrawsFor, HasChannel, Profiles, ReportSize
from dprec.reports.cells import CellFamily, mean_variance
from dprec.wire import ReportCodec

TOLERANCE = 0.05
"""Probability with which a bound on the distance of reports may fail (gamma in [zheng2016])."""

RATING_NOISE = 0.0
"""Difference between a given rating and the true one (rho_0); here the given rating is the true one."""


class BoundsDistance(HasChannel, Protocol):
    """A mechanism that may bound how far its reports are from the ratings."""

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float | None:
        """Return the bound on the Frobenius distance, in rating units; None if no paper gives one."""


@dataclass(frozen=True, eq=False)
class HiddenRowFamily(CellFamily):
    """A symbol for every item of the catalogue, all drawn from one channel; see `ReportFamily`.

    "Not rated" is an input of the channel. A report is the row of symbols, or the items that it shows as
    rated with theirs, whichever is shorter.
    """

    mechanism: BoundsDistance
    hides_items: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = RowReports
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating", "cell", "user")
    on_items: ClassVar[str] = (
        "Which items a user rated is hidden: epsilon holds for every cell, rated or not."
    )

    @classmethod
    def matched_unit(cls, unit: PrivacyUnit) -> PrivacyUnit:
        """Return the unit; a rating is a cell."""
        return "cell" if unit == "rating" else unit

    @classmethod
    def channel_inputs(cls, scale: RatingScale) -> Floats:
        """Return NaN for "not rated", and the levels."""
        return np.concatenate([[np.nan], scale.values])

    @classmethod
    def seen_cells(cls, users: int, items: int, ratings: int) -> int:
        """Return all cells: which of them are rated is hidden."""
        return users * items

    def cells(self, counts: Ints) -> Ints:
        """Return the items of the catalogue, for every user."""
        return np.full_like(counts, self.n_items)

    def work(self, counts: Ints) -> Ints:
        """Return the items of the catalogue, for every user."""
        return self.cells(counts)

    def encode(self, profiles: Profiles, draws: DrawsFor) -> list[bytes]:
        """Return the symbols of all items of the catalogue, rated or not."""
        n_users, n_items = profiles.counts.size, self.n_items
        cells = self.cells(profiles.counts)
        levels: Uint8s = np.zeros((n_users, n_items), dtype=np.uint8)
        levels[rows_of(profiles.counts), profiles.items] = profiles.levels
        noise = draws("report").per_cell(cells, np.tile(np.arange(n_items), n_users), REPORT_ROUND)
        symbols = self.perturb(cells, levels.ravel(), noise)
        shown = np.flatnonzero(~np.isnan(self.reference_channel.values[symbols]))
        counts = np.bincount(shown // n_items, minlength=n_users)
        return self.codec.encode(offsets(counts), shown % n_items, symbols[shown])

    def read(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the value that each symbol stands for; see the base class."""
        return self.reference_channel.values[symbols]

    def likelihood(self, cells: Ints, symbols: Uint16s) -> Floats:
        """Return the probability of each symbol given each level; see the base class."""
        return self.reference_channel.probabilities[1:, symbols].T

    def evidence_of(self, cells: Ints, symbols: Uint16s, accepted: Bools) -> RowReports:
        """Return the symbols that are shown, and what is known of all others."""
        channel = self.reference_channel
        return RowReports(
            (channel.probabilities[1:],),
            symbols.astype(np.int64),
            np.zeros(symbols.size, dtype=np.int64),
            unrated=channel.probabilities[0],
            unsent=np.isnan(channel.values),
            reported=accepted,
        )

    def noise_variance(self, cells: Ints) -> float | None:
        """Return the mean variance of the value read for a rating; see the base class."""
        if self.budget is None or not cells.any():
            return None
        return mean_variance(self.reference_channel)

    def size(self, ratings: int) -> ReportSize:
        """Return a report of a symbol for every item."""
        channel = self.channel(self.n_items)
        bits = ReportCodec(channel, self.n_items).expected_bits(ratings)
        epsilon = None if self.budget is None else channel.epsilon
        return ReportSize(channel.symbols, self.n_items, bits, epsilon, "cell")

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Say how many ratings are made up and lost, and how far they are from the true ones if a paper does.

        The distance is rho = ||P(Theta - Z)||_F per cell (Zheng [zheng2016], Theorem 3). Bound and measured
        distance are root mean squares in rating units, comparable to an RMSE. The bound covers all reported
        cells, true or made up. The measured distance is that between the report and the train rating, on the
        reported cells that are truly rated: a made-up cell has no known truth.
        """
        rated = RatedCells.of(train, observed)
        reported = observed.values.size
        note = (
            f"The server sees {reported} ratings: {reported - rated.count} are fake (the cell is not rated), "
            f"and {train.count - rated.count} of the {train.count} true ones are lost."
        )
        users, ratings = int(accepted.sum()), int(train.counts[accepted].sum())
        epsilon = self.reference_channel.epsilon
        bound = self.mechanism.distance_bound(users, self.n_items, ratings, self.scale, epsilon, TOLERANCE)
        if bound is None:
            return (note,), {}
        errors = observed.values[rated.among_reported] - train.values[rated.among_rated]
        return (note,), {
            "shown_cells": reported,
            "rated_cells": errors.size,
            "bound": bound / np.sqrt(reported) if reported else None,
            "measured": float(np.sqrt(np.mean(errors**2))) if errors.size else None,
            "tolerance": TOLERANCE,
            "rating_noise": RATING_NOISE,
        }


@dataclass(frozen=True, eq=False)
class RatedCells:
    """The cells that are both reported as rated and truly rated; only a simulation knows them."""

    among_reported: Ints
    """Their positions among the observations; shape (cells,)."""
    among_rated: Ints
    """Their positions among the ratings that the devices hold; shape (cells,)."""

    @classmethod
    def of(cls, train: Ratings, observed: Observations) -> Self:
        """Find the cells that observations and ratings have in common."""
        reported = observed.users.astype(np.int64) * train.n_items + observed.items
        places = np.intersect1d(reported, train.cells, assume_unique=True, return_indices=True)[1:]
        return cls(*places)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.among_rated.size
