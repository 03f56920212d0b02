"""The cells that a mechanism hiding the rated items makes up or drops; only the simulation knows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.ratings import Ratings


@dataclass(frozen=True, eq=False)
class RatedCells:
    """The cells that are both reported as rated and truly rated."""

    among_reported: NDArray[np.int64]
    """Their positions among the observations; shape (cells,)."""
    among_rated: NDArray[np.int64]
    """Their positions among the ratings that the devices hold; shape (cells,)."""

    @classmethod
    def of(cls, train: Ratings, observed: Observations) -> RatedCells:
        """Find the cells that observations and ratings have in common."""
        reported = observed.users.astype(np.int64) * train.n_items + observed.items
        places = np.intersect1d(reported, train.cells, assume_unique=True, return_indices=True)[1:]
        return cls(*places)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.among_rated.size


def note_on_made_up_cells(train: Ratings, observed: Observations, rated: RatedCells) -> str:
    """Note how many cells were made up and how many ratings were dropped."""
    reported = observed.values.size
    return (
        f"The server sees {reported} ratings: {reported - rated.count} are fake (the cell is not rated), and "
        f"{train.count - rated.count} of the {train.count} true ones are lost."
    )
