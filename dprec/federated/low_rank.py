"""CoLR: devices send changes of low rank, which are as much shorter than the item table.

In a round all devices train the table within the same few directions. It moves by a product: of what a
device trains and sends, a row of a few numbers for each item, and of a factor with orthonormal rows, which
everybody draws from the public number of the round and nobody trains (Nguyen et al. [nguyen2024]; the steps
are those of the authors' code). The server multiplies the mean by the factor. The next round has another
one, so that rounds together move the table in all directions.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.components import option
from dprec.errors import SettingError
from dprec.federated.local_training import (
    DrawsNegatives,
    LocallyTrained,
    batches,
    chances,
    cross_entropy,
    examples,
)
from dprec.federated.model import Parameters, Profile, Shapes, State, Update, positive
from dprec.randomness import generator
from dprec.ratings import RatingScale

_CODE = "nguyen2024, the authors' code"


@dataclass(frozen=True, kw_only=True)
class LowRankUpdates(DrawsNegatives, LocallyTrained):
    """Vectors of items, learned from changes of low rank; users' vectors stay where they are.

    The authors divide the sum of an item's changes by how many devices trained it, which is sent encrypted;
    here a public rate stands for that number. They send down the mean, as short as it is, to devices that
    hold the table; here the table is sent whole, with the number of the round.
    """

    kind: Literal["colr"] = "colr"
    papers: ClassVar[tuple[str, ...]] = ("nguyen2024",)
    size: int = option("Numbers of an item's vector.", 64, ge=1, le=1024, published=64, source=_CODE)
    rank: int = option(
        "Directions in which a round can move the table: numbers that are sent of each item.",
        4,
        ge=1,
        published=(4, 1, 2, 8, 16, 32),
        source=_CODE,
    )
    negatives: int = option(
        "Items that are drawn for each of a user's.", 4, ge=1, le=1000, published=4, source=_CODE
    )
    epochs: int = option(
        "Passes of a device over its examples, in a round.", 2, ge=1, published=2, source=_CODE
    )
    batch: int = option("Most examples in a step.", 256, ge=1, published=256, source=_CODE)
    rate: float = positive(
        "Step: of the table for each example, of the user's vector for their mean.",
        0.5,
        published=0.5,
        source=_CODE,
    )
    ridge: float = option(
        "Pull of the vectors to 0, for each example.", 5e-4, ge=0, published=5e-4, source=_CODE
    )

    def __post_init__(self) -> None:
        """Refuse more directions than an item's vector has numbers."""
        super().__post_init__()
        if self.rank > self.size:
            raise SettingError("rank", str(self.rank), f"at most size, {self.size}")

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return vectors at random, and the number of the first round; see `FederatedModel.start`.

        Shapes (items, size) and (1,).
        """
        vectors = random.standard_normal((n_items, self.size)) / np.sqrt(self.size)
        # Every number of a run is exact in the single precision in which it is sent.
        return vectors, np.array([float(random.integers(1 << 23))])

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the user's vector, at random, shape (size,)."""
        return (random.standard_normal(self.size) / np.sqrt(self.size),)

    def sends(self, shapes: Shapes) -> Shapes:
        """Return the shape of what is sent of the table, (items, rank)."""
        return ((shapes[0][0], self.rank),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return what the device trains beside the factor of the round, and the user's vector after it."""
        (table, _), factor, gain = parameters, self._factor(parameters), self._gain
        vector, moved, losses = state[0].copy(), np.zeros((len(table), self.rank)), []
        items, labels = examples(random, profile, self.negatives)
        for _ in range(self.epochs):
            for places in batches(items.size, self.batch, random):
                chosen = items[places]
                rows = table[chosen] + gain * moved[chosen] @ factor
                scores = rows @ vector
                losses.append(cross_entropy(scores, labels[places]))
                errors = chances(scores) - labels[places]
                # The authors' rate is smaller by the gain, which the slopes therefore lack.
                slopes = np.outer(errors, factor @ vector) + 2 * self.ridge * rows @ factor.T
                vector -= self.rate * (errors @ rows / errors.size + 2 * self.ridge * vector)
                np.subtract.at(moved, chosen, self.rate * slopes)
        return Update((moved,), (vector,), losses[0])

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the scores of all items under the user's vector, shape (items,)."""
        return parameters[0] @ state[0]

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Add the mean of what was sent times the factor of the round, and number the next round."""
        table, number = parameters
        return table + self.item_rate * self._gain * update[0] @ self._factor(parameters), number + 1

    @property
    def _gain(self) -> float:
        """Length that the authors give to the factor's rows."""
        return float(np.sqrt(self.size / self.rank))

    def _factor(self, parameters: Parameters) -> Floats:
        return factor_of(int(parameters[1][0]), self.rank, self.size)


@lru_cache(maxsize=8)
def factor_of(number: int, rank: int, size: int) -> Floats:
    """Return orthonormal rows in directions that a public number draws evenly, shape (rank, size)."""
    directions = generator(number, "factor of a round").standard_normal((size, rank))
    factor: Floats = np.linalg.qr(directions)[0].T
    factor.flags.writeable = False
    return factor
