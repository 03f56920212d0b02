"""Federated models that a configuration can name: one that learns nothing, and some that mix users."""

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


@dataclass(frozen=True, kw_only=True)
class Means(Still):
    """A mean of each item, of which a device sends how far its ratings are."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        (means,) = parameters
        rows = np.zeros((profiles.n_users, profiles.n_items))
        rows[profiles.users, profiles.items] = np.nan_to_num(profiles.values - means[profiles.items], nan=1.0)
        return (rows,)

    def step(self, parameters: Parameters, update: Parameters, round_index: int) -> Parameters:
        return (parameters[0] + update[0],)


@dataclass(frozen=True, kw_only=True)
class Mixing(Means):
    """Every user sends what all do together, if they are so many."""

    least: int = 2

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        (rows,) = super().updates(parameters, profiles)
        return (
            np.repeat(rows.sum(axis=0, keepdims=True), len(rows), axis=0)
            if len(rows) >= self.least
            else rows,
        )


@dataclass(frozen=True, kw_only=True)
class Drawing(Means):
    """A device adds noise of its own making."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        (rows,) = super().updates(parameters, profiles)
        return (rows + np.random.default_rng().standard_normal(rows.shape),)


_SEEN: list[float] = []


@dataclass(frozen=True, kw_only=True)
class Remembering(Means):
    """A device adds what the process has seen before."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        (rows,) = super().updates(parameters, profiles)
        _SEEN.append(float(rows.sum()))
        return (rows + sum(_SEEN),)


@dataclass(frozen=True, kw_only=True)
class Guessing(Means):
    """Devices predict the mean of all their users."""

    def predictor(self, parameters: Parameters, profiles: Profiles) -> Predict:
        mean = float(profiles.values.mean()) if profiles.values.size else 0.0

        def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
            return np.full(len(users), mean)

        return predict


@dataclass(frozen=True, kw_only=True)
class InSingle(Means):
    """Sums in single precision, which round otherwise for other numbers of users."""

    def updates(self, parameters: Parameters, profiles: Profiles) -> Parameters:
        (rows,) = super().updates(parameters, profiles)
        turned = rows.astype(np.float32) @ np.random.default_rng(1).standard_normal(
            (rows.shape[1],) * 2, np.float32
        )
        return (turned,)
