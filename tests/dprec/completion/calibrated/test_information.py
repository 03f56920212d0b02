"""No budget is worse than the item sets alone, and no larger budget worse than a smaller one."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.completion import Calibrated
from dprec.mechanisms import ThresholdBit
from dprec.observations import SymbolReports
from dprec.ordinal import cut_points, expected_rating
from dprec.ratings import RatingScale
from tests import make

EPSILONS = (1 / 30, 0.1, 0.5, 1.0, 3.0, 8.0)
DRAWS = 4
TOLERANCE = 0.08
"""Of the scale's width, for the root of the mean squared error over the draws.

In populations that are drawn from what is expected, reports lower the expected error; in one population, few
reports may raise it, by less than the prior's spread. The largest difference in 75 populations drawn at
random was 0.05. The examples are the same in every run, so that there are no false alarms. With coefficients
of variance 1 and intercepts of variance 100, the largest difference in 27 populations was 0.43.
"""


@dataclass(frozen=True)
class Population:
    """Users, items and latent ratings with two biases, on a scale whose levels are expected equally often."""

    seed: int
    users: int
    items: int
    levels: int
    spreads: tuple[float, float]
    mean: float
    liked: float
    """How much of an item's bias its popularity explains; may be below 0."""

    def errors(self, epsilons: tuple[float, ...]) -> NDArray[np.float64]:
        """Return the RMSE with no report and at every budget, relative to the scale's width."""
        random = np.random.default_rng(self.seed)
        scale = RatingScale.evenly(1, self.levels, 1)
        popular = random.random(self.items)
        chosen = random.random((self.users, self.items)) < 0.05 + 0.5 * popular**2
        chosen[0] = True
        of_users, of_items = random.normal(size=self.users), random.normal(size=self.items)
        of_items = self.spreads[1] * of_items + self.liked * (popular - popular.mean())
        theta = self.mean + self.spreads[0] * of_users[:, None] + of_items
        cuts = cut_points(np.ones(self.levels), 0.5)
        true = expected_rating(theta.ravel(), np.zeros(theta.size), cuts, scale.values)
        users, items = (side.astype(np.int32) for side in np.nonzero(chosen))
        squares = []
        for epsilon in (0.0, *epsilons):
            channel = np.ones((self.levels, 1))
            if epsilon:
                channel = ThresholdBit().channel(scale, epsilon).probabilities
            found = []
            for _ in range(DRAWS if epsilon else 1):
                noisy = theta[chosen] + random.normal(size=users.size)
                given = channel.cumsum(axis=1)[np.searchsorted(cuts, noisy)]
                symbols = (random.random(users.size)[:, None] > given[:, :-1]).sum(axis=1)
                reports = SymbolReports((channel,), symbols, np.zeros_like(symbols))
                seen = make.observations(
                    users, items, np.ones(users.size), chosen.shape, scale, evidence=reports
                )
                model = Calibrated(dimensions=4, features=4, sweeps=15).fit(seen, seed=1)
                cells = np.indices(chosen.shape).reshape(2, -1)
                found.append(np.mean((model.predict(*cells) - true) ** 2))
            squares.append(np.mean(found))
        errors: NDArray[np.float64] = np.sqrt(squares) / (self.levels - 1)
        return errors


populations = st.builds(
    Population,
    seed=st.integers(0, 2**32 - 1),
    users=st.integers(2, 60),
    items=st.integers(2, 40),
    levels=st.integers(2, 11),
    spreads=st.tuples(st.sampled_from([0.0, 0.3, 0.6]), st.sampled_from([0.0, 0.3, 0.8])),
    mean=st.sampled_from([-1.5, -0.3, 0.0, 0.3, 1.5]),
    liked=st.sampled_from([-0.5, 0.0, 0.5]),
)


@pytest.mark.thorough
@given(populations)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_no_budget_is_worse_than_the_sets_alone_and_no_larger_one_than_a_smaller(
    population: Population,
) -> None:
    alone, *errors = population.errors(EPSILONS)
    least = alone
    for error in errors:
        assert error <= least + TOLERANCE
        least = min(least, error)
