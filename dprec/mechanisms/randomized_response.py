"""Randomised response over the levels, binary flips of signs, and what is sent without noise."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.binarization import check_binary
from dprec.channel import Channel
from dprec.components import option
from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale
from dprec.reports import HiddenRowFamily, ReportFamily, SampledNegativesFamily, SetFamily


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(Mechanism):
    """The true level most likely, all others equally likely (Kairouz et al. [kairouz2014])."""

    kind: Literal["randomized-response"] = "randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("kairouz2014", "li2021")

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[x, z] = e^(epsilon [x = z]) / (e^epsilon + d - 1) for d levels."""
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(scale.levels) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, scale.values, scale.values, epsilon)


@dataclass(frozen=True, kw_only=True)
class ZhengRandomizedResponse(Mechanism):
    """Randomized response over "not rated" and the levels (Zheng [zheng2016], Definition 3)."""

    kind: Literal["zheng-randomized-response"] = "zheng-randomized-response"
    papers: ClassVar[tuple[str, ...]] = ("zheng2016",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[i, j] = e^(epsilon [i = j]) / (e^epsilon + d) over {0 = not rated, 1, ..., d}."""
        symbols = np.concatenate([[np.nan], scale.values])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(np.eye(symbols.size) > 0, 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, symbols, symbols, epsilon)

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float:
        """Return the bound of Theorem 3, Eq. 7, for the levels 1, 2, ..., d; see the base class."""
        m, n, d, gamma = users, items, scale.levels, tolerance
        changed = 2 * (d - 1) * math.sqrt(2 * m * n * d / ((math.exp(epsilon) + d) * gamma))
        # Of the levels, the proof uses only the distance between the outer two.
        return changed * (scale.high - scale.low) / (d - 1)


@dataclass(frozen=True, kw_only=True)
class RandomizedSet(Mechanism):
    """Whether the user has an item, for every item, by randomised response (Warner [warner1965]).

    Gao et al. [gao2020] report item sets so. No channel of two symbols tells more about an item that
    few users have.
    """

    kind: Literal["randomized-set"] = "randomized-set"
    papers: ClassVar[tuple[str, ...]] = ("gao2020", "warner1965")
    report_family: ClassVar[type[ReportFamily]] = SetFamily

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the answer, whose yes reads as the middle of the scale.

        Of implicit data the yes reads as the number 0, which stands for nothing.
        """
        levels = np.zeros(1) if scale.implicit else scale.values
        inputs, middle = np.concatenate([[np.nan], levels]), (levels[0] + levels[-1]) / 2
        had = np.arange(inputs.size) > 0
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(had[:, None] == np.array([False, True]), 1.0, np.exp(-epsilon))
        return Channel.from_probabilities(weights, inputs, [np.nan, middle], epsilon)


@dataclass(frozen=True, kw_only=True)
class SampledNegatives(Mechanism):
    """Whether the user has an item, for its items and as many others (Müllner et al. [muellner2024]).

    The protocol of its kind alone uses it, since the promise does not hold for reports; see its family.
    """

    kind: Literal["sampled-negatives"] = "sampled-negatives"
    papers: ClassVar[tuple[str, ...]] = ("muellner2024", "warner1965")
    report_family: ClassVar[type[ReportFamily]] = SampledNegativesFamily

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the answer about an item that is asked about."""
        return RandomizedSet().channel(scale, epsilon)


@dataclass(frozen=True, kw_only=True)
class BinaryFlip(Mechanism):
    """A +1 is flipped with one probability, a -1 with another (Li et al. [li2021], Eq. 3)."""

    kind: Literal["binary-flip"] = "binary-flip"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    p1: float = option("Probability that a +1 is sent as -1.", gt=0, lt=1)
    p2: float = option("Probability that a -1 is sent as +1.", gt=0, lt=1)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel; raises InputError unless ratings are binary and it costs epsilon.

        Theorem 1 of Li et al. [li2021] requires 1 - p2 e^epsilon <= p1 <= (1 - p2) e^epsilon. That bounds how
        much likelier a symbol is for a +1; the same with p1 and p2 exchanged bounds how much likelier it is
        for a -1, and is required here too.
        """
        check_binary(scale)
        grown = math.exp(epsilon) * (1 + 1e-9)  # Do not refuse because of a probability's last digit.
        both = (self.p1, self.p2), (self.p2, self.p1)
        if not all(1 - b * grown <= a <= (1 - b) * grown for a, b in both):
            raise SettingError(
                "p1",
                f"{self.p1:g} with p2 = {self.p2:g}, at epsilon {epsilon:g}",
                "1 - p2 e^epsilon <= p1 <= (1 - p2) e^epsilon, and the same with p1 and p2 exchanged",
            )
        probabilities = np.array([[1 - self.p2, self.p2], [self.p1, 1 - self.p1]])
        return Channel.from_probabilities(probabilities, scale.values, scale.values, epsilon)


@dataclass(frozen=True, kw_only=True)
class Raw(Mechanism):
    """No privacy: ratings are sent unchanged."""

    kind: Literal["none"] = "none"
    papers: ClassVar[tuple[str, ...]] = ("davenport2014", "guerraoui2017", "li2021", "neera2023")
    private: ClassVar[bool] = False

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the identity, whatever the budget: nothing is promised."""
        return Channel.from_probabilities(np.eye(scale.levels), scale.values, scale.values, math.inf)


@dataclass(frozen=True, kw_only=True)
class SetOnly(Mechanism):
    """Nothing about any value: what is sent is which items were rated."""

    kind: Literal["set-only"] = "set-only"
    private: ClassVar[bool] = False
    sends_values: ClassVar[bool] = False

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel with one symbol, which reads as the middle of the scale.

        Of implicit data, nothing is read for it: NaN, from the one level, whose number 0 stands for nothing.
        """
        if scale.implicit:
            return Channel.from_probabilities(np.ones((1, 1)), [0.0], [np.nan], epsilon)
        middle = (scale.low + scale.high) / 2
        return Channel.from_probabilities(np.ones((scale.levels, 1)), scale.values, [middle], epsilon)
