"""What a device reports of its gradient: every entry clamped, rounded to a level and sent with noise.

Entries are rounded to fixed levels on [-C, C], so that noise and clamping together are a channel
with an exact privacy loss, as for ratings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dprec.channel import Channel
from dprec.mechanisms.laplace import cell_probabilities, wide_grid

_LEVELS = 129
"""Levels C / 64 apart: far below the noise of any budget that protects anything."""


def slope_channel(clamp: float, symbols: int, epsilon: float) -> Channel:
    """Return the channel of one gradient entry at the budget of one round.

    Laplace noise of scale 2 C / epsilon, where epsilon is a K-th of the whole budget: the 2 C K / epsilon
    of Li et al. [li2021], section 4.3, in terms of the whole. Cut into cells, its loss is exactly epsilon.

    Parameters
    ----------
    clamp : float
        C, the largest entry that is sent.
    symbols : int
        Cells of the grid on which the noisy entry is sent.
    """
    levels = np.linspace(-clamp, clamp, _LEVELS)
    b = 2 * clamp / epsilon
    edges, values = wide_grid(-clamp, clamp, b, symbols)
    return Channel.from_probabilities(cell_probabilities(edges, levels, b), levels, values, epsilon)


def levels_of(slopes: NDArray[np.float64], clamp: float) -> NDArray[np.uint8]:
    """Return the input level, from 1, that stands for each entry."""
    inside = np.clip(slopes, -clamp, clamp)
    return (np.rint((inside / clamp + 1) * ((_LEVELS - 1) / 2)) + 1).astype(np.uint8)
