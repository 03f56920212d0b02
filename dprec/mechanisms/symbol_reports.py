"""What a server holds of reports that it can read: the symbols, and the channels that they came through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class HiddenSets:
    """What is known of the cells of reports that hide which items were rated."""

    unrated: NDArray[np.float64]
    """Pr(symbol | not rated); shape (symbols,)."""
    unsent: NDArray[np.bool_]
    """Symbols that are not sent: a cell that a report does not list holds one of them; shape (symbols,)."""
    reported: NDArray[np.bool_]
    """Whose report was accepted; shape (users,)."""


@dataclass(frozen=True, eq=False)
class SymbolReports:
    """Symbols, and the channels through which they were sent."""

    channels: tuple[NDArray[np.float64], ...]
    """Pr(symbol | level) of every channel; shape (levels, symbols)."""
    symbols: NDArray[np.int64]
    channel_of: NDArray[np.int64]
    """Of each cell, its symbol and the number of its channel; shape (cells,)."""
    hidden: HiddenSets | None = None
    """If the reports hide which items were rated; then there is one channel."""


@dataclass(frozen=True, eq=False)
class ResidualReports:
    """Answers to whether ratings are above the mean of their user's, through randomised response."""

    cells: NDArray[np.int64]
    """Places, among the cells that are seen as rated, of those with an answer; shape (answers,)."""
    above: NDArray[np.bool_]
    """Shape (answers,)."""
    lies: NDArray[np.float64]
    """Probability with which each answer is not the true one, below 1/2; shape (answers,)."""


@dataclass(frozen=True, eq=False)
class ProfileReports:
    """Answers about whole profiles, counted by item and side of the users' means."""

    above: NDArray[np.int64]
    below: NDArray[np.int64]
    """Answers that name each item as rated above, and not above, the user's mean; shape (items,)."""
    answers: int
    """All of them."""
    unrated: tuple[float, float]
    """Bounds of the share of answers that name one side of an item that nobody has rated."""
    rated: float
    """Share of answers that name a side of an item that everybody has rated so."""
