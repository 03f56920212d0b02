"""What was drawn about every user, and the loss per user that follows by composition."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.accounting.pld import common_grid
from dprec.channel import Channel
from dprec.randomness import DRAWS


@dataclass(frozen=True, eq=False)
class ChannelDraws:
    """Independent draws about every user, from one channel per user."""

    channels: tuple[Channel, ...]
    channel: NDArray[np.int64]
    """Place in `channels` of each user's; of no meaning without draws; shape (users,)."""
    draws: NDArray[np.int64]
    """Number of draws about each user; shape (users,)."""
    added: NDArray[np.float64] | None = None
    """A loss of each user that is added to the composed one: of few draws about many ratings each, which
    composition would hardly lower; shape (users,).
    """


def dominating_channel(epsilon: float) -> Channel:
    """Return a channel that dominates every mechanism with a loss of at most epsilon.

    It is the randomised response of one bit (Kairouz, Oh and Viswanath [kairouz2015], section 3).

    Parameters
    ----------
    epsilon : float
        Above 0, at most that of integer weights out of 2**60, or infinite.
    """
    # Downwards, so that the channel's loss is not below epsilon.
    lies = 0 if math.isinf(epsilon) else max(1, math.floor(DRAWS / (1 + math.exp(epsilon)) * (1 - 1e-15)))
    weights = np.array([[DRAWS - lies, lies], [lies, DRAWS - lies]], dtype=np.uint64)
    return Channel(weights, np.arange(2.0), np.arange(2.0))


def composed_losses(releases: Sequence[ChannelDraws], delta: float) -> NDArray[np.float64]:
    """Return an epsilon of every user that holds with ``delta`` for two profiles that differ arbitrarily.

    Users of whom the same was drawn have the same loss, which is composed once.

    Parameters
    ----------
    releases : sequence of ChannelDraws
        Of the same users; their losses add up.
    delta : float
        Above 0.

    Returns
    -------
    ndarray of float64, shape (users,)
        At most the sum of the epsilons; infinite if a channel has none.
    """
    kinds = np.zeros(releases[0].draws.size, dtype=np.int64)
    for release in releases:
        own = np.where(release.draws > 0, release.channel * (release.draws.max() + 1) + release.draws, 0)
        numbers = _numbered(own)
        kinds = _numbered(kinds * (numbers.max() + 1) + numbers)
    users = _firsts(kinds).tolist()
    composer = _Composer(delta)
    losses = [
        composer.loss([(one.channels[int(one.channel[user])], int(one.draws[user])) for one in releases])
        for user in users
    ]
    added = [one.added for one in releases if one.added is not None]
    return np.array(losses)[kinds] + sum(added, np.zeros(kinds.size))


def _numbered(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each value, at least 0, among those that occur, ascending."""
    most = int(values.max(initial=0))
    if most > 2 * values.size:
        return np.unique(values, return_inverse=True)[1]
    occurs = np.zeros(most + 1, dtype=np.int64)
    occurs[values] = 1
    return (np.cumsum(occurs) - 1)[values]


def _firsts(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each number from 0 on first occurs; all of them do."""
    firsts = np.empty(int(kinds.max(initial=-1)) + 1, dtype=np.int64)
    firsts[kinds[::-1]] = np.arange(kinds.size - 1, -1, -1)
    return firsts


_KNOWN: dict[tuple[float, tuple[bytes, ...], tuple[int, ...]], float] = {}
"""Composed losses, by delta, the digests of channels and how often each was drawn from."""

_MOST_KNOWN = 100_000


@dataclass(frozen=True, eq=False)
class _Composer:
    """Composes losses at a delta, and keeps the distributions of what was composed.

    What was composed in this process before is known: runs that differ in their seed compose the same.
    """

    delta: float
    _grids: dict[tuple[Channel, ...], list[PrivacyLossDistribution]] = field(default_factory=dict)
    _digests: dict[Channel, bytes] = field(default_factory=dict)

    def loss(self, draws: Sequence[tuple[Channel, int]]) -> float:
        """Return an epsilon of independent draws: channels, and how often each is drawn from."""
        costly = [(channel, times) for channel, times in draws if times > 0 and channel.epsilon > 0]
        if not costly:
            return 0.0
        channels = tuple(channel for channel, _ in costly)
        if any(math.isinf(channel.epsilon) for channel in channels):
            return math.inf
        times = tuple(times for _, times in costly)
        case = self.delta, tuple(map(self._digest, channels)), times
        if case not in _KNOWN:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[case] = self._composed(channels, times)
        return _KNOWN[case]

    def _composed(self, channels: tuple[Channel, ...], times: tuple[int, ...]) -> float:
        basic = sum(channel.epsilon * count for channel, count in zip(channels, times, strict=True))
        if basic <= self.delta:
            return 0.0  # an ε alone is at most ε = 0 with δ = tanh(ε / 2); too small for a grid
        if channels not in self._grids:
            self._grids[channels] = common_grid(channels)
        total = compose(list(zip(self._grids[channels], times, strict=True)))
        return min(basic, total.epsilon(self.delta))

    def _digest(self, channel: Channel) -> bytes:
        if channel not in self._digests:
            shape = repr(channel.weights.shape).encode()
            self._digests[channel] = hashlib.sha256(shape + channel.weights.tobytes()).digest()
        return self._digests[channel]
