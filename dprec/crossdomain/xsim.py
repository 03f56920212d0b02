"""X-Sim: the similarity of two items from different domains, over all meta-paths between them.

A meta-path leads from its source item layer by layer to a bridge, across to the other domain, and out
to its target item. The similarity of a path divides by a sum over all of its edges, so the products
of the layers' sparse matrices are expanded row by row, as in Gustavson's algorithm, and summed only
once whole paths are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.arrays import Bools, Floats, Ints, rows_of, segments
from dprec.crossdomain.similarity import Edges, RatedItems, edges_between

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
        near = edges_between(items, others, bridges, significance)
        layers[near.left] = NEXT_TO_BRIDGE
        far = others[layers[others] == FAR]
        next_to_bridge = others[layers[others] == NEXT_TO_BRIDGE]
        to_bridge.append(near.strongest(neighbors))
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
class _Paths:
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
    def staying(cls, items: Ints) -> _Paths:
        """Return the paths without an edge."""
        zeros = np.zeros(items.size)
        return cls(items, items, zeros, zeros, np.ones(items.size))

    @classmethod
    def along(cls, edges: Edges) -> _Paths:
        """Return the paths of one edge, left to right, except edges without mutual opinions."""
        used = edges.select(edges.mutuality > 0)
        return cls(used.left, used.right, used.mutuality * used.similarity, used.mutuality, used.confidence)

    def select(self, which: Bools | Ints | slice) -> _Paths:
        return _Paths(
            self.first[which],
            self.last[which],
            self.weighted[which],
            self.weight[which],
            self.certainty[which],
        )

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
    (Guerraoui et al. [guerraoui2017], section 3, Definitions 3 to 6).
    """
    size = graph.layers.size
    inward, outward = _to_bridges(graph, target=False), _to_bridges(graph, target=True).reversed()
    crossing = _Paths.along(graph.cross)
    sums = sp.csr_array((size, size), dtype=np.complex128)
    for paths in _whole_paths(inward, crossing, outward):
        # Both sums at once: the real part is positive, so an entry with a numerator of 0 is kept.
        values = paths.certainty * (1 + 1j * paths.weighted / paths.weight)
        sums = sums + sp.coo_array((values, (paths.first, paths.last)), shape=(size, size)).tocsr()
    values = np.clip(sums.data.imag / sums.data.real, -1.0, 1.0)
    return sp.csr_array((values, sums.indices, sums.indptr), shape=(size, size))


def _to_bridges(graph: LayeredGraph, *, target: bool) -> _Paths:
    """Return the paths from the items of a domain to its BB items."""
    side = int(target)
    bridges = np.flatnonzero((graph.layers == BRIDGE) & (graph.in_target == target))
    near = _Paths.along(graph.to_bridge[side])
    far = _Paths.along(graph.from_far[side]).then(near)
    parts = (_Paths.staying(bridges), near, far)
    joint = _Paths(
        np.concatenate([part.first for part in parts]),
        np.concatenate([part.last for part in parts]),
        np.concatenate([part.weighted for part in parts]),
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.certainty for part in parts]),
    )
    return joint.select(np.argsort(joint.first, kind="stable"))


def _whole_paths(inward: _Paths, crossing: _Paths, outward: _Paths) -> Iterator[_Paths]:
    """Yield all paths from source to target, in batches that bound the memory."""
    onward = crossing.then(outward)
    ends = np.cumsum(inward.continuations(onward))
    total = int(ends[-1]) if ends.size else 0
    inner = np.searchsorted(ends, np.arange(_PATHS_AT_ONCE, total, _PATHS_AT_ONCE))
    for start, stop in pairwise(np.unique([0, *inner, ends.size]).tolist()):
        yield inward.select(slice(start, stop)).then(onward)
