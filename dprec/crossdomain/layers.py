"""Layers of items by how near they are to the other domain: bridges, their neighbours, all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.crossdomain.similarity import Edges, RatedItems, edges_between

BRIDGE, NEXT_TO_BRIDGE, FAR = 0, 1, 2
"""BB: has an edge into the other domain; NB: has one to a BB item of its own domain; NN: neither."""

LAYER_NAMES = ("BB", "NB", "NN")


@dataclass(frozen=True, eq=False)
class LayeredGraph:
    """The similarity graph between two domains, pruned layer by layer."""

    layers: NDArray[np.int8]
    """`BRIDGE`, `NEXT_TO_BRIDGE` or `FAR`; shape (items,)."""
    in_target: NDArray[np.bool_]
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


def layered_graph(
    items: RatedItems, in_target: NDArray[np.bool_], neighbors: int, significance: int
) -> LayeredGraph:
    """Find the layers and keep the strongest edges between adjacent ones.

    Parameters
    ----------
    items : RatedItems
        Of both domains.
    in_target : ndarray of bool, shape (items,)
    neighbors : int
        An edge is kept if it is among this many most similar ones of either end, within its two layers.
    significance : int
        As `edges_between`.

    Notes
    -----
    Layers and pruning as in Guerraoui et al. [guerraoui2017], section 4.2.
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
