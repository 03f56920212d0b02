"""The protocols: how devices and server arrive at predictions together."""

from dprec.components import Registry
from dprec.predictions import Predict
from dprec.protocols.base import Protocol
from dprec.protocols.baselines import GlobalMeanProtocol, NothingSentProtocol, RandomListProtocol
from dprec.protocols.federated import FederatedProtocol
from dprec.protocols.gradient_perturbation import GradientPerturbationProtocol
from dprec.protocols.gram import GramProtocol, PairsInBlanketProtocol, PopularityProtocol
from dprec.protocols.implicit_als import ImplicitAlsProtocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.protocols.one_shot import OneShotProtocol
from dprec.protocols.private_als import PrivateAlsProtocol
from dprec.protocols.public_start import PublicStartProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol
from dprec.protocols.references import EaseProtocol, IalsProtocol
from dprec.protocols.sampled_negatives import SampledNegativesProtocol
from dprec.protocols.secret_sets import SecretSetProtocol
from dprec.protocols.trusted_server import TrustedServerProtocol
from dprec.protocols.x_map import XMapProtocol
from simulation.protocols.best import BestProtocol
from simulation.protocols.best_list import BestListProtocol
from simulation.protocols.task import Checkpoints, Metric, Outcome, Task

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
