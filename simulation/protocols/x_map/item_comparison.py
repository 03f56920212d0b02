"""What the server learns about the items from the uploaded ratings: X-Sim, and which may replace which."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.components import Options, option
from dprec.crossdomain import (
    Candidates,
    CrossDomainRatings,
    LayeredGraph,
    RatedItems,
    ReplacementOptions,
    SimilarityKind,
    layered_graph,
    x_sim,
)
from dprec.progress import Progress

_STAGE = "comparing items"


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """How items are compared across the domains."""

    similarity: SimilarityKind = option("How alike two items are.", "adjusted-cosine")
    neighbors: int = option("Edges that an item keeps to each adjacent layer.", 10, ge=1)
    significance: int = option("Common raters that make a similarity count in full.", 50, ge=1)


@dataclass(frozen=True, eq=False)
class ItemComparison:
    """How the items of the two domains compare."""

    graph: LayeredGraph
    candidates: Candidates
    """What may replace each source item."""
    x_sim_values: int
    """Pairs of a source and a target item that have an X-Sim value."""
    valued: NDArray[np.int64]
    """The source items in such a pair, ascending; shape (rows,)."""


def received_items(observed: Observations, similarity: SimilarityKind, prior_ratings: float) -> RatedItems:
    """Return the items of both domains as the received ratings show them.

    Parameters
    ----------
    similarity : {"adjusted-cosine", "cosine"}
    prior_ratings : float
        Number of ratings at the overall mean that are added to each item's own before its mean is taken.
    """
    cells = observed.users, observed.items
    matrix = sp.coo_array((observed.values, cells), shape=observed.shape).tocsr()
    return RatedItems.of(matrix, similarity, prior_ratings)


def compare_items(
    items: RatedItems,
    train: CrossDomainRatings,
    graph_options: GraphOptions,
    replacement: ReplacementOptions,
    progress: Progress,
) -> ItemComparison:
    """Compare the items of the two domains and find the candidates of every source item.

    Parameters
    ----------
    items : RatedItems
        As received, of both domains.
    train : CrossDomainRatings
        Only the bounds of the domains are used, not the ratings.
    """
    progress(_STAGE, 0, 2)
    graph = layered_graph(items, train.in_target, graph_options.neighbors, graph_options.significance)
    progress(_STAGE, 1, 2)
    values = x_sim(graph)
    similar = sp.csr_array(
        (values.data, values.indices - train.target_start, values.indptr),
        shape=(train.n_items, train.n_targets),
    )
    candidates = Candidates.of(similar)
    valued = candidates.items
    if replacement.whole_catalogue:
        candidates = candidates.covering(np.flatnonzero(~train.in_target))
    if not replacement.private:
        candidates = candidates.best(similar, 1 if replacement.selection == "best" else replacement.among)
    if graph_options.similarity == "cosine":
        candidates = replace(candidates, steps=np.maximum(candidates.steps, 0))
    progress(_STAGE, 2, 2)
    return ItemComparison(graph, candidates, int(similar.nnz), valued)
