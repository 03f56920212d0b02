"""Bits about ratings, by randomised response: whether each reaches a threshold, or more than a user's mean.

A bit may also say that an item is not rated. With a budget per user, bits are about a few residuals, or
answers about the whole profile. A bit that compares a rating with the whole profile allows only a promise per
user. Each answer gets an even share of the user's budget; which ratings bits are about is drawn whatever
their values.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import Bools, Floats
from dprec.channel import Channel
from dprec.components import option
from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.ratings import RatingScale
from dprec.reports import CountFamily, HiddenRowFamily, ProfileFamily, ReportFamily, ResidualBitFamily
from dprec.reports.profiles import ProfileCode


@dataclass(frozen=True, kw_only=True)
class ThresholdBit(Mechanism):
    """Whether the rating reaches a threshold, by randomized response (Warner [warner1965])."""

    kind: Literal["threshold-bit"] = "threshold-bit"
    papers: ClassVar[tuple[str, ...]] = ("warner1965",)
    threshold: float | Literal["middle", "drawn"] = option(
        "Least rating whose bit is 1; or middle, for the first level above the middle of the scale; or "
        "drawn, for a level that is drawn for each rating and sent with the bit.",
        "middle",
    )
    other_thresholds: float = option(
        "Share of the ratings whose bit is about another threshold, drawn evenly and sent with the bit; from "
        "these the server can learn the shares of the levels.",
        0.0,
        ge=0,
        lt=1,
    )

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the bit, or of all pairs of a threshold and its bit.

        A fixed threshold, and each other one, splits the scale in two, and the values of its bit are unbiased
        for ratings at the means of the two parts. A drawn one is each level with a probability proportional
        to the gap below it; the bit is then unbiased for every rating.
        """
        thresholds, chosen = self._thresholds(scale)
        if self.threshold == "drawn":
            low, high = np.full(thresholds.size, scale.low), np.full(thresholds.size, scale.high)
        else:
            low = np.array([scale.values[scale.values < threshold].mean() for threshold in thresholds])
            high = np.array([scale.values[scale.values >= threshold].mean() for threshold in thresholds])
        reaching = scale.values[:, None] >= thresholds
        probabilities = np.hstack([chosen * sent(~reaching, epsilon), chosen * sent(reaching, epsilon)])
        share = np.tanh(epsilon / 2)
        middle, half = (low + high) / 2, (high - low) / (2 * share)
        return Channel.from_probabilities(
            probabilities, scale.values, np.concatenate([middle - half, middle + half]), epsilon
        )

    def _thresholds(self, scale: RatingScale) -> tuple[Floats, Floats]:
        """Return the thresholds that a bit may be about, and the probability of each."""
        every, others = scale.values[1:], self.other_thresholds
        if self.threshold == "drawn":
            if others:
                raise SettingError(
                    "other_thresholds", f"{others:g}, with threshold drawn", "0: all are drawn"
                )
            return every, np.diff(scale.values) / (scale.high - scale.low)
        fixed = fixed_threshold(scale, self.threshold)
        if not others:
            return np.array([fixed]), np.ones(1)
        if every.size < 2:
            found = f"{others:g}, on a scale of two levels"
            raise SettingError("other_thresholds", found, "0: there is no other threshold")
        main = np.arange(every.size) == np.searchsorted(every, fixed)
        return every, np.where(main, 1 - others, others / (every.size - 1))


def fixed_threshold(scale: RatingScale, threshold: float | Literal["middle"]) -> float:
    """Return the least rating that reaches a threshold; "middle" is the first above the middle."""
    if threshold == "middle":
        return float(scale.values[scale.values > (scale.low + scale.high) / 2][0])
    if not scale.low < threshold <= scale.high:
        raise SettingError(
            "threshold",
            f"{threshold:g}",
            f"above {scale.low:g} and at most {scale.high:g}, to split the scale",
        )
    return float(threshold)


def sent(true: Bools, epsilon: float) -> Floats:
    """Return the probability that an answer is given: e^epsilon / (1 + e^epsilon) if it is true."""
    return 1 / (1 + np.exp(np.where(true, -epsilon, epsilon)))


@dataclass(frozen=True, kw_only=True)
class HiddenThreshold(Mechanism):
    """Not rated, below a threshold or not below it, by randomised response (Kairouz et al. [kairouz2014]).

    While "not rated" is by far the most frequent input, no channel says more about a latent rating at
    0.7 to 2.5 per cell; at other budgets, a channel that says more about it says less about popularity.
    """

    kind: Literal["hidden-threshold"] = "hidden-threshold"
    papers: ClassVar[tuple[str, ...]] = ("kairouz2014",)
    report_family: ClassVar[type[ReportFamily]] = HiddenRowFamily
    threshold: float | Literal["middle"] = option(
        "Least rating that is high; or middle, for the first level above the middle of the scale.", "middle"
    )

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return Q[x, z] = e^(epsilon [z is the class of x]) / (e^epsilon + 2), with the symbol "?" first.

        The other two symbols read as the means of the levels on their side of the threshold.
        """
        high = scale.values >= fixed_threshold(scale, self.threshold)
        classes = np.concatenate([[0], np.where(high, 2, 1)])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(classes[:, None] == np.arange(3), 1.0, np.exp(-epsilon))
        means = [np.nan, scale.values[~high].mean(), scale.values[high].mean()]
        return Channel.from_probabilities(weights, np.concatenate([[np.nan], scale.values]), means, epsilon)


@dataclass(frozen=True, kw_only=True)
class BitsAndCounts(Mechanism):
    """One thresholded bit about some ratings, and noisy counts of the others that reach the threshold.

    Chance alone decides which part a rating is in, and a rating is in one bit or in one count, so a change of
    it costs the epsilon of the one or of the other. What a count tells about a user's level grows with the
    square of its size, what bits tell with their number.
    """

    kind: Literal["bits-and-counts"] = "bits-and-counts"
    papers: ClassVar[tuple[str, ...]] = ("warner1965", "ghosh2012")
    report_family: ClassVar[type[ReportFamily]] = CountFamily
    threshold: float | Literal["middle"] = option(
        "Least rating whose bit is 1 and that is counted; or middle, for the first level above the middle of "
        "the scale.",
        "middle",
    )
    bits: float = option(
        "Share of the ratings about which a bit is sent; the others are counted.", 0.3, gt=0, lt=1
    )
    groups: int = option(
        "Groups of items, each with a count of its own; the server forms them.", 2, ge=1, le=64
    )

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the first part: the two values of a bit, and "left for the counts"."""
        bit = ThresholdBit(threshold=self.threshold).channel(scale, epsilon)
        for_counts = np.full((scale.levels, 1), 1 - self.bits)
        return Channel.from_probabilities(
            np.hstack([self.bits * bit.probabilities, for_counts]),
            scale.values,
            np.append(bit.values, bit.values.mean()),
            epsilon,
        )

    def least_counted_level(self, scale: RatingScale) -> int:
        """Return the lowest level that is counted, from 2 to the number of levels."""
        threshold = fixed_threshold(scale, self.threshold)
        return int(np.searchsorted(scale.values, threshold)) + 1


_BUDGET_OF_A_BIT, _MOST_BITS = 2.0, 64
"""Of the budget per user, each bit gets about so much; `choose_residual_bits` of benchmarks/choosing."""


@dataclass(frozen=True, kw_only=True)
class ResidualBits(Mechanism):
    """Whether a few ratings, drawn at random, are above the user's mean (Warner [warner1965])."""

    kind: Literal["residual-bits"] = "residual-bits"
    papers: ClassVar[tuple[str, ...]] = ("warner1965",)
    report_family: ClassVar[type[ReportFamily]] = ResidualBitFamily
    bits: int | None = option(
        "Ratings of a user that are reported on, among which its budget is divided; by default one, or "
        "the nearest integer to half of epsilon if that is more.",
        None,
        ge=1,
        le=_MOST_BITS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many ratings a user with a budget reports on, if it has so many.

        A bit at a loss e says tanh(e/2)^2 of what it says in clear, so that bits at small losses are worth
        less together than one at their sum.
        """
        if self.bits is not None:
            return self.bits
        return min(max(1, int(epsilon / _BUDGET_OF_A_BIT + 0.5)), _MOST_BITS)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of one bit: its inputs are the lowest level for below, the highest for above."""
        return ThresholdBit().channel(scale, epsilon)


_BUDGET_OF_AN_ANSWER, _MOST_ANSWERS = 4.0, 64
"""Of the budget per user, an answer gets at most so much; `choose_user_level_bit` of benchmarks/choosing."""


@dataclass(frozen=True, kw_only=True)
class UserLevelBit(Mechanism):
    """One item, and whether it is above the user's mean: more probably of the profile than not."""

    kind: Literal["user-level-bit"] = "user-level-bit"
    papers: ClassVar[tuple[str, ...]] = ("ye2018",)
    report_family: ClassVar[type[ReportFamily]] = ProfileFamily
    profile: int = option(
        "Ratings of a user that count at most: those farthest from its mean.", 64, ge=1, le=4096
    )
    answers: int | None = option(
        "Answers of a user, among which its budget is divided; by default as many as get 4 or less each.",
        None,
        ge=1,
        le=_MOST_ANSWERS,
    )

    def asked(self, epsilon: float) -> int:
        """Return how many answers a user with a budget gives, epsilon per user."""
        if self.answers is not None:
            return self.answers
        return min(max(1, math.ceil(epsilon / _BUDGET_OF_AN_ANSWER)), _MOST_ANSWERS)

    def code(self, n_items: int, epsilon: float) -> ProfileCode:
        """Return how a device answers at the budget of one answer; see `ProfileCode.at`."""
        return ProfileCode.at(epsilon, n_items, self.profile)

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel between two profiles of a large catalogue with nothing in common."""
        return self.code(1 << 14, epsilon).channel(scale)
