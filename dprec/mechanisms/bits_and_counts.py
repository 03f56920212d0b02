"""One bit about some ratings, and noisy counts over the others: a report of two disjoint parts.

Chance alone decides which part a rating is in. In the first, each rating goes through a channel, one of whose
symbols says that it is left for the second. Over the second part, the device counts the ratings that reach
the threshold, for each of a few groups of items. A rating is in one bit or in one count, so a change of it
costs the epsilon of the one or of the other. What a count tells about a user's level grows with the square
of its size, what bits tell with their number.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.components import option
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.thresholds import ThresholdBit, fixed_threshold
from dprec.ratings import RatingScale
from dprec.reports import CountFamily, ReportFamily


@dataclass(frozen=True, kw_only=True)
class BitsAndCounts(Mechanism):
    """One thresholded bit about some ratings, and noisy counts of the others that reach the threshold."""

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
        left = np.full((scale.levels, 1), 1 - self.bits)
        return Channel.from_probabilities(
            np.hstack([self.bits * bit.probabilities, left]),
            scale.values,
            np.append(bit.values, bit.values.mean()),
            epsilon,
        )

    def least_counted_level(self, scale: RatingScale) -> int:
        """Return the lowest level that is counted, from 2 to the number of levels."""
        threshold = fixed_threshold(scale, self.threshold)
        return int(np.searchsorted(scale.values, threshold)) + 1
