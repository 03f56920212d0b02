"""What the user gets back: predictions.csv, the unrated items of the catalogue, best first."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clients.device.durable import write_durably


def write_predictions(
    path: Path, item_ids: Sequence[str], predicted: NDArray[np.float64], rated: NDArray[np.integer]
) -> None:
    """Write predictions, as a whole.

    Parameters
    ----------
    path : Path
    item_ids : sequence of str
    predicted : ndarray of float64, shape (items,)
        NaN for items of which nothing is known; they are left out.
    rated : ndarray of int
        Items that the user has rated, which are left out.

    Raises
    ------
    OSError
        When the file cannot be written; the old one remains.
    """
    shown = np.setdiff1d(np.flatnonzero(~np.isnan(predicted)), rated)
    best_first = shown[np.argsort(-predicted[shown], kind="stable")]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["item", "prediction"])
    ids = [item_ids[place] for place in best_first.tolist()]
    writer.writerows(zip(ids, map(repr, predicted[best_first].tolist()), strict=True))
    write_durably(path, file.getvalue().encode())
