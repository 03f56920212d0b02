"""FedRecon: a user's vector is rebuilt in every round, and no device keeps anything between rounds.

A device divides its examples in two at random. From one half, the support set, it rebuilds its user's vector
by gradient steps with the item table as it is; with the other, the query set, it then trains its copy of the
table under that vector, and sends by how much it moved (Singhal et al. [singhal2021], Algorithm 1). To
recommend, it rebuilds the vector from all that it holds, so that it need not have been asked before.
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
from dprec.randomness import generator
from dprec.ratings import RatingScale

_CODE = "singhal2021, the authors' code"


@dataclass(frozen=True, kw_only=True)
class FederatedReconstruction(DrawsNegatives, LocallyTrained):
    """Vectors of items, learned from what devices change; users' vectors are never kept.

    The paper predicts ratings, by squared errors. As a model of lists, in which form others compare it, it
    learns by the cross-entropy of a user's items and of drawn ones. The paper weights devices by their
    query sets; here all count alike. Its steps follow means of five ratings; these follow sums, at a fifth
    of its rates.
    """

    kind: Literal["fedrecon"] = "fedrecon"
    papers: ClassVar[tuple[str, ...]] = ("singhal2021",)
    size: int = option("Numbers of an item's vector.", 32, ge=1, le=1024)
    negatives: int = option("Items that are drawn for each of a user's.", 4, ge=1, le=1000)
    support: float = option(
        "Share of the examples that rebuild the user's vector; the others train the table.",
        0.5,
        gt=0,
        lt=1,
        published=0.5,
        source=_CODE,
    )
    epochs: int = option("Passes over the query set, in a round.", 1, ge=1, published=1, source=_CODE)
    rate: float = positive("Step of the table, for each example.", 0.1, published=0.1, source=_CODE)
    support_epochs: int = option(
        "Passes over the support set, before those.", 5, ge=1, published=5, source=_CODE
    )
    support_rate: float = positive(
        "Step of the user's vector, for each example.", 0.02, published=0.02, source=_CODE
    )
    deviation: float = positive("Standard deviation of the first vectors of items.", 0.1)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return vectors at random, shape (items, size); see `FederatedModel.start`."""
        return (self.deviation * random.standard_normal((n_items, self.size)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how the query set moves the table, given the vector that the support set makes."""
        (table,) = parameters
        items, labels = examples(random, profile, self.negatives)
        order = random.permutation(items.size)
        support, query = np.split(order, [round(self.support * order.size)])
        vector = self._rebuilt(table, items[support], labels[support], random)
        # The user's vector stays as it is, so that items move along it, by so many times its length.
        moved, scores = np.zeros(len(table)), table @ vector
        loss = cross_entropy(scores[items[query]], labels[query])
        for _ in range(self.epochs):
            for places in batches(query.size, self.batch, random):
                chosen = items[query[places]]
                errors = chances(scores[chosen] + (vector @ vector) * moved[chosen]) - labels[query[places]]
                moved -= self.rate * np.bincount(chosen, errors, moved.size)
        return Update((np.outer(moved, vector),), loss=loss)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the scores of all items under the vector that all examples make, shape (items,)."""
        # Predictions draw as in a round, from words that are always the same, and spare nothing.
        (table,), random = parameters, generator(0, "examples of a prediction")
        return table @ self._rebuilt(table, *examples(random, profile, self.negatives), random)

    def _rebuilt(self, table: Floats, items: Ints, labels: Floats, random: np.random.Generator) -> Floats:
        """Return the user's vector after steps from 0, given the item table, shape (size,)."""
        vector, rows = np.zeros(self.size), table[items]
        for _ in range(self.support_epochs):
            for places in batches(items.size, self.batch, random):
                chosen = rows[places]
                vector -= self.support_rate * ((chances(chosen @ vector) - labels[places]) @ chosen)
        return vector
