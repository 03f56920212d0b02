"""Item biases alone, from the likelihood of symbols, whoever sent them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.embedding import ItemSetEmbedding, embedded
from dprec.completion.calibrated.features import ITEM_SPREAD, item_features
from dprec.completion.calibrated.regressions import Expected, Regressed
from dprec.components import option
from dprec.errors import SettingError
from dprec.observations import Evidence, Observations, RatedSets, SymbolReports
from dprec.ordinal import Histogram, cut_points, expected_rating, level_probabilities, level_shares
from dprec.progress import Progress, silent
from dprec.ratings import RatingScale

_REACH, _POINTS = 8.0, 401
"""The latent ratings for which tables are made: from -8 to 8, in steps of 0.04."""

_LEAST = 1e-300

_STEEPEST = 1e4
"""No slope of a likelihood on the grid is steeper for cut points below 1,000: see `SymbolTables.of`."""


@dataclass(frozen=True, eq=False)
class SymbolTables:
    """Slopes and information of every symbol's log likelihood, on a grid of latent ratings."""

    slopes: Floats
    """The derivative of log Pr(symbol | latent rating), for all symbols of all channels;
    shape (points, columns).
    """
    information: Floats
    """Fisher information of a report through each channel; shape (points, channels)."""
    first: Ints
    """The column of each channel's first symbol; shape (channels,)."""

    @classmethod
    def of(cls, channels: Sequence[Floats], cuts: Floats) -> Self:
        """Tabulate all symbols.

        ``channels``, shape (levels, symbols): Pr(symbol | level); ``cuts``, shape (levels - 1,): where the
        latent rating changes level.

        A slope is the mean of what lies between two cut points, seen from the latent rating, and no report
        tells more than the latent rating with noise of variance 1, so information is between 0 and 1. These
        bounds matter only where cut points are so close together, or so far apart, that rounding leaves
        nothing of a level: with them, what is computed from any cut points is finite.
        """
        grid = np.linspace(-_REACH, _REACH, _POINTS)
        probabilities, derivatives = level_probabilities(grid, cuts)
        slopes, information = [], []
        for channel in channels:
            # A symbol as likely at every level says nothing, and not as much as rounding does either.
            moved = derivatives @ channel * (np.ptp(channel, axis=0) > 0)
            steep = moved / np.maximum(probabilities @ channel, _LEAST)
            slopes.append(np.clip(steep, -_STEEPEST, _STEEPEST))
            information.append(np.clip((slopes[-1] * moved).sum(axis=1), 0.0, 1.0))
        first = np.cumsum([0, *(channel.shape[1] for channel in channels[:-1])])
        return cls(np.hstack(slopes), np.column_stack(information), first)

    def at(self, latent: Floats, symbols: Ints, channel_of: Ints | Literal[0] = 0) -> tuple[Floats, Floats]:
        """Return the slope of each symbol and the information of its channel, interpolated linearly."""
        lower, share = _grid_points(latent)

        def between(table: Floats, columns: Ints | Literal[0]) -> Floats:
            below, above = table[lower, columns], table[lower + 1, columns]
            mixed: Floats = below + share * (above - below)
            return mixed

        return between(self.slopes, self.first[channel_of] + symbols), between(self.information, channel_of)

    def everywhere(self, latent: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of all symbols and the information of all channels at latent ratings."""
        lower, share = _grid_points(latent)
        slopes, information = (
            table[lower] + share[:, None] * (table[lower + 1] - table[lower])
            for table in (self.slopes, self.information)
        )
        return slopes, information


def _grid_points(latent: Floats) -> tuple[Ints, Floats]:
    """Return the point of the grid below each latent rating, and the share of the way to the next."""
    positions = np.clip((latent + _REACH) * ((_POINTS - 1) / (2 * _REACH)), 0, _POINTS - 1.001)
    lower = positions.astype(np.int64)
    return lower, positions - lower


@dataclass(frozen=True, eq=False)
class ItemBiasesModel(Completed):
    """What the reports say about the items."""

    biases: Regressed
    """On the latent rating."""
    embedding: ItemSetEmbedding
    """How often the items are reported on, and their embeddings if these are known."""
    catalogue: Catalogue | None
    """Public data about the items, if there was any."""
    cuts: Floats
    """Where the latent rating changes level; shape (levels - 1,)."""
    user_variance: float
    """Of the latent ratings of one item."""
    scale: RatingScale

    @property
    def public_data(self) -> Catalogue | None:
        """The catalogue."""
        return self.catalogue

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the expected ratings of the given cells, shape (cells,): the same for every user."""
        latent, variances = self.biases.biases[items], self.biases.variances[items] + self.user_variance
        return expected_rating(latent, variances, self.cuts, self.scale.values)


@dataclass(frozen=True, kw_only=True)
class ItemBiases(Completion):
    """A bias on a latent rating for each item, from how often each symbol was reported on it."""

    kind: Literal["item-biases"] = "item-biases"
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
        "Dimensions of the item embeddings from item sets; 0 where item sets are not known.",
        0,
        ge=0,
        le=64,
    )
    features: int = option("Dimensions, the first, on which biases are regressed.", 10, ge=0, le=64)
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

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> ItemBiasesModel:
        """Complete the matrix; see `Completion.fit`.

        A report on item i is of a latent rating Normal(c_i, v), v the variance between users, with noise of
        variance 1: on a scale that is s = sqrt(1 + v) times as coarse, it is of c_i / s with noise of
        variance 1. There the biases are found by Fisher scoring, regressed on how often items are reported,
        on public data and on embeddings. Of the values, only the number of each symbol on each item is read,
        so that it makes no difference whose a report is or when it came.
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
        embedding = self._embedding(observations, seen, seed)
        features = item_features(embedding, observations.catalogue, self.features)
        biases = Regressed.prior(features, Expected(spread=(ITEM_SPREAD / coarse**2,)))
        for sweep in range(self.sweeps):
            precision, slope = _likelihood(tables, counts, biases.biases)
            target = slope + precision * biases.biases
            biases = biases.solved(precision[:, None, None], target[:, None])
            progress("completing", sweep + 1, self.sweeps)
        diagnostics = {
            "cut_points": cuts.tolist(),
            "item_spread": float(biases.spreads[0]) * coarse**2,
            "item_coefficients": (biases.coefficients[:, 0] * coarse).tolist(),
            "items_without_reports": int((seen == 0).sum()),
        }
        biases = replace(biases, means=biases.means * coarse, covariances=biases.covariances * coarse**2)
        return ItemBiasesModel(
            biases,
            embedding,
            observations.catalogue,
            cuts,
            self.user_variance,
            scale,
            diagnostics=diagnostics,
        )

    def _embedding(self, observations: Observations, seen: Ints, seed: int) -> ItemSetEmbedding:
        """Return item embeddings from who rated them, or no more than how often they are rated."""
        if self.dimensions == 0:
            empty = np.zeros((seen.size, 0))
            return ItemSetEmbedding(empty[:0], empty, np.zeros(0, dtype=np.int64), seen)
        linked = RatedSets(observations.users, observations.items, observations.shape[0])
        rated = observations.rated or linked
        shape = (rated.n_users, seen.size)
        embedding_release = observations.embedding_release
        return embedded(rated.users, rated.items, shape, embedding_release, self.dimensions, seed)


def clear_reports(observations: Observations) -> SymbolReports:
    """Return the reports of values that were sent as they are, rounded to the scale."""
    scale = observations.scale
    levels = scale.level_of(np.clip(observations.values, scale.low, scale.high)).astype(np.int64)
    return SymbolReports((np.eye(scale.levels),), levels - 1, np.zeros_like(levels))


def _likelihood(tables: SymbolTables, counts: Ints, latent: Floats) -> tuple[Floats, Floats]:
    """Return the information about every bias, and the slope of its log likelihood, shape (items,)."""
    slopes, information = tables.everywhere(latent)
    through = np.add.reduceat(counts, tables.first, axis=1)
    return (through * information).sum(axis=1), (counts * slopes).sum(axis=1)
