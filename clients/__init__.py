"""The devices' side: a Flower ClientApp in which each node hosts a cohort of users."""

from clients.app import client_app
from clients.faults import FaultOptions
from clients.memory import Memory
from clients.population import Cohort, Population, open_population, write_population

__all__ = [
    "Cohort",
    "FaultOptions",
    "Memory",
    "Population",
    "client_app",
    "open_population",
    "write_population",
]
