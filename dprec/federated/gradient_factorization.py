"""FedMF: matrix factorisation whose devices send gradients of items' vectors and keep their own.

A score is the product of a user's and an item's vector. In a round a device takes steps of its own vector and
sends the gradients of the vectors of the items that it has examples of, which the server adds up (Chai et al.
[chai2021], section 3, user-level distributed factorisation, in the form where a device sends those of its own
items). The paper encrypts the gradients, so that the server reads nothing but their sum, as single ones tell
ratings. Nothing is encrypted here.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.components import option
from dprec.federated.local_training import DrawsNegatives, LocallyTrained, batches, examples
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale

_CODE = "chai2021, the authors' code"


@dataclass(frozen=True, kw_only=True)
class GradientFactorization(DrawsNegatives, LocallyTrained):
    """Vectors of items, learned from gradients; users' vectors stay where they are.

    The paper predicts ratings. For lists, a device has 1 of its items and 0 of others that it draws, as where
    later papers compare with it. Steps of several examples together stand for the code's, of one.
    """

    kind: Literal["fedmf"] = "fedmf"
    papers: ClassVar[tuple[str, ...]] = ("chai2021",)
    size: int = option("Numbers of a vector.", 100, ge=1, le=1024, published=100, source=_CODE)
    negatives: int = option(
        "Items that are drawn for each of a user's, anew in each epoch.", 4, ge=1, le=1000
    )
    epochs: int = option(
        "Passes of a device over its examples, in a round.", 1, ge=1, published=1, source=_CODE
    )
    batch: int = option("Most examples in a step of the user's vector.", 20, ge=1, published=1, source=_CODE)
    rate: float = positive(
        "gamma: step of the user's vector, for each example.", 1e-3, published=1e-3, source=_CODE
    )
    ridge: float = option(
        "lambda: pull of vectors to 0, for each step of a user's and for each example of an item's.",
        1e-4,
        ge=0,
        published=1e-4,
        source=_CODE,
    )
    item_rate: float = positive(
        "gamma times the number of users: step of items along the mean of what devices send.", 1.0
    )
    deviation: float = positive(
        "Standard deviation of the first vectors of items and users.", 1.0, published=1.0, source=_CODE
    )

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return items' vectors at random, shape (items, size); see `FederatedModel.start`."""
        return (self.deviation * random.standard_normal((n_items, self.size)),)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the user's vector at random, shape (size,)."""
        return (self.deviation * random.standard_normal(self.size),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return minus the gradients of items' vectors, and the user's vector after its steps."""
        (items,), vector = parameters, state[0].copy()
        change, losses = np.zeros_like(items), []
        for _ in range(self.epochs):
            chosen, labels = examples(random, profile, self.negatives)
            for places in batches(labels.size, self.batch, random):
                losses.append(self._step(vector, change, items, chosen[places], labels[places]))
        return Update((change,), (vector,), losses[0])

    def _step(self, vector: Floats, change: Floats, items: Floats, chosen: Ints, labels: Floats) -> float:
        """Move a user's vector and add to the change of items, in place; return the mean loss before."""
        rows = items[chosen]
        errors = labels - rows @ vector
        vector += 2 * self.rate * (errors @ rows - self.ridge * vector)
        # As the code has it, errors are those before the step, and the vector is that after it. Each place of
        # an item that was drawn twice is given the same sum.
        summed, times = (np.bincount(chosen, weights)[chosen] for weights in (errors, None))
        change[chosen] += 2 * (np.outer(summed, vector) - self.ridge * times[:, None] * rows)
        return float(np.mean(errors**2))

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the products of the user's vector with all items', shape (items,)."""
        return parameters[0] @ state[0]
