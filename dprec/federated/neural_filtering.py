"""Federated neural collaborative filtering: NeuMF whose users' vectors stay on the devices.

The score of an item is a linear function of two vectors: the product, number by number, of a user's and an
item's vector (generalised matrix factorisation), and the last layer of a network that is given another vector
of each (He et al. [he2017], equation 12, Figure 3). Items' vectors and the network are shared; a user's
vectors are kept by the device (Perifanis and Efraimidis [perifanis2022]), which trains all of them on its
items and on others that it draws, by binary cross-entropy (He et al. [he2017], equation 7).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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
    scattered,
)
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class NeuralFiltering(DrawsNegatives, LocallyTrained):
    """Vectors of items and a network, learned from what devices change; users' vectors stay where they are.

    The paper divides the sum of items' changes by how many devices trained them; that number would be one
    more thing to hide, so a public rate stands for it. Devices take plain steps in place of Adam's.
    """

    kind: Literal["fedncf"] = "fedncf"
    papers: ClassVar[tuple[str, ...]] = ("he2017", "perifanis2022")
    of_items: ClassVar[int] = 2
    factors: int = option(
        "Numbers of the last layer and of the vectors that are multiplied; the network's are twice as long.",
        8,
        ge=1,
        le=256,
        published=(8, 16, 32, 64),
        source="he2017, section 4.1",
    )
    negatives: int = option(
        "Items that are drawn for each of a user's, anew in each epoch.",
        4,
        ge=1,
        le=1000,
        published=4,
        source="he2017, section 4.1",
    )
    deviation: float = positive("Standard deviation of the first vectors of items and users.", 0.1)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return items' vectors of both parts, the layers with their biases, and the output's weights.

        Shapes (items, factors), (items, size), with as many numbers as the first layer has; of each layer
        (2 size, size) and (size,); (2 factors,) and (1,). See `FederatedModel.start`.
        """
        width, sizes = self.factors, self._sizes
        items = [self.deviation * random.standard_normal((n_items, size)) for size in (width, sizes[0])]
        network: list[Floats] = []
        for size in sizes:
            weights = random.standard_normal((2 * size, size)) * np.sqrt(2 / (2 * size))
            network += [weights, np.zeros(size)]
        output = random.standard_normal(2 * width) / np.sqrt(2 * width)
        return *items, *network, output, np.zeros(1)

    @property
    def _sizes(self) -> list[int]:
        """How many numbers each layer has, half as many as are given to it."""
        return [2 * self.factors, self.factors]

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the user's vectors of both parts, at random, shapes (factors,) and (size,)."""
        sizes = (self.factors, self._sizes[0])
        return tuple(self.deviation * random.standard_normal(size) for size in sizes)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the items and the network, and the user's vectors after it."""
        samples = [examples(random, profile, self.negatives) for _ in range(self.epochs)]
        trained, places = np.unique([items for items, _ in samples], return_inverse=True)
        n_items, labels = profile.n_items, samples[0][1]
        shared = (*(parameter[trained] for parameter in parameters[:2]), *parameters[2:])
        flat, arrays = joined([*shared, *state])
        move, losses = self._moving(flat, arrays), []
        for of_epoch in places.reshape(self.epochs, -1):
            for chosen in batches(labels.size, self.batch, random):
                loss, *slopes = gradients(arrays[:-2], arrays[-2:], of_epoch[chosen], labels[chosen])
                losses.append(loss)
                move(of_epoch[chosen], [*slopes[0], *slopes[1]])
        moved = [new - old for new, old in zip(arrays[:-2], shared, strict=True)]
        items = (scattered(change, trained, n_items) for change in moved[:2])
        return Update((*items, *moved[2:]), tuple(arrays[-2:]), losses[0])

    def _moving(self, flat: Floats, arrays: list[Floats]) -> Callable[[Ints, list[Floats]], None]:
        """Return what takes the steps of a round in place, given the items of a batch and the slopes."""
        return partial(descend, self.rate, arrays)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the logits of all items, shape (items,)."""
        return _forward(parameters, state, *parameters[:2])[-1]


def joined(arrays: Sequence[Floats]) -> tuple[Floats, list[Floats]]:
    """Return one array of all numbers, and its parts in the shapes of those given."""
    flat = np.concatenate([array.ravel() for array in arrays])
    parts = np.split(flat, np.cumsum([array.size for array in arrays])[:-1])
    return flat, [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]


def descend(rate: float, arrays: Sequence[Floats], items: Ints, slopes: Sequence[Floats]) -> None:
    """Step against the slopes in place, of which the first two have a row for each of some items."""
    for array, slope in zip(arrays[:2], slopes[:2], strict=True):
        np.subtract.at(array, items, rate * slope)
    for array, slope in zip(arrays[2:], slopes[2:], strict=True):
        np.subtract(array, rate * slope, out=array)


def _forward(
    shared: Sequence[Floats], vectors: Sequence[Floats], multiplied: Floats, fed: Floats
) -> tuple[Floats, ...]:
    """Return the layers of some items, and their scores."""
    first, first_bias, *network, output, bias = shared[2:]
    width, size = vectors[0].size, vectors[1].size
    # What the first layer makes of the user is the same for every item.
    layers = [np.maximum(vectors[1] @ first[:size] + first_bias + fed @ first[size:], 0.0)]
    for weights, biases in zip(network[::2], network[1::2], strict=True):
        layers.append(np.maximum(layers[-1] @ weights + biases, 0.0))
    scores = multiplied @ (vectors[0] * output[:width]) + layers[-1] @ output[width:] + bias
    return *layers, scores


def gradients(
    shared: Sequence[Floats], vectors: Sequence[Floats], items: Ints, labels: Floats
) -> tuple[float, list[Floats], list[Floats]]:
    """Return the mean loss before a step, and slopes of the summed loss of a batch.

    By items' vectors in a batch, one row for each; by the network; and by the user's vectors.
    """
    first, _, *network, output, _ = shared[2:]
    width, size, multiplied, fed = vectors[0].size, vectors[1].size, shared[0][items], shared[1][items]
    *layers, scores = _forward(shared, vectors, multiplied, fed)
    loss, errors = cross_entropy(scores, labels), chances(scores) - labels
    of_product = errors @ multiplied
    slopes = [np.concatenate([of_product * vectors[0], errors @ layers[-1]]), errors.sum(keepdims=True)]
    at = np.outer(errors, output[width:]) * (layers[-1] > 0)
    for weights, below in zip(network[-2::-2], layers[-2::-1], strict=True):
        slopes = [below.T @ at, at.sum(axis=0), *slopes]
        at = at @ weights.T * (below > 0)
    summed = at.sum(axis=0)
    slopes = [np.vstack([np.outer(vectors[1], summed), fed.T @ at]), summed, *slopes]
    rows = [np.outer(errors, vectors[0] * output[:width]), at @ first[size:].T]
    return loss, [*rows, *slopes], [of_product * output[:width], first[:size] @ summed]
