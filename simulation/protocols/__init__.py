"""The protocols, each a way in which devices and server reach predictions together."""

from dprec.registry import Registry
from simulation.protocols.base import Outcome, Protocol, Task
from simulation.protocols.iterative import IterativeProtocol
from simulation.protocols.one_shot import OneShotProtocol

PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    [
        OneShotProtocol,
        IterativeProtocol,
    ],
)

__all__ = ["PROTOCOLS", "Outcome", "Protocol", "Task"]
