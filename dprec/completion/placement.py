"""What all devices may be sent of everybody's item sets: from how many raters on, and with what noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprec.accounting import NoisySum, gaussian_epsilon, largest_mu
from dprec.components import Options, option

LEAST_RATERS = 5
"""By default; benchmarks/choose_least_raters.py holds it against others."""

_BETWEEN_PROFILES = float(np.sqrt(2))
"""How much further two profiles are apart than one is from none."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingRelease(Options):
    """From how many raters on items have places that everybody is sent, and with what noise."""

    least_raters: int = option(
        "Raters without whom an item has no place. Whether it has one shows in the table.", LEAST_RATERS, ge=1
    )
    epsilon: float | None = option(
        "Budget of a user's item set against all who are sent the table, for places and popularity; by "
        "default they have no noise. The server sees the sets in any case.",
        None,
        gt=0,
        le=1000,
    )
    delta: float = option("Delta with which it holds.", 1e-6, gt=1e-12, lt=1)

    @property
    def distance(self) -> float:
        """How many standard deviations a profile moves what is released, at most; 0 without noise."""
        return 0.0 if self.epsilon is None else largest_mu(self.epsilon, self.delta)

    @property
    def epsilon_between_profiles(self) -> float:
        """What the releases cost, with the same delta, between any two profiles of a user."""
        return gaussian_epsilon(_BETWEEN_PROFILES * self.distance, self.delta)

    @property
    def released(self) -> NoisySum:
        """What is released to everybody, for an accountant."""
        return NoisySum(self.distance, between_profiles=_BETWEEN_PROFILES)


AS_THEY_ARE = EmbeddingRelease(least_raters=1)
"""Where nobody but the server reads the places."""
