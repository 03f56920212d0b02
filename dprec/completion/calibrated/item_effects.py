"""Effects of items alone, from reports of which nobody needs to know whose they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.features import ITEM_SPREAD, item_features
from dprec.completion.calibrated.geometry import ImplicitGeometry
from dprec.completion.calibrated.places import placed
from dprec.completion.calibrated.regressed_effects import RegressedEffects
from dprec.completion.calibrated.symbol_tables import SymbolTables
from dprec.errors import SettingError
from dprec.observations import Evidence, Observations, RatedSets, SymbolReports
from dprec.options import option
from dprec.ordinal import Histogram, cut_points, expected_rating, level_shares
from dprec.progress import Progress, silent
from dprec.ratings import RatingScale


@dataclass(frozen=True, eq=False)
class ItemEffectsModel(Completed):
    """What the reports say about the items.

    Parameters
    ----------
    effects : RegressedEffects
        On the latent rating.
    geometry : ImplicitGeometry
        How often the items are reported on, and their places if these are known.
    catalogue : Catalogue or None
        Public data about the items, if there was any.
    cuts : ndarray, shape (levels - 1,)
        Where the latent rating changes level.
    user_variance : float
        Of the latent ratings of one item.
    scale : RatingScale
    """

    effects: RegressedEffects
    geometry: ImplicitGeometry
    catalogue: Catalogue | None
    cuts: NDArray[np.float64]
    user_variance: float
    scale: RatingScale

    @property
    def public_data(self) -> Catalogue | None:
        """The catalogue."""
        return self.catalogue

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        """Predict the expected ratings of the given cells, shape (cells,): the same for every user."""
        latent, variances = self.effects.means[items], self.effects.variances[items] + self.user_variance
        return expected_rating(latent, variances, self.cuts, self.scale.values)


@dataclass(frozen=True, kw_only=True)
class ItemEffects(Completion):
    """An effect on a latent rating for each item, from how often each symbol was reported on it."""

    kind: Literal["item-effects"] = "item-effects"
    needs_symbols: ClassVar[bool] = True
    works_unlinked: ClassVar[bool] = True
    knows_items: ClassVar[bool] = True
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest; by default equal. Not those of the protected ratings.",
        None,
    )
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)
    user_variance: float = option("The part of it that is between users, not items.", 0.25, ge=0, le=100)
    dimensions: int = option(
        "Dimensions of the places that rated items give to items; 0 if nobody says who rated which items.",
        0,
        ge=0,
        le=64,
    )
    features: int = option("Dimensions, the first, on which effects are regressed.", 10, ge=0, le=64)
    sweeps: int = option("Steps of the fit.", 20, ge=1)

    @property
    def reads_item_sets(self) -> bool:
        """Whether items have places."""
        return self.dimensions > 0

    def check_reports(self, evidence: type[Evidence], sender: str, *, of_values: bool) -> None:
        """Refuse reports that are not of single ratings."""
        if not evidence.of_single_ratings:
            found = f"{self.kind}, with mechanism {sender}"
            accepted = "a mechanism that shows which items were rated and reports on each alone"
            raise SettingError("kind", found, accepted)

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a histogram of another number of levels."""
        level_shares(self.histogram, scale.levels)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> ItemEffectsModel:
        """Complete the matrix; see `Completion.fit`.

        A report on item i is of a latent rating Normal(c_i, v), v the variance between users, with noise of
        variance 1: on a scale that is s = sqrt(1 + v) times as coarse, it is of c_i / s with noise of
        variance 1. There the effects are found by Fisher scoring, regressed on how often items are reported,
        on public data and on places. Of the values, only the number of each symbol on each item is read, so
        that it makes no difference whose a report is or when it came.
        """
        scale, n_items = observations.scale, observations.shape[1]
        cuts = cut_points(level_shares(self.histogram, scale.levels), self.variance)
        reports = observations.symbols or clear_reports(observations)
        coarse = np.sqrt(1 + self.user_variance)
        tables = SymbolTables.of(reports.channels, cuts / coarse)
        columns = tables.first[reports.channel_of] + reports.symbols
        width = tables.slopes.shape[1]
        counts = np.bincount(observations.items * width + columns, minlength=n_items * width)
        counts = counts.reshape(n_items, width)
        seen = counts.sum(axis=1)
        geometry = self._geometry(observations, seen, seed)
        features = item_features(geometry, observations.catalogue, self.features)
        effects = RegressedEffects.at_zero(features, ITEM_SPREAD / coarse**2, intercept=True)
        for sweep in range(self.sweeps):
            precision, slope = _likelihood(tables, counts, effects.means)
            effects = effects.solved(precision, slope + precision * effects.means)
            progress("completing", sweep + 1, self.sweeps)
        diagnostics = {
            "cut_points": cuts.tolist(),
            "item_spread": effects.spread * coarse**2,
            "item_coefficients": (effects.coefficients * coarse).tolist(),
            "items_without_reports": int((seen == 0).sum()),
        }
        effects = replace(effects, means=effects.means * coarse, variances=effects.variances * coarse**2)
        return ItemEffectsModel(
            effects,
            geometry,
            observations.catalogue,
            cuts,
            self.user_variance,
            scale,
            diagnostics=diagnostics,
        )

    def _geometry(self, observations: Observations, seen: NDArray[np.int64], seed: int) -> ImplicitGeometry:
        """Return the places of items that the same users rated, or no more than how often they are rated."""
        if self.dimensions == 0:
            nowhere = np.zeros((seen.size, 0))
            return ImplicitGeometry(nowhere[:0], nowhere, np.zeros(0, dtype=np.int64), seen)
        linked = RatedSets(observations.users, observations.items, observations.shape[0])
        rated = observations.rated or linked
        shape = (rated.n_users, seen.size)
        placement = observations.placement
        return placed(rated.users, rated.items, shape, placement, self.dimensions, seed)


def clear_reports(observations: Observations) -> SymbolReports:
    """Return the reports of values that were sent as they are, rounded to the scale."""
    scale = observations.scale
    levels = scale.level_of(np.clip(observations.values, scale.low, scale.high)).astype(np.int64)
    return SymbolReports((np.eye(scale.levels),), levels - 1, np.zeros_like(levels))


def _likelihood(
    tables: SymbolTables, counts: NDArray[np.int64], latent: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the information about every effect, and the slope of its log likelihood, shape (items,).

    Parameters
    ----------
    tables : SymbolTables
    counts : ndarray of int64, shape (items, columns of the tables)
    latent : ndarray of float64, shape (items,)
        Where.
    """
    slopes, information = tables.everywhere(latent)
    through = np.add.reduceat(counts, tables.first, axis=1)
    return (through * information).sum(axis=1), (counts * slopes).sum(axis=1)
