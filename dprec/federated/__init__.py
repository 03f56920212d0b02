"""Models that are learned in rounds from clipped updates of single users, with Gaussian noise."""

from dprec.components import Registry
from dprec.federated.alone import (
    ContractError,
    check_predictions,
    check_updates,
    moved_by_others,
    some_people,
)
from dprec.federated.collaborative_filtering import CollaborativeFiltering
from dprec.federated.updates import STEPS, FederatedModel, Parameters, UpdateCode, code_of, of_holders

MODELS: Registry[FederatedModel] = Registry("model", FederatedModel, [CollaborativeFiltering])

__all__ = [
    "MODELS",
    "STEPS",
    "CollaborativeFiltering",
    "ContractError",
    "FederatedModel",
    "Parameters",
    "UpdateCode",
    "check_predictions",
    "check_updates",
    "code_of",
    "moved_by_others",
    "of_holders",
    "some_people",
]
