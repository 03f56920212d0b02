"""Which reported cells are truly rated."""

import numpy as np

from dprec.completion import Observations
from dprec.ratings import Ratings, RatingScale
from simulation.protocols.reported_cells import RatedCells, note_on_made_up_cells

SCALE = RatingScale.evenly(1.0, 5.0, 1.0)


def test_made_up_and_swallowed_cells_are_counted() -> None:
    train = Ratings.from_triples(np.array([0, 0, 1]), np.array([0, 2, 1]), np.array([5.0, 3.0, 1.0]), SCALE)
    observed = Observations(
        np.array([0, 1, 1], dtype=np.int32),
        np.array([2, 0, 1], dtype=np.int32),
        np.array([1.0, 2.0, 4.0]),
        (2, 3),
        SCALE,
    )
    rated = RatedCells.of(train, observed)
    assert rated.count == 2
    assert rated.among_reported.tolist() == [0, 2]
    assert train.values[rated.among_rated].tolist() == [3.0, 1.0]
    assert note_on_made_up_cells(train, observed, rated) == (
        "The server sees 3 ratings: 1 are fake (the cell is not rated), and 1 of the 3 true ones are lost."
    )
