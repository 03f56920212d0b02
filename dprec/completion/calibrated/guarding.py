r"""Item biases for lists, which liars cannot raise: the least that they could be without any so many reports.

For an item with reports R, let g_A(c) be the slope at bias c of the log posterior without a subset A of R,

    g_A(c) = sum over R \ A of s_j(c) - (c - m) / t,

s_j being the slope of a report's log likelihood, m and t what is expected of the bias and its variance. The
least of them over all A of at most k reports leaves out the k largest positive slopes:

    g(c) = sum over R of s_j(c) - sum of the k largest max(0, s_j(c)) - (c - m) / t.

The guarded bias is where g falls to 0. If at most k of the reports are of liars, the honest ones are R \ A
for one such A, so g is at most the slope that these have, at every c: the guarded bias is at most the bias
that honest reports say, whatever liars send. It is found by halving an interval, and of two slopes of which
one is never above the other, that one's interval is never to the right. All this holds given m, t and what is
known of users. For m, nothing is read of who rated an item but how many did, less k.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import LIKED, ItemSetEmbedding, catalogue_features
from dprec.completion.calibrated.regressions import Regressed
from dprec.components import Options, option

_REACH, _HALVINGS = 4.0, 13
"""Guarded biases are from -4 to 4, in units of the noise on a latent rating, and found to within 0.001."""


@dataclass(frozen=True, kw_only=True)
class Guard(Options):
    """Lists that liars cannot lift an item into: they are ranked by the least that an item may be worth.

    Predictions stay as they are.
    """

    liars: float = option(
        "Share of the users who may lie. So many reports on each item are left out, the most favourable.",
        0.05,
        gt=0,
        lt=0.5,
    )

    def most(self, n_users: int) -> int:
        """Return how many of so many users may lie."""
        return math.ceil(self.liars * n_users)


def without_most_favourable(owners: AnyInts, slopes: Floats, counts: Ints, most: int, n_items: int) -> Floats:
    """Add up slopes by item, without the largest positive ones of so many reports, shape (items,).

    ``owners``, ``slopes``, ``counts``: the item of each row, the slope that its reports have, and how many
    they are; shape (rows,).
    """
    order = np.lexsort((-slopes, owners))
    owners, slopes, counts = owners[order], slopes[order], counts[order]
    through = np.concatenate([[0], np.cumsum(counts)])
    before = through[:-1] - through[np.searchsorted(owners, owners)]
    kept = counts - np.clip(most - before, 0, counts) * (slopes > 0)
    return np.bincount(owners, weights=kept * slopes, minlength=n_items).astype(np.float64)


def guarded_biases(
    slopes: Callable[[Floats], Floats],
    reports: tuple[AnyInts, Ints],
    most: int,
    centres: Floats,
    variance: float,
) -> Floats:
    """Return the guarded biases of all items, shape (items,).

    Parameters
    ----------
    slopes : callable
        From biases of all items to the slope of every row's reports, shape (rows,).
    reports : tuple of ndarray
        The item of each row, and how many reports it stands for; shape (rows,) each.
    most : int
        Reports k that may be of liars.
    centres, variance : ndarray and float
        What is expected of the biases.
    """
    low, high = np.full(centres.size, -_REACH), np.full(centres.size, _REACH)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        sums = without_most_favourable(reports[0], slopes(middle), reports[1], most, centres.size)
        rises = sums > (middle - centres) / variance
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def guarded_priors(
    items: Regressed, embedding: ItemSetEmbedding, catalogue: Catalogue | None, most: int
) -> Floats:
    """Return what is expected of the biases by catalogue and popularity less so many raters, shape (items,).

    An item is expected to be worth no more than any that is more popular, so that raters who are added raise
    it no higher than these. Who the raters are says nothing: its own place is what a liar chooses.
    """
    counts, coefficients = embedding.item_counts, items.coefficients[:, -1]
    logarithms, total = np.log1p(counts), max(int(counts.sum()), 1)
    mean = float(counts @ logarithms) / total
    spread = math.sqrt(float(counts @ (logarithms - mean) ** 2) / total) or 1.0
    least = int(counts[counts > 0].min(initial=counts.max(initial=0)))
    grid = np.arange(least, int(counts.max(initial=0)) + 1)
    apart = embedding.count_reliability * (np.log1p(grid) - mean)
    popularity = apart / spread
    expected = coefficients[0] + coefficients[1] * popularity + coefficients[2] * (popularity**2 - 1)
    expected += LIKED * embedding.count_reliability * apart
    rising = np.minimum.accumulate(expected[::-1])[::-1]
    priors = rising[np.maximum(counts - most - least, 0)]
    if catalogue is not None:
        public = catalogue_features(catalogue, counts)
        priors = priors + public @ coefficients[3 : 3 + public.shape[1]]
    return priors


def cautions(biases: Floats, guarded: Floats, counts: Ints, most: int, preferences: Floats) -> Floats:
    """Return by how much items are lowered in lists, on the latent rating, at least 0; shape (items,).

    An embedding is a mean over an item's raters, so that liars choose as large a share of it as they are: so
    many standard deviations of what users' preferences may add are taken off as well.

    ``counts``: raters of each item; ``preferences``: variance of what preferences add, shape (items,).
    """
    shares = np.minimum(1.0, most / np.maximum(counts, 1))
    return np.maximum(biases - guarded, 0.0) + shares * np.sqrt(preferences)
