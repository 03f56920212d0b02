"""Shuffled reports of few users, exactly: every outcome with its probability."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel


def k_ary_response(symbols: int, epsilon: float) -> Channel:
    """Return k-ary randomised response."""
    rows = np.ones((symbols, symbols)) + np.expm1(epsilon) * np.eye(symbols)
    levels = np.arange(1.0, symbols + 1)
    return Channel.from_probabilities(rows, levels, levels, epsilon)


def histogram_of(channel: Channel, levels: tuple[int, ...]) -> NDArray[np.float64]:
    """Return Pr(counts) of the symbols of reports of these levels, a dimension for each symbol."""
    rows = channel.probabilities
    counts = np.ones((1,) * channel.symbols)
    for level in levels:
        grown = np.zeros(np.add(counts.shape, 1))
        for symbol, probability in enumerate(rows[level]):
            moved = tuple(
                slice(axis == symbol, size + (axis == symbol)) for axis, size in enumerate(counts.shape)
            )
            grown[moved] += probability * counts
        counts = grown
    return counts


def exact_delta(channel: Channel, epsilon: float, reports: int) -> float:
    """Return the divergence of shuffled reports of which one changes, for the worst of all profiles."""
    levels = range(len(channel.inputs))
    worst = 0.0
    for others in itertools.combinations_with_replacement(levels, reports - 1):
        outcomes = [histogram_of(channel, (*others, level)) for level in levels]
        for one, other in itertools.permutations(outcomes, 2):
            worst = max(worst, float(np.maximum(0.0, one - np.exp(epsilon) * other).sum()))
    return worst
