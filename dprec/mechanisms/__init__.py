"""Local mechanisms, each a channel from true levels to symbols."""

from dprec.channel import Channel
from dprec.components import Registry
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.fisher_optimal import FisherOptimal
from dprec.mechanisms.laplace import *
from dprec.mechanisms.layers import BucketBits, LayeredMechanism, LocalHashing, TwoLayers
from dprec.mechanisms.randomized_response import *
from dprec.mechanisms.steps import Duchi, Hybrid, Piecewise, SquareWave, Staircase
from dprec.mechanisms.thresholds import *

MECHANISMS: Registry[Mechanism] = Registry(
    "mechanism",
    Mechanism,
    [
        Raw,
        BoundedLaplace,
        RandomizedResponse,
        Laplace,
        ClampedLaplace,
        ZhengLaplace,
        ZhengRandomizedResponse,
        BinaryFlip,
        ThresholdBit,
        HiddenThreshold,
        Duchi,
        Piecewise,
        Hybrid,
        Staircase,
        SquareWave,
        FisherOptimal,
        ResidualBits,
        UserLevelBit,
        BitsAndCounts,
        SetOnly,
        RandomizedSet,
    ],
)

__all__ = [
    "MECHANISMS",
    "BinaryFlip",
    "BitsAndCounts",
    "BoundedLaplace",
    "BucketBits",
    "Channel",
    "ClampedLaplace",
    "Duchi",
    "FisherOptimal",
    "HiddenThreshold",
    "Hybrid",
    "Laplace",
    "LayeredMechanism",
    "LocalHashing",
    "Mechanism",
    "Piecewise",
    "RandomizedResponse",
    "RandomizedSet",
    "Raw",
    "ResidualBits",
    "SampledNegatives",
    "SetOnly",
    "SquareWave",
    "Staircase",
    "ThresholdBit",
    "TwoLayers",
    "UserLevelBit",
    "ZhengLaplace",
    "ZhengRandomizedResponse",
]
