"""The protocols: how devices and server arrive at predictions together."""

from dprec.components import Registry
from dprec.predictions import Predict
from dprec.protocols.base import Protocol
from dprec.protocols.one_shot import OneShotProtocol
from simulation.protocols.baselines import GlobalMeanProtocol, NothingSentProtocol, TrustedServerProtocol
from simulation.protocols.best import BestProtocol
from simulation.protocols.best_list import BestListProtocol
from simulation.protocols.federated import FederatedProtocol
from simulation.protocols.gradient_perturbation import GradientPerturbationProtocol
from simulation.protocols.iterative import IterativeProtocol
from simulation.protocols.list_sums import (
    GramProtocol,
    PairsInBlanketProtocol,
    PopularityProtocol,
    PublicStartProtocol,
)
from simulation.protocols.lists import EaseProtocol, IalsProtocol, RandomListProtocol
from simulation.protocols.private_als import ImplicitAlsProtocol, PrivateAlsProtocol
from simulation.protocols.randomized_sets import RandomizedSetsProtocol
from simulation.protocols.sampled_negatives import SampledNegativesProtocol
from simulation.protocols.secret_sets import SecretSetProtocol
from simulation.protocols.task import Checkpoints, Metric, Outcome, Task
from simulation.protocols.x_map import XMapProtocol

PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    Protocol,
    [
        OneShotProtocol,
        IterativeProtocol,
        PrivateAlsProtocol,
        ImplicitAlsProtocol,
        FederatedProtocol,
        TrustedServerProtocol,
        GradientPerturbationProtocol,
        XMapProtocol,
        NothingSentProtocol,
        GlobalMeanProtocol,
        BestProtocol,
        RandomListProtocol,
        PopularityProtocol,
        EaseProtocol,
        IalsProtocol,
        GramProtocol,
        RandomizedSetsProtocol,
        SampledNegativesProtocol,
        BestListProtocol,
        PairsInBlanketProtocol,
        PublicStartProtocol,
        SecretSetProtocol,
    ],
)

__all__ = ["PROTOCOLS", "Checkpoints", "Metric", "Outcome", "Predict", "Protocol", "Task"]
