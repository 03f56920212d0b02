"""Reports on every cell of the catalogue, which hide the cells that were rated, counted by bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.observations import Observations, RowReports

_MOST_SYMBOLS = 16
"""Symbols beyond these are merged with their neighbours."""


@dataclass(frozen=True, eq=False)
class HiddenReports:
    """The symbols of all cells of the users who reported.

    Symbol 0 stands for whatever is not sent. Those of a fine grid are merged, which no likelihood suffers
    from but by telling less.
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    """The cells with a symbol other than 0; shape (cells,)."""
    symbols: NDArray[np.int64]
    """Shape (cells,)."""
    rated: NDArray[np.float64]
    """Pr(symbol | level); shape (levels, symbols)."""
    unrated: NDArray[np.float64]
    """Pr(symbol | not rated); shape (symbols,)."""
    reported: NDArray[np.bool_]
    """Shape (users,)."""
    n_items: int

    @classmethod
    def of(cls, observations: Observations, reports: RowReports) -> HiddenReports:
        """Return the reports behind observations."""
        rated = reports.channels[0]
        merged = np.zeros(reports.unrated.size, dtype=np.int64)
        sent = np.flatnonzero(~reports.unsent)
        # About as many answers of each merged symbol, whether a cell is rated or not.
        shares = (rated.mean(axis=0) + reports.unrated)[sent]
        below = (np.cumsum(shares) - shares / 2) / max(float(shares.sum()), np.finfo(float).tiny)
        if sent.size < _MOST_SYMBOLS:
            merged[sent] = 1 + np.arange(sent.size)
        else:
            merged[sent] = 1 + np.unique((below * (_MOST_SYMBOLS - 1)).astype(int), return_inverse=True)[1]
        total = np.eye(int(merged.max(initial=0)) + 1)[merged]
        return cls(
            observations.users,
            observations.items,
            merged[reports.symbols],
            rated @ total,
            reports.unrated @ total,
            reports.reported,
            observations.shape[1],
        )

    def of_items(self, bin_of_user: NDArray[np.int64], bins: int) -> NDArray[np.float64]:
        """Count the symbols on each item from the users of each bin, shape (items, bins, symbols)."""
        sizes = np.bincount(bin_of_user[self.reported], minlength=bins)
        return self._counted(self.items, self.n_items, bin_of_user[self.users], sizes)

    def of_users(self, bin_of_item: NDArray[np.int64], bins: int) -> NDArray[np.float64]:
        """Count the symbols of each user on the items of each bin, shape (users, bins, symbols)."""
        sizes = np.bincount(bin_of_item, minlength=bins)
        counts = self._counted(self.users, self.reported.size, bin_of_item[self.items], sizes)
        return counts * self.reported[:, None, None]

    def _counted(
        self,
        owners: NDArray[np.int32],
        n_owners: int,
        bin_of_cell: NDArray[np.int64],
        sizes: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return counts of symbols per owner and bin, those that are not sent being the rest of the bin."""
        shape = (n_owners, sizes.size, self.unrated.size)
        places = (owners * np.int64(sizes.size) + bin_of_cell) * self.unrated.size + self.symbols
        counts = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
        counts[:, :, 0] = sizes - counts[:, :, 1:].sum(axis=2)
        return counts
