"""Chooses when a factorisation drops an axis: RMSE and time on validation ratings of MovieLens 100K.

    python benchmarks/choose_dropped_axes.py [--path ../shared/data/ml-100k] [u1 u2 ...]

Of the train ratings of each fold, those on which u1 tests are left out, and a random tenth judges fits by
default to the others, to which Laplace noise is added. A row is a share of the noise variance below which an
axis is dropped, and the sweep from which on. Figures are means over folds and seeds: RMSE by scale of the
noise, processor seconds of a fit, and, against the first row, what the pair costs in the mean RMSE and saves
of the time. Fails if dprec's pair costs more than 0.0003; the time depends on what else the machine does. Two
and a half minutes of processor time.
"""

from __future__ import annotations

import itertools
import sys
import time
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from validation import Parts, arguments

from dprec.completion import MatrixFactorization, Observations
from dprec.completion import matrix_factorization as module
from dprec.datasets import MovieLens100K
from dprec.metrics import root_mean_squared_error
from dprec.randomness import generator

Pair = tuple[float, int]
"""A share of the noise variance, and a sweep."""

CURRENT: Pair = (module._NEGLIGIBLE, module._SWEEPS_BEFORE_DROPPING)
PAIRS: tuple[Pair, ...] = (
    (1e-5, 5),
    (1e-5, 7),
    (1e-4, 3),
    (1e-4, 5),
    (1e-4, 7),
    (1e-4, 10),
    (1e-3, 5),
    (1e-3, 7),
)
FOLDS, NOISES, SEEDS = ("u1", "u2", "u3", "u4", "u5"), (0, 1, 2), (1, 2, 3)
TOLERANCE = 0.0003


def tenth_of(fold: str, folder: str, seed: int) -> Parts:
    """Return nine tenths of the train ratings of a fold on which u1 does not test, and a random tenth."""
    dataset = MovieLens100K(path=folder)
    (train, _), (_, tested) = dataset.load_fold(fold), dataset.load_fold("u1")
    cells, tested_cells = (part.users * part.n_items + part.items for part in (train, tested))
    known = train.select(~np.isin(cells, tested_cells))
    judging = generator(seed, f"validation {fold}").random(known.count) < 0.1
    return known.select(~judging), known.select(judging)


def measured(pair: Pair, parts: Parts, noise: float, seed: int) -> tuple[float, float]:
    """Return the RMSE of a fit, and its processor seconds, the shorter of two times."""
    train, judging = parts
    values = train.values + noise * generator(seed, "noise").laplace(size=train.count)
    (share, sweep), seconds = pair, []
    for _ in range(2):
        seen = Observations.of(train.users, train.items, values, (train.n_users, train.n_items), train.scale)
        start = time.process_time()
        with patch.multiple(module, _NEGLIGIBLE=share, _SWEEPS_BEFORE_DROPPING=sweep):
            model = MatrixFactorization().fit(seen, seed)
        seconds.append(time.process_time() - start)
    predictions = np.clip(model.predict(judging.users, judging.items), train.scale.low, train.scale.high)
    return root_mean_squared_error(predictions, judging.values), min(seconds)


def table(folder: str, folds: list[str]) -> NDArray[np.float64]:
    """Return RMSE and seconds, shape (pairs, noises, folds and seeds, 2)."""
    figures = np.zeros((len(PAIRS), len(NOISES), len(folds) * len(SEEDS), 2))
    # What is compiled by the first fit is not part of any time.
    measured(CURRENT, tenth_of(folds[0], folder, 1), 0, 1)
    for run, (fold, seed) in enumerate(itertools.product(folds, SEEDS)):
        parts = tenth_of(fold, folder, seed)
        for column, noise in enumerate(NOISES):
            for row, pair in enumerate(PAIRS):
                figures[row, column, run] = measured(pair, parts, noise, seed)
    return figures


def main() -> int:
    """Print the table; return 1 if the current pair does not stand."""
    folder, folds = arguments(__doc__, FOLDS)
    with threadpool_limits(limits=1):  # As in a run.
        figures = table(folder, folds)
    print("| share | sweep |", *(f"noise {noise} | seconds |" for noise in NOISES), "mean cost | saved |")
    costs = {}
    for pair, own in zip(PAIRS, figures, strict=True):
        # A mean over the noises for each fold and seed.
        behind = (own - figures[0])[..., 0].mean(axis=0)
        costs[pair], error = behind.mean(), behind.std(ddof=1) / np.sqrt(behind.size)
        saved = 1 - own[..., 1].sum() / figures[0, ..., 1].sum()
        cells = [f"{rmse:.5f} | {seconds:.3f} |" for rmse, seconds in own.mean(axis=1)]
        print(f"| {pair[0]:g} | {pair[1]} |", *cells, f"{costs[pair]:+.5f} +- {error:.5f} | {saved:.0%} |")
    stands = bool(costs[CURRENT] <= TOLERANCE)
    print(f"current {CURRENT} {'stands' if stands else 'does not stand'}")
    return int(not stands)


if __name__ == "__main__":
    sys.exit(main())
