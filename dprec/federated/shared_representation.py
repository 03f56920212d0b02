"""FedRep: a representation of items that all devices share, and a head that each keeps, in PyTorch.

In a round a device first trains its head on the representation as it is, then the representation under the
new head, and sends by how much the latter moved (Collins et al. [collins2021], Algorithm 1). The
representation is a vector for each item, of which a layer makes features; a head has an offset and a weight
for each feature, and predicts ratings. Nothing is drawn from PyTorch's generators, and what a device trains
is too small for PyTorch to divide among threads: on one machine and version, bits do not depend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.components import option
from dprec.errors import InputError
from dprec.federated.local_training import LocallyTrained, batches, scattered
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SharedRepresentation(LocallyTrained):
    """A network that describes items, learned from what devices change; heads stay where they are.

    The paper's devices have momentum besides, and heads that start at random; here a head starts as the
    middle of the scale and the first feature.
    """

    kind: Literal["fedrep"] = "fedrep"
    papers: ClassVar[tuple[str, ...]] = ("collins2021",)
    size: int = option("Numbers of an item's vector.", 16, ge=1, le=1024)
    features: int = option("Features that the network makes of it.", 8, ge=1, le=1024)
    rate: float = positive("eta: step of a device, for each rating.", 0.005)
    epochs: int = option(
        "Passes of a device over its ratings that train the representation, in a round.",
        1,
        ge=1,
        published=(1, 5),
        source="collins2021, section 5",
    )
    head_epochs: int = option(
        "Passes that train the head, before those.",
        10,
        ge=1,
        published=10,
        source="collins2021, section 5",
    )
    deviation: float = positive("Standard deviation of the first vectors of items.", 0.1)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return items' vectors, and a layer of weights and biases; see `FederatedModel.start`.

        Shapes (items, size), (size, features) and (features,).
        """
        layer = random.standard_normal((self.size, self.features)) / np.sqrt(self.size)
        return self.deviation * random.standard_normal((n_items, self.size)), layer, np.zeros(self.features)

    def begin(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> State:
        """Return a head, its offset first, that gives the middle of the scale plus the first feature."""
        head = np.zeros(1 + self.features)
        head[:2] = (scale.low + scale.high) / 2, 1.0
        return (head,)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return how training moves the user's items and the layer, and the head after it."""
        torch, values = required(), required().tensor(profile.values)
        before = _restricted(parameters, profile)
        features = described(*before)
        loss = float((features @ torch.tensor(state[0]) - values).square().mean())
        head = self._head(features, values, state, random)
        trained = [parameter.clone().requires_grad_() for parameter in before]
        for _ in range(self.epochs):
            for places in batches(len(values), self.batch, random):
                errors = described(trained[0][places], *trained[1:]) @ head - values[places]
                slopes = torch.autograd.grad(errors.square().sum() / 2, trained)
                with torch.no_grad():
                    for parameter, slope in zip(trained, slopes, strict=True):
                        parameter.sub_(self.rate * slope)
        items, *layer = ((new - old).detach().numpy() for new, old in zip(trained, before, strict=True))
        return Update((scattered(items, profile.items, profile.n_items), *layer), (head.numpy(),), loss)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return ratings, by the head after a round of training with the representation as it is."""
        values = required().tensor(profile.values)
        head = self._head(described(*_restricted(parameters, profile)), values, state)
        scores: Floats = (described(*map(required().tensor, parameters)) @ head).numpy()
        return scores

    def _head(
        self, features: Tensor, values: Tensor, state: State, random: np.random.Generator | None = None
    ) -> Tensor:
        """Return the head after steps against half the summed squared errors, given what it multiplies."""
        head: Tensor = required().tensor(state[0])
        for _ in range(self.head_epochs):
            for places in batches(len(values), self.batch, random):
                rows = features[places]
                head -= self.rate * ((rows @ head - values[places]) @ rows)
        return head


def required() -> Any:
    """Return PyTorch; raises InputError where it is not installed."""
    try:
        import torch
    except ImportError:
        raise InputError("fedrep", "PyTorch is not installed", "pip install 'dprec[torch]'") from None
    return torch


def _restricted(parameters: Parameters, profile: Profile) -> list[Tensor]:
    """Return the vectors of the user's items, and the layer."""
    return [required().tensor(parameter) for parameter in (parameters[0][profile.items], *parameters[1:])]


def described(items: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """Return what a head multiplies: 1 and the features of items, shape (items, 1 + features)."""
    return required().nn.functional.pad((items @ weights + biases).tanh(), (1, 0), value=1.0)
