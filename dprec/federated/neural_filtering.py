"""Federated neural collaborative filtering: NeuMF whose users' vectors stay on the devices.

The score of an item is a linear function of two vectors: the product, number by number, of a user's and an
item's vector (generalised matrix factorisation), and the last layer of a network that is given another vector
of each (He et al. [he2017], equation 12, Figure 3). Items' vectors and the network are shared; a user's
vectors are kept by the device (Perifanis and Efraimidis [perifanis2022]), which trains all of them on its
items and on others that it draws, by binary cross-entropy (He et al. [he2017], equation 7).
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
from dprec.federated.model import Parameters, Profile, State, Update
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class NeuralFiltering(DrawsNegatives, LocallyTrained):
    """Vectors of items and a network, learned from what devices change; users' vectors stay where they are.

    The paper divides the sum of items' changes by how many devices trained them; that number would be one
    more thing to hide, so a public rate stands for it. Devices take plain steps in place of Adam's.
    """

    kind: Literal["fedncf"] = "fedncf"
    papers: ClassVar[tuple[str, ...]] = ("he2017", "perifanis2022")
    predicted: ClassVar[Literal["ratings", "lists"]] = "lists"
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
        published=4,
        source="he2017, section 4.1",
    )
    deviation: float = option("Standard deviation of the first vectors of items and users.", 0.1, gt=0)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return items' vectors of both parts, the two layers with their biases, and the output's weights.

        Shapes (items, factors), (items, 2 factors), (4 factors, 2 factors), (2 factors,),
        (2 factors, factors), (factors,), (2 factors,) and (1,); see `FederatedModel.start`.
        """
        width = self.factors
        items = [self.deviation * random.standard_normal((n_items, size)) for size in (width, 2 * width)]
        first, second = (
            random.standard_normal(shape) * np.sqrt(2 / shape[0])
            for shape in ((4 * width, 2 * width), (2 * width, width))
        )
        output = random.standard_normal(2 * width) / np.sqrt(2 * width)
        return *items, first, np.zeros(2 * width), second, np.zeros(width), output, np.zeros(1)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return the user's vectors of both parts, at random, shapes (factors,) and (2 factors,)."""
        sizes = (self.factors, 2 * self.factors)
        return tuple(self.deviation * random.standard_normal(size) for size in sizes)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the items and the network, and the user's vectors after it."""
        shared, own = (tuple(each.copy() for each in arrays) for arrays in (parameters, state))
        losses = []
        for _ in range(self.epochs):
            items, labels = examples(random, profile, self.negatives)
            for places in batches(items.size, self.batch, random):
                loss, slopes, own_slopes = gradients(shared, own, items[places], labels[places])
                losses.append(loss)
                for whole, slope in zip(shared[:2], slopes, strict=False):
                    np.subtract.at(whole, items[places], self.rate * slope)
                for whole, slope in zip([*shared[2:], *own], [*slopes[2:], *own_slopes], strict=True):
                    np.subtract(whole, self.rate * slope, out=whole)
        change = tuple(new - old for new, old in zip(shared, parameters, strict=True))
        return Update(change, own, losses[0] if losses else np.nan)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the logits of all items, shape (items,)."""
        return _forward(parameters, state, *parameters[:2])[-1]


def _forward(shared: Parameters, own: State, multiplied: Floats, fed: Floats) -> tuple[Floats, ...]:
    """Return the last two layers of some items, and their scores."""
    _, _, first, first_bias, second, second_bias, output, bias = shared
    width = own[0].size
    # What the first layer makes of the user is the same for every item.
    of_user = own[1] @ first[: 2 * width] + first_bias
    hidden = np.maximum(of_user + fed @ first[2 * width :], 0.0)
    last = np.maximum(hidden @ second + second_bias, 0.0)
    scores = multiplied @ (own[0] * output[:width]) + last @ output[width:] + bias
    return hidden, last, scores


def gradients(
    shared: Parameters, own: State, items: Ints, labels: Floats
) -> tuple[float, list[Floats], list[Floats]]:
    """Return the mean loss before a step, and slopes of the summed loss of a batch.

    By items' vectors in a batch, one row for each; by the network; and by the user's vectors.
    """
    _, _, first, _, second, _, output, _ = shared
    width, multiplied, fed = own[0].size, shared[0][items], shared[1][items]
    hidden, last, scores = _forward(shared, own, multiplied, fed)
    loss = cross_entropy(scores, labels)
    errors = chances(scores) - labels
    at_last = np.outer(errors, output[width:]) * (last > 0)
    at_hidden = at_last @ second.T * (hidden > 0)
    of_product = errors @ multiplied
    summed = at_hidden.sum(axis=0)
    network = [
        np.vstack([np.outer(own[1], summed), fed.T @ at_hidden]),
        summed,
        hidden.T @ at_last,
        at_last.sum(axis=0),
        np.concatenate([of_product * own[0], errors @ last]),
        errors.sum(keepdims=True),
    ]
    rows = [np.outer(errors, own[0] * output[:width]), at_hidden @ first[2 * width :].T]
    return loss, [*rows, *network], [of_product * output[:width], first[: 2 * width] @ summed]
