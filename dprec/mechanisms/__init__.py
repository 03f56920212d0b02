"""Local mechanisms, each a channel from true levels to symbols."""

from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.binary_flip import BinaryFlip
from dprec.mechanisms.bounded_laplace import BoundedLaplace
from dprec.mechanisms.channel import Channel
from dprec.mechanisms.clamped_laplace import ClampedLaplace
from dprec.mechanisms.laplace import Laplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.mechanisms.raw import Raw
from dprec.mechanisms.zheng_laplace import ZhengLaplace
from dprec.mechanisms.zheng_randomized_response import ZhengRandomizedResponse
from dprec.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    "mechanism",
    [
        Raw,
        BoundedLaplace,
        RandomizedResponse,
        Laplace,
        ClampedLaplace,
        ZhengLaplace,
        ZhengRandomizedResponse,
        BinaryFlip,
    ],
)

__all__ = [
    "MECHANISMS",
    "BinaryFlip",
    "BoundedLaplace",
    "Channel",
    "ClampedLaplace",
    "Laplace",
    "Mechanism",
    "RandomizedResponse",
    "Raw",
    "ZhengLaplace",
    "ZhengRandomizedResponse",
]
