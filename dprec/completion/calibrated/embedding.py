"""What item sets say about users and items before any rating is read: embeddings, and a prior by them.

The singular vectors of the normalised 0/1 matrix of ratings embed items that the same people rate next to
each other. Preferences show in what people choose, so their ratings vary smoothly over the embedding.

**With noise** everybody is sent how often items are rated, and how often by the same people. With x_u the 0/1
row of a user's n_u rated items, two sums over users are released. The first is of

    min(1, sqrt(k / n_u)) x_u,

which has a norm of at most sqrt(k). Items whose sum stands out from its noise are kept; p holds their shares
of it. Of those items alone, the second sum is of

    y_u y_u^T,    y_u = (x_u - n_u p) / ||x_u - n_u p||,

which has a Frobenius norm of 1: where a user's choice among the items differs from their popularity. So one
profile more or less moves the first sum by sqrt(k) at most and the second by 1. Two profiles in place of each
other move them by sqrt(2) times as much, as ||a - b||^2 <= ||a||^2 + ||b||^2 for rows without negative
numbers, and ||y y^T - z z^T||^2 = 2 - 2 (y . z)^2. With Gaussian noise the two releases compose exactly
(`dprec.accounting`); that the second is chosen by the outcome of the first makes no difference. Sums are
rounded once noise is added, which hides the last bits of both. How large noise makes singular values, and how
far it turns their vectors, is known, and embeddings are shrunk by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.regressions import Expected, Regressed
from dprec.completion.spectral import SparsePlusLowRank
from dprec.observations import EmbeddingRelease
from dprec.randomness import generator, seed_for

if TYPE_CHECKING:
    import scipy.sparse as sp

_DAMPING = 0.3
"""Each row and column of the 0/1 matrix is divided by this power of its number of ratings."""

SHRINKAGE = 5.0
"""Ratings at the origin that every average of embeddings includes: those of few ratings are pulled to it."""

_NOISE = 1e-9
"""Relative size below which a singular value or a spread is rounding and no structure."""


@dataclass(frozen=True, eq=False)
class ItemSetEmbedding:
    """Embeddings of users and items, and how often each of them occurs."""

    users: Floats
    items: Floats
    """Over the ratings, every dimension has mean 0, and the later ones spread less;
    shapes (users, dimensions) and (items, dimensions).
    """
    user_counts: Ints
    item_counts: Ints
    """Ratings of each user and of each item."""
    count_reliability: float = 1.0
    """The correlation to be expected of the items' counts with those without noise, on a logarithmic scale.
    """

    @property
    def popularity(self) -> Floats:
        """Standardised logarithms of the items' counts, shrunk by what noise may make of them."""
        return self.count_reliability * standardised_logarithms(self.item_counts)

    @property
    def logarithms(self) -> Floats:
        """Logarithms of the items' counts, with mean 0 over the ratings, as far as they are no noise."""
        logarithms = np.log1p(self.item_counts)[:, None]
        return self.count_reliability**2 * _centred(logarithms, self.item_counts)[:, 0]

    @classmethod
    def of(
        cls,
        users: AnyInts,
        items: AnyInts,
        shape: tuple[int, int],
        dimensions: int,
        seed: int,
        least_raters: int = 1,
    ) -> Self:
        """Embed the users and items of rated cells.

        Items with fewer raters than the least stay at the origin, and say nothing about other embeddings.
        """
        import scipy.sparse as sp

        all_counts = _counted((users, items), shape)
        well_rated = all_counts[1][items] >= least_raters
        cells = users[well_rated], items[well_rated]
        rated = sp.csr_array((np.ones(cells[0].size), cells), shape=shape)
        of_user, of_item = _counted(cells, shape)
        by_user, by_item = (np.maximum(counts, 1.0) ** -_DAMPING for counts in (of_user, of_item))
        normal = (sp.diags_array(by_user) @ rated @ sp.diags_array(by_item)).tocsr()
        n_axes = max(0, min(dimensions, min(shape) - 2))
        sparse_alone = SparsePlusLowRank(normal, np.zeros((shape[0], 0)), np.zeros((shape[1], 0)))
        leading = sparse_alone.leading(n_axes + 1, seed)
        # The first pair of vectors says little more than how often users and items occur.
        values = leading.values[1:]
        axes = leading.right[:, 1:] * by_item[:, None]
        user_embeddings = (rated @ axes) / (of_user + SHRINKAGE)[:, None]
        item_embeddings = (rated.T @ user_embeddings) / (of_item + SHRINKAGE)[:, None]
        unused = ((0, 0), (0, dimensions - n_axes))
        spreads = np.sqrt(values * (values > _NOISE) / max(values.max(initial=0.0), _NOISE))
        return cls(
            np.pad(_standardised(user_embeddings, of_user) * spreads, unused),
            np.pad(_standardised(item_embeddings, of_item) * spreads, unused),
            *all_counts,
        )


def _counted(cells: tuple[AnyInts, AnyInts], shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """Return how often each user occurs in some cells, and each item."""
    users, items = cells
    return np.bincount(users, minlength=shape[0]), np.bincount(items, minlength=shape[1])


def standardised_logarithms(counts: Ints) -> Floats:
    """Return log(1 + counts) with mean 0 and variance 1 over the ratings; 0 where nothing is counted."""
    return _standardised(np.log1p(counts)[:, None], counts)[:, 0]


def _standardised(columns: Floats, counts: Ints) -> Floats:
    """Return the columns with mean 0 and variance 1 over the ratings; rows without ratings are 0."""
    shares = counts / max(int(counts.sum()), 1)
    centred = _centred(columns, counts)
    deviations = np.sqrt(shares @ centred**2)
    spread_out = deviations > _NOISE * np.abs(columns).max(axis=0, initial=0.0)
    return centred * spread_out / np.where(spread_out, deviations, 1.0)


def _centred(columns: Floats, counts: Ints) -> Floats:
    """Return the columns with mean 0 over the ratings; rows without ratings are 0."""
    return (columns - (counts / max(int(counts.sum()), 1)) @ columns) * (counts > 0)[:, None]


RATINGS_PER_USER = 32
"""Ratings k of a user from which on each counts for less: many more would need more noise."""

_SHARE_OF_COUNTS = 0.3
"""Share of the budget, as a squared distance of two means, that goes to the first sum."""

_CLEAR = 3.0
"""Standard deviations of the noise by which an item's sum has to exceed 0 for the item to be kept."""

_MOST_KEPT = 2000
"""Most items of the second sum, which is a square matrix."""

_LEAST_REST = 1e-3
"""Share of ||x_u||^2 up to which a difference from popularity is left out, lest rounding count."""

_MARGIN = 1 + 1e-9
"""Rows are scaled in floating point, so their norms may exceed the bounds by very little."""


@dataclass(frozen=True, eq=False)
class NoisySets:
    """The two sums with their noise."""

    counts: Floats
    """The first sum, which may be negative; shape (items,)."""
    count_noise: float
    """Standard deviation of the noise on each count."""
    pair_items: Ints
    """Items of the second sum, ascending; shape (pair items,)."""
    together: Floats
    """The second sum, symmetric; shape (pair items, pair items)."""
    pair_noise: float
    """Standard deviation of the noise on each entry off its diagonal; that on the diagonal is sqrt(2) times
    as large.
    """

    @classmethod
    def released(
        cls, rated: sp.csr_array, distance: float, least_raters: int, random: np.random.Generator
    ) -> Self:
        """Release the sums.

        ``distance``: what both releases together cost: how many standard deviations apart they are, as two
        means, with and without a profile; see `dprec.accounting`. ``least_raters``: least count, noise
        included, of an item that is kept.
        """
        count_noise = _MARGIN * np.sqrt(RATINGS_PER_USER / _SHARE_OF_COUNTS) / distance
        noisy = weighted_counts(rated) + count_noise * random.standard_normal(rated.shape[1])
        counts = _without_last_bits(noisy, count_noise)
        # The most frequent items if too many are clear of the noise.
        frequent = np.argsort(-counts, kind="stable")[:_MOST_KEPT]
        least = max(float(least_raters), _CLEAR * count_noise)
        pair_items = np.sort(frequent[counts[frequent] >= least])
        pair_noise = _MARGIN / np.sqrt(2 * (1 - _SHARE_OF_COUNTS)) / distance
        together = sums_of_squares(rated[:, pair_items], counts[pair_items])
        noise = random.standard_normal(together.shape)
        # Symmetric, and as large in every direction of the symmetric matrices.
        together += (noise + noise.T) * (pair_noise / np.sqrt(2))
        together = _without_last_bits(together, pair_noise)
        return cls(counts, float(count_noise), pair_items, together, float(pair_noise))


def _without_last_bits(noisy: Floats, deviation: float) -> Floats:
    """Round to a step so much below the deviation of the noise, and above its last bits.

    These depend on what it was added to, and would tell it (Mironov [mironov2012]).
    """
    step = 2.0 ** math.floor(math.log2(deviation * 2.0**-16))
    return np.rint(noisy / step) * step


def weighted_counts(rated: sp.csr_array) -> Floats:
    """Return how often each item is rated, by users of many ratings less, shape (items,); the first sum."""
    sizes = np.asarray(rated.sum(axis=1)).ravel()
    weights = np.minimum(1.0, np.sqrt(RATINGS_PER_USER / np.maximum(sizes, 1)))
    return rated.T @ weights


def sums_of_squares(rated: sp.csr_array, counts: Floats) -> Floats:
    """Return the sum over users of y_u y_u^T, shape (items, items); the second sum."""
    import scipy.sparse as sp

    shares = counts / max(float(counts.sum()), np.finfo(float).tiny)
    sizes = np.asarray(rated.sum(axis=1)).ravel()
    squares = sizes - 2 * sizes * (rated @ shares) + sizes**2 * (shares @ shares)
    varies = squares > _LEAST_REST * sizes
    inverse = varies / np.where(varies, squares, 1.0)
    # Written out, so that no row of numbers per user is ever dense.
    together: Floats = (rated.T @ (sp.diags_array(inverse) @ rated)).toarray()
    across = np.outer(rated.T @ (inverse * sizes), shares)
    together += np.outer(shares, shares) * float(inverse @ sizes**2) - across - across.T
    return together


_EDGE_MARGIN = 1.02
"""Factor by which a singular value has to exceed the largest that is expected of noise."""

_POINTS = 500


def noise_edge(row_weights: Floats, column_weights: Floats) -> float:
    """Return the largest singular value to be expected of independent noise, in the limit of large matrices.

    With entries a_i b_j g_ij and g_ij of variance 1, squared singular values beyond the noise are t / (p q),
    where sum_i a_i^2 p / (1 - a_i^2 p) = t = sum_j b_j^2 q / (1 - b_j^2 q); the edge is the least of them
    over t (Paul and Silverstein [paul2009]).
    """
    curves = []
    for weights in (row_weights, column_weights):
        squares = weights[weights > 0] ** 2
        if squares.size == 0:
            return 0.0
        points = -np.expm1(np.linspace(-14, -1e-6, _POINTS)[:, None]) / squares.max()
        curves.append((points[::-1, 0], (points * squares / (1 - points * squares)).sum(axis=1)[::-1]))
    (rows, of_rows), (columns, of_columns) = curves
    ends = max(of_rows[0], of_columns[0]), min(of_rows[-1], of_columns[-1])
    at = np.geomspace(*ends, _POINTS)
    squared = at / (np.interp(at, of_rows, rows) * np.interp(at, of_columns, columns))
    return float(np.sqrt(squared.min()))


def expected_cosines(values: Floats, edge: float) -> Floats:
    """Return the expected cosines between singular vectors and those without noise, 0 at the edge and below.

    A value s = edge (x + 1 / x) / 2 comes from a signal x times as strong as the least that can be seen, and
    its vector has cosine^2 = 1 - 1 / x^2 (Benaych-Georges and Nadakuditi [benaych2012], section 3.1, square
    matrices). The same holds of eigenvalues above the noise of a symmetric matrix.
    """
    ratios = np.maximum(values / (_EDGE_MARGIN * edge), 1.0)
    strengths = ratios + np.sqrt(ratios**2 - 1)
    return np.sqrt(1 - 1 / strengths**2)


def embedded(
    users: AnyInts,
    items: AnyInts,
    shape: tuple[int, int],
    embedding_release: EmbeddingRelease,
    dimensions: int,
    seed: int,
) -> ItemSetEmbedding:
    """Embed users and items; see `ItemSetEmbedding.of`.

    With noise, embeddings and counts of the items, and the axes of the users' embeddings, follow from
    `NoisySets` alone. A user's own embedding follows from these and its own items.
    """
    import scipy.sparse as sp

    if embedding_release.epsilon is None:
        return ItemSetEmbedding.of(users, items, shape, dimensions, seed, embedding_release.least_raters)
    rated = sp.csr_array((np.ones(users.size), (users, items)), shape=shape)
    # Another budget draws other noise: two releases whose noise is in proportion would tell it.
    drawn_for = np.array([embedding_release.distance, embedding_release.least_raters])
    random = generator(seed_for(seed, users, items, drawn_for), "noise of item sets")
    released = NoisySets.released(rated, embedding_release.distance, embedding_release.least_raters, random)
    return _embedded_by(released, rated, dimensions)


def _embedded_by(released: NoisySets, rated: sp.csr_array, dimensions: int) -> ItemSetEmbedding:
    """Embed items by what was released, and users by their items.

    Dimensions whose eigenvalues do not stand out from the noise are 0. Over the ratings, the others have
    standard deviations of the cosine to be expected between an eigenvector and that without noise, times the
    fourth root of the eigenvalue relative to the largest, as without noise.
    """
    import scipy.linalg

    pair_items, n_items = released.pair_items, rated.shape[1]
    used = min(dimensions, pair_items.size)
    counts = np.rint(np.maximum(released.counts, 0.0)).astype(np.int64)
    among = np.zeros(n_items, dtype=np.int64)
    among[pair_items] = counts[pair_items]
    axes, scales = np.zeros((n_items, dimensions)), np.zeros(dimensions)
    if used:
        last = [pair_items.size - used, pair_items.size - 1]
        values, vectors = scipy.linalg.eigh(released.together, subset_by_index=last)
        # The first are those of the largest eigenvalues.
        axes[pair_items, :used] = vectors[:, ::-1] / np.sqrt(released.counts[pair_items])[:, None]
        # What every direction has in common says nothing about who rates what together.
        values = values - np.trace(released.together) / pair_items.size
        # The standard deviation of each dimension, from its eigenvalue, descending.
        values = values[::-1]
        edge = 2 * released.pair_noise * np.sqrt(pair_items.size)
        above = np.maximum(values, edge)
        # The eigenvalue t without noise makes one of t + (edge / 2)^2 / t.
        strengths = (above + np.sqrt(above**2 - edge**2)) / 2
        scales[:used] = expected_cosines(values, edge) * np.sqrt(strengths / strengths.max())
    of_user = np.asarray(rated.sum(axis=1)).ravel().astype(np.int64)
    n_pair_items = np.asarray(rated[:, pair_items].sum(axis=1)).ravel()
    along = (rated @ axes) / (n_pair_items + SHRINKAGE)[:, None]
    return ItemSetEmbedding(
        _standardised(along, of_user) * scales,
        _standardised(axes, among) * scales,
        of_user,
        counts,
        _reliability(released),
    )


def _reliability(released: NoisySets) -> float:
    """Return the correlation to be expected of log(1 + count) with and without noise, over the ratings.

    The variance of the noise on a logarithm is s^2 / (1 + count)^2, to first order, and at most 4.
    """
    counts = np.maximum(released.counts, 0.0)
    shares = counts / max(float(counts.sum()), np.finfo(float).tiny)
    logarithms = np.log1p(counts)
    variance = float(shares @ (logarithms - shares @ logarithms) ** 2)
    noise = float(shares @ np.minimum((released.count_noise / (1 + counts)) ** 2, 4.0))
    return float(np.sqrt(max(0.0, 1 - noise / max(variance, float(np.finfo(float).tiny)))))


_USER_SPREAD, _ITEM_SPREAD = 0.2, 0.06
"""Expected variances of the biases around what features say, in units of the noise on a latent rating."""

LIKED = 0.15
"""Expected slope of an item's bias over the logarithm of how often it is rated: what many choose is liked."""

_USER_COEFFICIENT, _ITEM_COEFFICIENT = 0.0005, 0.015
"""Expected variances of the coefficients of features, of which many have a standard deviation of 1."""

_INTERCEPT, _SQUARE = 8.0, 0.3
"""Those of the intercept, and of squared popularity, which is large for items that hardly anyone rates,
relative to the others.
"""


def prior_biases(
    embedding: ItemSetEmbedding, catalogue: Catalogue | None, width: int
) -> tuple[Regressed, Regressed]:
    """Return the prior of user and item biases, regressed on ``width`` dimensions and the other features."""
    # How much each user rates, and the first dimensions of its embedding.
    features = np.column_stack([standardised_logarithms(embedding.user_counts), embedding.users[:, :width]])
    of_users = Expected(spread=(_USER_SPREAD,), coefficients=(_USER_COEFFICIENT,))
    return Regressed.prior(features, of_users), prior_item_biases(embedding, catalogue, width)


def prior_item_biases(embedding: ItemSetEmbedding, catalogue: Catalogue | None, width: int) -> Regressed:
    """Return the prior of item biases alone: what item sets say of them before any report is read."""
    features = item_features(embedding, catalogue, width)
    ratios = np.ones(features.shape[1])
    ratios[0], ratios[2] = _INTERCEPT, _SQUARE
    expected = Expected(
        spread=(_ITEM_SPREAD,),
        centre=LIKED * embedding.logarithms[:, None],
        coefficients=(_ITEM_COEFFICIENT,),
        ratios=ratios,
    )
    return Regressed.prior(features, expected)


def item_features(embedding: ItemSetEmbedding, catalogue: Catalogue | None, width: int) -> Floats:
    """Return a row for each item, with 1 in the first column.

    The others hold the item's popularity and public numbers, each also squared, its categories, and the first
    ``width`` dimensions of its embedding. An item that nobody rated is as popular as the least popular of the
    others: at 0, the mean over the ratings, it would pass for a favourite.
    """
    rated, popularity = embedding.item_counts > 0, embedding.popularity
    popularity = np.where(rated, popularity, popularity[rated].min(initial=0.0))
    columns = [np.ones((rated.size, 1)), _bent(popularity[:, None], rated)]
    if catalogue is not None:
        columns.append(catalogue_features(catalogue, embedding.item_counts))
    return np.hstack([*columns, embedding.items[:, :width]])


def catalogue_features(catalogue: Catalogue, counts: AnyInts) -> Floats:
    """Return public numbers, each also squared, and the categories, which have mean 0 over the ratings."""
    numbers = _bent(catalogue.numbers, catalogue.numbers != 0)
    # The categories with mean 0 over the ratings, shape (items, categories).
    shares = counts / max(int(counts.sum()), 1)
    return np.hstack([numbers, catalogue.categories - shares @ catalogue.categories])


def _bent(columns: Floats, known: Bools) -> Floats:
    """Return the columns and their squares, which are 0 where nothing is known."""
    bends = (columns**2 - 1) * (known if known.ndim == 2 else known[:, None])
    return np.hstack([columns, bends])
