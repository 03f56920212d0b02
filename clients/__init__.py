"""The devices' side: a Flower ClientApp in which each node hosts a partition of users.

Names are imported on first use: the configuration needs the faults, but not Flower.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.app import client_app
    from clients.faults import FaultOptions
    from clients.memory import Memory
    from clients.population import Partition, Population, open_population, write_population

__all__ = [
    "FaultOptions",
    "Memory",
    "Partition",
    "Population",
    "client_app",
    "open_population",
    "write_population",
]

_MODULES = {"client_app": "app", "FaultOptions": "faults", "Memory": "memory"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'population')}"), name)
