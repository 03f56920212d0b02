"""How far one user can move a similarity in the data at hand: similarity-based sensitivity.

It depends on the ratings (a local sensitivity): noise calibrated to it follows the publication, but
its size reveals something about the ratings, so it does not make a mechanism differentially private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import find, rows_of, segments
from dprec.crossdomain.similarity import RatedItems, dense_similarities

_ITEMS_AT_ONCE = 256
_ROUNDING = 1e-10
"""A remainder below this share of a squared norm is the rounding error left when the only rater goes."""


def similarity_sensitivities(
    items: RatedItems, left: NDArray[np.int64], *, published: bool = False
) -> NDArray[np.float64]:
    """Return the similarity-based sensitivity of pairs of items, shape (left, items).

    SS(t_i, t_j) = max over users u_x of |s(t_i, t_j) - s'(t_i, t_j)|, where s' is the similarity without
    u_x's ratings of the two items (Guerraoui et al. [guerraoui2017], Theorem 2, first line of the proof).
    The norms run over all raters of an item, so a user who rated only one of the two counts too.

    Parameters
    ----------
    left : ndarray of int64
        One item of each pair; the other is any item.
    published : bool
        Return instead the closed form that the theorem states,
        max_x max(r_xi r_xj / (|r'_i| |r'_j|), s |r_i| |r_j| / (|r'_i| |r'_j|) - s) over the users who
        rated both. Its derivation assumes that r_i . r_j and r_xi r_xj are not negative; for ratings
        relative to the users' means it can lie below the true maximum.
    """
    result = np.empty((left.size, items.n_items))
    raters = _Raters.of(items)
    for start in range(0, left.size, _ITEMS_AT_ONCE):
        rows = slice(start, start + _ITEMS_AT_ONCE)
        result[rows] = _of_rows(items, raters, left[rows], 0, published)
    return result


def largest_sensitivities(items: RatedItems) -> NDArray[np.float64]:
    """Return each item's largest similarity-based sensitivity to any other item, shape (items,).

    This is the SS of Theorems 3 and 4 of Guerraoui et al. [guerraoui2017]; 0 for an item without ratings.
    """
    result = np.zeros(items.n_items)
    raters = _Raters.of(items)
    for start in range(0, items.n_items, _ITEMS_AT_ONCE):
        chunk = np.arange(start, min(start + _ITEMS_AT_ONCE, items.n_items))
        # A pair's sensitivity is symmetric: pairs with earlier items were done with those on the left.
        pairs = _of_rows(items, raters, chunk, start, published=False)
        np.fill_diagonal(pairs, 0.0)
        result[chunk] = np.maximum(result[chunk], pairs.max(axis=1))
        result[start:] = np.maximum(result[start:], pairs.max(axis=0))
    return result


@dataclass(frozen=True, eq=False)
class _Raters:
    """The raters of every item, the strongest opinion first.

    `users` and `squares` (of the deviations) are by item, delimited by `indptr`; `cells` holds
    item * users + user of every rating, ascending.
    """

    indptr: NDArray[np.int64]
    users: NDArray[np.int64]
    squares: NDArray[np.float64]
    cells: NDArray[np.int64]
    n_users: int

    @classmethod
    def of(cls, items: RatedItems) -> _Raters:
        by_item = items.deviations
        indptr = by_item.indptr.astype(np.int64)
        columns = rows_of(np.diff(indptr))
        order = np.lexsort((-np.abs(by_item.data), columns))
        n_users = int(by_item.shape[0])
        users = by_item.indices.astype(np.int64)
        cells = np.sort(columns * n_users + users)
        return cls(indptr, users[order], by_item.data[order] ** 2, cells, n_users)


def _of_rows(
    items: RatedItems, raters: _Raters, left: NDArray[np.int64], first: int, published: bool
) -> NDArray[np.float64]:
    """Return the sensitivities of pairs of an item on the left and an item from `first` on."""
    right = np.arange(first, items.n_items)
    similarity = dense_similarities(items, left, right)
    squares = items.norms**2
    dots = similarity * items.norms[left][:, None] * items.norms[right]
    by_user = items.deviations[:, first:].tocsr()
    by_user.sort_indices()
    entries = segments(items.deviations.indptr[left], items.raters[left])
    users, own = items.deviations.indices[entries], items.deviations.data[entries]
    rows = rows_of(items.raters[left])
    # Every user who rated an item on the left, with every item on the right that the user rated.
    counts = np.diff(by_user.indptr)[users]
    cells = segments(by_user.indptr[users], counts)
    row, r_i = np.repeat(rows, counts), np.repeat(own, counts)
    column, r_j = by_user.indices[cells], by_user.data[cells]
    dot, norm_i, norm_j = dots[row, column], squares[left][row], squares[right][column]
    before = similarity[row, column]
    scale = np.sqrt(_remaining(norm_i, r_i**2) * _remaining(norm_j, r_j**2))
    if published:
        with np.errstate(divide="ignore", invalid="ignore"):
            moves = np.maximum(r_i * r_j / scale, dot / scale - before)
    else:
        after = np.divide(dot - r_i * r_j, scale, out=np.zeros(scale.size), where=scale > 0)
        moves = np.abs(before - np.clip(after, -1.0, 1.0))
    largest = np.zeros_like(similarity)
    np.maximum.at(largest, (row, column), moves)
    if published:
        return largest
    return np.maximum(largest, _one_sided(items, raters, left, right, similarity))


def _one_sided(
    items: RatedItems,
    raters: _Raters,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    similarity: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far users who rated only one of the two items move their similarity."""
    row, column = np.nonzero(similarity)
    before = np.abs(similarity[row, column])
    largest = np.zeros(row.size)
    for one, other in ((left[row], right[column]), (right[column], left[row])):
        squares = items.norms[one] ** 2
        alone = _largest_square_without(raters, one, other)
        left_over = _remaining(squares, alone)
        # Without other raters of the item, the similarity is 0.
        factor = np.sqrt(np.divide(squares, left_over, out=np.zeros(row.size), where=left_over > 0))
        after = np.minimum(before * factor, 1.0)
        largest = np.maximum(largest, np.where(alone > 0, np.abs(after - before), 0.0))
    result = np.zeros_like(similarity)
    result[row, column] = largest
    return result


def _largest_square_without(
    raters: _Raters, one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the largest squared deviation among the raters of one item who did not rate the other.

    The raters are tried from the strongest opinion down, for all pairs together, until each pair has
    met one who did not rate the other item, or has run out of raters.
    """
    counts = np.diff(raters.indptr)
    largest = np.zeros(one.size)
    waiting = np.arange(one.size)
    rank = 0
    while waiting.size:
        waiting = waiting[counts[one[waiting]] > rank]
        places = raters.indptr[one[waiting]] + rank
        keys = other[waiting] * raters.n_users + raters.users[places]
        free = ~find(raters.cells, keys)[1]
        largest[waiting[free]] = raters.squares[places[free]]
        waiting = waiting[~free]
        rank += 1
    return largest


def _remaining(squares: NDArray[np.float64], removed: NDArray[np.float64]) -> NDArray[np.float64]:
    left_over = squares - removed
    return np.where(left_over > _ROUNDING * squares, left_over, 0.0)
