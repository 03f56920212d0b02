"""What an epsilon says and what losses add up to, as the privacy accountant computes it; delta is 1e-6."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import starmap

from docs.tables import table
from docs.tables.shuffling import MECHANISMS, STARS
from dprec.accounting import (
    FixedSize,
    Poisson,
    PrivacyLossDistribution,
    ShuffledChannel,
    clones_delta,
    compose,
    gaussian_epsilon,
    largest_share,
    least_epsilon,
    sampled_gaussian_epsilon,
)
from simulation.analysis.vocabulary import number

_DELTA = 1e-6
_USERS = 100_000


def guesses() -> str:
    """Return how often the right one of two possibilities is guessed at most, e^epsilon / (1 + e^epsilon)."""
    budgets = (0, 0.1, 0.5, 1, 2, 4, 8)
    certain = [f"{1 / (1 + math.exp(-epsilon)):.4g}" for epsilon in budgets]
    return table(["ε", *map("{:g}".format, budgets)], [["at most", *certain]])


def composed(ratings: str) -> str:
    """Return what so many ratings lose by mechanism and epsilon per rating: the sum, and composed."""
    times, budgets = int(ratings), (1.0, 0.1)
    heads = [f"{what}, ε = {epsilon:g} each" for epsilon in budgets for what in ("sum", "composed")]

    def row(name: str) -> list[str]:
        losses = ((times * epsilon, lost(name, times, epsilon)) for epsilon in budgets)
        return [name, *(number(loss, 1) for both in losses for loss in both)]

    return _table([f"{times} ratings", *heads], map(row, MECHANISMS))


def lost(mechanism: str, draws: int, epsilon: float) -> float:
    """Return what draws at a budget each lose together."""
    losses = PrivacyLossDistribution.of(MECHANISMS[mechanism].channel(STARS, epsilon))
    return compose([(losses, draws)]).epsilon(_DELTA)


def shares() -> str:
    """Return the budget of each draw whose sum is 1, and the largest with which all compose to 1."""

    def row(name: str, draws: int) -> list[str]:
        channel = partial(MECHANISMS[name].channel, STARS)
        largest = largest_share(channel, draws, 1.0, _DELTA, most=1.0)
        return [f"{draws} of {name}", f"{1 / draws:.3g}", f"{largest:.3g}"]

    cases = (("one bit", 4), ("one bit", 50), ("one bit", 685), ("bounded Laplace", 685))
    return _table(["draws", "`composition: sum`", "`composition: pld`"], starmap(row, cases))


def sampled(rounds: str) -> str:
    """Return what so many rounds with noise of two clips lose, by how many users are asked in each."""
    times, distance = int(rounds), 0.5
    everybody = (gaussian_epsilon(each * distance * math.sqrt(times), _DELTA) for each in (1, 2))
    rows = [["everybody", *(number(loss, 2) for loss in everybody)]]
    for one_in in (10, 100):
        drawn = Poisson(1 / one_in), FixedSize(_USERS // one_in, _USERS)
        losses = (sampled_gaussian_epsilon(distance, each, times, _DELTA) for each in drawn)
        rows.append([f"one in {one_in}", *(number(loss, 2) for loss in losses)])
    return _table(["asked in a round", "ε, a profile beside none", "ε, any two profiles"], rows)


def shuffled() -> str:
    """Return what one message loses among so many, by what it holds and its local epsilon."""
    among = (100, 1_000, 10_000, 100_000)
    bit = ShuffledChannel(MECHANISMS["one bit"].channel(STARS, 1.0))

    def profile(local: float, messages: int) -> float:
        return least_epsilon(partial(clones_delta, reports=messages, local_epsilon=local), local, _DELTA)

    losses = {"one bit at ε = 1, on the same item": [bit.epsilon(each, _DELTA) for each in among]}
    losses |= {
        f"a whole profile at ε = {local}": [profile(local, each) for each in among] for local in (2, 4)
    }
    rows = ([name, *(number(loss, 3) for loss in row)] for name, row in losses.items())
    return _table(["a message loses, among", *map("{:,}".format, among)], rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of figures, each row's name before them."""
    return table(heads, rows, [False, *[True] * (len(heads) - 1)])
