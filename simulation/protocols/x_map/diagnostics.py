"""The notes on the data of an X-Map run, and the diagnostics that its page shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.crossdomain import LAYER_NAMES, AlterEgos, CrossDomainRatings, ItemBasedRecommender
from simulation.protocols.x_map.item_comparison import ItemComparison

_EXAMPLE_ITEMS = 8


def note_on_items(
    observed: Observations,
    train: CrossDomainRatings,
    comparison: ItemComparison | None,
    *,
    whole_catalogue: bool,
) -> tuple[str, ...]:
    """Note how many source items have no X-Sim value, or that no items were compared."""
    if comparison is None:
        return ("Target domain alone: users without ratings there get the items' means as predictions.",)
    rated = np.unique(observed.items)
    sources = rated[(rated < train.target_start) | (rated >= train.target_stop)]
    without = int((~np.isin(sources, comparison.valued)).sum())
    if not without:
        return ()
    consequence = (
        "their replacement is drawn uniformly from all target items"
        if whole_catalogue
        else "they have no replacement and were left out"
    )
    return (f"{without} of {sources.size} rated source items have no X-Sim value: {consequence}.",)


def note_on_profiles(recommender: ItemBasedRecommender) -> tuple[str, ...]:
    """Note how many profiles hold fewer items than a prediction has neighbours."""
    sizes = np.diff(recommender.profiles.indptr)
    k = recommender.options.neighbors
    few, empty = int(((sizes > 0) & (sizes < k)).sum()), int((sizes == 0).sum())
    if not few and not empty:
        return ()
    return (
        f"Of {sizes.size} profiles in the target domain, {few} hold fewer items than the {k} neighbours of a "
        f"prediction, so all of their items are used; {empty} are empty.",
    )


def diagnostics_of(
    train: CrossDomainRatings,
    comparison: ItemComparison | None,
    egos: AlterEgos,
    recommender: ItemBasedRecommender,
    *,
    deviations: bool,
) -> dict[str, Any]:
    """Return what the server learned about the items, as JSON values; empty if none were compared."""
    if comparison is None:
        return {}
    graph = comparison.graph
    learned: dict[str, Any] = {
        "domains": {"source": train.source, "target": train.target},
        "straddlers": int(train.straddlers().sum()),
        "layers": {
            domain: {
                name: graph.count(layer, target=domain == "target") for layer, name in enumerate(LAYER_NAMES)
            }
            for domain in ("source", "target")
        },
        "edges": {
            "between the domains": graph.cross.count,
            "NB to BB": [edges.count for edges in graph.to_bridge],
            "NN to NB": [edges.count for edges in graph.from_far],
        },
        "x_sim_values": comparison.x_sim_values,
        "items_with_x_sim": int(comparison.valued.size),
        "alter_ego": _example(train, egos, recommender, deviations),
    }
    if recommender.options.epsilon is not None:
        learned["median_sensitivity"] = float(np.median(recommender.sensitivities))
    return learned


def _example(
    train: CrossDomainRatings, egos: AlterEgos, recommender: ItemBasedRecommender, deviations: bool
) -> dict[str, Any] | None:
    """Return source ratings and AlterEgo of one user new to the target: the AlterEgo of median size."""
    own = np.bincount(train.users, weights=train.in_target[train.items], minlength=train.n_users)
    sizes = np.diff(egos.indptr)
    eligible = np.flatnonzero((sizes > 0) & (own == 0))
    if not eligible.size:
        return None
    user = int(eligible[np.argsort(sizes[eligible], kind="stable")[eligible.size // 2]])
    rated = slice(train.indptr[user], train.indptr[user + 1])
    made = slice(egos.indptr[user], egos.indptr[user + 1])
    targets, values = egos.targets[made], egos.values[made]
    if deviations:
        values = np.clip(values + recommender.items.means[targets], train.scale.low, train.scale.high)
    return {
        "user": str(train.user_ids[user]),
        "scale": [train.scale.low, train.scale.high],
        "source_ratings": int(rated.stop - rated.start),
        "items": int(sizes[user]),
        "before": _named(train.item_ids[train.items[rated]], train.values[rated]),
        "after": _named(train.item_ids[targets + train.target_start], values),
    }


def _named(identifiers: NDArray[Any], values: NDArray[np.float64]) -> list[list[Any]]:
    """Return the first few items with their ratings."""
    pairs = zip(identifiers.tolist(), np.round(values, 2).tolist(), strict=True)
    return [[str(identifier), value] for identifier, value in pairs][:_EXAMPLE_ITEMS]
