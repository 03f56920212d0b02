"""Biases of items, from the likelihood of symbols about single ratings or from answers about whole profiles.

**Answers about whole profiles** name an item and a side of a mean, and tell popularity too. Of n answers, let
f_i+ and f_i- be the shares that name item i as rated above and not above the user's mean, and v the share
that an item without ratings has of either. For an item with latent bias c_i that a share of users
proportional to p_i has rated,

    f_i+ + f_i- = 2 v + p_i + noise,        f_i+ - f_i- = p_i E[side] + noise,

with noise of about 2 v / n + p_i / n in both, independent as the two sides are. A side is that of
c_i + e with e ~ N(0, s^2), so that E[side] = 2 Phi(c_i / s) - 1, nearly in proportion to a small c_i. With
log p_i ~ N(m, q) on a grid and c_i ~ N(F_i w, t), F_i holding log p_i in deviations from m, the posterior is
a mixture of normal distributions, one for each p of the grid; m, q, t and v follow by EM, w by ridge
regression with the c_i integrated out. Popularity, of which the answers say most, tells of the biases.

**Answers about single ratings** say whether these are above the mean of their user's. The latent rating of
user u and item i is b_u + c_i + e_ui, and the mean of the user's n rated items is about b_u + cbar_u +
ebar_u: the user's bias drops out. The residual has the mean c_i - cbar_u and the variance (1 + t)(1 - 1/n),
with 1 the noise on a latent rating and t the variance of preferences, so that

    Pr(above) = Phi((c_i - cbar_u) / sqrt((1 + t)(1 - 1/n))),
    Pr(answer is yes) = q + (1 - 2 q) Pr(above), for answers that are lies with probability q.

With c_i = m_i + F_i w + d_i, for features F_i that are 0 on average, this is a probit regression on
F_i - Fbar_u, with the offset m_i - mbar_u and a bias (1 - 1/n) d_i of the item; the other items' d, of which
cbar_u holds the mean, are neglected.
It is fitted by Fisher scoring, the d_i integrated out of the equations of w.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec import ordinal
from dprec.arrays import AnyInts, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.embedding import (
    ItemSetEmbedding,
    catalogue_features,
    embedded,
    prior_item_biases,
)
from dprec.completion.calibrated.guarding import cautions, guarded_biases, guarded_priors
from dprec.completion.calibrated.regressions import PRIOR_COEFFICIENTS, Expected, Regressed
from dprec.components import option
from dprec.errors import SettingError
from dprec.observations import (
    Evidence,
    Observations,
    ProfileReports,
    ResidualReports,
    SymbolReports,
)
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
        probabilities, derivatives = ordinal.level_probabilities(grid, cuts)
        slopes, information = [], []
        for channel in channels:
            # A symbol as likely at every level says nothing, and not as much as rounding does either.
            moved = derivatives @ channel * (np.ptp(channel, axis=0) > 0)
            steep = moved / np.maximum(probabilities @ channel, _LEAST)
            slopes.append(np.clip(steep, -_STEEPEST, _STEEPEST))
            information.append(np.clip((slopes[-1] * moved).sum(axis=1), 0.0, 1.0))
        first = np.cumsum([0, *(channel.shape[1] for channel in channels[:-1])])
        return cls(np.hstack(slopes), np.column_stack(information), first)

    def columns(self, reports: SymbolReports) -> Ints:
        """Return the column of every symbol, shape (cells,); raises IndexError for one without a column."""
        columns = self.first[reports.channel_of] + reports.symbols
        if columns.size and not 0 <= columns.min() <= columns.max() < self.slopes.shape[1]:
            raise IndexError("a symbol that its channel does not have")
        return columns

    def counted(self, reports: SymbolReports, items: AnyInts, n_items: int) -> Ints:
        """Return how often each item has the symbol of every column, shape (items, columns)."""
        width = self.slopes.shape[1]
        counts = np.bincount(items * width + self.columns(reports), minlength=n_items * width)
        return counts.reshape(n_items, width)

    def at(self, latent: Floats, columns: Ints, channel_of: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the slope of each symbol and the information of its channel, interpolated linearly.

        ``columns``: of the symbols; ``channel_of``: by default, the first; of the latent ratings' shape.
        """
        from dprec.kernels.effects import look_up

        channels = np.zeros(latent.shape, dtype=np.int64) if channel_of is None else channel_of
        slopes, information = np.empty(latent.shape), np.empty(latent.shape)
        places, tables = (columns.ravel(), channels.ravel()), (self.slopes, self.information)
        look_up(slopes.ravel(), information.ravel(), latent.ravel(), *places, *tables, _REACH)
        return slopes, information

    def everywhere(self, latent: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of all symbols and the information of all channels at latent ratings."""
        # The point of the grid below each latent rating, and the share of the way to the next.
        positions = np.clip((latent + _REACH) * ((_POINTS - 1) / (2 * _REACH)), 0, _POINTS - 1.001)
        lower = positions.astype(np.int64)
        share = positions - lower
        slopes, information = (
            table[lower] + share[:, None] * (table[lower + 1] - table[lower])
            for table in (self.slopes, self.information)
        )
        return slopes, information


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

    def cautions(self, observations: Observations, most: int, preferences: float = 0.0) -> Floats:
        """Return by how much items are lowered in lists; see `Completed.cautions`."""
        reports, n_items = observations.symbols or clear_reports(observations), observations.shape[1]
        coarse = np.sqrt(1 + self.user_variance)
        tables = SymbolTables.of(reports.channels, self.cuts / coarse)
        counts = tables.counted(reports, observations.items, n_items)
        owners, columns = np.nonzero(counts)

        def slopes(biases: Floats) -> Floats:
            return tables.everywhere(biases / coarse)[0][owners, columns] / coarse

        priors = guarded_priors(self.biases, self.embedding, self.catalogue, most)
        rows, spread = (owners, counts[owners, columns]), float(self.biases.spreads[0])
        guarded = guarded_biases(slopes, rows, most, priors, spread)
        added = np.full(n_items, preferences)
        return cautions(self.biases.biases, guarded, self.embedding.item_counts, most, added)

    def lowered(self, cautions: Floats) -> "ItemBiasesModel":
        """Return a model by which lists are ranked; see `Completed.lowered`."""
        return replace(self, biases=self.biases.lowered(cautions))

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the expected ratings of the given cells, shape (cells,): the same for every user."""
        latent, variances = self.biases.biases[items], self.biases.variances[items] + self.user_variance
        return ordinal.expected_rating(latent, variances, self.cuts, self.scale.values)


@dataclass(frozen=True, kw_only=True)
class ItemBiases(Completion):
    """A bias on a latent rating for each item, from how often each symbol was reported on it."""

    kind: Literal["item-biases"] = "item-biases"
    needs_symbols: ClassVar[bool] = True
    works_unlinked: ClassVar[bool] = True
    knows_items: ClassVar[bool] = True
    histogram: ordinal.Histogram | None = option(
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

    def check_guard(self, evidence: type[Evidence], sender: str) -> None:
        """Accept all that `check_reports` does."""

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a histogram of another number of levels."""
        ordinal.level_shares(self.histogram, scale.levels)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> ItemBiasesModel:
        """Complete the matrix; see `Completion.fit`.

        A report on item i is of a latent rating Normal(c_i, v), v the variance between users, with noise of
        variance 1: on a scale that is s = sqrt(1 + v) times as coarse, it is of c_i / s with noise of
        variance 1. There the biases are found by Fisher scoring, regressed on how often items are reported,
        on public data and on embeddings. Of the values, only the number of each symbol on each item is read,
        so that it makes no difference whose a report is or when it came.
        """
        scale, n_items = observations.scale, observations.shape[1]
        cuts = ordinal.cut_points(ordinal.level_shares(self.histogram, scale.levels), self.variance)
        reports = observations.symbols or clear_reports(observations)
        coarse = np.sqrt([1 + self.user_variance])
        tables = SymbolTables.of(reports.channels, cuts / coarse)
        counts = tables.counted(reports, observations.items, n_items)
        item_counts = counts.sum(axis=1)
        embedding = self._embedding(observations, item_counts, seed)
        biases = prior_item_biases(embedding, observations.catalogue, self.features).scaled(1 / coarse)
        for sweep in range(self.sweeps):
            slopes, information = tables.everywhere(biases.biases)
            precision = (np.add.reduceat(counts, tables.first, axis=1) * information).sum(axis=1)
            target = (counts * slopes).sum(axis=1) + precision * biases.biases
            biases = biases.solved(precision[:, None, None], target[:, None])
            progress("completing", sweep + 1, self.sweeps)
        biases = biases.scaled(coarse)
        diagnostics = {
            "cut_points": cuts.tolist(),
            "item_spread": float(biases.spreads[0]),
            "item_coefficients": biases.coefficients[:, 0].tolist(),
            "items_without_reports": int((item_counts == 0).sum()),
        }
        return ItemBiasesModel(
            biases,
            embedding,
            observations.catalogue,
            cuts,
            self.user_variance,
            scale,
            diagnostics=diagnostics,
        )

    def _embedding(self, observations: Observations, item_counts: Ints, seed: int) -> ItemSetEmbedding:
        """Return item embeddings from who rated them, or no more than how often they are rated."""
        if self.dimensions == 0:
            empty = np.zeros((item_counts.size, 0))
            return ItemSetEmbedding(empty[:0], empty, np.zeros(0, dtype=np.int64), item_counts)
        rated = observations.item_sets
        shape = (rated.n_users, item_counts.size)
        embedding_release = observations.embedding_release
        return embedded(rated.users, rated.items, shape, embedding_release, self.dimensions, seed)


def clear_reports(observations: Observations) -> SymbolReports:
    """Return the reports of values that were sent as they are, rounded to the scale."""
    scale = observations.scale
    levels = scale.level_of(np.clip(observations.values, scale.low, scale.high)).astype(np.int64)
    return SymbolReports((np.eye(scale.levels),), levels - 1, np.zeros_like(levels))


SIDE_PER_BIAS = 1.0
"""E[side] per unit of a bias; more than for all ratings, as those farthest from a user's mean count."""

_BIAS, _ITEMS_WITH_IT = 0.15, 50.0
"""Expected variance of biases around their regression, and how many items with it are averaged with."""

_TYPICAL, _SPREAD, _ITEMS_SO_POPULAR = 0.02, 2.0, 20.0
"""Expected median of p, relative to what an item that everybody rates has, and variance of log p."""

_INTERCEPT, _SLOPE, _COEFFICIENT = 0.3, 0.02, 0.005
"""Expected variances of the regression's intercept, of its slope over popularity, and of the others."""

_GRID_POINTS, _RAREST = 121, 1e-4
"""Points of the grid of p, and its lower end relative to an item that everybody rates."""


@dataclass(frozen=True, eq=False)
class ProfileFit:
    """What answers say about the items."""

    grid: Floats
    """Values of log p; shape (points,)."""
    features: Floats
    """1, and public features of the items; shape (items, features)."""
    means: Floats
    variances: Floats
    """Of the biases; shape (items,)."""
    popularity: Floats
    """The posterior of p; shape (items, points)."""
    coefficients: Floats
    """Of the deviation of log p, then of the features; shape (1 + features,)."""
    middle: float
    spread: float
    """Mean m and variance q of log p."""
    around: float
    """Variance t of biases around their regression."""
    unrated: float
    """Share 2 v."""

    @classmethod
    def of(
        cls, reports: ProfileReports, catalogue: Catalogue | None, sweeps: int, progress: Progress
    ) -> Self:
        """Fit the model by so many steps of EM to at least one answer; see the module."""
        n_items, certain_rise = reports.above.size, reports.rated - reports.unrated[0]
        features = np.ones((n_items, 1))
        if catalogue is not None:
            features = np.hstack([features, catalogue_features(catalogue, np.ones(n_items, dtype=int))])
        grid = np.log(certain_rise) + np.linspace(np.log(_RAREST), 0.0, _GRID_POINTS)
        fit = cls(
            grid,
            features,
            np.zeros(n_items),
            np.full(n_items, _BIAS),
            np.full((n_items, _GRID_POINTS), 1 / _GRID_POINTS),
            np.zeros(1 + features.shape[1]),
            float(np.log(certain_rise * _TYPICAL)),
            _SPREAD,
            _BIAS,
            float(sum(reports.unrated)),
        )
        for sweep in range(sweeps):
            fit = fit._stepped(reports, float(np.log(certain_rise * _TYPICAL)))
            progress("completing", sweep + 1, sweeps)
        return fit

    @property
    def diagnostics(self) -> dict[str, Any]:
        """What was learned, for the run's summary."""
        return {
            "popularity_spread": self.spread,
            "item_spread": self.around,
            "item_coefficients": self.coefficients.tolist(),
            "share_of_unrated": self.unrated,
        }

    @property
    def biases(self) -> Regressed:
        """The biases of the items."""
        start = Regressed.prior(self.features, Expected(spread=(_BIAS,)))
        covariances, spread = self.variances[:, None, None], np.array([[self.around]])
        return replace(start, means=self.means[:, None], covariances=covariances, spread=spread)

    def embedding(self, n_users: int) -> ItemSetEmbedding:
        """Return what is known of popularity; nothing embeds items, or distinguishes users."""
        expected = self.popularity @ self.grid
        unexplained = self.popularity @ self.grid**2 - expected**2
        shares = np.exp(expected) / np.exp(expected).sum()
        explained = shares @ (expected - shares @ expected) ** 2
        return ItemSetEmbedding(
            np.zeros((n_users, 0)),
            np.zeros((expected.size, 0)),
            np.zeros(n_users, dtype=np.int64),
            np.rint(1_000_000 * shares).astype(np.int64),
            float(np.sqrt(explained / (explained + shares @ unexplained))),
        )

    def _stepped(self, reports: ProfileReports, typical: float) -> Self:
        shares = np.stack([reports.above + reports.below, reports.above - reports.below]) / reports.answers
        values = np.exp(self.grid)
        slope = values * SIDE_PER_BIAS
        noise = (self.unrated + values) / reports.answers

        def regressed(coefficients: Floats, middle: float, spread: float) -> Floats:
            """Return what popularity and features say of every bias, shape (items, points)."""
            of_popularity = coefficients[0] * ((self.grid - middle) / np.sqrt(spread))
            return (self.features @ coefficients[1:])[:, None] + of_popularity

        expected = regressed(self.coefficients, self.middle, self.spread)
        # Of the difference, given p alone.
        variances = noise + slope**2 * self.around
        log_weights = -((self.grid - self.middle) ** 2) / (2 * self.spread) - np.log(noise * variances) / 2
        log_weights = log_weights - (shares[0][:, None] - self.unrated - values) ** 2 / (2 * noise)
        log_weights -= (shares[1][:, None] - slope * expected) ** 2 / (2 * variances)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        bias_variance = 1 / (1 / self.around + slope**2 / noise)
        means = (expected / self.around + shares[1][:, None] * slope / noise) * bias_variance
        mean = (weights * means).sum(axis=1)
        # The mean and the variance of log p, both averaged with what is expected.
        items = len(weights) + _ITEMS_SO_POPULAR
        middle = (float((weights @ self.grid).sum()) + _ITEMS_SO_POPULAR * typical) / items
        grid_squares = float((weights @ (self.grid - middle) ** 2).sum())
        spread = (grid_squares + _ITEMS_SO_POPULAR * _SPREAD) / items
        deviations = (self.grid - middle) / np.sqrt(spread)
        coefficients = self._coefficients(weights, shares[1], slope, variances, deviations)
        squared_deviations = (means - regressed(coefficients, middle, spread)) ** 2
        squares = float((weights * (squared_deviations + bias_variance)).sum())
        unrated = float((shares[0] - weights @ values).mean())
        return replace(
            self,
            means=mean,
            variances=(weights * (means**2 + bias_variance)).sum(axis=1) - mean**2,
            popularity=weights,
            coefficients=coefficients,
            middle=middle,
            spread=spread,
            around=(squares + _ITEMS_WITH_IT * _BIAS) / (mean.size + _ITEMS_WITH_IT),
            unrated=float(np.clip(unrated, 2 * reports.unrated[0], 2 * reports.unrated[1])),
        )

    def _coefficients(
        self, weights: Floats, differences: Floats, slope: Floats, variances: Floats, deviations: Floats
    ) -> Floats:
        information, target = weights * (slope**2 / variances), weights * (slope / variances)
        width = 1 + self.features.shape[1]
        system = np.diag(1 / np.r_[_SLOPE, _INTERCEPT, np.full(width - 2, _COEFFICIENT)])
        system[0, 0] += (information @ deviations**2).sum()
        system[0, 1:] = system[1:, 0] = self.features.T @ (information @ deviations)
        system[1:, 1:] += (self.features * information.sum(axis=1)[:, None]).T @ self.features
        sides = np.r_[
            differences @ (target @ deviations), self.features.T @ (target.sum(axis=1) * differences)
        ]
        return np.linalg.solve(system, sides)


_USER_FACTOR_VARIANCE = 0.2
"""Variance of preferences t: what devices assume far from the origin, about `taste` plus `nearness`."""

_PRIOR_ITEMS = 5.0
"""Items with the expected variance that the learned variance of d is averaged with."""


@dataclass(frozen=True, eq=False)
class ResidualAnswers:
    """Answers, and how the probability of a yes depends on what is to be learned."""

    reports: ResidualReports
    items: AnyInts
    """Shape (answers,)."""
    design: Floats
    """F_i - Fbar_u, in units of the residual's standard deviation; shape (answers, features)."""
    offsets: Floats
    """m_i - mbar_u, in the same units; shape (answers,)."""
    shares: Floats
    """What d_i counts for, in the same units; shape (answers,)."""

    @classmethod
    def of(cls, observations: Observations, reports: ResidualReports, features: Floats) -> Self:
        """Read answers about items with features, of which the last is the expected bias m_i."""
        users, items, n_users = observations.users, observations.items, observations.shape[0]
        counts = np.bincount(users, minlength=n_users)
        means = (
            np.column_stack(
                [np.bincount(users, weights=column[items], minlength=n_users) for column in features.T]
            )
            / np.maximum(counts, 1)[:, None]
        )
        of_users, of_items = users[reports.cells], items[reports.cells]
        # Of one rating alone the residual is 0: nothing is learned.
        own_shares = 1 / counts[of_users]
        scale = 1 / np.sqrt((1 + _USER_FACTOR_VARIANCE) * np.where(own_shares < 1, 1 - own_shares, 1.0))
        design = (features[of_items] - means[of_users]) * scale[:, None]
        return cls(reports, of_items, design[:, :-1], design[:, -1], (1 - own_shares) * scale)

    def linearised(self, latent: Floats) -> tuple[Floats, Floats]:
        """Return the slope of each answer's log likelihood, and its information, at latent residuals."""
        from scipy.special import ndtr

        honest, lies = 1 - 2 * self.reports.lies, self.reports.lies
        chance = lies + honest * ndtr(latent)
        moved = honest * np.exp(-(latent**2) / 2) * ordinal.INVERSE_SQRT_2_PI
        slopes = moved * np.where(self.reports.above, 1 / chance, -1 / (1 - chance))
        return slopes, moved**2 / (chance * (1 - chance))


def fitted_to_residuals(
    start: Regressed, observations: Observations, reports: ResidualReports, sweeps: int, progress: Progress
) -> Regressed:
    """Return the posterior of the item biases, by Fisher scoring; an intercept stays 0.

    The variances of the coefficients w and of the deviations d are learned from each step (MacKay
    [mackay1992]).
    """
    expected, centre, (n_items, width) = start.expected, start.means[:, 0], start.features.shape
    answers = ResidualAnswers.of(observations, reports, np.column_stack([start.features, centre]))
    design, shares, items = answers.design, answers.shares, answers.items
    weights, deviations, variances = np.zeros(width), np.zeros(n_items), start.variances
    coefficient_variance, spread = expected.coefficients[0], expected.spread[0]
    ratios = np.broadcast_to(expected.ratios, width)

    def per_item(values: Floats) -> Floats:
        return np.bincount(items, weights=values, minlength=n_items).astype(np.float64)

    for sweep in range(sweeps):
        latent = design @ weights + shares * deviations[items]
        slopes, information = answers.linearised(answers.offsets + latent)
        target = information * latent + slopes
        precision, item_targets = per_item(information * shares**2), per_item(target * shares)
        crossed = np.column_stack([per_item(column * information * shares) for column in design.T])
        variances = 1 / (precision + 1 / spread)
        system = (design * information[:, None]).T @ design - (crossed * variances[:, None]).T @ crossed
        covariance = np.linalg.inv(system + np.diag(1 / (ratios * coefficient_variance)))
        weights = covariance @ (design.T @ target - crossed.T @ (item_targets * variances))
        deviations, answered = (item_targets - crossed @ weights) * variances, precision > 0
        squares = float((deviations[answered] ** 2).sum()) + _PRIOR_ITEMS * expected.spread[0]
        spread = squares / (float((1 - variances[answered] / spread).sum()) + _PRIOR_ITEMS)
        moments = float(((weights**2 + np.diag(covariance)) / ratios).sum())
        learned = moments + PRIOR_COEFFICIENTS * expected.coefficients[0]
        coefficient_variance = learned / (width + PRIOR_COEFFICIENTS)
        progress("completing", sweep + 1, sweeps)
    return replace(
        start,
        means=(centre + start.features @ weights + deviations)[:, None],
        covariances=variances[:, None, None],
        coefficients=weights[:, None],
        spread=np.array([[spread]]),
        coefficient_variances=np.array([coefficient_variance]),
    )
