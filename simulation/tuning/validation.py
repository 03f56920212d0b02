"""The validation part of the training ratings, on which trials are judged."""

from __future__ import annotations

import numpy as np

from dprec.errors import within
from dprec.ratings import Ratings
from dprec.splits import Holdout, RandomSplit
from simulation.configuration.models import RunConfig
from simulation.execution import load_ratings

_SHARE = 0.1
"""Share of the training ratings that are held back where the split chooses nothing at random."""


def validation_parts(config: RunConfig, seed: int) -> tuple[Ratings, Ratings]:
    """Return the training ratings that trials learn from, and those that judge them.

    The configuration's split is applied once more, to its training ratings; of a predefined split, a random
    tenth of these is held back. The test ratings are left out of both.

    Parameters
    ----------
    seed : int
        Of the second split.

    Raises
    ------
    InputError
        When nothing would be left.
    """
    train, _ = load_ratings(config)
    again = config.split if isinstance(config.split, RandomSplit) else Holdout(test_fraction=_SHARE)
    judging = np.zeros(train.count, dtype=np.bool_)
    with within("split"):
        judging[again.test_rows(train, seed)] = True
    return train.select(~judging), train.select(judging)
