"""Clips that follow the updates' norms (Andrew et al. [andrew2021])."""

import math
from dataclasses import dataclass

import numpy as np

from dprec.accounting import multiplier_of_updates
from dprec.components import Options, option
from dprec.federated.updates import LARGEST_CLIP, LEAST_CLIP

_LARGEST_POWER = math.log(LARGEST_CLIP / LEAST_CLIP)


@dataclass(frozen=True, kw_only=True)
class AdaptiveClip(Options):
    """A clip that follows a quantile of the updates' norms (Andrew et al. [andrew2021], Algorithm 1).

    A report says by one noisy number more whether its update was short, which is part of what is charged.
    """

    quantile: float = option("Share of updates that the clip should leave as they are.", 0.5, gt=0, lt=1)
    step: float = option(
        "By how much the logarithm of the clip follows the share of short updates in a round.", 0.2, gt=0
    )
    noise: float = option(
        "Noise on the number of short updates, as a multiple of the noise multiplier; the larger it is, the "
        "less noise the updates need.",
        10.0,
        ge=1,
        le=1000,
    )

    @property
    def bit(self) -> float:
        """Size of the number that says whether an update was short, in clips.

        Every number has the noise of the updates; this one counts half a short update, whose noise on the
        count is ``noise`` times the multiplier.
        """
        return multiplier_of_updates(1.0, self.noise) / (2 * self.noise)

    def moved(self, clip: float, share: float) -> float:
        """Return the next clip, given the noisy share of short updates, in the precision that is sent."""
        # A larger power would leave the range of clips, whatever the clip was.
        moved = clip * math.exp(min(self.step * (self.quantile - share), _LARGEST_POWER))
        return float(np.float32(min(max(moved, LEAST_CLIP), LARGEST_CLIP)))
