"""Chooses when sweeps of `mf` end and from when on axes are dropped: completion/matrix_factorization.py.

Clean ratings of fold u1 of MovieLens 100K and, from the folder beside it, of books and music on Douban, at
ranks 20 and 50. Figures are RMSE on three draws of a tenth of the train ratings; processor seconds follow.
Fails if another combination is better than dprec's by more than .0005 and by more than chance explains.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from validation import Parts, asked, best_of, decide, random_tenth, tenth_of_u1

from dprec.completion import MatrixFactorization, Observations
from dprec.completion import matrix_factorization as module
from dprec.datasets import Douban
from dprec.metrics import root_mean_squared_error
from dprec.splits import Holdout

RANKS, SEEDS, LEAST = (20, 50), (1, 2, 3), 0.0005
TRIED = {"_HELD_OUT": (0.02, 0.05, 0.1), "_WORSE_SWEEPS": (1, 2, 3), "_SWEEPS_BEFORE_DROPPING": (2, 3, 5)}


def draws(folder: str) -> list[Parts]:
    """Return ratings to learn from and to judge on."""
    both = Douban(path=str(Path(folder).parent / "douban"), source="book", target="music")
    train, _ = Holdout().split(both, 1)
    return [parts for seed in SEEDS for parts in (tenth_of_u1(folder, seed), random_tenth(train, seed))]


def judged(every: Sequence[Parts], constants: Mapping[str, Any]) -> list[float]:
    """Return the RMSE of every draw at every rank with some constants; print the processor seconds."""
    started, figures = time.process_time(), []
    with mock.patch.multiple(module, **constants):
        for train, judging in every:
            cells, shape = (train.users, train.items, train.values), (train.n_users, train.n_items)
            seen = Observations.of(*cells, shape, train.scale)
            for rank in RANKS:
                model = MatrixFactorization(rank=rank).fit(seen, seed=0)
                found = np.clip(model.predict(judging.users, judging.items), *train.scale.values[[0, -1]])
                figures.append(root_mean_squared_error(found, judging.values))
    print(f"{time.process_time() - started:.1f} s of processor", end="  ")
    return figures


if __name__ == "__main__":
    every, present = draws(asked(__doc__).path), {name: getattr(module, name) for name in TRIED}
    decide([best_of("sweeps", TRIED, partial(judged, every), present, least=LEAST)])
