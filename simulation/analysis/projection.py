"""Traffic of a deployment: what a population of any size sends and receives in a day.

Every simulated user is a random draw from all people. The mean over the simulated users carries over to N
others with an uncertainty from two sources: only n users were simulated, and the N who take part are a
random draw too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from dprec.errors import InputError

CONFIDENCE = 0.95
METHOD = (
    "95 % interval by normal theory (Student's t for the mean per user), allowing for chance in both who "
    "was simulated and who takes part"
)
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Projection:
    """Bytes that a population moves in a day in which everybody takes part once."""

    population: float
    total: float
    """Expected bytes."""
    low: float | None
    high: float | None
    """Ends of the interval; None if only one user was simulated."""

    @property
    def bits_per_second(self) -> float:
        """The mean rate over the day."""
        return 8 * self.total / _SECONDS_A_DAY


def project(bytes_per_user: NDArray[np.float64], population: float) -> Projection:
    """Extrapolate the bytes of simulated users to a population.

    Parameters
    ----------
    bytes_per_user : ndarray, shape (users,)
    population : float
        Users a day.

    Returns
    -------
    Projection
        ``total = N mean``, with the interval ``total +- t s sqrt(N^2 / n + N)``, s the standard
        deviation over the n users and t the quantile of Student's distribution.
    """
    users = bytes_per_user.size
    total = population * float(bytes_per_user.mean())
    if users < 2:
        return Projection(population, total, None, None)
    quantile = float(stdtrit(users - 1, (1 + CONFIDENCE) / 2))
    spread = float(bytes_per_user.std(ddof=1)) * math.sqrt(population**2 / users + population)
    return Projection(population, total, max(0.0, total - quantile * spread), total + quantile * spread)


_LARGEST_POPULATION = 1e12


def check_population(population: float | None) -> None:
    """Refuse a population that is not a number of users.

    Raises
    ------
    InputError
    """
    if population is not None and not 1 <= population <= _LARGEST_POPULATION:
        accepted = f"a number of users from 1 to {_LARGEST_POPULATION:g}"
        raise InputError("population", repr(population), accepted)
