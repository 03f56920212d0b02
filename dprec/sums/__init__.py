"""Sums over users with noise: who adds up and adds the noise, and what is learned from them in rounds."""

from dprec.components import Registry
from dprec.sums.aggregation import Aggregation, Cost, NoisyAggregation, TrustedAggregation
from dprec.sums.contributions import UNIT, Contributions, Layout, PartOfContributions, Vectors
from dprec.sums.local import LocalAggregation
from dprec.sums.method import LEAST_SHARE, DeviceHalf, Learner, Releases, SummedMethod
from dprec.sums.represented import RepresentedAggregation
from dprec.sums.secure import SecureAggregation
from dprec.sums.shuffled import ShuffledAggregation

AGGREGATIONS: Registry[Aggregation] = Registry(
    "aggregation",
    Aggregation,
    [TrustedAggregation, SecureAggregation, ShuffledAggregation, LocalAggregation],
)

__all__ = [
    "AGGREGATIONS",
    "LEAST_SHARE",
    "UNIT",
    "Aggregation",
    "Contributions",
    "Cost",
    "DeviceHalf",
    "Layout",
    "Learner",
    "LocalAggregation",
    "NoisyAggregation",
    "PartOfContributions",
    "Releases",
    "RepresentedAggregation",
    "SecureAggregation",
    "ShuffledAggregation",
    "SummedMethod",
    "TrustedAggregation",
    "Vectors",
]
