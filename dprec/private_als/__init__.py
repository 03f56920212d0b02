"""Private alternating least squares: from sums over users, with noise, the server solves for the items."""

from dprec.components import Registry
from dprec.private_als.aggregation import Aggregation, SecureAggregation, TrustedAggregation
from dprec.private_als.device import *
from dprec.private_als.learner import ItemLearner

AGGREGATIONS: Registry[Aggregation] = Registry(
    "aggregation", Aggregation, [TrustedAggregation, SecureAggregation]
)

__all__ = [
    "AGGREGATIONS",
    "TARGET_BITS",
    "UNIT",
    "UNIT_WEIGHT",
    "Aggregation",
    "Contributions",
    "FactorizationOptions",
    "ItemLearner",
    "ItemModel",
    "SecureAggregation",
    "StatisticsLayout",
    "TrustedAggregation",
    "contributions_of",
    "with_level",
]
