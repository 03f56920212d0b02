"""Private alternating least squares: from sums over users, with noise, the server solves for the items."""

from dprec.private_als.aggregation import Aggregation
from dprec.private_als.item_model import ItemModel
from dprec.private_als.layout import Contributions, StatisticsLayout
from dprec.private_als.learner import ItemLearner
from dprec.private_als.options import FactorizationOptions
from dprec.private_als.secure import SecureAggregation
from dprec.private_als.trusted import TrustedAggregation
from dprec.registry import Registry

AGGREGATIONS: Registry[Aggregation] = Registry(
    "aggregation", Aggregation, [TrustedAggregation, SecureAggregation]
)

__all__ = [
    "AGGREGATIONS",
    "Aggregation",
    "Contributions",
    "FactorizationOptions",
    "ItemLearner",
    "ItemModel",
    "SecureAggregation",
    "StatisticsLayout",
    "TrustedAggregation",
]
