"""PFedRec: score functions of users' own, and item tables that devices refine for themselves.

An item's score is linear in its vector, by weights and an offset that stay on the device; users have no
vectors. In a round a device goes through its items and others that it draws, in batches: a step of its score
function, then a step of its copy of the item table under the new one, both against the mean cross-entropy
(Zhang et al. [zhang2023], Algorithm 1). The server averages the tables, and a device predicts by the one that
it refined itself.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.components import option
from dprec.federated.local_training import (
    DrawsNegatives,
    LocallyTrained,
    batches,
    chances,
    cross_entropy,
    examples,
)
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale

_CODE = "zhang2023, the authors' code"


@dataclass(frozen=True, kw_only=True)
class PersonalTables(DrawsNegatives, LocallyTrained):
    """Vectors of items, learned from what devices change; score functions stay where they are.

    All score functions start alike, as the authors' do: as vectors of items are spherical at random, it does
    not matter in which direction, and weights have the mean square of theirs. Of the table that it refined a
    device keeps the scores alone, as every round starts from the server's. The authors' devices also send
    their offset, which nobody reads, and draw the negatives of one item without replacement.
    """

    kind: Literal["pfedrec"] = "pfedrec"
    papers: ClassVar[tuple[str, ...]] = ("zhang2023",)
    size: int = option("Numbers of an item's vector.", 32, ge=1, le=1024, published=32, source=_CODE)
    negatives: int = option(
        "Items that are drawn for each of a user's, anew in each epoch.",
        4,
        ge=1,
        le=1000,
        published=4,
        source=_CODE,
    )
    epochs: int = option(
        "E: passes of a device over its examples, in a round.", 1, ge=1, published=1, source=_CODE
    )
    batch: int = option("B: most examples in a step.", 256, ge=1, published=256, source=_CODE)
    rate: float = positive("eta: step of the score function.", 0.1, published=0.1, source=_CODE)
    table_rate: float = positive(
        "Step of the table, in steps of the score function, for each item of the catalogue.",
        80.0,
        published=80.0,
        source=_CODE,
    )
    deviation: float = positive(
        "Standard deviation of the first vectors of items.", 1.0, published=1.0, source=_CODE
    )

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return items' vectors at random, shape (items, size); see `FederatedModel.start`."""
        return (self.deviation * random.standard_normal((n_items, self.size)),)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the score function, with its offset last, and no scores, shapes (size + 1,) and (items,)."""
        weights = np.full(self.size, 1 / np.sqrt(3 * self.size))
        return np.append(weights, 0.0), np.zeros(n_items)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the table, and the score function after it, with its scores."""
        weights, losses, table = state[0].copy(), [], parameters[0].copy()
        for _ in range(self.epochs):
            items, labels = examples(random, profile, self.negatives)
            for places in batches(labels.size, self.batch, random):
                losses.append(self._train(weights, table, items[places], labels[places]))
        scores = table @ weights[:-1] + weights[-1]
        return Update((table - parameters[0],), (weights, scores), losses[0])

    def _train(self, weights: Floats, table: Floats, items: Ints, labels: Floats) -> float:
        """Take both steps on one batch, in place; return its mean loss between them."""
        vectors = table[items]
        errors = chances(vectors @ weights[:-1] + weights[-1]) - labels
        weights -= self.rate / labels.size * np.append(errors @ vectors, errors.sum())
        scores = vectors @ weights[:-1] + weights[-1]
        step = self.rate * self.table_rate * len(table) / labels.size
        # Each place of an item that was drawn twice is given the same vector: that of both errors.
        summed = np.bincount(items, chances(scores) - labels)[items]
        table[items] = vectors - np.outer(step * summed, weights[:-1])
        return cross_entropy(scores, labels)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return what the table refined last says of all items; the server's, of who never trained."""
        weights, scores = state
        return scores if scores.any() else parameters[0] @ weights[:-1] + weights[-1]
