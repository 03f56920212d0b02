"""Models that are learned in rounds from clipped updates of single users, with Gaussian noise."""

from dprec.components import Registry
from dprec.federated.adaptive_clip import AdaptiveClip
from dprec.federated.alone import (
    FROM_ONE_USER,
    check_predictions,
    check_updates,
    moved_by_others,
    some_devices,
    some_people,
)
from dprec.federated.collaborative_filtering import CollaborativeFiltering
from dprec.federated.contract import BEFORE_A_RUN, RULES, Broken, Rule, Trial, verdicts
from dprec.federated.counted_filtering import CountedFiltering
from dprec.federated.gradient_factorization import GradientFactorization
from dprec.federated.local_training import DrawsNegatives, others
from dprec.federated.low_rank import LowRankUpdates
from dprec.federated.matrix_factorization import AveragedFactorization
from dprec.federated.model import (
    Computed,
    ContractError,
    Devices,
    FederatedModel,
    Parameters,
    Profile,
    Shapes,
    State,
    Update,
    arrays_of,
    as_array,
    begun,
    shapes_of,
)
from dprec.federated.neural_filtering import NeuralFiltering
from dprec.federated.personal_tables import PersonalTables
from dprec.federated.propagation import OwnEdges
from dprec.federated.reconstruction import FederatedReconstruction
from dprec.federated.shared_representation import SharedRepresentation
from dprec.federated.updates import LARGEST_CLIP, LEAST_CLIP, STEPS, UpdateCode, code_of

MODELS: Registry[FederatedModel] = Registry(
    "model",
    FederatedModel,
    [
        CollaborativeFiltering,
        AveragedFactorization,
        NeuralFiltering,
        SharedRepresentation,
        OwnEdges,
        FederatedReconstruction,
        LowRankUpdates,
        PersonalTables,
        GradientFactorization,
        CountedFiltering,
    ],
)

__all__ = [
    "BEFORE_A_RUN",
    "FROM_ONE_USER",
    "LARGEST_CLIP",
    "LEAST_CLIP",
    "MODELS",
    "RULES",
    "STEPS",
    "AdaptiveClip",
    "AveragedFactorization",
    "Broken",
    "CollaborativeFiltering",
    "Computed",
    "ContractError",
    "CountedFiltering",
    "Devices",
    "DrawsNegatives",
    "FederatedModel",
    "FederatedReconstruction",
    "GradientFactorization",
    "LowRankUpdates",
    "NeuralFiltering",
    "OwnEdges",
    "Parameters",
    "PersonalTables",
    "Profile",
    "Rule",
    "Shapes",
    "SharedRepresentation",
    "State",
    "Trial",
    "Update",
    "UpdateCode",
    "arrays_of",
    "as_array",
    "begun",
    "check_predictions",
    "check_updates",
    "code_of",
    "moved_by_others",
    "others",
    "shapes_of",
    "some_devices",
    "some_people",
    "verdicts",
]
