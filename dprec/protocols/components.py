"""The types of a configuration's components: one of the kinds in each registry."""

from typing import TYPE_CHECKING, Any, ClassVar

from dprec.attacks import ATTACKS, Attack
from dprec.binarization import BINARIZATIONS, Binarization
from dprec.completion import COMPLETIONS, PERTURBATIONS, Completion, Perturbation
from dprec.components import Registry, one_of
from dprec.datasets import DATASETS, Dataset
from dprec.federated import MODELS, FederatedModel
from dprec.gradients import GRADIENTS, GradientReport
from dprec.mechanisms import MECHANISMS, Mechanism
from dprec.schedules import SCHEDULES, Schedule
from dprec.splits import SPLITS, Split
from dprec.sums import AGGREGATIONS, Aggregation

COMPONENT_REGISTRIES: list[Registry[Any]] = [
    DATASETS,
    SPLITS,
    BINARIZATIONS,
    MECHANISMS,
    COMPLETIONS,
    GRADIENTS,
    PERTURBATIONS,
    AGGREGATIONS,
    MODELS,
    SCHEDULES,
    ATTACKS,
]


if TYPE_CHECKING:
    AnyAggregation = Aggregation
    AnyAttack = Attack
    AnyBinarization = Binarization
    AnyCompletion = Completion
    AnyDataset = Dataset
    AnyGradient = GradientReport
    AnyMechanism = Mechanism
    AnyModel = FederatedModel
    AnyPerturbation = Perturbation
    AnySchedule = Schedule
    AnySplit = Split
    FixedMechanism = Mechanism
    """Of a protocol whose mechanism is no option, though that of its base is one."""
else:
    AnyAggregation = one_of(AGGREGATIONS)
    AnyAttack = one_of(ATTACKS)
    AnyBinarization = one_of(BINARIZATIONS)
    AnyCompletion = one_of(COMPLETIONS)
    AnyDataset = one_of(DATASETS)
    AnyGradient = one_of(GRADIENTS)
    AnyMechanism = one_of(MECHANISMS)
    AnyModel = one_of(MODELS)
    AnyPerturbation = one_of(PERTURBATIONS)
    AnySchedule = one_of(SCHEDULES)
    AnySplit = one_of(SPLITS)
    FixedMechanism = ClassVar[Mechanism]
