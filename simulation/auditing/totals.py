"""Audits totals that devices protect together: what a server that colludes with some of them reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dprec.device_draws import DeviceDraws
from dprec.errors import SettingError
from dprec.gradients import RoundDraws
from dprec.privacy.audit import measured
from dprec.privacy.evidence import Sent
from dprec.private_als import Contributions, SecureAggregation, StatisticsLayout
from dprec.private_als.layout import TARGET_BITS, WHOLE_WEIGHT
from dprec.randomness import words
from dprec.run_keys import ReleaseDraws
from dprec.secure_sums.noise import honest_shares
from simulation.auditing.promise import Promise
from simulation.auditing.result import Finding
from simulation.protocols.private_als import PrivateAlsProtocol

_BINS = 40


def total_findings(
    protocol: PrivateAlsProtocol, promise: Promise, trials: int, seed: int, failure: float
) -> Iterator[Finding]:
    """Yield how well totals with a user and without can be told apart, less what colluding devices added.

    As many devices have dropped out as are tolerated. One release stands for all: it has the noise that
    theirs amounts to. Noise of different items is independent, so every item is a trial.

    Parameters
    ----------
    protocol : PrivateAlsProtocol
        With secure aggregation and a budget.
    promise : Promise
    trials : int
        Number of totals of each kind.
    seed : int
    failure : float
        Probability with which the bound may fail.
    """
    aggregation = _for_fewest(protocol.aggregation)
    multiplier = float(sum(each**-2 for each in protocol.multipliers) ** -0.5)
    noise = [_noise(aggregation, multiplier, trials, seed, side) for side in ("with", "without")]
    sides = [noise[0] + _contribution(aggregation), noise[1]]
    # A contribution is 1 long: bins of a quarter of the noise tell all that matters.
    width = max(multiplier / 4, 1 / 16)
    binned = [np.clip(np.floor(side / width) + _BINS // 2, 0, _BINS).astype(np.int64) for side in sides]
    result = measured([(Sent.of_rounds([binned[0]]), Sent.of_rounds([binned[1]]))], failure, promise.delta)
    yield Finding(
        test=f"a whole profile, in the total less the noise of {aggregation.colluders} colluding devices",
        unit="user",
        promised=promise.epsilon,
        at_least=result.at_least,
        charged=None,
        exact=False,
        power=result.power(promise.epsilon),
    )


def _for_fewest(aggregation: object) -> SecureAggregation:
    """Return the aggregation for about as few devices as it accepts, so that totals are quickly made."""
    assert isinstance(aggregation, SecureAggregation), "sums whose noise the devices do not add"
    # Noise is added after both, and is the same.
    plain = replace(aggregation, sketch=None, rotation=False)
    for users in (8, 16, 32, 64, 128, 256):
        with suppress(SettingError):
            return plain.among(users)
    return plain.among(4 * plain.colluders)


def _layout(items: int) -> StatisticsLayout:
    return StatisticsLayout(np.full(items, WHOLE_WEIGHT), 0, 1.0, 1.0, 0.5, limit=1)


def _noise(
    aggregation: SecureAggregation, multiplier: float, trials: int, seed: int, side: str
) -> NDArray[np.float64]:
    """Return totals of honest devices that are left and contribute nothing, shape (trials,)."""
    assert aggregation.users is not None
    left = honest_shares(aggregation.users, aggregation.dropouts, aggregation.colluders)
    nothing = np.zeros(left + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64)
    contributions = Contributions(*nothing, np.ones((left, 1), dtype=np.float32))
    keys = words(seed, f"totals {side} a user", 0, 2 * left).reshape(2, left)
    return _released(aggregation, contributions, _layout(trials), multiplier, keys)


def _contribution(aggregation: SecureAggregation) -> NDArray[np.float64]:
    """Return what a user of the largest contribution adds to a total, shape (1,)."""
    most = np.array([0, 1]), np.zeros(1, dtype=np.int32), np.array([1 << TARGET_BITS])
    contributions = Contributions(*most, np.ones((1, 1), dtype=np.float32))
    return _released(aggregation, contributions, _layout(1), 0.0, np.ones((2, 1), dtype=np.uint64))


def _released(
    aggregation: SecureAggregation,
    contributions: Contributions,
    layout: StatisticsLayout,
    multiplier: float,
    keys: NDArray[np.uint64],
) -> NDArray[np.float64]:
    """Return the total of each item in the direction of the largest contribution, shape (items,)."""
    draws = RoundDraws(DeviceDraws(keys), 1, 0)
    reports = aggregation.encode(contributions, layout, multiplier, draws)
    _, aggregate = aggregation.decode(reports, layout, multiplier)
    released = aggregation.release(aggregate, layout, multiplier, ReleaseDraws(0, 1)) / layout.scales
    total: NDArray[np.float64] = released.sum(axis=1) / np.sqrt(layout.width)
    return total
