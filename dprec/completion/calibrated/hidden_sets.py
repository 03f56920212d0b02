"""Fits users and items to reports that hide the item sets.

Every cell of the catalogue has a symbol, and whether it is rated is integrated out; reports are counted by
bins. Each half sweep is a step of Fisher scoring for the propensities and biases of one side, with the other
side in bins, so that a step costs little more than counting the symbols. Scores are averaged over the
posterior of the propensity, as in a Gaussian variational approximation (Opper and Archambeau [opper2009]): at
the means alone, users and items that noise makes look active would count most, and ratings would seem
frequent.

With sigma the logistic function, a cell is rated with probability sigma(a) at a propensity a, and then at
latent rating t it has level x with probability p_x(t) (`dprec.ordinal`); so

    Pr(z | a, t) = (1 - sigma(a)) Q[0, z] + sigma(a) sum_x p_x(t) Q[x, z].

Embeddings hold what propensities alone do not explain. A user's scores of the propensities, each divided by
the root of its information, are a matrix of noise with variance 1 where users and items are independent given
their propensities. Preferences stand out from that noise as singular values above the largest one that noise
has. Below it nothing is known, and an embedding is 0.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.arrays import Bools, Floats, Int32s, Ints, Uint8s
from dprec.completion.calibrated.embedding import (
    ItemSetEmbedding,
    catalogue_features,
    expected_cosines,
    noise_edge,
)
from dprec.completion.calibrated.regressions import Expected, PropensityBins, Regressed
from dprec.completion.spectral import SparsePlusLowRank
from dprec.observations import Observations, RowReports
from dprec.ordinal import level_probabilities
from dprec.progress import Progress

_MOST_SYMBOLS = 16
"""Symbols beyond these are merged with their neighbours."""


@dataclass(frozen=True, eq=False)
class HiddenReports:
    """The symbols of all cells of the users who reported.

    Symbol 0 stands for whatever is not sent. Those of a fine grid are merged, which no likelihood suffers
    from but by telling less.
    """

    users: Int32s
    items: Int32s
    """The cells with a symbol other than 0; shape (cells,)."""
    symbols: Uint8s
    """Shape (cells,)."""
    rated: Floats
    """Pr(symbol | level); shape (levels, symbols)."""
    unrated: Floats
    """Pr(symbol | not rated); shape (symbols,)."""
    reported: Bools
    """Shape (users,)."""
    n_items: int

    @classmethod
    def of(cls, observations: Observations, reports: RowReports) -> Self:
        """Return the reports behind observations."""
        rated = reports.channels[0]
        merged = np.zeros(reports.unrated.size, dtype=np.uint8)
        sent = np.flatnonzero(~reports.unsent)
        # About as many answers of each merged symbol, whether a cell is rated or not.
        shares = (rated.mean(axis=0) + reports.unrated)[sent]
        below = (np.cumsum(shares) - shares / 2) / max(float(shares.sum()), np.finfo(float).tiny)
        if sent.size < _MOST_SYMBOLS:
            merged[sent] = 1 + np.arange(sent.size)
        else:
            merged[sent] = 1 + np.unique((below * (_MOST_SYMBOLS - 1)).astype(int), return_inverse=True)[1]
        total = np.eye(int(merged.max(initial=0)) + 1)[merged]
        return cls(
            observations.users,
            observations.items,
            merged[reports.symbols],
            rated @ total,
            reports.unrated @ total,
            reports.reported,
            observations.shape[1],
        )

    def of_items(self, bin_of_user: Ints, bins: int) -> Floats:
        """Count the symbols on each item from the users of each bin, shape (items, bins, symbols)."""
        sizes = np.bincount(bin_of_user[self.reported], minlength=bins)
        return self._counted(self.n_items, (self.items, self.users), bin_of_user, sizes)

    def of_users(self, bin_of_item: Ints, bins: int) -> Floats:
        """Count the symbols of each user on the items of each bin, shape (users, bins, symbols)."""
        sizes = np.bincount(bin_of_item, minlength=bins)
        counts = self._counted(self.reported.size, (self.users, self.items), bin_of_item, sizes)
        return counts * self.reported[:, None, None]

    def _counted(self, owners: int, cells: tuple[Int32s, Int32s], bin_of: Ints, sizes: Ints) -> Floats:
        """Return counts of symbols per owner and bin, those that are not sent being the rest of the bin."""
        from dprec.kernels.hidden_cells import count_symbols

        counts = np.zeros((owners, sizes.size, self.unrated.size))
        counts[:, :, 0] = sizes
        count_symbols(counts.reshape(owners, -1), *cells, bin_of, self.symbols, self.unrated.size)
        return counts

    def given(self, latent: Floats, cuts: Floats, variance: float = 0.0) -> tuple[Floats, Floats]:
        """Return Pr(symbol | latent rating, rated) and its derivative, shape (points, symbols).

        ``variance``: of the latent ratings around the given ones, over which the probabilities are averaged.
        """
        spread = np.sqrt(1 + variance)
        levels, slopes = level_probabilities(latent / spread, cuts / spread)
        return levels @ self.rated, slopes @ self.rated / spread


def hidden_embeddings(
    reports: HiddenReports, users: Regressed, items: Regressed, cuts: Floats, dimensions: int, seed: int
) -> Floats:
    """Embed items that the same people rate next to each other, shape (items, dimensions).

    Rows and columns are weighted by the fourth root of their mean information, so that users and items of
    whom little is known add less noise. Over the ratings, a dimension has mean 0, and its standard deviation
    is the cosine of the angle to be expected between the singular vector and that without noise.
    """
    sizes = (reports.reported.size, reports.n_items)
    n_axes = max(0, min(dimensions, min(sizes) - 1))
    matrix, weights = _weighted_scores(reports, users, items, cuts)
    edge = noise_edge(*weights)
    if n_axes == 0 or edge == 0:
        return np.zeros((sizes[1], dimensions))
    leading = matrix.leading(n_axes, seed)
    shares = np.exp(items.means[:, 0])
    axes = leading.right - (shares / shares.sum()) @ leading.right
    deviations = np.sqrt((shares / shares.sum()) @ axes**2)
    scaled = axes / np.maximum(deviations, np.finfo(float).tiny) * expected_cosines(leading.values, edge)
    return np.pad(scaled, ((0, 0), (0, dimensions - n_axes)))


def _weighted_scores(
    reports: HiddenReports, users: Regressed, items: Regressed, cuts: Floats
) -> tuple[SparsePlusLowRank, tuple[Floats, Floats]]:
    """Return the weighted matrix of scores, and the weights of its rows and columns.

    Users and items are in bins, so that the cells without a symbol are of low rank. How far each is from its
    bin moves its scores by as much as their information, to first order.
    """
    import scipy.sparse as sp
    from scipy.special import expit

    of_user = PropensityBins.by_rank(users, reports.reported)
    of_item = PropensityBins.by_rank(items, np.ones(reports.n_items, dtype=np.bool_))
    at = of_user.means[:, None, :] + of_item.means
    share = expit(at[..., :1])
    rise = reports.given(at[..., 1].ravel(), cuts)[0].reshape(*at.shape[:2], -1) - reports.unrated
    by_propensity = share * (1 - share) * rise
    scores = by_propensity / np.maximum(reports.unrated + share * rise, np.finfo(float).tiny)
    information = (scores * by_propensity).sum(axis=2)
    roots = np.sqrt(information)
    scores /= np.maximum(roots, np.sqrt(np.finfo(float).tiny))[..., None]
    row_weights = _root_of_share(information @ of_item.sizes)[of_user.of] * reports.reported
    column_weights = _root_of_share(of_user.sizes @ information)[of_item.of]
    cells = of_user.of[reports.users], of_item.of[reports.items]
    weights = row_weights[reports.users] * column_weights[reports.items]
    sent = (scores[*cells, reports.symbols] - scores[*cells, 0]) * weights
    shape = (row_weights.size, column_weights.size)
    sparse = sp.csr_array((sent, (reports.users, reports.items)), shape=shape)
    by_user = scores[..., 0][of_user.of] - roots[of_user.of] * of_user.deviations[:, None]
    left = np.hstack([by_user, roots[of_user.of]]) * row_weights[:, None]
    members = np.eye(of_item.sizes.size)[of_item.of]
    right = np.hstack([members, -members * of_item.deviations[:, None]]) * column_weights[:, None]
    return SparsePlusLowRank(sparse, left, right), (row_weights, column_weights)


def _root_of_share(information: Floats) -> Floats:
    """Return the fourth root of each share of the information; 1 where there is none at all."""
    shares = information / max(float(information.mean()), np.finfo(float).tiny)
    return shares**0.25 if information.any() else np.ones_like(information)


def _expected(propensity: float, spread: tuple[float, float]) -> Expected:
    """Return what is expected of propensities and biases: biases near 0, as the histogram is public."""
    return Expected(centre=(propensity, 0.0), spread=spread, coefficients=(0.5, 0.015))


_USERS, _ITEMS = _expected(0.0, (1.0, 0.25)), _expected(-3.0, (1.5, 0.3))
"""A cell is rated with a probability of about 5 %."""

_LONGEST_STEP = 1.0
"""Log odds, or units of the noise on a latent rating, by which one step may move a user or an item."""

_NODES, _MASSES = np.sqrt(3.0) * np.array([-1, 0, 1]), np.array([1, 4, 1]) / 6
"""Gauss-Hermite quadrature over a standard normal distribution."""

_REACH, _POINTS = 8.0, 4001
"""The grid of latent ratings on which the probabilities of symbols are looked up."""


def fitted_to_hidden_sets(
    observations: Observations,
    received: RowReports,
    cuts: Floats,
    dimensions: int,
    regressed: int,
    sweeps: int,
    seed: int,
    progress: Progress,
) -> tuple[Regressed, Regressed, ItemSetEmbedding]:
    """Fit users and items, embed the items by what the fit does not explain, and fit again given that.

    The first ``regressed`` dimensions are those on which propensities and biases of items are regressed;
    ``sweeps`` come before the items are embedded, and a third as many follow. Users have no embeddings, and
    counts of ratings are expected ones, rounded.
    """
    reports = HiddenReports.of(observations, received)
    every_item = np.ones(reports.n_items, dtype=np.bool_)
    users = Regressed.prior(np.zeros((reports.reported.size, 0)), _USERS)
    features = [np.ones((reports.n_items, 1))]
    if observations.catalogue is not None:
        features.append(catalogue_features(observations.catalogue, np.ones(reports.n_items, dtype=int)))
    items, embeddings = Regressed.prior(np.hstack(features), _ITEMS), np.zeros((reports.n_items, 0))
    further_sweeps = -(-sweeps // 3)
    for sweep in range(sweeps + further_sweeps):
        if sweep == sweeps:
            embeddings = hidden_embeddings(reports, users, items, cuts, dimensions, seed)
            # What nearby items have in common tells of each of them.
            embedded = int(embeddings[:, :regressed].any(axis=0).sum())
            columns = np.hstack([*features, embeddings[:, :embedded]])
            items = replace(items, features=columns, coefficients=np.zeros((columns.shape[1], 2)))
        # The items given the users, then the users given the items.
        bins = PropensityBins.by_rank(users, reports.reported)
        items = _solved(items, bins, reports.of_items(bins.of, bins.sizes.size), reports, cuts)
        bins = PropensityBins.by_rank(items, every_item)
        users = _solved(users, bins, reports.of_users(bins.of, bins.sizes.size), reports, cuts)
        progress("completing", sweep + 1, sweeps + further_sweeps)
    return users, items, _embedding(users, items, embeddings, reports)


def _solved(
    side: Regressed, others: PropensityBins, counts: Floats, reports: HiddenReports, cuts: Floats
) -> Regressed:
    """Solve one side given the bins of the other side and the symbols counted by bin."""
    from scipy.special import expit

    from dprec.kernels.hidden_cells import sum_evidence

    slopes, information = np.empty((len(counts), 2)), np.empty((len(counts), 3))
    at = side.means[:, None, :] + others.means
    propensities = at[..., :1] + _NODES * np.sqrt(side.covariances[:, :1, :1])
    flat = (len(counts), -1)
    sum_evidence(
        slopes,
        information,
        np.ascontiguousarray(at[..., 1]),
        expit(propensities).reshape(flat),
        _MASSES,
        counts.reshape(flat),
        others.sizes.astype(np.float64),
        reports.unrated,
        *reports.given(np.linspace(-_REACH, _REACH, _POINTS), cuts, others.bias_variance),
        _REACH,
    )
    precision = information[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
    # Users who did not report have no symbols, and no information.
    precision *= (counts.sum(axis=(1, 2)) > 0)[:, None, None]
    target = (precision @ side.means[:, :, None])[:, :, 0] + slopes
    solved = side.solved(precision, target)
    change = np.clip(solved.means - side.means, -_LONGEST_STEP, _LONGEST_STEP)
    return replace(solved, means=side.means + change)


def _embedding(
    users: Regressed, items: Regressed, embeddings: Floats, reports: HiddenReports
) -> ItemSetEmbedding:
    """Return embeddings with expected counts of ratings, and how far the items' counts exceed noise."""
    from scipy.special import expit

    typical = PropensityBins.by_rank(items, np.ones(len(embeddings), dtype=np.bool_))
    of_user = expit(users.means[:, :1] + typical.means[:, 0]) @ typical.sizes
    typical = PropensityBins.by_rank(users, reports.reported)
    of_item = expit(items.means[:, :1] + typical.means[:, 0]) @ typical.sizes
    signal, noise = items.means[:, 0].var(), items.covariances[:, 0, 0].mean()
    return ItemSetEmbedding(
        np.zeros((of_user.size, embeddings.shape[1])),
        embeddings,
        np.rint(of_user).astype(np.int64),
        np.rint(of_item).astype(np.int64),
        float(np.sqrt(signal / (signal + noise))),
    )
