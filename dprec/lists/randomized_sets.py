"""Lists from randomised item sets: how often items and pairs of items are had, estimated without bias.

A report answers about every item, so all cells of a table have about the same noise, and no round finds the
popular items first. Item-item weights from randomised sets, applied on the device, are the form of Gao et
al. [gao2020]; the table is denoised as that of `dprec.lists.gram`, which is ours.
"""

import math

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.catalogue import Catalogue
from dprec.lists.departures import Departure, departure
from dprec.lists.gram import (
    DIAGONAL,
    LARGEST_TAU,
    GramSettings,
    denoised_table,
    popular_items,
    popularity_estimate,
)
from dprec.lists.model import LARGEST, ListModel, PairTable
from dprec.observations import SetReports

_MOST_ITEMS = 2048
"""Items of a table by rule: one of so many takes devices 4 MB to receive."""

_RIDGE = 1.0
"""What the ridge is multiplied by. It is not that of `dprec.lists.departures`: sets are not normalised, so
few users with many items tell most of what the table says. benchmarks/choosing/randomized_sets.py judges it,
and `_BESIDE_CONTENT`.
"""

_BESIDE_CONTENT = 0.5
"""What that of the weights' share is multiplied by, where there is public data about the items."""

_LEAST_VARIANCE = 1e-12
"""Where nothing is randomised."""

_USERS_AT_ONCE = 1 << 12
"""Whose answers are unpacked together: sums of so many are exact in single precision."""


def counted(reports: SetReports, items: Ints) -> Floats:
    """Return how many reports say yes about both items of each pair, shape (items, items).

    An item with itself counts the reports that say yes about it. All numbers are integers, which no order of
    the reports changes.
    """
    total = np.zeros((items.size, items.size))
    for start in range(0, len(reports.bits), _USERS_AT_ONCE):
        answers = np.unpackbits(reports.bits[start : start + _USERS_AT_ONCE], axis=1, count=reports.n_items)
        item_answers = answers[:, items].astype(np.float32)
        total += item_answers.T @ item_answers
    return total


def answers_per_item(reports: SetReports) -> Ints:
    """Return how many reports say yes about each item, shape (items,)."""
    total = np.zeros(reports.n_items, dtype=np.int64)
    for start in range(0, len(reports.bits), _USERS_AT_ONCE):
        block = reports.bits[start : start + _USERS_AT_ONCE]
        total += np.unpackbits(block, axis=1, count=reports.n_items).sum(axis=0, dtype=np.int64)
    return total


def unbiased_counts(reports: SetReports, yes_counts: Ints) -> Floats:
    """Return how many users have items, given how many reports say so: unbiased, shape (items,).

    The noise of each has the variance N v, for N reports and the variance v of one answer.
    """
    users, base = len(reports.bits), reports.not_had
    return (yes_counts.astype(np.float64) - users * base) / (reports.had - base)


def unbiased_pairs(reports: SetReports, yes_pairs: Floats) -> Floats:
    """Return how many users have both items of each pair; that of an item with itself means nothing.

    Answers about two items are independent given the user, so the mean of the product of two answers that
    are read without bias is 1 for a user who has both, and 0 for any other. Its variance, summed over users,
    is N v^2 + v (c_i + c_j), for N reports, the variance v of an answer and the counts c of the two items.

    Parameters
    ----------
    yes_pairs : ndarray, shape (items, items)
        As `counted` returns it.
    """
    users, base = len(reports.bits), reports.not_had
    yes_counts = np.diag(yes_pairs)
    sums = np.add.outer(yes_counts, yes_counts)
    return (yes_pairs - base * sums + users * base**2) / (reports.had - base) ** 2


def list_model(reports: SetReports, catalogue: Catalogue | None, table_items: int | None) -> ListModel:
    """Return what devices rank by, given at least one report; ``table_items``: by default a public rule."""
    users, n_items, variance = len(reports.bits), reports.n_items, max(reports.variance, _LEAST_VARIANCE)
    counts = unbiased_counts(reports, answers_per_item(reports))
    popularity = popularity_estimate(counts, math.sqrt(users * variance))
    # As if every set were as large as they are in the mean, and had norm 1.
    size = max(float(counts.sum()) / users, 1.0)
    unit = 1 / math.sqrt(DIAGONAL**2 * size + size * (size - 1) / 2)
    deviation = unit * variance * math.sqrt(users)
    # A table that is asked for is made, however noisy.
    tau = deviation / users if table_items is None else min(deviation / users, LARGEST_TAU)
    settings = GramSettings.of(tau, n_items, content=catalogue is not None)
    wanted = min(settings.table_items, _MOST_ITEMS) if table_items is None else table_items
    items = popular_items(popularity, min(wanted, n_items))
    if items.size < 2:
        return ListModel.of(popularity, catalogue, PairTable.nothing())
    pairs = unbiased_pairs(reports, counted(reports, items))
    pairs[np.diag_indices(items.size)] = DIAGONAL * popularity[items]
    noisy = unit * pairs[np.triu_indices(items.size)]
    table = denoised_table(noisy, deviation, unit * popularity[items], settings.coherent_share)
    share = settings.share_by(_departure(pairs, counts[items], users, variance).lower_bound)
    share *= 1.0 if catalogue is None else _BESIDE_CONTENT
    ridge = users * (0.018 + 26 * tau)
    sent = PairTable.of(items.astype(np.int32), table, _RIDGE * ridge, min(share, LARGEST))
    return ListModel.of(popularity, catalogue, sent)


def _departure(pairs: Floats, counts: Floats, users: int, variance: float) -> Departure:
    """Return how far pairs depart from popularity.

    Of the noise of a pair (`unbiased_pairs`), what is in step with popularity is none of the departure: it is
    noise of the popularity of one of the items, by which pairs are held.

    Parameters
    ----------
    pairs : ndarray, shape (items, items)
    counts : ndarray, shape (items,)
        Users of the items, without bias.
    variance : float
        Of an answer.
    """
    rows, columns = np.triu_indices(counts.size, 1)
    cells, counts = pairs[rows, columns], np.clip(counts, 0.0, users)
    # How much likelier another item is for users of an item than for others, as some have more items.
    by_popularity = (float(counts.sum()) ** 2 - float(counts @ counts)) / (2 * users)
    larger = max(float(cells.sum()) / max(by_popularity, _LEAST_VARIANCE), 1.0)
    having = np.minimum(larger * counts / users, 1.0)
    by_one = counts * (1 - having)
    noise = users * variance**2 + variance * (by_one[rows] + by_one[columns])
    return departure(cells, noise, 1.0, having)
