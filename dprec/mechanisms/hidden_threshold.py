"""Randomised response over "not rated", below a threshold, and at least the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.channel import Channel
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.threshold_bit import fixed_threshold
from dprec.options import option
from dprec.ratings import RatingScale
from dprec.reports import HiddenRowFamily, ReportFamily


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

        Raises
        ------
        SettingError
            When the threshold does not split the scale.
        """
        high = scale.values >= fixed_threshold(scale, self.threshold)
        classes = np.concatenate([[0], np.where(high, 2, 1)])
        # Scaled by e^-epsilon, so that a large budget does not overflow.
        weights = np.where(classes[:, None] == np.arange(3), 1.0, np.exp(-epsilon))
        means = [np.nan, scale.values[~high].mean(), scale.values[high].mean()]
        return Channel.from_probabilities(weights, np.concatenate([[np.nan], scale.values]), means, epsilon)
