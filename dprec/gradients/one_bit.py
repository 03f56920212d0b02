"""One private bit about one random coordinate of the gradient (Shin et al. [shin2018], Algorithm 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import find
from dprec.completion import Profiles
from dprec.gradients import randomizer
from dprec.gradients.base import Aggregate, GradientReport, RoundDraws
from dprec.randomness import uniform_below

_COORDINATE, _ANSWER = 0, 1
"""Indices of a user's words in a round."""


@dataclass(frozen=True, kw_only=True)
class OneBitGradient(GradientReport):
    """One private bit about one random coordinate of the gradient (Shin et al. [shin2018], Algorithm 1)."""

    kind: Literal["one-bit"] = "one-bit"
    papers: ClassVar[tuple[str, ...]] = ("shin2018",)

    def encode(
        self,
        profiles: Profiles,
        user_factors: NDArray[np.float64],
        item_factors: NDArray[np.float64],
        epsilon: float,
        draws: RoundDraws,
    ) -> list[bytes]:
        """Draw an item and a factor for each user and answer with one bit; see `GradientReport`."""
        coordinates = draw_coordinates(item_factors.size, draws)
        values = gradient_at(profiles, user_factors, item_factors, coordinates)
        answers = randomizer.randomize(values, epsilon, answer_words(draws))
        return randomizer.pack_answers(coordinates, answers, item_factors.size)

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[NDArray[np.bool_], Aggregate]:
        """Validate the reports and count their bits by coordinate."""
        return add_up(reports, shape[0] * shape[1])

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the number of coordinates."""
        return (shape[0] * shape[1],)

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether so many signs can have this sum."""
        return possible_votes(aggregate)

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> NDArray[np.float64]:
        """Return the mean of the estimates n d (2 T - 1) (e + 1) / (e - 1), e = exp(epsilon)."""
        return mean_estimate(aggregate, epsilon).reshape(shape)

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return sqrt(n d) (e + 1) / (e - 1), e = exp(epsilon), attained where the gradient is 0."""
        return math.sqrt(shape[0] * shape[1]) * randomizer.unbiased_scale(epsilon)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the coordinate and its answer; see `GradientReport.report_bits`."""
        return randomizer.report_bits(shape[0] * shape[1])

    def exact_epsilon(self, epsilon: float) -> float:
        """Return the exact loss of the bit; the choice of the coordinate depends on nothing private."""
        return randomizer.exact_epsilon(epsilon)


def gradient_at(
    profiles: Profiles,
    user_factors: NDArray[np.float64],
    item_factors: NDArray[np.float64],
    coordinates: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return one coordinate of each user's gradient, 0 at an item that it has not rated, shape (users,)."""
    items, factors = np.divmod(coordinates, item_factors.shape[1])
    ratings, rated = _ratings_of(profiles, items)
    own = user_factors[np.arange(profiles.n_users), factors]
    errors = ratings - np.einsum("uf,uf->u", user_factors, item_factors[items])
    return np.where(rated, -2.0 * own * errors, 0.0)


def draw_coordinates(n_coordinates: int, draws: RoundDraws) -> NDArray[np.int64]:
    """Return the coordinate that each user of a partition draws, uniformly."""
    return uniform_below(n_coordinates, draws.words(_COORDINATE))


def answer_words(draws: RoundDraws) -> NDArray[np.uint64]:
    """Return the random word that decides each user's bit."""
    return draws.words(_ANSWER)


def add_up(reports: Sequence[bytes], n_coordinates: int) -> tuple[NDArray[np.bool_], Aggregate]:
    """Validate one-bit reports and sum their signs by coordinate."""
    valid, coordinates, answers = randomizer.unpack_answers(reports, n_coordinates)
    votes = np.bincount(coordinates[valid] * 2 + answers[valid], minlength=2 * n_coordinates)
    return valid, Aggregate(votes[1::2] - votes[::2], None, int(valid.sum()))


def possible_votes(aggregate: Aggregate) -> bool:
    """Return whether ``users`` signs, of any coordinates, can add up to an aggregate."""
    total, users = aggregate.total, aggregate.users
    # Within these bounds, the sum of the sizes cannot overflow.
    if not ((total >= -users) & (total <= users)).all():
        return False
    cast = int(np.abs(total).sum())
    return cast <= users and (users - cast) % 2 == 0


def mean_estimate(aggregate: Aggregate, epsilon: float) -> NDArray[np.float64]:
    """Return an unbiased estimate of the mean over users, for every coordinate.

    A report is about one coordinate, so it is scaled up by the number of coordinates.
    """
    scale = randomizer.unbiased_scale(epsilon) * aggregate.total.size / aggregate.users
    return aggregate.total.astype(np.float64) * scale


def _ratings_of(
    profiles: Profiles, items: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each user's rating of one item, and whether there is one."""
    cells = profiles.users * profiles.n_items + profiles.items
    wanted = np.arange(profiles.n_users) * profiles.n_items + items
    places, rated = find(cells, wanted)
    ratings = np.zeros(items.size)
    ratings[rated] = profiles.values[places[rated]]
    return ratings, rated
