"""One bit about whether a rating reaches a threshold, by randomized response (Warner [warner1965])."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.errors import SettingError
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.channel import Channel
from dprec.options import option
from dprec.ratings import RatingScale


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

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel of the bit, or of all pairs of a threshold and its bit.

        A fixed threshold splits the scale in two, and the values of the bit are unbiased for ratings at the
        means of the two parts. A drawn one is each level with a probability proportional to the gap below
        it; the bit is then unbiased for every rating.

        Raises
        ------
        SettingError
            When the threshold does not split the scale.
        """
        if self.threshold == "drawn":
            thresholds = scale.values[1:]
            chosen = np.diff(scale.values) / (scale.high - scale.low)
            low, high = np.full(thresholds.size, scale.low), np.full(thresholds.size, scale.high)
        else:
            thresholds, chosen = np.array([self._fixed(scale)]), np.ones(1)
            reached = scale.values >= thresholds
            low, high = scale.values[~reached].mean(keepdims=True), scale.values[reached].mean(keepdims=True)
        reaching = scale.values[:, None] >= thresholds
        probabilities = np.hstack([chosen * sent(~reaching, epsilon), chosen * sent(reaching, epsilon)])
        share = np.tanh(epsilon / 2)
        middle, half = (low + high) / 2, (high - low) / (2 * share)
        return Channel.from_probabilities(
            probabilities, scale.values, np.concatenate([middle - half, middle + half]), epsilon
        )

    def _fixed(self, scale: RatingScale) -> float:
        """Return the threshold, checked against the scale."""
        if self.threshold == "middle":
            return float(scale.values[scale.values > (scale.low + scale.high) / 2][0])
        threshold = float(self.threshold)
        if not scale.low < threshold <= scale.high:
            raise SettingError(
                "threshold",
                f"{threshold:g}",
                f"above {scale.low:g} and at most {scale.high:g}, to split the scale",
            )
        return threshold


def sent(true: NDArray[np.bool_], epsilon: float) -> NDArray[np.float64]:
    """Return the probability that an answer is given: e^epsilon / (1 + e^epsilon) if it is true."""
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(np.where(true, -epsilon, epsilon)))
    return probabilities
