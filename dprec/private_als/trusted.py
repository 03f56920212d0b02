"""A trusted server adds up: it receives chosen ratings and factors, and adds the noise itself.

The noise is a normal deviate rounded to an integer of units. As sums are integers, that is the
Gaussian mechanism, rounded afterwards: rounding costs nothing, and hides the deviate's last bits, by which
sums in floating point can be told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.gradients import Aggregate, RoundDraws
from dprec.privacy.gaussian import gaussian_epsilon, largest_mu
from dprec.privacy.guarantee import Trust
from dprec.private_als.aggregation import Aggregation
from dprec.private_als.statistics import (
    UNIT,
    Contributions,
    StatisticsLayout,
    decode_contributions,
    encode_contributions,
    possible_sum,
    report_bits,
    sum_of_contributions,
)
from dprec.randomness import ReleaseDraws

_MARGIN = 1 + 1e-9
"""Contributions are scaled in floating point, so their norm may exceed 1 by a few units of its last place."""


@dataclass(frozen=True, kw_only=True)
class TrustedAggregation(Aggregation):
    """The server receives every user's chosen ratings and factors, adds up, and adds the noise."""

    kind: Literal["trusted"] = "trusted"
    papers: ClassVar[tuple[str, ...]] = ("chien2021",)
    trust: ClassVar[Trust] = "central"
    reason: ClassVar[str] = (
        "every release is a sum of contributions of bounded norm, with Gaussian noise, and releases compose "
        "exactly. The noise is drawn in double precision and rounded to the integers of the sums"
    )

    def multiplier(self, epsilon: float, delta: float) -> float:
        """Return the noise of the analytic Gaussian mechanism."""
        return _MARGIN / largest_mu(epsilon, delta)

    def epsilon(self, multiplier: float, delta: float) -> float:
        """Return the cost by the analytic Gaussian mechanism."""
        return gaussian_epsilon(_MARGIN / multiplier if multiplier > 0 else np.inf, delta)

    def encode(
        self, contributions: Contributions, layout: StatisticsLayout, multiplier: float, draws: RoundDraws
    ) -> list[bytes]:
        """Send the chosen items, their targets and the user's factors as they are."""
        return encode_contributions(contributions, layout)

    def decode(
        self, reports: Sequence[bytes], layout: StatisticsLayout, multiplier: float
    ) -> tuple[NDArray[np.bool_], Aggregate]:
        """Reject what is malformed or out of bounds, and add up the rest."""
        valid, contributions = decode_contributions(reports, layout)
        total = sum_of_contributions(contributions, layout)
        return valid, Aggregate(total, None, int(valid.sum()))

    def possible(self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float) -> bool:
        """Return whether no number exceeds what so many users can contribute."""
        return possible_sum(aggregate.total, aggregate.users)

    def length(self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float) -> float:
        """Return the norm of the integers of a sum."""
        return float(np.linalg.norm(aggregate.total.astype(np.float64))) * UNIT

    def release(
        self, aggregate: Aggregate, layout: StatisticsLayout, multiplier: float, draws: ReleaseDraws
    ) -> NDArray[np.float64]:
        """Add rounded Gaussian noise, which changes with the round and with the sums."""
        random = draws.generator("noise of sums", aggregate.total)
        deviates = random.standard_normal(aggregate.total.shape)
        noise = np.rint(deviates * (multiplier / UNIT)).astype(np.int64)
        released: NDArray[np.float64] = (aggregate.total + noise).astype(np.float64) * UNIT * layout.scales
        return released

    def report_bits(self, layout: StatisticsLayout, ratings: int, multiplier: float) -> int:
        """Return the bits of the item set, the targets and the factors."""
        return report_bits(layout, ratings)
