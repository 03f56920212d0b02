"""The protocols: how devices and server arrive at predictions together."""

from dprec.components import Registry
from dprec.predictions import Predict
from simulation.protocols.base import Protocol
from simulation.protocols.best import BestProtocol
from simulation.protocols.federated import FederatedProtocol
from simulation.protocols.global_mean import GlobalMeanProtocol
from simulation.protocols.gradient_perturbation import GradientPerturbationProtocol
from simulation.protocols.iterative import IterativeProtocol
from simulation.protocols.nothing_sent import NothingSentProtocol
from simulation.protocols.one_shot import OneShotProtocol
from simulation.protocols.outcome import Outcome
from simulation.protocols.private_als import PrivateAlsProtocol
from simulation.protocols.task import Checkpoints, Metric, Task
from simulation.protocols.trusted_server import TrustedServerProtocol
from simulation.protocols.x_map import XMapProtocol

PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    Protocol,
    [
        OneShotProtocol,
        IterativeProtocol,
        PrivateAlsProtocol,
        FederatedProtocol,
        TrustedServerProtocol,
        GradientPerturbationProtocol,
        XMapProtocol,
        NothingSentProtocol,
        GlobalMeanProtocol,
        BestProtocol,
    ],
)

__all__ = ["PROTOCOLS", "Checkpoints", "Metric", "Outcome", "Predict", "Protocol", "Task"]
