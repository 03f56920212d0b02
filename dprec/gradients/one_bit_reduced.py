"""One private bit about a random projection of the gradient (Shin et al. [shin2018], Algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Profiles
from dprec.components import option
from dprec.errors import SettingError
from dprec.gradients import randomizer
from dprec.gradients.base import Aggregate, GradientReport, RoundDraws
from dprec.gradients.one_bit import add_up, answer_words, draw_coordinates, mean_estimate, possible_votes
from dprec.randomness import generator


@dataclass(frozen=True, kw_only=True)
class ReducedOneBitGradient(GradientReport):
    """One private bit about a random projection of the gradient (Shin et al. [shin2018], Algorithm 2)."""

    kind: Literal["one-bit-reduced"] = "one-bit-reduced"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)
    dimensions: int = option("Rows q of the projection: dimensions that items are mapped to.", 100, ge=1)

    def encode(
        self,
        profiles: Profiles,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Project the gradient, draw one coordinate of it and answer with one bit."""
        n_items, rank = item_factors.shape
        n_users = profiles.n_users
        n_coordinates = self.dimensions * rank
        coordinates = draw_coordinates(n_coordinates, draws)
        rows, factors = np.divmod(coordinates, rank)
        own = user_factors[np.arange(n_users), factors]
        errors = profiles.residuals(user_factors, item_factors)
        users = profiles.users
        weights = projection(draws.public_seed, self.dimensions, n_items)[rows[users], profiles.items]
        sums = np.bincount(users, weights=weights * errors, minlength=n_users)
        answers = randomizer.randomize(-2.0 * own * sums, epsilon, answer_words(draws))
        return randomizer.pack_answers(coordinates, answers, n_coordinates)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[NDArray[np.bool_], Aggregate]:
        """Validate the reports and count their bits by coordinate of the projected gradient."""
        return add_up(reports, self.dimensions * shape[1])

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates of the projected gradient."""
        return (self.dimensions * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        return possible_votes(aggregate)

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> NDArray[np.float64]:
        """Map the mean projected gradient back with the pseudo-inverse of the projection."""
        rows = self.dimensions
        reduced = mean_estimate(aggregate, epsilon).reshape(rows, shape[1])
        estimate: NDArray[np.float64] = _pseudo_inverse(public_seed, rows, shape[0]) @ reduced
        return estimate

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse a projection to more dimensions than there are items."""
        if self.dimensions > shape[0]:
            raise SettingError("dimensions", str(self.dimensions), f"at most {shape[0]}, the number of items")

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(q d) (e + 1) / (e - 1), e = exp(epsilon), for a projected coordinate at 0."""
        return math.sqrt(self.dimensions * shape[1]) * randomizer.unbiased_scale(epsilon)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the projected coordinate and its answer; see `GradientReport.report_bits`."""
        return randomizer.report_bits(self.dimensions * shape[1])

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the exact loss of the bit."""
        return randomizer.exact_epsilon(epsilon)


@lru_cache(maxsize=2)
def _pseudo_inverse(seed: int, rows: int, n_items: int) -> NDArray[np.float64]:
    return np.linalg.pinv(projection(seed, rows, n_items)).astype(np.float64, copy=False)


@lru_cache(maxsize=2)
def projection(seed: int, rows: int, n_items: int) -> NDArray[np.float64]:
    """Return the projection shared by devices and server; its entries are Normal(0, 1 / rows)."""
    return generator(seed, "projection").normal(0.0, rows**-0.5, (rows, n_items))
