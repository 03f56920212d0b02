"""The errors of a run's predictions, added up by user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulation.storage.run_files import read_predictions
from simulation.storage.summary import Summary
from simulation.storage.tables import Columns

SUMS = 4
"""Sums that are kept of every user: ratings, squared errors, absolute errors, signs that are right."""

Totals = NDArray[np.float64]
"""Sums over users, shape (..., `SUMS`)."""

METRICS_OF_USERS: dict[str, Callable[[Totals], NDArray[np.float64]]] = {
    "rmse": lambda totals: np.sqrt(totals[..., 1] / totals[..., 0]),
    "mae": lambda totals: totals[..., 2] / totals[..., 0],
    "sign_accuracy": lambda totals: totals[..., 3] / totals[..., 0],
}
"""The measures that follow from such sums, by their columns in comparison.csv."""


@dataclass(frozen=True, eq=False)
class UserErrors:
    """Sums of the users of one run's test ratings."""

    users: NDArray[np.str_]
    """Identifiers, ascending; shape (users,)."""
    sums: NDArray[np.float64]
    """As listed at `SUMS`; shape (users, 4)."""

    @classmethod
    def of(cls, predictions: Columns) -> UserErrors:
        """Add up the columns of predictions.csv."""
        users, rows = np.unique(predictions["user"], return_inverse=True)
        rating, prediction = predictions["rating"], predictions["prediction"]
        errors = prediction - rating
        parts = (np.ones_like(errors), errors**2, np.abs(errors), (prediction >= 0) == (rating > 0))
        return cls(users, np.stack([np.bincount(rows, part, users.size) for part in parts], axis=1))

    @classmethod
    def read(cls, directory: Path, summary: Summary) -> UserErrors:
        """Read a run's predictions.csv.

        Raises
        ------
        InputError
            When the file is damaged.
        """
        return cls.of(read_predictions(directory, summary))

    def among(self, users: NDArray[np.str_]) -> NDArray[np.float64]:
        """Return the sums with a row for each of some users, ascending; zeros for those without ratings."""
        placed = np.zeros((users.size, SUMS))
        placed[np.searchsorted(users, self.users)] = self.sums
        return placed
