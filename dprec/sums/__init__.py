"""Sums over users with noise: who adds up and adds the noise, and what is learned from them in rounds."""

from dprec.components import Registry
from dprec.sums.aggregation import Aggregation, CentralAggregation, Cost, NoisyAggregation
from dprec.sums.contributions import UNIT, Contributions, Layout, PartOfContributions, Vectors
from dprec.sums.local import LocalAggregation
from dprec.sums.release import Adding, ProfileContributions, Release
from dprec.sums.represented import RepresentedAggregation
from dprec.sums.secure import SecureAggregation
from dprec.sums.shuffled import ShuffledAggregation

AGGREGATIONS: Registry[Aggregation] = Registry(
    "aggregation",
    Aggregation,
    [CentralAggregation, SecureAggregation, ShuffledAggregation, LocalAggregation],
)

__all__ = [
    "AGGREGATIONS",
    "UNIT",
    "Adding",
    "Aggregation",
    "CentralAggregation",
    "Contributions",
    "Cost",
    "Layout",
    "LocalAggregation",
    "NoisyAggregation",
    "PartOfContributions",
    "ProfileContributions",
    "Release",
    "RepresentedAggregation",
    "SecureAggregation",
    "ShuffledAggregation",
    "Vectors",
]
