"""Guesses what people rated from the table of items that all devices are sent.

Somebody who knows that a person rated some rare item ranks all other items by how popular they are and by how
near their places are to that item's. `least_raters.py` prints how well that works.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.attacks.bounds import Roc
from dprec.completion import Calibrated
from dprec.observations import EmbeddingRelease, Observations, SymbolReports
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.ratings import Ratings
from dprec.wire import ItemTable


@dataclass(frozen=True)
class Guesses:
    """How well people's other items are guessed: mean areas under the ROC curve."""

    with_table: float
    popularity: float
    """With the places of the table, and by how often items are rated alone."""
    guessed: int
    """Pairs of an item and a rater from whom was guessed."""


def table_of_sets(train: Ratings, embedding_release: EmbeddingRelease, seed: int = 1) -> ItemTable:
    """Return the table that devices of `sets-only` decode."""
    values, nothing = np.ones(train.count), np.zeros(train.count, dtype=np.int64)
    symbols = SymbolReports((np.ones((train.scale.levels, 1)),), nothing, nothing)
    cells = train.users.astype(np.int32), train.items.astype(np.int32), values
    sizes = (train.n_users, train.n_items), train.scale
    seen = Observations.of(*cells, *sizes, evidence=symbols, embedding_release=embedding_release)
    encoded = calibrated_broadcast(Calibrated().fit(seen, seed), train).encode()
    return ItemTable.decode(encoded, n_levels=train.scale.levels, n_items=train.n_items)


def guesses(table: ItemTable, train: Ratings, raters: int = 1) -> Guesses:
    """Guess the other items of everybody who rated an item with so many raters.

    Whoever guesses is given how often each item is rated, whatever the table says of that.
    """
    rated = np.zeros((train.n_users, train.n_items), dtype=np.bool_)
    rated[train.users, train.items] = True
    counts = rated.sum(axis=0)
    popularity = _standardised(np.log1p(counts))
    directions = table.directions(1e-9)
    areas = []
    for item in np.flatnonzero(counts == raters):
        near = _standardised(directions @ directions[item])
        others = np.arange(train.n_items) != item
        for user in np.flatnonzero(rated[:, item]):
            own = rated[user, others]
            if own.any():
                scores = (popularity[others] + by[others] for by in (near, 0 * near))
                areas.append([Roc.of_scores(each, own, ~own).auc for each in scores])
    with_table, by_popularity = np.mean(areas, axis=0).tolist()
    return Guesses(with_table, by_popularity, len(areas))


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return (values - values.mean()) / (values.std() or 1.0)
