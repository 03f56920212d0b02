"""Federated collaborative filtering of implicit data: gradients of item factors.

A device solves for its user's factors x from the item factors y, (sum over all items of c y y^T + lambda I) x
= sum over its own of c y, with the confidence c = 1 + alpha of its own items and 1 of all others, and sends
c (p - x . y) x of every item, where p is 1 for its own and 0 for others (Ammad-ud-din et al.
[ammaduddin2019]). The server takes a step of Adam [kingma2015] against their sum. That much is published;
clipping and noise are ours.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.completion import Profiles, confident_user_factors, inner_products, products_of_rows
from dprec.components import option
from dprec.federated.adam import Adam
from dprec.federated.model import Devices, FederatedModel, Parameters, positive
from dprec.predictions import Predict
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class CollaborativeFiltering(FederatedModel):
    """Factors of items, learned from gradients of all devices; users' factors stay where they are.

    The paper leaves the settings to a search; these are the best of a few on validation items of MovieLens
    100K and MSWeb at epsilon 1 and 4 (benchmarks/choosing/settings.py).
    """

    kind: Literal["fcf"] = "fcf"
    papers: ClassVar[tuple[str, ...]] = ("ammaduddin2019",)
    predicted: ClassVar[Literal["ratings", "lists"]] = "lists"
    rank: int = option("Number of factors.", 4, ge=1, le=1024)
    confidence: float = option("alpha: what a user's own item counts more than any other.", 1.0, gt=0)
    ridge: float = option("lambda: ridge of a user's factors.", 1.0, gt=0)
    item_ridge: float = option(
        "Ridge of the items' factors, beside the mean of what devices send.", 0.0, ge=0
    )
    step_size: float = positive("Step of Adam.", 0.1)
    first_moment: float = option("Decay of Adam's mean gradient.", 0.9, ge=0, lt=1)
    second_moment: float = option("Decay of Adam's mean squared gradient.", 0.99, ge=0, lt=1)
    deviation: float = positive("Standard deviation of the first factors of items.", 0.3)

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        """Return factors at random; see `FederatedModel.start`."""
        return (self.deviation * random.standard_normal((n_items, self.rank)),)

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        """Return every user's part of the gradient, shape (users, items, rank)."""
        (items,) = parameters
        user_factors = self.user_factors(items, profiles)
        with np.errstate(over="ignore", invalid="ignore"):
            errors = -np.einsum("uf,if->ui", user_factors, items)
            errors[profiles.users, profiles.items] += 1
            errors[profiles.users, profiles.items] *= 1 + self.confidence
            gradients = np.empty((*errors.shape, self.rank))
            # Factor by factor: inner loops over a few factors would take three times as long.
            for factor in range(self.rank):
                np.multiply(errors, user_factors[:, factor, None], out=gradients[:, :, factor])
            return (gradients,)

    def user_factors(self, items: Floats, profiles: Profiles) -> Floats:
        """Return the factors that fit each user's set, shape (users, rank)."""
        return confident_user_factors(profiles, items, self.confidence, self.ridge)

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        """Take the first step of a run; later ones depend on those before, see `steps`."""
        return self.steps()(parameters, update, round_index)

    def steps(self) -> Callable[[Parameters, Parameters, int], Parameters]:
        """Return Adam, which remembers the gradients of a run; see `FederatedModel.steps`."""
        return Adam(self.step_size, self.first_moment, self.second_moment, self.item_ridge)

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        """Return what scores items, from the factors that fit each user's set."""
        (factors,) = parameters
        return partial(inner_products, self.user_factors(factors, profiles), factors)

    def predicting(self, parameters: Parameters, devices: Devices) -> Mapping[str, Any]:
        """Return what scores cells, and all items of users at once; see `FederatedModel.predicting`."""
        (factors,) = parameters
        user_factors = self.user_factors(factors, devices.profiles)
        return {
            "predict": partial(inner_products, user_factors, factors),
            "predict_rows": lambda users, n_items: products_of_rows(user_factors[users], factors),
        }
