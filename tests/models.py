"""A federated model that a configuration can name, for tests of everything but what it learns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Profiles
from dprec.federated import FederatedModel, Parameters
from dprec.predictions import Predict
from dprec.ratings import RatingScale


@dataclass(frozen=True, kw_only=True)
class Still(FederatedModel):
    """A number for each item, which stays where it is."""

    def start(self, n_items: int, scale: RatingScale, random: np.random.Generator) -> Parameters:
        return (np.full(n_items, scale.low),)

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        return (np.zeros((profiles.n_users, profiles.n_items)),)

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        return parameters

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
            return parameters[0][items]

        return predict
