"""Who shares a mask with whom: a sparse random graph, and how many neighbours put a secret together.

Everybody stands on a circle in random order and has those who stand near as neighbours (Bell et al.
[bell2020], Section 3). Degree and threshold follow from probabilities of which each is stated here.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import scipy

from dprec.arrays import Bools, Floats, Ints
from dprec.errors import SettingError

SECURITY = 2.0**-40
"""Most probability with which a sum protects less than it says, over the order on the circle."""

FAILURE = 2.0**-20
"""Most probability with which a sum fails although no more devices drop out than are tolerated."""


@dataclass(frozen=True)
class GraphSize:
    """How many neighbours a device has, and how many of them put a secret of its together."""

    degree: int
    """Even, or everybody else."""
    threshold: int


@lru_cache(maxsize=64)
def graph_size(users: int, dropouts: float, colluders: int) -> GraphSize:
    """Return the smallest graph that holds what it must.

    The neighbours of a device are a random sample of all others, so the tails are hypergeometric; they are
    added up over all devices:

    - at least `threshold` neighbours answer, except with probability `FAILURE`;
    - fewer than 2 threshold - degree neighbours collude, except with probability `SECURITY` / 2: a server can
      then collect both secrets of no device, whatever it says to whom, as each honest neighbour reveals one;
    - honest devices that answer are connected by masks, except with probability `SECURITY` / 2: only a gap of
      degree / 2 others on the circle separates them (Bell et al. [bell2020], Section 3).

    Who colludes and who drops out must not depend on the order on the circle.

    ``dropouts``: largest tolerated share of devices that drop out, from 0 to below 1; ``colluders``: devices
    that tell the server all that they know. Raises SettingError when no graph of so few users does.
    """
    absent = math.floor(dropouts * users)
    full_degree = users - 1
    complete = _threshold(users, full_degree, absent, colluders) if full_degree >= 2 else None
    if complete is None or users - absent - colluders < 2:
        # Two thresholds less everybody's neighbours exceed the colluders, and as many neighbours answer.
        found = f"{users} users, of whom {absent} may drop out and {colluders} collude"
        raise SettingError("", found, "users - 1 > colluders + 2 x dropouts, for two honest ones or more")
    for degree in range(2, full_degree, 2):
        if degree // 2 < _shortest_gap(users, absent + colluders):
            continue
        threshold = _threshold(users, degree, absent, colluders)
        if threshold is not None:
            return GraphSize(degree, threshold)
    return GraphSize(full_degree, complete)


def _threshold(users: int, degree: int, absent: int, colluders: int) -> int | None:
    """Return the smallest threshold at which secrets are safe, if enough neighbours answer then."""
    others = users - 1
    colluding = users * _at_least(others, min(colluders, others), degree)
    # As many collude, and no more: of the next number on, the probability is small enough.
    most_colluding = int(np.argmax(colluding <= SECURITY / 2)) - 1
    threshold = (degree + most_colluding) // 2 + 1
    if threshold > degree:
        return None
    missing = users * _at_least(others, min(absent, others), degree)
    return threshold if missing[degree - threshold + 1] <= FAILURE else None


def _at_least(others: int, marked: int, degree: int) -> Floats:
    """Return the probabilities that 0, 1, ... degree + 1 or more of some drawn others are marked ones."""

    def choose(items: int, taken: Ints) -> Floats:
        ways: Floats = (
            scipy.special.gammaln(items + 1)
            - scipy.special.gammaln(taken + 1)
            - scipy.special.gammaln(items - taken + 1)
        )
        return ways

    n_marked = np.arange(degree + 1)
    possible = (n_marked <= marked) & (degree - n_marked <= others - marked)
    n_marked = n_marked[possible]
    logarithms = choose(marked, n_marked) + choose(others - marked, degree - n_marked)
    of_number = np.zeros(degree + 2)
    of_number[:-1][possible] = np.exp(logarithms - choose(others, np.array(degree)))
    return np.cumsum(of_number[::-1])[::-1]


def _shortest_gap(users: int, bad: int) -> int:
    """Return from which length on a gap of bad devices alone is too unlikely, wherever it begins."""
    probability, length = float(users), 0
    while probability > SECURITY / 2 and length < bad:
        probability *= (bad - length) / (users - length)
        length += 1
    return length if probability <= SECURITY / 2 else length + 1


@dataclass(frozen=True, eq=False)
class MaskGraph:
    """The neighbours of every device in one sum."""

    neighbours: Ints
    """Shape (users, degree)."""
    reverse: Ints
    """Each device is neighbour number ``reverse[c]`` of its neighbour number c; shape (degree,)."""

    @classmethod
    def of(cls, order: Ints, degree: int) -> Self:
        """Return the graph of an order on the circle."""
        users, steps = order.size, _steps(order.size, degree)
        position = np.empty(users, dtype=np.int64)
        position[order] = np.arange(users)
        neighbours: Ints = order[(position[:, None] + steps) % users]
        number = np.zeros(users, dtype=np.int64)
        number[steps] = np.arange(degree)
        return cls(neighbours, number[users - steps])

    @staticmethod
    def neighbours_of(user: int, order: Ints, degree: int) -> Ints:
        """Return the neighbours of one device, as the graph of all has them, shape (degree,)."""
        (position,) = np.flatnonzero(order == user)
        neighbours: Ints = order[(position + _steps(order.size, degree)) % order.size]
        return neighbours

    def pairs(self) -> tuple[Ints, Ints]:
        """Return every two neighbours once, the lower index first; shape (pairs,) each."""
        users = np.arange(len(self.neighbours))
        lower, column = np.nonzero(self.neighbours > users[:, None])
        return lower, self.neighbours[lower, column]

    def answers(self, present: Bools) -> Ints:
        """Return how many neighbours of each device are present, shape (users,)."""
        answers: Ints = present[self.neighbours].sum(axis=1)
        return answers


def _steps(users: int, degree: int) -> Ints:
    """Return how far from a device its neighbours stand on the circle, shape (degree,)."""
    half = np.arange(1, degree // 2 + 1)
    return np.arange(1, users) if degree == users - 1 else np.concatenate([half, users - half])
