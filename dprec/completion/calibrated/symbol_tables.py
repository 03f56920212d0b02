"""The likelihood of received symbols as a function of the latent rating, tabulated once per fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.ordinal import level_probabilities

_REACH, _POINTS = 8.0, 401
"""The latent ratings for which tables are made: from -8 to 8, in steps of 0.04."""

_LEAST = 1e-300

_STEEPEST = 1e4
"""No slope of a likelihood on the grid is steeper for cut points below 1,000: see `SymbolTables.of`."""


@dataclass(frozen=True, eq=False)
class SymbolTables:
    """Slopes and information of every symbol's log likelihood, on a grid of latent ratings."""

    slopes: NDArray[np.float64]
    """The derivative of log Pr(symbol | latent rating), for all symbols of all channels;
    shape (points, columns).
    """
    information: NDArray[np.float64]
    """Fisher information of a report through each channel; shape (points, channels)."""
    first: NDArray[np.int64]
    """The column of each channel's first symbol; shape (channels,)."""

    @classmethod
    def of(cls, channels: Sequence[NDArray[np.float64]], cuts: NDArray[np.float64]) -> SymbolTables:
        """Tabulate all symbols.

        Parameters
        ----------
        channels : sequence of ndarray, each of shape (levels, symbols)
            Pr(symbol | level).
        cuts : ndarray, shape (levels - 1,)
            Where the latent rating changes level.

        Notes
        -----
        A slope is the mean of what lies between two cut points, seen from the latent rating, and no report
        tells more than the latent rating with noise of variance 1, so information is between 0 and 1. These
        bounds matter only where cut points are so close together, or so far apart, that rounding leaves
        nothing of a level: with them, what is computed from any cut points is finite.
        """
        grid = np.linspace(-_REACH, _REACH, _POINTS)
        probabilities, derivatives = level_probabilities(grid, cuts)
        slopes, information = [], []
        for channel in channels:
            # A symbol as likely at every level says nothing, and not as much as rounding does either.
            moved = derivatives @ channel * (np.ptp(channel, axis=0) > 0)
            steep = moved / np.maximum(probabilities @ channel, _LEAST)
            slopes.append(np.clip(steep, -_STEEPEST, _STEEPEST))
            information.append(np.clip((slopes[-1] * moved).sum(axis=1), 0.0, 1.0))
        first = np.cumsum([0, *(channel.shape[1] for channel in channels[:-1])])
        return cls(np.hstack(slopes), np.column_stack(information), first)

    def at(
        self,
        latent: NDArray[np.float64],
        symbols: NDArray[np.int64],
        channel_of: NDArray[np.int64] | Literal[0] = 0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the slope of each symbol and the information of its channel, interpolated linearly.

        Parameters
        ----------
        symbols, channel_of : ndarray of int64, same shape
        """
        lower, share = _places(latent)

        def between(
            table: NDArray[np.float64], columns: NDArray[np.int64] | Literal[0]
        ) -> NDArray[np.float64]:
            below, above = table[lower, columns], table[lower + 1, columns]
            mixed: NDArray[np.float64] = below + share * (above - below)
            return mixed

        return between(self.slopes, self.first[channel_of] + symbols), between(self.information, channel_of)

    def everywhere(self, latent: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the slopes of all symbols and the information of all channels at latent ratings.

        Parameters
        ----------
        latent : ndarray of float64, shape (places,)

        Returns
        -------
        slopes, information : ndarray of float64, shapes (places, columns) and (places, channels)
        """
        lower, share = _places(latent)
        slopes, information = (
            table[lower] + share[:, None] * (table[lower + 1] - table[lower])
            for table in (self.slopes, self.information)
        )
        return slopes, information


def _places(latent: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the point of the grid below each latent rating, and the share of the way to the next."""
    places = np.clip((latent + _REACH) * ((_POINTS - 1) / (2 * _REACH)), 0, _POINTS - 1.001)
    lower = places.astype(np.int64)
    return lower, places - lower
