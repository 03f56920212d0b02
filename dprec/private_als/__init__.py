"""Private alternating least squares: from sums over users, with noise, the server solves for the items."""

from dprec.private_als.device import *
from dprec.private_als.implicit import ImplicitAls, ImplicitAlsOptions
from dprec.private_als.learner import ItemLearner
from dprec.private_als.method import ItemDevice, PrivateAls

__all__ = [
    "TARGET_BITS",
    "UNIT_WEIGHT",
    "FactorizationOptions",
    "ImplicitAls",
    "ImplicitAlsOptions",
    "ItemDevice",
    "ItemLearner",
    "ItemModel",
    "PrivateAls",
    "StatisticsContributions",
    "StatisticsLayout",
    "contributions_of",
    "with_level",
]
