"""An ordinal Gaussian process over a user's own ratings, fitted on the device.

The latent rating of an item is the item's broadcast bias, of which a user may make more or less than others,
the user's level, a smooth function of the item's embedding and public data, and the product of factors. The
server says how uncertain each bias is, so clean ratings count for more where the server knows less. The fit
is Laplace's approximation (Rasmussen and Williams [rasmussen2006], Algorithm 3.1) with Fisher information in
place of the curvature. Nothing is sent, so that a user loses nothing by predicting; for what the broadcast
tells of others, see `dprec.observations`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, places_of, rows_of
from dprec.completion import SymbolTables
from dprec.completion.calibrated.embedding import SHRINKAGE
from dprec.components import Options, option
from dprec.errors import RunError
from dprec.ordinal import expected_rating
from dprec.predictions import recommended
from dprec.ratings import Ratings
from dprec.wire import ItemTable

_MULTIPLE = 16
"""Padded sizes are multiples of this; a user's depends on its own size alone."""


def thinned(ratings: Ratings, most: int) -> Ratings:
    """Return the profiles with at most so many ratings each, taken evenly from longer ones."""
    counts = ratings.counts
    thinned_counts = np.minimum(counts, most)
    users = rows_of(thinned_counts)
    chosen = np.zeros(ratings.count, dtype=np.bool_)
    chosen[ratings.indptr[users] + places_of(thinned_counts) * counts[users] // thinned_counts[users]] = True
    return ratings.select(chosen)


_Batch = tuple[Ints, Bools, Ints, Bools]
"""Users of one padded size, and what is asked about them.

Positions in the users' ratings, and which are not padding, shape (batch, ratings) each; the same of the list
of questions, shape (batch, questions) each.
"""


def batches(ratings: Ratings, users: AnyInts) -> Iterator[_Batch]:
    """Yield the users who are asked about, of all questions in any order."""
    order = np.argsort(users, kind="stable")
    distinct_users, first, counts = np.unique(users[order], return_index=True, return_counts=True)
    begin, lengths = ratings.indptr[distinct_users], ratings.counts[distinct_users]
    sizes = np.column_stack([_padded(lengths), _padded(counts)])
    for size in np.unique(sizes, axis=0):
        members = np.flatnonzero((sizes == size).all(axis=1))
        step = max(1, (1 << 18) // int(size[0] * (size[0] + 2 * size[1])))
        for start in range(0, members.size, step):
            chunk = members[start : start + step]
            rated, is_rating = _grid(begin[chunk], lengths[chunk], int(size[0]))
            questions, is_question = _grid(first[chunk], counts[chunk], int(size[1]))
            yield rated, is_rating, order[questions], is_question


def _padded(sizes: AnyInts) -> Ints:
    return np.maximum(-(-sizes // _MULTIPLE), 1) * _MULTIPLE


def _grid(starts: AnyInts, lengths: AnyInts, width: int) -> tuple[Ints, Bools]:
    """Return positions from each start on, one row each, and which belong to it; the others are 0."""
    columns = np.arange(width)
    inside = columns < lengths[:, None]
    return np.where(inside, starts[:, None] + columns, 0).astype(np.int64), inside


_STEPS = 4
"""Newton steps; the ratings' likelihood is nearly quadratic, so that more change nothing."""


@dataclass(frozen=True, kw_only=True)
class OrdinalProcess(Options):
    """The covariances that every device assumes: public constants, relative to a latent rating's noise."""

    level: float = option("Variance of a user's level around what its rated items say.", 0.2, gt=0)
    agreement: float = option("Variance of how much a user makes of the items' biases.", 0.1, ge=0)
    taste: float = option(
        "Variance of what is linear in the direction of an item's embedding, far from the origin.", 0.1, ge=0
    )
    nearness: float = option("Variance of what items in the same direction share.", 0.12, ge=0)
    reach: float = option(
        "Squared distance from the origin at which an embedding has half of its direction.", 0.3, gt=0
    )
    number: float = option("Variance of the slope over popularity and each public number.", 0.02, ge=0)
    category: float = option("Variance of the liking for each public category.", 0.03, ge=0)
    most_ratings: int = option("Ratings that a device uses at most, taken evenly from a profile.", 500, ge=1)

    @property
    def preferences(self) -> float:
        """Variance of what is assumed of preferences by an item's embedding, far from the origin."""
        return self.taste + self.nearness


@dataclass(frozen=True, eq=False)
class BroadcastDevices:
    """All users' devices, after the broadcast."""

    process: OrdinalProcess
    table: ItemTable
    """As decoded on the device."""
    ratings: Ratings
    """The users' own, each on its device."""

    def predict(self, users: AnyInts, items: AnyInts) -> Floats:
        """Predict ratings, each on its user's device, shape (cells,).

        A user's predictions do not depend on whose else are computed.
        """
        return self._expected(users, items, np.zeros(len(self.table.means)))

    def scores(self, users: AnyInts, items: AnyInts) -> Floats:
        """Return what lists are ranked by: predictions, with latent ratings lower by the items' cautions."""
        cautions = self.table.cautions
        return self.predict(users, items) if cautions is None else self._expected(users, items, cautions)

    def recommend(self, users: AnyInts, n: int) -> Ints:
        """Return the n unrated items that each user is recommended; see `recommended`."""
        return recommended(self.scores, self.ratings, users, n)

    def _expected(self, users: AnyInts, items: AnyInts, cautions: Floats) -> Floats:
        """Return the ratings expected of latent ones, less the items' cautions, shape (cells,)."""
        predictions = np.empty(users.size)
        for batch in batches(self._used, users):
            predictions[batch[2][batch[3]]] = self._predicted(batch, items, cautions)
        return predictions

    @cached_property
    def _used(self) -> Ratings:
        return thinned(self.ratings, self.process.most_ratings)

    @cached_property
    def _tables(self) -> SymbolTables:
        """The likelihood of ratings that are read in clear."""
        return SymbolTables.of([np.eye(self.ratings.scale.levels)], self.table.cuts)

    @cached_property
    def _features(self) -> tuple[Floats, Floats, Floats, Floats]:
        """What latent ratings are linear in, times its standard deviation, and two ends of directions.

        Rows of the ends have products that are minus squared distances of directions; shapes (items,
        columns). The last are the variances of level and preference at every item, shape (items,).
        """
        table, process = self.table, self.process
        directions = table.directions(process.reach)
        apart, ones = -(directions**2).sum(axis=1), np.ones(len(table.means))
        weighted = np.column_stack(
            [
                np.full(len(table.means), np.sqrt(process.level)),
                np.sqrt(process.agreement) * table.means,
                np.sqrt(process.taste) * directions,
                np.sqrt(process.number) * table.numbers,
                np.sqrt(process.category) * (table.categories - table.categories.mean(axis=0)),
                table.item_factors,
            ]
        )
        scaled = np.sqrt(2) * directions
        ends = np.column_stack([scaled, apart, ones]), np.column_stack([scaled, ones, apart])
        return weighted, *ends, (weighted**2).sum(axis=1) + process.nearness

    def _predicted(self, batch: _Batch, items: AnyInts, cautions: Floats) -> Floats:
        """Return the predictions of a batch, in the order of its questions."""
        used, (ratings, is_rating, questions, is_question) = self._used, batch
        rated = used.items[ratings] if used.count else np.zeros_like(ratings)
        levels = used.levels[ratings] if used.count else np.ones_like(ratings)
        asked_items = items[questions]
        covariance = self._covariance(rated, rated)
        diagonal = np.arange(rated.shape[1])
        covariance[:, diagonal, diagonal] += self.table.deviations[rated] ** 2
        # What users' items say about their levels and factors, shape (batch, 1, 1 + factors).
        sums = is_rating[:, None, :].astype(np.float64) @ self._leanings[rated]
        priors = sums / (is_rating.sum(axis=1) + SHRINKAGE)[:, None, None]
        symbols = levels.astype(np.int64) - 1
        prior = self._prior(priors, rated)
        posterior = Posterior.of(covariance, prior, symbols, is_rating, self._tables)
        moved, explained = posterior.at(self._covariance(asked_items, rated))
        prior_variance = self._features[3][asked_items] + self.table.deviations[asked_items] ** 2
        latent = self._prior(priors, asked_items) + moved - cautions[asked_items]
        variance = np.maximum(prior_variance - explained, 0.0)
        return expected_rating(latent[is_question], variance[is_question], self.table.cuts, used.scale.values)

    @cached_property
    def _leanings(self) -> Floats:
        """What each item says about the level and the factors of who rated it, shape (items, 1 + factors)."""
        table = self.table
        if not len(table.leanings):
            return np.zeros((len(table.means), 1 + table.item_factors.shape[1]))
        return table.embeddings @ table.leanings

    def _prior(self, priors: Floats, items: AnyInts) -> Floats:
        """Return the means of latent ratings before any rating is read, shape (batch, items)."""
        through_factors = self.table.item_factors[items] @ priors[:, 0, 1:, None]
        return self.table.means[items] + priors[:, 0, :1] + through_factors[:, :, 0]

    def _covariance(self, rows: AnyInts, columns: AnyInts) -> Floats:
        """Return the covariance of levels and preferences, shape (batch, rows, columns)."""
        weighted, left, right, _ = self._features
        covariance: Floats = left[rows] @ right[columns].swapaxes(1, 2)
        np.exp(covariance, out=covariance)
        covariance *= self.process.nearness
        covariance += weighted[rows] @ weighted[columns].swapaxes(1, 2)
        return covariance


@dataclass(frozen=True, eq=False)
class Posterior:
    """A batch of Gaussian processes given ordinal observations."""

    pull: Floats
    """What each rating adds to a latent rating, per unit of covariance with it; shape (batch, ratings)."""
    root: Floats
    """The root of each rating's information; shape (batch, ratings)."""
    factor: Floats
    """Cholesky factor of I + root K root, upper triangle; nothing below; shape (batch, ratings, ratings)."""

    @classmethod
    def of(
        cls, covariance: Floats, prior: Floats, symbols: Ints, is_rating: Bools, tables: SymbolTables
    ) -> Self:
        """Find the mode by Newton steps."""
        latent, system = prior, np.empty_like(covariance)
        diagonal = np.arange(prior.shape[1])
        for _ in range(_STEPS):
            slopes, information = tables.at(latent, symbols)
            root = np.sqrt(information * is_rating)
            np.multiply(root[:, :, None], covariance, out=system)
            system *= root[:, None, :]
            system[:, diagonal, diagonal] += 1
            target = (information * (latent - prior) + slopes) * is_rating
            solved = root * (covariance @ target[:, :, None])[:, :, 0]
            try:
                _factor_and_solve(system, solved)
            except np.linalg.LinAlgError:
                line = "a device's process: a covariance of ratings is not positive definite"
                raise RunError(line) from None
            pull = target - root * solved
            latent = prior + (covariance @ pull[:, :, None])[:, :, 0]
        return cls(pull, root, system)

    def at(self, across: Floats) -> tuple[Floats, Floats]:
        """Return how far other latent ratings are moved, and how much of their variance is explained.

        ``across``: their covariances with the ratings, shape (batch, others, ratings); it is overwritten.
        """
        from scipy.linalg.lapack import dtrtrs

        moved = (across @ self.pull[:, :, None])[:, :, 0]
        across *= self.root[:, None, :]
        # Each row b becomes the x of R^T x = b, for the factors R of `_factor_and_solve`.
        for factor, rows in zip(self.factor, across, strict=True):
            dtrtrs(factor.T, rows.T, lower=True, overwrite_b=True)
        return moved, np.einsum("bqn,bqn->bq", across, across)


def _factor_and_solve(systems: Floats, sides: Floats) -> None:
    """Replace positive definite matrices by Cholesky factors, upper triangles, and sides by solutions.

    ``systems``, shape (batch, n, n), of which nothing below the diagonal is kept; ``sides``, shape
    (batch, n), all contiguous. Raises `numpy.linalg.LinAlgError` when one is not positive definite.
    """
    from scipy.linalg.lapack import dposv

    for system, side in zip(systems, sides, strict=True):
        # LAPACK writes in place, as each is contiguous; a transposed lower triangle is an upper one.
        if dposv(system.T, side, lower=True, overwrite_a=True, overwrite_b=True)[2]:
            raise np.linalg.LinAlgError("not positive definite")
