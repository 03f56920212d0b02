"""Partitions whose contributions are as large as they may be."""

import numpy as np

from dprec.arrays import Ints
from dprec.private_als.statistics import TARGET_BITS, StatisticsContributions, StatisticsLayout

WEIGHTS = np.array([256, 17, 256, 90, 1, 200])
LAYOUTS = [
    StatisticsLayout(WEIGHTS, rank, norm, 1.5, share, limit)
    for rank, norm, share, limit in [
        (0, 1.0, 0.5, 3),
        (0, 1.0, 0.0, None),
        (2, 1.3, 0.4, 4),
        (3, 0.7, 0.0, None),
    ]
]


def a_partition(layout: StatisticsLayout, users: int = 40, seed: int = 0) -> StatisticsContributions:
    """Return contributions of which many are as large as they may be."""
    random = np.random.default_rng(seed)
    chosen = random.random((users, layout.n_rows)) < 0.6
    if layout.limit is not None:
        chosen &= np.cumsum(chosen, axis=1) <= layout.limit
    counts = chosen.sum(axis=1)
    most = 1 << TARGET_BITS
    targets = np.where(random.random(counts.sum()) < 0.5, most, random.integers(-most, most, counts.sum()))
    x = random.standard_normal((users, layout.columns))
    x *= (layout.norm / np.linalg.norm(x, axis=1))[:, None] * random.choice([1.0, 0.6], users)[:, None]
    x = np.ones_like(x) if layout.rank == 0 else x * (1 - 1e-6)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return StatisticsContributions(
        indptr, np.nonzero(chosen)[1].astype(np.int32), targets, x.astype(np.float32)
    )


def some_users(partition: StatisticsContributions, which: list[int]) -> StatisticsContributions:
    """Return the contributions of some users."""
    cells = np.concatenate([np.arange(partition.indptr[user], partition.indptr[user + 1]) for user in which])
    counts = np.diff(partition.indptr)[which]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return StatisticsContributions(
        indptr, partition.items[cells], partition.targets[cells], partition.factors[which]
    )


def summed(contributions: StatisticsContributions, layout: StatisticsLayout) -> Ints:
    """Return what the users contribute together, shape (rows, width)."""
    rows, numbers = layout.rows_of_sum(contributions)
    total = np.zeros((layout.n_rows, layout.width), dtype=np.int64)
    total[rows] = numbers
    return total
