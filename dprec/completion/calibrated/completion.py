"""Calibrated completion: an ordinal model fitted to the likelihood of the reports, not to noisy numbers."""

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import AnyInts, Floats
from dprec.catalogue import Catalogue
from dprec.completion.base import Completed, Completion
from dprec.completion.calibrated.biases import ProfileFit, SymbolTables, clear_reports, fitted_to_residuals
from dprec.completion.calibrated.embedding import ItemSetEmbedding, embedded, prior_biases
from dprec.completion.calibrated.guarding import (
    cautions,
    guarded_biases,
    guarded_hidden_biases,
    guarded_priors,
)
from dprec.completion.calibrated.hidden_sets import HiddenReports, fitted_to_hidden_sets
from dprec.completion.calibrated.latent_ratings import Cells, CountLikelihood, LatentRatings
from dprec.completion.calibrated.regressions import Regressed
from dprec.components import option
from dprec.errors import InputError, SettingError
from dprec.observations import (
    Evidence,
    Observations,
    ProfileReports,
    ResidualReports,
    RowReports,
    SymbolReports,
)
from dprec.ordinal import Histogram, cut_points, expected_rating, level_shares
from dprec.progress import Progress, silent
from dprec.randomness import generator
from dprec.ratings import RatingScale

_SLOPE_SPREAD, _ITEM_FACTOR_SPREAD = 0.05, 0.4
"""Variances of slopes and of items' factors before they are learned: factors that start small vanish."""

_START_EMBEDDINGS, _START_NOISE, _START_VARIANCE = 0.7, 0.3, 0.1
"""Where users' factors start: how much of their embeddings, how much of noise, the variance about both."""

_LEAST_INFORMATION = 0.25
"""Fisher information per entry of a factor without which factors follow the noise."""

_BIASES_ALONE, _FACTORS_FREE = 8, 4
"""Sweeps without factors, and then with factors whose variances are not yet learned."""


@dataclass(frozen=True, eq=False)
class CalibratedModel(Completed):
    """What the reports say about latent ratings."""

    latent: LatentRatings
    embedding: ItemSetEmbedding
    catalogue: Catalogue | None
    """Public data about the items, if there was any."""
    cuts: Floats
    """Where the latent rating changes level; shape (levels - 1,)."""
    scale: RatingScale

    @property
    def public_data(self) -> Catalogue | None:
        """The catalogue."""
        return self.catalogue

    def cautions(self, observations: Observations, most: int, preferences: float = 0.0) -> Floats:
        """Return by how much items are lowered in lists; see `Completed.cautions`."""
        reports, factors = observations.evidence or clear_reports(observations), self.latent.item_factors
        guarded = guarded_by(reports, self, observations, most)
        added = preferences + factors.means**2 @ self.latent.user_factors.spreads
        return cautions(self.latent.items.biases, guarded, self.embedding.item_counts, most, added)

    def lowered(self, cautions: Floats) -> "CalibratedModel":
        """Return a model by which lists are ranked; see `Completed.lowered`."""
        return replace(self, latent=replace(self.latent, items=self.latent.items.lowered(cautions)))

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict the expected ratings of the given cells, shape (cells,)."""
        latent, variances = self.latent.means(users, items), self.latent.variances(users, items)
        return expected_rating(latent, variances, self.cuts, self.scale.values)


@dataclass(frozen=True, kw_only=True)
class Calibrated(Completion):
    """Effects and factors on a latent rating, from likelihoods and from which items were rated."""

    kind: Literal["calibrated"] = "calibrated"
    needs_symbols: ClassVar[bool] = True
    knows_items: ClassVar[bool] = True
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
        "Dimensions of the embeddings that item sets give to items and users.", 12, ge=0, le=64
    )
    features: int = option("Dimensions, the first, on which biases are regressed.", 10, ge=0, le=64)
    slopes: int = option("Dimensions, the first, on which every user has a slope of its own.", 0, ge=0, le=64)
    factors: int = option(
        "Factors of users and items, if the reports carry enough information about them.", 0, ge=0, le=64
    )
    variance: float = option("Variance of the latent rating, in units of the noise on it.", 0.5, gt=0, le=100)
    sweeps: int = option("Sweeps over items and users.", 40, ge=1)

    @property
    def reads_item_sets(self) -> bool:
        """True."""
        return True

    @property
    def knows_shares(self) -> bool:
        """Whether there is a histogram, and none is learned."""
        return self.histogram is not None and not self.learn_histogram

    def check_reports(self, evidence: type[Evidence], sender: str, *, of_values: bool) -> None:
        """Refuse slopes, factors and a histogram where reports are not of single ratings."""
        single = evidence.of_single_ratings
        if self.learn_histogram and not (single and of_values):
            accepted = "false, or a mechanism whose reports are all of ratings"
            raise SettingError("learn_histogram", f"true, with mechanism {sender}", accepted)
        for key in ("slopes", "factors"):
            if not single and getattr(self, key):
                found = f"{getattr(self, key)}, with mechanism {sender}"
                accepted = "0, or a mechanism that shows which items were rated and reports on each alone"
                raise SettingError(key, found, accepted)

    def check_guard(self, evidence: type[Evidence], sender: str) -> None:
        """Refuse reports for which nothing is registered with `guarded_by`."""
        if guarded_by.dispatch(evidence) is guarded_by.dispatch(Evidence):
            super().check_guard(evidence, sender)

    def check_scale(self, scale: RatingScale) -> None:
        """Refuse a histogram of another number of levels."""
        level_shares(self.histogram, scale.levels)

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> CalibratedModel:
        """Complete the matrix; see `Completion.fit`.

        Every half sweep replaces each report by a pseudo-observation at the current latent rating (Fisher
        scoring): its weight is the information of a report, its offset the slope of the log likelihood.
        """
        reports = observations.evidence or clear_reports(observations)
        return fitted_to(reports, self, observations, seed, progress)

    def _embedding(self, observations: Observations, seed: int) -> ItemSetEmbedding:
        """Embed users and items by who rated what."""
        rated, release = observations.item_sets, observations.embedding_release
        return embedded(rated.users, rated.items, observations.shape, release, self.dimensions, seed)

    def _cuts(self, reports: SymbolReports, scale: RatingScale) -> tuple[Floats, dict[str, Any]]:
        """Return where the latent rating changes level, and what is said of it in the summary."""
        shares = np.array(level_shares(self.histogram, scale.levels))
        shares = learned_shares(reports, shares) if self.learn_histogram else shares / shares.sum()
        cuts = cut_points(shares, self.variance)
        return cuts, {
            "histogram": "learned from the reports" if self.learn_histogram else "public",
            "level_shares": shares.tolist(),
            "cut_points": cuts.tolist(),
        }

    def _start(
        self, embedding: ItemSetEmbedding, catalogue: Catalogue | None, factors: int, seed: int
    ) -> LatentRatings:
        """Return the prior, with users' factors along the embeddings of their item sets."""
        users, items = prior_biases(embedding, catalogue, self.features)
        of_users, of_items = users.features, items.features
        embeddings = np.ascontiguousarray(embedding.items[:, : self.slopes])
        n_users, n_items = len(of_users), len(of_items)
        user_factors = _START_NOISE * generator(seed, "factors").standard_normal((n_users, factors))
        user_embeddings = embedding.users[:, :factors]
        # The columns with standard deviation 1; a constant one stays as it is.
        deviations = user_embeddings.std(axis=0)
        user_factors[:, : user_embeddings.shape[1]] += _START_EMBEDDINGS * (
            user_embeddings / np.where(deviations > 0, deviations, 1.0)
        )
        return LatentRatings(
            users,
            items,
            Regressed.at(
                np.zeros((n_users, embeddings.shape[1])),
                of_users,
                variance=_SLOPE_SPREAD,
                spread=_SLOPE_SPREAD,
            ),
            embeddings,
            Regressed.at(user_factors, of_users, variance=_START_VARIANCE, spread=1.0),
            Regressed.at(np.zeros((n_items, factors)), of_items, variance=0.0, spread=_ITEM_FACTOR_SPREAD),
        )


@singledispatch
def fitted_to(
    evidence: Evidence, completion: Calibrated, observations: Observations, seed: int, progress: Progress
) -> CalibratedModel:
    """Return what a calibrated completion fits to a kind of evidence; raises InputError for an unknown one.

    Evidence of a user-defined class registers its own: ``fitted_to.register(Mine, function)``.
    """
    found = f"{completion.kind!r}, which reads no {type(evidence).__name__}"
    raise InputError("completion.kind", found, "a completion that reads what is reported")


@fitted_to.register
def _fitted_to_symbols(
    reports: SymbolReports, completion: Calibrated, observations: Observations, seed: int, progress: Progress
) -> CalibratedModel:
    """Complete the matrix from symbols of single ratings, and from counts of those without one."""
    embedding = completion._embedding(observations, seed)
    cuts, diagnostics = completion._cuts(reports, observations.scale)
    tables = SymbolTables.of(reports.channels, cuts)
    columns, channel_of = tables.columns(reports), reports.channel_of.astype(np.int64, copy=False)

    def looked_up(latent: Floats) -> tuple[Floats, Floats]:
        return tables.at(latent, columns, channel_of)

    counts = None if reports.counts is None else CountLikelihood.of(reports.counts, cuts)
    cells = Cells(observations.users, observations.items, looked_up, counts)
    # Factors join where the reports say enough about every entry of one.
    _, information = cells.looked_up(np.zeros(cells.users.size))
    entities = np.unique(cells.users).size + np.unique(cells.items).size
    informed = float(information.sum()) >= _LEAST_INFORMATION * completion.factors * entities
    factors = completion.factors if informed else 0
    latent = completion._start(embedding, observations.catalogue, factors, seed)
    for sweep in range(completion.sweeps):
        # Every part is solved once; factors join when the biases have settled.
        joined = factors > 0 and sweep >= _BIASES_ALONE
        latent = latent.with_item_biases(cells)
        if joined:
            latent = latent.with_item_factors(cells, learn=sweep >= _BIASES_ALONE + _FACTORS_FREE)
        latent = latent.with_user_biases(cells)
        if completion.slopes:
            latent = latent.with_slopes(cells)
        if joined:
            latent = latent.with_user_factors(cells)
        progress("completing", sweep + 1, completion.sweeps)
    return _model(latent, embedding, observations, cuts, diagnostics)


@fitted_to.register
def _fitted_to_residuals(
    reports: ResidualReports,
    completion: Calibrated,
    observations: Observations,
    seed: int,
    progress: Progress,
) -> CalibratedModel:
    """Complete the matrix from answers to whether ratings are above the user's mean."""
    embedding = completion._embedding(observations, seed)
    cuts, diagnostics = completion._cuts(clear_reports(observations), observations.scale)
    latent = completion._start(embedding, observations.catalogue, 0, seed)
    items = fitted_to_residuals(latent.items, observations, reports, completion.sweeps, progress)
    return _model(replace(latent, items=items), embedding, observations, cuts, diagnostics)


@fitted_to.register
def _fitted_to_hidden_sets(
    reports: RowReports, completion: Calibrated, observations: Observations, seed: int, progress: Progress
) -> CalibratedModel:
    """Complete the matrix from reports on every cell of the catalogue."""
    cuts = cut_points(level_shares(completion.histogram, observations.scale.levels), completion.variance)
    sizes = completion.dimensions, completion.features, completion.sweeps
    users, items, embedding = fitted_to_hidden_sets(observations, reports, cuts, *sizes, seed, progress)
    diagnostics = {
        "expected_ratings": int(embedding.item_counts.sum()),
        "user_spread": users.spread.tolist(),
        "item_spread": items.spread.tolist(),
        "item_coefficients": items.coefficients.T.tolist(),
        "dimensions_above_noise": int(embedding.items.any(axis=0).sum()),
    }
    latent = LatentRatings.of_biases(users, items)
    return CalibratedModel(
        latent, embedding, observations.catalogue, cuts, observations.scale, diagnostics=diagnostics
    )


@fitted_to.register
def _fitted_to_profiles(
    reports: ProfileReports, completion: Calibrated, observations: Observations, seed: int, progress: Progress
) -> CalibratedModel:
    """Complete the matrix from answers about whole profiles."""
    scale, catalogue, n_users = observations.scale, observations.catalogue, observations.shape[0]
    fit = ProfileFit.of(reports, catalogue, completion.sweeps, progress)
    embedding = fit.embedding(n_users)
    users, _ = prior_biases(embedding, None, 0)
    return CalibratedModel(
        LatentRatings.of_biases(users, fit.biases),
        embedding,
        catalogue,
        cut_points(level_shares(completion.histogram, scale.levels), completion.variance),
        scale,
        diagnostics=fit.diagnostics,
    )


@singledispatch
def guarded_by(
    evidence: Evidence, model: CalibratedModel, observations: Observations, n_malicious: int
) -> Floats:
    """Return the biases of items that malicious users cannot raise, from a kind of evidence, shape (items,).

    Evidence of a user-defined class registers its own, as with `fitted_to`.
    """
    found = f"calibrated, which is not guarded by {type(evidence).__name__}"
    raise InputError("guard", found, "reports on each rating or item")


@guarded_by.register
def _(
    evidence: SymbolReports, model: CalibratedModel, observations: Observations, n_malicious: int
) -> Floats:
    tables, items = SymbolTables.of(evidence.channels, model.cuts), observations.items
    columns, channel_of = tables.columns(evidence), evidence.channel_of.astype(np.int64, copy=False)
    without_item_biases = model.latent.means(observations.users, items) - model.latent.items.biases[items]

    def slopes(biases: Floats) -> Floats:
        return tables.at(without_item_biases + biases[items], columns, channel_of)[0]

    one_each = np.ones(items.size, dtype=np.int64)
    priors = guarded_priors(model.latent.items, model.embedding, model.catalogue, n_malicious)
    return guarded_biases(
        slopes, (items, one_each), n_malicious, priors, float(model.latent.items.spreads[0])
    )


@guarded_by.register
def _(evidence: RowReports, model: CalibratedModel, observations: Observations, n_malicious: int) -> Floats:
    reports = HiddenReports.of(observations, evidence)
    return guarded_hidden_biases(
        reports, model.latent.users, model.latent.items, model.catalogue, model.cuts, n_malicious
    )


def _model(
    latent: LatentRatings,
    embedding: ItemSetEmbedding,
    observations: Observations,
    cuts: Floats,
    diagnostics: dict[str, Any],
) -> CalibratedModel:
    """Return the model of reports that show which items were rated, with what was learned."""
    users, items = latent.users, latent.items
    learned = {
        "user_spread": float(users.spreads[0]),
        "item_spread": float(items.spreads[0]),
        "user_coefficients": users.coefficients[:, 0].tolist(),
        "item_coefficients": items.coefficients[:, 0].tolist(),
        "slope_spreads": latent.slopes.spreads.tolist(),
        "factor_spreads": (latent.user_factors.spreads * latent.item_factors.spreads).tolist(),
    }
    return CalibratedModel(
        latent, embedding, observations.catalogue, cuts, observations.scale, diagnostics=diagnostics | learned
    )


_PUBLIC_RATINGS = 20.0
"""Ratings read in clear that the public histogram counts as."""

_STEPS, _HALVINGS, _TOLERANCE = 100, 60, 1e-12


def learned_shares(reports: SymbolReports, public: ArrayLike) -> Floats:
    """Return the most probable shares of the levels given symbols and a Dirichlet prior, shape (levels,).

    The logarithm of the posterior, sum_z n_z log (Q^T s)_z + sum_x a_x log s_x with n_z reports of symbol z
    and prior counts a in proportion to ``public``, is strictly concave, so that Newton's method with a line
    search finds its one maximum under sum_x s_x = 1 (Boyd and Vandenberghe [boyd2004], section 10.2).
    ``public`` are shares, all above 0, in any unit; those returned sum to 1.

    Every rating is reported once whether or not the shares are learned, so that learning them costs no
    privacy. What the reports cannot distinguish stays as the public shares have it.
    """
    prior = np.asarray(public, dtype=np.float64)
    shares = prior / prior.sum()
    prior = _PUBLIC_RATINGS * shares
    columns = np.hstack(reports.channels)
    counts = np.bincount(reports.columns, minlength=columns.shape[1])
    columns, counts = columns[:, counts > 0], counts[counts > 0]

    def height(at: Floats) -> float:
        return float(counts @ np.log(at @ columns) + prior @ np.log(at))

    for _ in range(_STEPS):
        expected = shares @ columns
        slope = columns @ (counts / expected) + prior / shares
        curvature = (columns * (counts / expected**2)) @ columns.T + np.diag(prior / shares**2)
        towards, level = np.linalg.solve(curvature, np.column_stack([slope, np.ones(shares.size)])).T
        step = towards - level * (towards.sum() / level.sum())
        gain = float(slope @ step)
        if gain < _TOLERANCE * (counts.sum() + _PUBLIC_RATINGS):
            break
        start = height(shares)
        for halving in range(_HALVINGS):
            tried = shares + step * 0.5**halving
            if tried.min() > 0 and height(tried) >= start + 0.25 * gain * 0.5**halving:
                shares = tried
                break
    return shares / shares.sum()
