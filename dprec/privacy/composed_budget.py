"""The largest loss of a single draw with which many draws together keep to an epsilon, at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.channel import Channel

_PRECISION = 1e-3
"""Share of the budget that may stay unspent."""

_MOST_STEPS = 50


def largest_share(
    channel: Callable[[float], Channel],
    draws: int,
    epsilon: float,
    delta: float,
    *,
    most: float,
    guess: float | None = None,
) -> float:
    """Return the budget of one draw such that all draws together are (epsilon, delta)-private.

    Parameters
    ----------
    channel : callable
        From the budget of one draw to the channel that it is drawn from; less private for larger budgets.
    draws : int
        Number of independent draws, at least 1.
    epsilon, delta : float
        What is kept together, above 0.
    most : float
        Largest budget of one draw.
    guess : float, optional
        Where the search begins.

    Returns
    -------
    float
        From ``epsilon / draws``, which basic composition allows, to ``most``. It depends on nothing but
        the arguments, so that device and server find the same.
    """
    low, high = min(epsilon / draws, most), math.inf
    tail, deviation = _normal(epsilon, delta)
    share = min(max(low, guess or 2 * deviation / math.sqrt(draws)), most)
    wanted = math.log(epsilon * (1 - _PRECISION / 2))
    before: tuple[float, float] | None = None
    for _ in range(_MOST_STEPS):
        spent = _composed(channel(share), draws, delta)
        low, high = (share, high) if spent <= epsilon else (low, share)
        if low == most or high <= low * (1 + _PRECISION / 10) or 0 <= 1 - spent / epsilon <= _PRECISION:
            break
        point = math.log(share), math.log(max(spent, epsilon / 100))
        # What is spent grows as a power of the share that lies between 1 and 2, and changes slowly.
        power = (tail + deviation) / (tail + deviation / 2)
        if before is not None:
            power = min(max((point[1] - before[1]) / (point[0] - before[0]), 1.0), 2.0)
        before = point
        share = min(share * math.exp((wanted - point[1]) / power), most)
        if not low < share < high:
            share = math.sqrt(low * high)
    return low


def _normal(epsilon: float, delta: float) -> tuple[float, float]:
    """Return where the tail of a normal sum begins, in deviations, and the deviation that spends epsilon."""
    tail = math.sqrt(-2 * math.log(delta))
    return tail, math.sqrt(tail**2 + 2 * epsilon) - tail


def _composed(channel: Channel, draws: int, delta: float) -> float:
    """Return what draws from a channel cost together."""
    if not 0 < channel.epsilon < math.inf:
        return channel.epsilon
    together = compose([(PrivacyLossDistribution.of(channel), draws)]).epsilon(delta)
    return min(together, draws * channel.epsilon)
