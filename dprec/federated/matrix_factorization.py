"""Matrix factorisation by federated averaging: items are shared, and a user's vector stays on the device.

A rating is predicted by b_i + b_u + p_u . q_i. In a round a device takes steps of stochastic gradient descent
on its own ratings, by its vector (b_u, p_u) and its copies of (b_i, q_i) together, and sends by how much the
latter moved (federated averaging, McMahan et al. [mcmahan2017]; for factorisation, with gradients in place of
changes, Chai et al. [chai2021]).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.components import option
from dprec.federated.local_training import LocallyTrained, batches, scattered
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class AveragedFactorization(LocallyTrained):
    """Biases and factors of items, learned from what devices change; users' stay where they are."""

    kind: Literal["fedavg-mf"] = "fedavg-mf"
    papers: ClassVar[tuple[str, ...]] = ("mcmahan2017", "chai2021")
    rank: int = option("Number of factors.", 8, ge=1, le=1024)
    ridge: float = option("Pull of a user's vector and of items' factors to 0, for each rating.", 0.1, ge=0)
    deviation: float = positive("Standard deviation of the first factors of items and users.", 0.1)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return biases in the middle of the scale, and factors at random; see `FederatedModel.start`.

        Biases are the first column; shape (items, 1 + rank).
        """
        middle = np.full((n_items, 1), (scale.low + scale.high) / 2)
        return (np.hstack([middle, self.deviation * random.standard_normal((n_items, self.rank))]),)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the user's vector: no bias, and factors at random; shape (1 + rank,)."""
        return (np.append(0.0, self.deviation * random.standard_normal(self.rank)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the user's items, and the user's vector after it."""
        before = parameters[0][profile.items]
        vector, items, count = state[0].copy(), before.copy(), len(before)
        loss = float(np.mean(self._errors(vector, items, profile.values) ** 2)) if count else np.nan
        for _ in range(self.epochs):
            self._train(vector, items, profile.values, batches(count, self.batch, random))
        change = scattered(items - before, profile.items, profile.n_items)
        return Update((change,), (vector,), loss)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return ratings, by the user's vector after a round of training with the items as they are."""
        vector = state[0].copy()
        for _ in range(self.epochs):
            items = parameters[0][profile.items]
            self._train(vector, items, profile.values, batches(len(items), self.batch))
        return parameters[0][:, 0] + vector[0] + parameters[0][:, 1:] @ vector[1:]

    def _train(self, vector: Floats, items: Floats, values: Floats, order: Iterable[Ints]) -> None:
        """Take a step on each batch, of a user's vector and of the items, in place."""
        for places in order:
            rows = items[places]
            errors = self._errors(vector, rows, values[places])
            of_items = np.outer(errors, vector)
            of_items[:, 0] = errors
            of_items[:, 1:] -= self.ridge * rows[:, 1:]
            rows[:, 0] = 1.0
            vector += self.rate * (errors @ rows - self.ridge * errors.size * vector)
            items[places] += self.rate * of_items

    @staticmethod
    def _errors(vector: Floats, items: Floats, values: Floats) -> Floats:
        """Return by how much ratings are above what is predicted."""
        return values - items[:, 0] - vector[0] - items[:, 1:] @ vector[1:]
