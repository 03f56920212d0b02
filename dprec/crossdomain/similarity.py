"""How similar items are (adjusted cosine, mutuality, X-Sim), and how far one user can move that.

Every quantity of a block is a product of two sparse users x items matrices; a pair exists where at
least one user rated both items. How far one user can move a similarity depends on the ratings (a local
sensitivity): noise calibrated to it follows the publication, but its size reveals something about the
ratings, so it does not make a mechanism differentially private.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import AnyInts, Bools, Floats, Ints, blocks, find, places_of, rows_of, segments

if TYPE_CHECKING:
    import scipy.sparse as sp

SimilarityKind = Literal["adjusted-cosine", "cosine"]

LOWEST: dict[SimilarityKind, float] = {"adjusted-cosine": -1.0, "cosine": 0.0}
"""The least value that each similarity can take; the greatest is 1 for both."""

_ROWS = 512


def global_sensitivity(kind: SimilarityKind) -> float:
    """Return the most by which one user can move a similarity: the width of its range.

    It is 2 for adjusted cosine and 1 for cosine of non-negative ratings (Guerraoui et al.
    [guerraoui2017], Theorem 1).
    """
    return 1.0 - LOWEST[kind]


@dataclass(frozen=True, eq=False)
class RatedItems:
    """The items of a rating matrix, prepared for comparison."""

    deviations: sp.csc_array
    """Ratings minus the user's mean for adjusted cosine, plain ratings for cosine; shape (users, items)."""
    rated: sp.csc_array
    """1 where there is a rating; shape (users, items)."""
    opinions: sp.csc_array
    """1 for a rating of at least the item's mean, -1 for one below it; shape (users, items)."""
    norms: Floats
    """Euclidean norms of the columns of `deviations`; shape (items,)."""
    raters: Ints
    """Shape (items,)."""
    means: Floats
    """Mean rating, mixed with the prior; the overall mean for an item without ratings; shape (items,)."""

    @classmethod
    def of(
        cls, ratings: sp.csr_array, kind: SimilarityKind = "adjusted-cosine", prior: float = 0.0
    ) -> RatedItems:
        """Prepare users x items with ``prior`` ratings at the overall mean added to each item's own."""
        counts = np.diff(ratings.indptr)
        values, users = ratings.data, rows_of(counts)
        raters = np.bincount(ratings.indices, minlength=ratings.shape[1])
        overall = float(values.mean()) if values.size else 0.0
        sums = np.bincount(ratings.indices, weights=values, minlength=raters.size)
        weights = raters + prior
        means = (sums + prior * overall) / np.where(weights > 0, weights, 1.0)
        means = np.where(weights > 0, means, overall)
        user_sums = np.bincount(users, weights=values, minlength=counts.size)
        user_means = user_sums / np.maximum(counts, 1)
        deviations = values - user_means[users] if kind == "adjusted-cosine" else values
        # The rounding error of a rating at the user's mean must not count as an opinion.
        deviations = np.where(np.abs(deviations) < 1e-12, 0.0, deviations)
        opinions = np.where(values >= means[ratings.indices] - 1e-12, 1.0, -1.0)
        return cls(
            deviations=_columns(ratings, deviations),
            rated=_columns(ratings, np.ones(values.size)),
            opinions=_columns(ratings, opinions),
            norms=np.sqrt(np.bincount(ratings.indices, weights=deviations**2, minlength=raters.size)),
            raters=raters,
            means=means,
        )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.raters.size

    @cached_property
    def _digest(self) -> bytes:
        matrices = (self.deviations, self.rated, self.opinions)
        arrays = [array for matrix in matrices for array in (matrix.indptr, matrix.indices, matrix.data)]
        arrays += [self.norms, self.raters, self.means]
        digest = hashlib.blake2b(repr([*(matrix.shape for matrix in matrices), arrays[0].dtype]).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        return self._digest == getattr(other, "_digest", None)

    def __hash__(self) -> int:
        return hash(self._digest)


@dataclass(frozen=True, eq=False)
class _Columns:
    """Base of what is arrays of one length."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return all rows of some parts, in their order."""
        names = [column.name for column in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def select(self, which: Bools | Ints | slice) -> Self:
        """Return some of the rows."""
        return type(self)(*(getattr(self, column.name)[which] for column in fields(self)))


@dataclass(frozen=True, eq=False)
class Edges(_Columns):
    """Similar pairs of items, one from each of two sets."""

    left: Ints
    right: Ints
    """The items, ascending by left and then by right; shape (edges,)."""
    similarity: Floats
    """Never 0; shape (edges,)."""
    mutuality: Floats
    """Users whose ratings of both are on the same side of the items' means; shape (edges,)."""
    confidence: Floats
    """Mutuality over the users who rated either; shape (edges,)."""

    @property
    def count(self) -> int:
        """Number of edges."""
        return self.left.size

    def strongest(self, k: int) -> Edges:
        """Return the edges among the k most similar of either end; ties go to lower items."""
        return self.select(
            _top(self.left, self.right, self.similarity, k) | _top(self.right, self.left, self.similarity, k)
        )


def dense_similarities(items: RatedItems, left: AnyInts, right: AnyInts) -> Floats:
    """Return the similarities of two sets of items, shape (left, right).

    sum_u a_ui a_uj / (|a_i| |a_j|), where a are the deviations and the norms run over all raters of an
    item; 0 if no user rated both or a norm is 0 (Guerraoui et al. [guerraoui2017], section 2).
    """
    dots = (items.deviations[:, left].T @ items.deviations[:, right]).toarray()
    norms = items.norms[left][:, None] * items.norms[right]
    similarities: Floats = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
    return np.clip(similarities, -1.0, 1.0)


def edges_between(items: RatedItems, left: Ints, right: Ints, significance: int) -> Edges:
    """Return the edges between two disjoint sets of items, zero similarities dropped.

    ``left``, ``right``: ascending; ``significance``: number of common raters at which a similarity counts in
    full: it is scaled by min(common, significance) / significance.

    Mutuality S is the number of users whose ratings of both items are on the same side of their means,
    and the confidence is S / |U_i or U_j| (Guerraoui et al. [guerraoui2017], section 3, Definitions 1
    and 2).
    """
    nothing = np.zeros(0)
    parts = [Edges(nothing.astype(np.int64), nothing.astype(np.int64), nothing, nothing, nothing)]
    for start in range(0, left.size, _ROWS):
        block = left[start : start + _ROWS]
        similar = (items.deviations[:, block].T @ items.deviations[:, right]).tocsr()
        similar.sort_indices()
        rows = rows_of(np.diff(similar.indptr))
        pairs = rows * right.size + similar.indices
        common = _at(items.rated[:, block].T @ items.rated[:, right], pairs)
        balance = _at(items.opinions[:, block].T @ items.opinions[:, right], pairs)
        left_ends, right_ends = block[rows], right[similar.indices]
        norms = items.norms[left_ends] * items.norms[right_ends]
        plain = np.divide(similar.data, norms, out=np.zeros(pairs.size), where=norms > 0)
        # Products that cancel leave a rounding error, which is no edge.
        plain = np.where(np.abs(plain) < 1e-12, 0.0, np.clip(plain, -1.0, 1.0))
        mutuality = (common + balance) / 2
        raters = items.raters[left_ends] + items.raters[right_ends] - common
        weighted = plain * np.minimum(common, significance) / significance
        edges = Edges(left_ends, right_ends, weighted, mutuality, mutuality / raters)
        parts.append(edges.select(edges.similarity != 0))
    return Edges.joined(parts)


def _at(product: sp.sparray, pairs: Ints) -> Floats:
    """Return entries of a sparse matrix by row-major position; SciPy stores no zeros in a product."""
    matrix = product.tocsr()
    matrix.sort_indices()
    rows = rows_of(np.diff(matrix.indptr))
    stored = rows * matrix.shape[1] + matrix.indices
    places, present = find(stored, pairs)
    entries = np.zeros(pairs.size)
    entries[present] = matrix.data[places[present]]
    return entries


def _columns(ratings: sp.csr_array, values: Floats) -> sp.csc_array:
    import scipy.sparse as sp

    return sp.csr_array((values, ratings.indices, ratings.indptr), shape=ratings.shape).tocsc()


def _top(ends: Ints, others: Ints, similarity: Floats, k: int) -> Bools:
    """Return which edges are among the k most similar at their end."""
    by_end = np.argsort(ends, kind="stable")
    values = similarity[by_end]
    stretches = np.flatnonzero(np.diff(ends[by_end], prepend=-1, append=np.iinfo(np.int64).max))
    # Edges below the k-th largest of their end are dropped at once; only the few others are ranked.
    within = np.ones(values.size, dtype=np.bool_)
    for start, stop in pairwise(stretches.tolist()):
        if stop - start > k:
            stretch = values[start:stop]
            within[start:stop] = stretch >= np.partition(stretch, stop - start - k)[stop - start - k]
    candidates = by_end[within]
    order = candidates[np.lexsort((others[candidates], -similarity[candidates], ends[candidates]))]
    ranks = places_of(np.unique(ends[order], return_counts=True)[1])
    strongest = np.zeros(similarity.size, dtype=np.bool_)
    strongest[order[ranks < k]] = True
    return strongest


_ITEMS_AT_ONCE, _PAIRS_AT_ONCE = 256, 1 << 18
"""Bounds the memory of a comparison, whatever the number of ratings."""

_ROUNDING = 1e-10
"""A remainder below this share of a squared norm is the rounding error left when the only rater goes."""


@lru_cache(maxsize=1)
def largest_sensitivities(items: RatedItems) -> Floats:
    """Return each item's largest similarity-based sensitivity to any other item, shape (items,).

    SS(t_i, t_j) = max over users u_x of |s(t_i, t_j) - s'(t_i, t_j)|, where s' is the similarity without
    u_x's ratings of the two items (Guerraoui et al. [guerraoui2017], Theorem 2, first line of the proof);
    Theorems 3 and 4 take the largest, which is 0 for an item without ratings. The norms run over all raters
    of an item, so a user who rated only one of the two counts too. The closed form that Theorem 2 states
    assumes that r_i . r_j and r_xi r_xj are not negative; for ratings relative to the users' means it can lie
    below the maximum.
    """
    result = np.zeros(items.n_items)
    by_item = items.deviations
    columns, n_users = rows_of(np.diff(by_item.indptr)), int(by_item.shape[0])
    order, users = np.lexsort((-np.abs(by_item.data), columns)), by_item.indices.astype(np.int64)
    cells = np.sort(columns * n_users + users)
    raters = by_item.indptr.astype(np.int64), users[order], by_item.data[order] ** 2, cells, n_users
    for start in range(0, items.n_items, _ITEMS_AT_ONCE):
        chunk = np.arange(start, min(start + _ITEMS_AT_ONCE, items.n_items))
        # A pair's sensitivity is symmetric: pairs with earlier items were done with those on the left.
        pairs = _of_rows(items, raters, chunk, start)
        np.fill_diagonal(pairs, 0.0)
        result[chunk] = np.maximum(result[chunk], pairs.max(axis=1))
        result[start:] = np.maximum(result[start:], pairs.max(axis=0))
    return result


_Raters = tuple[Ints, Ints, Floats, Ints, int]
"""The raters of every item, the strongest opinion first: where those of each item begin, users, and squares
of their deviations; item * users + user of every rating, ascending; and the number of users.
"""


def _of_rows(items: RatedItems, raters: _Raters, left: Ints, first: int) -> Floats:
    """Return the sensitivities of pairs of an item on the left and an item from `first` on."""
    right = np.arange(first, items.n_items)
    similarity = dense_similarities(items, left, right)
    squares = items.norms**2
    dots = similarity * items.norms[left][:, None] * items.norms[right]
    by_user = items.deviations[:, first:].tocsr()
    by_user.sort_indices()
    entries = segments(items.deviations.indptr[left], items.raters[left])
    users, deviations = items.deviations.indices[entries], items.deviations.data[entries]
    rows = rows_of(items.raters[left])
    every, largest = np.diff(by_user.indptr)[users], np.zeros_like(similarity)
    # Every user who rated an item on the left, with every item on the right that the user rated.
    for part in blocks(every, _PAIRS_AT_ONCE):
        counts = every[part]
        cells = segments(by_user.indptr[users[part]], counts)
        row, r_i = np.repeat(rows[part], counts), np.repeat(deviations[part], counts)
        column, r_j = by_user.indices[cells], by_user.data[cells]
        dot, norm_i, norm_j = dots[row, column], squares[left][row], squares[right][column]
        before = similarity[row, column]
        scale = np.sqrt(_remaining(norm_i, r_i**2) * _remaining(norm_j, r_j**2))
        after = np.divide(dot - r_i * r_j, scale, out=np.zeros(scale.size), where=scale > 0)
        moves = np.abs(before - np.clip(after, -1.0, 1.0))
        np.maximum.at(largest.reshape(-1), row * right.size + column, moves)
    return np.maximum(largest, _one_sided(items, raters, left, right, similarity))


def _one_sided(items: RatedItems, raters: _Raters, left: Ints, right: Ints, similarity: Floats) -> Floats:
    """Return how far users who rated only one of the two items move their similarity."""
    row, column = np.nonzero(similarity)
    before = np.abs(similarity[row, column])
    largest = np.zeros(row.size)
    for first, second in ((left[row], right[column]), (right[column], left[row])):
        squares = items.norms[first] ** 2
        largest_removed = _largest_square_without(raters, first, second)
        left_over = _remaining(squares, largest_removed)
        # Without other raters of the item, the similarity is 0.
        factor = np.sqrt(np.divide(squares, left_over, out=np.zeros(row.size), where=left_over > 0))
        after = np.minimum(before * factor, 1.0)
        largest = np.maximum(largest, np.where(largest_removed > 0, np.abs(after - before), 0.0))
    result = np.zeros_like(similarity)
    result[row, column] = largest
    return result


def _largest_square_without(raters: _Raters, rated: Ints, unrated: Ints) -> Floats:
    """Return the largest squared deviation among the raters of one item who did not rate the other.

    The raters are tried from the strongest opinion down, for all pairs together, until each pair has
    met one who did not rate the other item, or has run out of raters.
    """
    indptr, users, squares, cells, n_users = raters
    counts, largest = np.diff(indptr), np.zeros(rated.size)
    waiting = np.arange(rated.size)
    rank = 0
    while waiting.size:
        waiting = waiting[counts[rated[waiting]] > rank]
        places = indptr[rated[waiting]] + rank
        free = ~find(cells, unrated[waiting] * n_users + users[places])[1]
        largest[waiting[free]] = squares[places[free]]
        waiting = waiting[~free]
        rank += 1
    return largest


def _remaining(squares: Floats, removed: Floats) -> Floats:
    left_over = squares - removed
    return np.where(left_over > _ROUNDING * squares, left_over, 0.0)


BRIDGE, NEXT_TO_BRIDGE, FAR = 0, 1, 2
"""BB: has an edge into the other domain; NB: has one to a BB item of its own domain; NN: neither."""

LAYER_NAMES = ("BB", "NB", "NN")


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """The similarity graph between two domains, pruned layer by layer."""

    layers: NDArray[np.int8]
    """`BRIDGE`, `NEXT_TO_BRIDGE` or `FAR`; shape (items,)."""
    in_target: Bools
    """Shape (items,)."""
    cross: Edges
    """From BB items of the source to BB items of the target."""
    to_bridge: tuple[Edges, Edges]
    """From NB to BB items, in the source and in the target domain."""
    from_far: tuple[Edges, Edges]
    """From NN to NB items, in the source and in the target domain."""

    def count(self, layer: int, *, target: bool) -> int:
        """Return how many items of a domain are in a layer."""
        return int(((self.layers == layer) & (self.in_target == target)).sum())


def layered_graph(items: RatedItems, in_target: Bools, neighbors: int, significance: int) -> LayeredGraph:
    """Find the layers and keep the strongest edges between adjacent ones ([guerraoui2017], section 4.2).

    An edge is kept if it is among the ``neighbors`` most similar ones of either end, within its two layers.
    """
    domains = (np.flatnonzero(~in_target), np.flatnonzero(in_target))
    cross = edges_between(items, *domains, significance)
    layers = np.full(in_target.size, FAR, dtype=np.int8)
    layers[cross.left] = layers[cross.right] = BRIDGE
    to_bridge, from_far = [], []
    for domain in domains:
        bridges, others = domain[layers[domain] == BRIDGE], domain[layers[domain] != BRIDGE]
        near_edges = edges_between(items, others, bridges, significance)
        layers[near_edges.left] = NEXT_TO_BRIDGE
        far = others[layers[others] == FAR]
        next_to_bridge = others[layers[others] == NEXT_TO_BRIDGE]
        to_bridge.append(near_edges.strongest(neighbors))
        from_far.append(edges_between(items, far, next_to_bridge, significance).strongest(neighbors))
    return LayeredGraph(
        layers,
        in_target,
        cross.strongest(neighbors),
        (to_bridge[0], to_bridge[1]),
        (from_far[0], from_far[1]),
    )


_PATHS_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class _Paths(_Columns):
    """Paths from their first to their last items, ascending by the first.

    `weighted` is the sum of S s and `weight` that of S over the edges; `certainty` is the product of
    the edges' confidences.
    """

    first: Ints
    last: Ints
    weighted: Floats
    weight: Floats
    certainty: Floats

    @classmethod
    def along(cls, edges: Edges) -> _Paths:
        """Return the paths of one edge, left to right, except edges without mutual opinions."""
        used = edges.select(edges.mutuality > 0)
        return cls(used.left, used.right, used.mutuality * used.similarity, used.mutuality, used.confidence)

    def reversed(self) -> _Paths:
        order = np.argsort(self.last, kind="stable")
        swapped = _Paths(self.last, self.first, self.weighted, self.weight, self.certainty)
        return swapped.select(order)

    def continuations(self, onward: _Paths) -> Ints:
        """Return how many paths continue each of these."""
        ends = np.searchsorted(onward.first, self.last, side="right")
        return ends - np.searchsorted(onward.first, self.last, side="left")

    def then(self, onward: _Paths) -> _Paths:
        """Return every concatenation of one of these paths with one of ``onward``."""
        counts = self.continuations(onward)
        before = rows_of(counts)
        after = segments(np.searchsorted(onward.first, self.last, side="left"), counts)
        return _Paths(
            self.first[before],
            onward.last[after],
            self.weighted[before] + onward.weighted[after],
            self.weight[before] + onward.weight[after],
            self.certainty[before] * onward.certainty[after],
        )


def x_sim(graph: LayeredGraph) -> sp.csr_array:
    """Return X-Sim, shape (items, items); an entry is stored wherever a path exists, even if it is 0.

    For every path p, s_p = sum(S s) / sum(S) over its edges and c_p = product(S^); X-Sim of a source
    item (row) and a target item (column) is sum(c_p s_p) / sum(c_p) over the paths between them
    (Guerraoui et al. [guerraoui2017], section 3, Definitions 3 to 6). A path leads from its source item layer
    by layer to a bridge, across to the other domain, and out to its target item. As the similarity of a path
    divides by a sum over all of its edges, the products of the layers' sparse matrices are expanded row by
    row, as in Gustavson's algorithm, and summed only once whole paths are known.
    """
    import scipy.sparse as sp

    size = graph.layers.size
    inward, outward = _to_bridges(graph, target=False), _to_bridges(graph, target=True).reversed()
    crossing = _Paths.along(graph.cross)
    sums = sp.csr_array((size, size), dtype=np.complex128)
    onward = crossing.then(outward)
    ends = np.cumsum(inward.continuations(onward))
    total = int(ends[-1]) if ends.size else 0
    # In batches that bound the memory.
    inner = np.searchsorted(ends, np.arange(_PATHS_AT_ONCE, total, _PATHS_AT_ONCE))
    for start, stop in pairwise(np.unique([0, *inner, ends.size]).tolist()):
        paths = inward.select(slice(start, stop)).then(onward)
        # Both sums at once: the real part is positive, so an entry with a numerator of 0 is kept.
        values = paths.certainty * (1 + 1j * paths.weighted / paths.weight)
        sums = sums + sp.coo_array((values, (paths.first, paths.last)), shape=(size, size)).tocsr()
    sums.sort_indices()
    values = np.clip(sums.data.imag / sums.data.real, -1.0, 1.0)
    return sp.csr_array((values, sums.indices, sums.indptr), shape=(size, size))


def _to_bridges(graph: LayeredGraph, *, target: bool) -> _Paths:
    """Return the paths from the items of a domain to its BB items."""
    side = int(target)
    bridges = np.flatnonzero((graph.layers == BRIDGE) & (graph.in_target == target))
    near_paths = _Paths.along(graph.to_bridge[side])
    far = _Paths.along(graph.from_far[side]).then(near_paths)
    zeros = np.zeros(bridges.size)
    without_edges = _Paths(bridges, bridges, zeros, zeros, np.ones(bridges.size))
    joint = _Paths.joined([without_edges, near_paths, far])
    return joint.select(np.argsort(joint.first, kind="stable"))
