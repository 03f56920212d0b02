"""Sums over a population of copies, from a few users who represent it.

The sum of a population of copies is that of the few times a number. So the noise per user, tau, is the same
for both if that of the few is as much smaller as they are fewer. A trusted server draws it here, whoever adds
up in the population; what a release costs and how many bytes it takes is that of the population.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Ints
from dprec.components import option
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import ReleaseDraws
from dprec.sums.aggregation import Aggregation, CentralAggregation, Cost, FurtherMessages
from dprec.sums.contributions import Contributions, Layout, LayoutT

_CENTRAL = CentralAggregation()


@dataclass(frozen=True, kw_only=True)
class RepresentedAggregation(Aggregation):
    """The server's half where devices of a few users contribute to a trusted sum, for those of all."""

    kind: Literal["represented"] = "represented"
    of: Aggregation = option("Who adds up in the population.")
    users: int = option("Users who are simulated.", ge=1)
    population: int = option("Users whom they represent.", ge=1)
    rounds: int = option("Number of releases.", ge=1)

    def multipliers(
        self, budget: accounting.PrivacyBudget, shares: Sequence[float], farthest: float
    ) -> tuple[float, ...]:
        """Return the noise in the population."""
        return self.of.multipliers(budget, shares, farthest)

    def check_numbers(self, numbers: int) -> None:
        """Refuse more than the population can add up."""
        self.of.check_numbers(numbers)

    def cost(self, multiplier: float, farthest: float) -> Cost:
        """Return what a release of the population costs."""
        return self.of.cost(multiplier, farthest)

    def further_messages(self) -> FurtherMessages:
        """Return the messages in the population."""
        return self.of.further_messages()

    def sealed(self, sizes: Ints) -> Ints:
        """Return the bytes of reports in the population as they leave the devices."""
        return self.of.sealed(sizes)

    def sizes(self, sent: Ints, layout: Layout, multiplier: float, round_index: int) -> Ints:
        """Return the bytes of reports in the population; devices that report once all do so at the end."""
        silent = self.of.by_itself and round_index < self.rounds
        bits = 0 if silent else self.of.report_bits(layout, 0, multiplier)
        return np.full(sent.size, -(-bits // 8))

    def costing(self, sizes: Ints) -> Bools:
        """Return which reports in the population say something."""
        return self.of.costing(sizes)

    def counted(self, users: int) -> int:
        """Return how many users so many represent."""
        return round(users * self._times)

    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Sequence[bytes]:
        """Send what the contributions are computed from."""
        return _CENTRAL.encode(contributions, layout, multiplier, draws)

    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Add up the contributions of the few."""
        return _CENTRAL.decode(reports, layout, multiplier)

    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return whether the few can have such a sum."""
        return _CENTRAL.possible(aggregate, layout, multiplier)

    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the norm of a sum of the few."""
        return _CENTRAL.length(aggregate, layout, multiplier)

    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Return the sums of the population, with its noise."""
        sample_multiplier = self.deviation(layout, multiplier, self.population) / self._times
        return self._times * _CENTRAL.release(aggregate, layout, sample_multiplier, draws)

    def deviation(self, layout: Layout, multiplier: float, users: int) -> float:
        """Return the noise of a release of the whole population."""
        return self.of.deviation(layout, multiplier, self.population)

    def most_of_one(self, layout: Layout, multiplier: float) -> float:
        """Return what one of the population can add."""
        return self.of.most_of_one(layout, multiplier)

    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the size of a report in the population."""
        return self.of.report_bits(layout, ratings, multiplier)

    @property
    def _times(self) -> float:
        return self.population / self.users
