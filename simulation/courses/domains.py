"""What a server learned of two domains, as pages draw it: layers of items, and the AlterEgo of one user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import Field

from dprec.arrays import AnyArray, Floats
from dprec.crossdomain import LAYER_NAMES, AlterEgos, CrossDomainRatings, ItemBasedRecommender, LayeredGraph

_EXAMPLE_ITEMS = 8

RatedItems = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class AlterEgo:
    """The ratings of a user who is new to the target domain, and what stands for them there."""

    user: Annotated[str, Field(description="Whose.")]
    scale: Annotated[tuple[float, float], Field(description="The rating scale.")]
    source_ratings: Annotated[int, Field(description="Ratings of the user in the source domain.")]
    items: Annotated[int, Field(description="Items that stand for them.")]
    before: Annotated[RatedItems, Field(description="The first items, with their ratings.")]
    after: Annotated[RatedItems, Field(description="The first items that stand for them, with ratings.")]

    @classmethod
    def example(
        cls, train: CrossDomainRatings, egos: AlterEgos, recommender: ItemBasedRecommender, deviations: bool
    ) -> Self | None:
        """Return the AlterEgo of median size, of those of users without a rating in the target domain."""
        n_targets = np.bincount(train.users, weights=train.in_target[train.items], minlength=train.n_users)
        sizes = np.diff(egos.indptr)
        eligible = np.flatnonzero((sizes > 0) & (n_targets == 0))
        if not eligible.size:
            return None
        user = int(eligible[np.argsort(sizes[eligible], kind="stable")[eligible.size // 2]])
        rated = slice(train.indptr[user], train.indptr[user + 1])
        entries = slice(egos.indptr[user], egos.indptr[user + 1])
        targets, values = egos.targets[entries], egos.values[entries]
        if deviations:
            values = np.clip(values + recommender.items.means[targets], train.scale.low, train.scale.high)
        return cls(
            user=str(train.user_ids[user]),
            scale=(train.scale.low, train.scale.high),
            source_ratings=int(rated.stop - rated.start),
            items=int(sizes[user]),
            before=_named(train.item_ids[train.items[rated]], train.values[rated]),
            after=_named(train.item_ids[targets + train.target_start], values),
        )


def _named(identifiers: AnyArray, values: Floats) -> RatedItems:
    pairs = zip(identifiers.tolist(), np.round(values, 2).tolist(), strict=True)
    return tuple((str(identifier), value) for identifier, value in pairs)[:_EXAMPLE_ITEMS]


@dataclass(frozen=True)
class LayeredDomain:
    """A domain whose items lie in layers."""

    name: Annotated[str, Field(description="What it is called.")]
    bridges: Annotated[int, Field(description="Items with an edge to the other domain (BB).")]
    next_to_bridges: Annotated[int, Field(description="Items next to those (NB).")]
    away_from_bridges: Annotated[int, Field(description="Other items (NN).")]
    edges_to_bridges: Annotated[int, Field(description="Edges kept from NB to BB.")]
    edges_from_away: Annotated[int, Field(description="Edges kept from NN to NB.")]


@dataclass(frozen=True)
class LearnedDomains:
    """Two domains as layers of items."""

    source: Annotated[LayeredDomain, Field(description="The domain that is rated.")]
    target: Annotated[LayeredDomain, Field(description="The domain of which items are recommended.")]
    edges_between: Annotated[int, Field(description="Edges kept between bridges of the two.")]
    alter_ego: Annotated[AlterEgo | None, Field(description="An example; null without any.")]

    @classmethod
    def of(cls, train: CrossDomainRatings, graph: LayeredGraph, alter_ego: AlterEgo | None) -> Self:
        """Return what is drawn of a graph and an AlterEgo."""
        source, target = (
            _layered(graph, name, side) for side, name in enumerate((train.source, train.target))
        )
        return cls(source, target, graph.cross.count, alter_ego)


def _layered(graph: LayeredGraph, name: str, side: int) -> LayeredDomain:
    """Return one of the domains; the target is side 1."""
    items = {
        layer_name: graph.count(layer, target=bool(side)) for layer, layer_name in enumerate(LAYER_NAMES)
    }
    return LayeredDomain(
        name=name,
        bridges=items["BB"],
        next_to_bridges=items["NB"],
        away_from_bridges=items["NN"],
        edges_to_bridges=graph.to_bridge[side].count,
        edges_from_away=graph.from_far[side].count,
    )
