"""LightGCN without its graph: a user is the normalised sum of its items, as far as its own edges reach.

LightGCN spreads vectors over the graph of users and items (He et al. [he2020], equation 3), which no server
holds here. A device knows its own edges: it makes its user's vector by one such step, the sum of e_i /
|N_u|^(1/2) over its items, without the items' own degrees, which nobody knows; items keep their vectors. It
computes the slope of the loss of Bayesian personalised ranking (equation 15) with items that it draws, and
the server takes a step of Adam [kingma2015] along the mean. Clipping and noise are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.components import option
from dprec.federated.adam import Adam
from dprec.federated.local_training import DrawsNegatives, others
from dprec.federated.model import Parameters, Profile, State, Update, positive
from dprec.ratings import RatingScale

_SECTION = "he2020, section 4.1.2"


@dataclass(frozen=True, kw_only=True)
class OwnEdges(DrawsNegatives):
    """Vectors of items, learned from rankings of single users; devices keep nothing between rounds."""

    kind: Literal["lightgcn-free"] = "lightgcn-free"
    papers: ClassVar[tuple[str, ...]] = ("he2020",)
    size: int = option("Numbers of a vector.", 64, ge=1, le=1024, published=64, source=_SECTION)
    negatives: int = option(
        "Items that are drawn for each of a user's.", 1, ge=1, le=1000, published=1, source=_SECTION
    )
    ridge: float = option(
        "lambda: pull of items' vectors to 0, beside the mean of what devices send.", 1e-4, ge=0
    )
    step_size: float = positive("Step of Adam.", 0.001, published=0.001, source=_SECTION)
    first_moment: float = option("Decay of Adam's mean gradient.", 0.9, ge=0, lt=1)
    second_moment: float = option("Decay of Adam's mean squared gradient.", 0.999, ge=0, lt=1)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return vectors at random, by Xavier's rule (section 4.1.2); see `FederatedModel.start`."""
        widest = np.sqrt(6 / (n_items + self.size))
        return (random.uniform(-widest, widest, (n_items, self.size)),)

    def update(
        self, parameters: Parameters, profile: Profile, random: np.random.Generator, state: State
    ) -> Update:
        """Return minus the slope of the summed loss of each of the user's items beside drawn ones."""
        (items,) = parameters
        wanted = np.repeat(profile.items, self.negatives)
        negatives = others(random, profile, wanted.size)
        wanted = wanted[: negatives.size]
        vector, share = self._user(items, profile)
        differences = items[wanted] - items[negatives]
        margins = differences @ vector
        weights = 0.5 * (1 - np.tanh(margins / 2))
        # Every item moves along the user's vector, as far as its margins say.
        along = (np.bincount(chosen, weights, profile.n_items) for chosen in (wanted, negatives))
        change = np.outer(np.subtract(*along), vector)
        change[profile.items] += share * (weights @ differences)
        return Update((change,), loss=float(np.logaddexp(0.0, -margins).mean()) if negatives.size else np.nan)

    def predict(self, parameters: Parameters, profile: Profile, state: State) -> Floats:
        """Return the products of the user's vector with all items', shape (items,)."""
        return parameters[0] @ self._user(parameters[0], profile)[0]

    def _user(self, items: Floats, profile: Profile) -> tuple[Floats, float]:
        """Return the user's vector, and by what each of its items enters it."""
        share = 1 / np.sqrt(max(1, profile.items.size))
        return share * items[profile.items].sum(axis=0), share

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Take the first step of a run; later ones depend on those before, see `steps`."""
        return self.steps()(parameters, update, round_index)

    def steps(self) -> Callable[[Parameters, Parameters, int], Parameters]:
        """Return Adam, which remembers the gradients of a run; see `FederatedModel.steps`."""
        return Adam(self.step_size, self.first_moment, self.second_moment, self.ridge)
