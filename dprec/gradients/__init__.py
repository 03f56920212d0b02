"""Gradient reports that devices send in rounds, protected or not."""

from dprec.gradients.base import Aggregate, GradientReport, RoundDraws
from dprec.gradients.full import FullGradient
from dprec.gradients.one_bit import OneBitGradient
from dprec.gradients.one_bit_reduced import ReducedOneBitGradient
from dprec.gradients.sampled_signs import SampledSigns
from dprec.registry import Registry

GRADIENTS: Registry[GradientReport] = Registry(
    "gradient",
    GradientReport,
    [
        OneBitGradient,
        ReducedOneBitGradient,
        SampledSigns,
        FullGradient,
    ],
)

__all__ = [
    "GRADIENTS",
    "Aggregate",
    "FullGradient",
    "GradientReport",
    "OneBitGradient",
    "ReducedOneBitGradient",
    "RoundDraws",
    "SampledSigns",
]
