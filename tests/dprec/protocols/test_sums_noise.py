"""The noise that learners are told is the noise that is drawn: of every protocol of sums, whoever adds up.

Each of less than 150 mean squares of thousands of numbers is beyond 5.8 of its deviations, which are those of
squared normal deviates, with a chance of 7e-9: 1e-6 in all.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.randomness import ReleaseDraws
from dprec.sums import Aggregation, SecureAggregation, ShuffledAggregation
from tests.dprec.protocols.test_sums_contract import KINDS, USERS, WHO_ADDS_UP, crowd, protocol_of, rounds_of
from tests.summing import contributions, devices

DEVIATIONS, NUMBERS = 5.8, 4000
RULED = SecureAggregation(colluders=0)
ADDING_UP: dict[str, Aggregation] = {
    **WHO_ADDS_UP,
    "secure-aggregation": RULED,
    "a coarse grid": replace(RULED, norm=16),
    "dropouts": replace(RULED, dropouts=0.3, colluders=2),
}


def mean_square(
    aggregation: Aggregation, own: Any, layout: Any, multiplier: float, times: int
) -> tuple[float, float]:
    """Return the variance of the numbers of some releases over draws, and the one that is told of them."""
    released, told = [], []
    for number in range(times):
        draws = replace(devices(USERS, layout.round_index, number), lasting=devices(USERS).lasting)
        reports = aggregation.encode(own, layout, multiplier, draws)
        _, total = aggregation.decode(reports, layout, multiplier)
        values = aggregation.release(total, layout, multiplier, ReleaseDraws(number, layout.round_index))
        released.append((values / layout.scales).ravel())
        told.append(aggregation.noise_in(total, layout, multiplier) ** 2)
    return float(np.var(released, axis=0, ddof=1).mean()), float(np.mean(told))


def least_told(aggregation: Aggregation, layout: Any, multiplier: float, told: float) -> float:
    """Return what is told without what rounding or sampling adds at most."""
    if isinstance(aggregation, ShuffledAggregation):
        fakes = replace(aggregation._plan(layout, multiplier), messages=0)
        return fakes.deviation(USERS) ** 2
    return told if aggregation.trust == "central" else 0.9 * told


@pytest.mark.thorough
@pytest.mark.parametrize("who", ADDING_UP)
@pytest.mark.parametrize("kind", KINDS)
def test_every_learner_is_told_the_noise_of_its_sums(kind: str, who: str) -> None:
    protocol = protocol_of(kind, who if who in WHO_ADDS_UP else "secure-aggregation")
    protocol = replace(protocol, aggregation=ADDING_UP[who].among(USERS), noise=None)
    people = crowd(kind, 1)
    for (device, layout), multiplier in zip(rounds_of(kind), protocol.multipliers, strict=True):
        numbers = layout.n_rows * layout.width
        times = max(NUMBERS // numbers, 8)
        own = contributions(device, people, layout)
        drawn, told = mean_square(protocol.adding_up, own, layout, multiplier, times)
        off = DEVIATIONS * math.sqrt(2 / (numbers * (times - 1)))
        assert drawn <= told * (1 + off)
        assert drawn >= least_told(protocol.adding_up, layout, multiplier, told) * (1 - off)
