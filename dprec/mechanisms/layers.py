"""Mechanisms whose reports repeat: a permanent answer about a rating, and reports on it, drawn every time."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.components import option
from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.thresholds import fixed_threshold
from dprec.randomness import generator
from dprec.ratings import RatingScale
from dprec.reports import LayeredFamily, ReportFamily
from dprec.reports.layers import Layers


@dataclass(frozen=True, kw_only=True)
class LayeredMechanism(Mechanism):
    """Base of the mechanisms whose devices answer for good, and report on the answer whenever they are asked.

    The budget is that of the answer, and so of all reports on a rating that does not change.
    """

    report_family: ClassVar[type[ReportFamily]] = LayeredFamily

    @abstractmethod
    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return pairs of channels, of which a device draws one for each rating, all equally likely."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the pair that is drawn and of the permanent answer."""
        answers = np.hstack([pair.permanent for pair in self.layers(scale, epsilon)])
        values = np.linalg.pinv(answers / answers.sum(axis=1, keepdims=True)) @ scale.values
        return Channel.from_probabilities(answers, scale.values, values, epsilon)


@dataclass(frozen=True, kw_only=True)
class TwoLayers(LayeredMechanism):
    """Whether a rating reaches a threshold, by the two responses of RAPPOR [erlingsson2014] about one bit."""

    kind: Literal["two-layers"] = "two-layers"
    papers: ClassVar[tuple[str, ...]] = ("erlingsson2014", "warner1965")
    threshold: float | Literal["middle"] = option(
        "Least rating whose bit is 1; or middle, for the first level above the middle of the scale.", "middle"
    )
    first: float = option("What the first report loses, as a share of epsilon.", 0.5, gt=0, lt=1)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return the one pair."""
        bits = (scale.values >= fixed_threshold(scale, self.threshold)).astype(np.int64)
        return (Layers.of_classes(bits, 2, epsilon, self.first * epsilon),)


_FUNCTIONS, _MOST_ANSWERS = 16, 3
"""Hash functions that there are, and answers to which they map; more make likelihoods too large."""


@dataclass(frozen=True, kw_only=True)
class LocalHashing(LayeredMechanism):
    """To which number a hash function maps the level, twice by randomised response: LOLOHA [arcolezi2023].

    The function is one of a few that are public; a device draws it for each rating and sends which it is.
    """

    kind: Literal["local-hashing"] = "local-hashing"
    papers: ClassVar[tuple[str, ...]] = ("arcolezi2023",)
    answers: int | None = option(
        "Numbers to which levels are mapped, g in the paper; 2 is BiLOLOHA, and by default the paper's "
        "optimum, up to 3.",
        None,
        ge=2,
        le=_MOST_ANSWERS,
    )
    first: float = option("What the first report loses, as a share of epsilon: alpha.", 0.5, gt=0, lt=1)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return a pair for each hash function.

        By default, levels are hashed to as many answers as have the least variance of counts, at least 2, for
        frequencies of a large domain; 2 is BiLOLOHA.
        """
        first = self.first * epsilon
        a, b = math.exp(epsilon), math.exp(first)
        root = math.sqrt(a**4 - 14 * a**2 - 12 * (a * b) ** 2 + 12 * a * b + 12 * a**3 * b + 1)
        best = max(2, round((root - a**2 + 6 * a - 6 * b + 1) / (6 * (a - b))))
        answers = self.answers or min(best, _MOST_ANSWERS)
        functions = generator(0, "hash functions of levels").integers(
            answers, size=(_FUNCTIONS, scale.levels)
        )
        return [Layers.of_classes(classes, answers, epsilon, first) for classes in functions]


@dataclass(frozen=True, kw_only=True)
class BucketBits(LayeredMechanism):
    """Whether a rating is in each of some buckets, drawn for it, for good: dBitFlipPM [ding2017]."""

    kind: Literal["bucket-bits"] = "bucket-bits"
    papers: ClassVar[tuple[str, ...]] = ("ding2017",)
    buckets: int = option("Buckets into which the scale is cut, of as many levels each: b.", 2, ge=2, le=8)
    bits: int = option("Buckets that are asked about: d.", 1, ge=1, le=4)

    def layers(self, scale: RatingScale, epsilon: float) -> Sequence[Layers]:
        """Return a pair for each choice of buckets."""
        if self.buckets > scale.levels:
            raise SettingError(
                "buckets", f"{self.buckets}", f"at most {scale.levels}, the levels of the scale"
            )
        if self.bits > self.buckets:
            raise SettingError("bits", f"{self.bits}", f"at most {self.buckets}, the buckets")
        bucket_of_level = np.arange(scale.levels) * self.buckets // scale.levels
        choices = combinations(range(self.buckets), self.bits)
        return [Layers.of_buckets(bucket_of_level, np.array(choice), epsilon) for choice in choices]
