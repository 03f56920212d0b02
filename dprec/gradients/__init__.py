"""Gradient reports that devices send in rounds, protected or not."""

from dprec.components import Registry
from dprec.gradients.base import (
    Aggregate,
    FittedProfiles,
    FullGradient,
    GradientAnswers,
    GradientReport,
    Places,
    RoundDraws,
)
from dprec.gradients.one_bit import OneBitGradient, ReducedOneBitGradient, SampledSigns, SampledSignsOfSets

GRADIENTS: Registry[GradientReport] = Registry(
    "gradient",
    GradientReport,
    [OneBitGradient, ReducedOneBitGradient, SampledSigns, SampledSignsOfSets, FullGradient],
)

__all__ = [
    "GRADIENTS",
    "Aggregate",
    "FittedProfiles",
    "FullGradient",
    "GradientAnswers",
    "GradientReport",
    "OneBitGradient",
    "Places",
    "ReducedOneBitGradient",
    "RoundDraws",
    "SampledSigns",
    "SampledSignsOfSets",
]
