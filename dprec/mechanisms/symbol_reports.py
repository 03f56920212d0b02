"""What a server holds of reports that it can read: the symbols, and the channels that they came through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class HiddenSets:
    """What is known of the cells of reports that hide which items were rated.

    Parameters
    ----------
    unrated : ndarray, shape (symbols,)
        Pr(symbol | not rated).
    unsent : ndarray of bool, shape (symbols,)
        Symbols that are not sent: a cell that a report does not list holds one of them.
    reported : ndarray of bool, shape (users,)
        Whose report was accepted.
    """

    unrated: NDArray[np.float64]
    unsent: NDArray[np.bool_]
    reported: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SymbolReports:
    """Symbols, and the channels through which they were sent.

    Parameters
    ----------
    channels : tuple of ndarray, each of shape (levels, symbols)
        Pr(symbol | level) of every channel.
    symbols, channel_of : ndarray of int64, shape (cells,)
        Of each cell, its symbol and the number of its channel.
    hidden : HiddenSets, optional
        If the reports hide which items were rated; then there is one channel.
    """

    channels: tuple[NDArray[np.float64], ...]
    symbols: NDArray[np.int64]
    channel_of: NDArray[np.int64]
    hidden: HiddenSets | None = None


@dataclass(frozen=True, eq=False)
class ResidualReports:
    """Answers to whether ratings are above the mean of their user's, through randomised response.

    Parameters
    ----------
    cells : ndarray of int64, shape (answers,)
        Places, among the cells that are seen as rated, of those with an answer.
    above : ndarray of bool, shape (answers,)
    lies : ndarray of float64, shape (answers,)
        Probability with which each answer is not the true one, below 1/2.
    """

    cells: NDArray[np.int64]
    above: NDArray[np.bool_]
    lies: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProfileReports:
    """Answers about whole profiles, counted by item and side of the users' means.

    Parameters
    ----------
    above, below : ndarray of int64, shape (items,)
        Answers that name each item as rated above, and not above, the user's mean.
    answers : int
        All of them.
    unrated : tuple of float
        Bounds of the share of answers that name one side of an item that nobody has rated.
    rated : float
        Share of answers that name a side of an item that everybody has rated so.
    """

    above: NDArray[np.int64]
    below: NDArray[np.int64]
    answers: int
    unrated: tuple[float, float]
    rated: float
