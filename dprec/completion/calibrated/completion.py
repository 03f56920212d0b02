"""Calibrated completion: an ordinal model fitted to the likelihood of the reports, not to noisy numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion.base import Completed, Completion, Observations
from dprec.completion.calibrated.geometry import ImplicitGeometry, standardised_logarithms
from dprec.completion.calibrated.hidden_sets import HiddenSetFit
from dprec.completion.calibrated.learned_histogram import learned_shares
from dprec.completion.calibrated.regressed_effects import RegressedEffects
from dprec.completion.calibrated.symbol_tables import SymbolTables
from dprec.mechanisms.symbol_reports import SymbolReports
from dprec.options import option
from dprec.ordinal import Histogram, cut_points, expected_rating, level_shares
from dprec.progress import Progress, silent
from dprec.ratings import RatingScale

_USER_SPREAD, _ITEM_SPREAD = 0.2, 0.06
"""Expected variances of the effects around what features say, in units of the noise on a latent rating."""


@dataclass(frozen=True, eq=False)
class CalibratedModel(Completed):
    """Effects of users and items on the latent rating.

    Parameters
    ----------
    users, items : RegressedEffects
    geometry : ImplicitGeometry
    cuts : ndarray, shape (levels - 1,)
        Where the latent rating changes level.
    scale : RatingScale
    """

    users: RegressedEffects
    items: RegressedEffects
    geometry: ImplicitGeometry
    cuts: NDArray[np.float64]
    scale: RatingScale

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict the expected ratings of the given cells, shape (cells,)."""
        latent = self.users.means[users] + self.items.means[items]
        variances = self.users.variances[users] + self.items.variances[items]
        return expected_rating(latent, variances, self.cuts, self.scale.values)


@dataclass(frozen=True, kw_only=True)
class Calibrated(Completion):
    """User and item effects on a latent rating, from likelihoods and from which items were rated."""

    kind: Literal["calibrated"] = "calibrated"
    needs_likelihood: ClassVar[bool] = True
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest; by default equal. Not those of the protected ratings.",
        None,
    )
    learn_histogram: bool = option(
        "Whether the shares of the levels are learned from the private reports; what these do not tell apart "
        "stays as the public histogram has it.",
        False,
    )
    dimensions: int = option(
        "Dimensions of the places that rated items give to items and users.", 20, ge=0, le=64
    )
    features: int = option("Dimensions, the first, on which effects are regressed.", 10, ge=0, le=64)
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)
    sweeps: int = option("Sweeps over items and users.", 30, ge=1)

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a histogram of another number of levels."""
        level_shares(self.histogram, scale.levels)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> CalibratedModel:
        """Complete the matrix; see `Completion.fit`.

        Every half sweep replaces each report by a pseudo-observation at the current latent rating (Fisher
        scoring): its weight is the information of a report, its offset the slope of the log likelihood.
        """
        seen, scale = observations, observations.scale
        if seen.symbols is not None and seen.symbols.hidden is not None:
            return self._fitted_to_hidden_sets(seen, seed, progress)
        geometry = ImplicitGeometry.of(seen.users, seen.items, seen.shape, self.dimensions, seed)
        reports = seen.symbols or _clear(seen)
        shares = np.array(level_shares(self.histogram, scale.levels))
        shares = learned_shares(reports, shares) if self.learn_histogram else shares / shares.sum()
        cuts = cut_points(shares, self.variance)
        tables = SymbolTables.of(reports.channels, cuts)

        def looked_up(latent: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            return tables.at(latent, reports.symbols, reports.channel_of)

        users = RegressedEffects.at_zero(self._user_features(geometry), _USER_SPREAD, intercept=False)
        items = RegressedEffects.at_zero(self._item_features(geometry), _ITEM_SPREAD, intercept=True)
        for sweep in range(self.sweeps):
            items = _solved(items, seen.items, users.means[seen.users], looked_up)
            users = _solved(users, seen.users, items.means[seen.items], looked_up)
            progress("completing", sweep + 1, self.sweeps)
        diagnostics = {
            "histogram": "learned from the reports" if self.learn_histogram else "public",
            "level_shares": shares.tolist(),
            "cut_points": cuts.tolist(),
            "user_spread": users.spread,
            "item_spread": items.spread,
            "user_coefficients": users.coefficients.tolist(),
            "item_coefficients": items.coefficients.tolist(),
        }
        return CalibratedModel(users, items, geometry, cuts, scale, diagnostics=diagnostics)

    def _fitted_to_hidden_sets(
        self, observations: Observations, seed: int, progress: Progress
    ) -> CalibratedModel:
        """Complete the matrix from reports on every cell of the catalogue."""
        scale = observations.scale
        cuts = cut_points(level_shares(self.histogram, scale.levels), self.variance)
        fit = HiddenSetFit.of(observations, cuts, self.dimensions, self.sweeps, seed, progress)
        return CalibratedModel(
            fit.users.effects, fit.items.effects, fit.geometry, cuts, scale, diagnostics=fit.diagnostics
        )

    def _user_features(self, geometry: ImplicitGeometry) -> NDArray[np.float64]:
        activity = standardised_logarithms(geometry.user_counts)
        return np.column_stack([activity, geometry.users[:, : self.features]])

    def _item_features(self, geometry: ImplicitGeometry) -> NDArray[np.float64]:
        popularity = standardised_logarithms(geometry.item_counts)
        bend = (popularity**2 - 1) * (geometry.item_counts > 0)
        return np.column_stack([np.ones(bend.size), popularity, bend, geometry.items[:, : self.features]])


def _solved(
    side: RegressedEffects,
    owners: NDArray[np.int32],
    others: NDArray[np.float64],
    looked_up: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]],
) -> RegressedEffects:
    """Solve one side given the other side's effects in each cell."""
    own = side.means[owners]
    slopes, information = looked_up(own + others)
    entities = side.means.size
    precision = np.bincount(owners, weights=information, minlength=entities)
    # Weight times pseudo-observation, own + slope / information, without the division.
    target = np.bincount(owners, weights=information * own + slopes, minlength=entities)
    return side.solved(precision.astype(np.float64), target.astype(np.float64))


def _clear(observations: Observations) -> SymbolReports:
    """Return the reports of values that were sent as they are, rounded to the scale."""
    scale = observations.scale
    levels = scale.level_of(np.clip(observations.values, scale.low, scale.high)).astype(np.int64)
    return SymbolReports((np.eye(scale.levels),), levels - 1, np.zeros_like(levels))
