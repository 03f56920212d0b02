"""FedNCF as published: Adam on devices, and items averaged over the devices that trained them.

The paper averages items' vectors over those who moved them, as in matrix factorisation, and the network over
all (Perifanis and Efraimidis [perifanis2022], abstract). Devices say which items they moved, in one number
more for each, so that two sums are all that the server divides. With a budget, the noise on these numbers
comes on top, and an item that few moved may be moved far by it: `NeuralFiltering` does without.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.components import option
from dprec.errors import SettingError
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.federated.neural_filtering import NeuralFiltering, descend, joined
from dprec.ratings import RatingScale

_MOVED = 2.0**-6
"""What a device sends for an item that it moved: about as much as what it learned of it.

Reports round it to 0 where the clip is 256 or more.
"""

_WIDEST = 1024
"""Most numbers of the first layer."""

_FIRST, _SECOND = 0.9, 0.999
"""Decays of Adam's means."""


@dataclass(frozen=True, kw_only=True)
class CountedFiltering(NeuralFiltering):
    """Vectors of items and a network, each the mean of what those devices learned that trained it.

    Adam (Kingma and Ba [kingma2015], Algorithm 1) begins anew in each round.
    """

    kind: Literal["fedncf-published"] = "fedncf-published"  # type: ignore[assignment]
    layers: int = option("Layers of the network.", 3, ge=1, le=8)
    rate: float = positive("Step of Adam.", 0.001)
    deviation: float = positive(
        "Standard deviation of the first vectors of items and users.",
        0.01,
        published=0.01,
        source="he2017, section 4.1",
    )

    def __post_init__(self) -> None:
        """Refuse a first layer of which the weights alone would fill a memory."""
        super().__post_init__()
        if self._sizes[0] > _WIDEST:
            found = f"{self.layers}, of which the first has {self._sizes[0]} numbers"
            raise SettingError("layers", found, f"a first layer of at most {_WIDEST}")

    @property
    def _sizes(self) -> list[int]:
        return [self.factors << layer for layer in reversed(range(self.layers))]

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return what `NeuralFiltering.start` does, and zeros for counts of items, shape (items,)."""
        return *super().start(n_items, scale, random), np.zeros(n_items)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the items and the network, which items, and the user's vectors."""
        trained = super().update(parameters[:-1], profile, random, state)
        moved = np.any([change.any(axis=1) for change in trained.change[:2]], axis=0)
        return trained._replace(change=(*trained.change, _MOVED * moved))

    def _moving(self, flat: Floats, arrays: list[Floats]) -> Callable[[Ints, list[Floats]], None]:
        slope, parts = joined([np.zeros_like(array) for array in arrays])
        mean, square, taken = np.zeros_like(flat), np.zeros_like(flat), count(1)

        def move(items: Ints, slopes: list[Floats]) -> None:
            slope[:] = 0.0
            descend(-1.0, parts, items, slopes)
            mean[:] += (1 - _FIRST) * (slope - mean)
            square[:] += (1 - _SECOND) * (slope**2 - square)
            step = next(taken)
            size = np.sqrt(square / (1 - _SECOND**step)) + 1e-8
            flat[:] -= self.rate / (1 - _FIRST**step) * mean / size

        return move

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Add the mean change of the network, and of items that of those who moved them, times their rate."""
        *changes, moved = update
        shares = np.where(moved > 0, moved / _MOVED, 1.0)[:, None]
        changes[:2] = (change / shares for change in changes[:2])
        return super().step(parameters, (*changes, np.zeros_like(moved)), round_index)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the logits of all items, shape (items,)."""
        return super().predict(parameters[:-1], profile, state)
