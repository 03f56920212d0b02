"""Local mechanisms, each a channel from true levels to symbols."""

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.binary_flip import BinaryFlip
from dprec.mechanisms.bits_and_counts import BitsAndCounts
from dprec.mechanisms.bounded_laplace import BoundedLaplace
from dprec.mechanisms.clamped_laplace import ClampedLaplace
from dprec.mechanisms.duchi import Duchi
from dprec.mechanisms.fisher_optimal import FisherOptimal
from dprec.mechanisms.hidden_threshold import HiddenThreshold
from dprec.mechanisms.hybrid import Hybrid
from dprec.mechanisms.laplace import Laplace
from dprec.mechanisms.piecewise import Piecewise
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.mechanisms.raw import Raw
from dprec.mechanisms.residual_bits import ResidualBits
from dprec.mechanisms.set_only import SetOnly
from dprec.mechanisms.square_wave import SquareWave
from dprec.mechanisms.staircase import Staircase
from dprec.mechanisms.threshold_bit import ThresholdBit
from dprec.mechanisms.user_level_bit import UserLevelBit
from dprec.mechanisms.zheng_laplace import ZhengLaplace
from dprec.mechanisms.zheng_randomized_response import ZhengRandomizedResponse
from dprec.registry import Registry

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
    ],
)

__all__ = [
    "MECHANISMS",
    "BinaryFlip",
    "BitsAndCounts",
    "BoundedLaplace",
    "Channel",
    "ClampedLaplace",
    "Duchi",
    "FisherOptimal",
    "HiddenThreshold",
    "Hybrid",
    "Laplace",
    "Mechanism",
    "Piecewise",
    "RandomizedResponse",
    "Raw",
    "ResidualBits",
    "SetOnly",
    "SquareWave",
    "Staircase",
    "ThresholdBit",
    "UserLevelBit",
    "ZhengLaplace",
    "ZhengRandomizedResponse",
]
