"""Lists from one noisy table of which items occur together.

Devices contribute popularity first, then the co-occurrence of the popular items
(`dprec.protocols.gram`), which tells of their popularity too. Of the noisy table the server removes what
noise alone explains, in steps that need the table and the noise's deviation only:

1. cells are expected to be in proportion to the product of their items' popularities;
2. each cell is the mean of what it may be, given that expectation and the noisy cell
   (`posterior_means`): pairs that stand out by themselves are kept, and none is negative;
3. of what is left, eigenvalues that stand above those of noise are added, shrunk: what many cells show
   together although none of them does alone.

What devices receive are weights between items, by which they rank from sets that never leave them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy import sparse

DIAGONAL = 0.25
"""What an item with itself counts beside two items: less of a norm goes to popularity, more to pairs."""

_LEAST = 0.1
"""Least part of what popularity alone would make of a cell."""

_NOISY_TAU = 6e-4
"""Noise above which few cells stand out by themselves."""

_MANY_ITEMS, _LITTLE_TAU = 3500, 1.4e-4
"""Items from which on, and noise above which, finding the popular ones takes more of a budget."""

_LEAST_ABOVE_NOISE = 1.2
"""Least eigenvalue that popularity gives a table, over the edge of noise; see `worth_a_table`."""

_MOST_WEIGHT = 16.0
"""What a standard deviation of the scores by weights counts for at most, without content."""

_PER_DEPARTURE = 50.0
"""What a standard deviation of the scores by weights counts for at most, over how far pairs depart."""

_LEAST_SUM = 0.01
"""Least that the cells of an item add up to, over the mean of all items."""

_SMALLEST_TAU = 1e-5
"""Noise below which nothing changes."""

LARGEST_TAU = 8e-3
"""Noise with which the whole budget is better spent on popularity."""

MOST_ITEMS = 4096
"""Items of a table at most: more than the rule asks for at the least noise, and what devices take."""


@dataclass(frozen=True, eq=False)
class DenoisedTable:
    """What is known of the items that take part."""

    pairs: Floats
    """How often two items are in a set together, in the contributions' weights, 0 for an item and itself;
    symmetric, not negative, shape (items, items)."""
    popularity: Floats
    """How often an item is in a set, in the same weights; above 0, shape (items,)."""


@dataclass(frozen=True)
class GramSettings:
    """Public numbers that follow from the noise alone: see `GramSettings.of`."""

    table_items: int
    """How many of the most popular items take part in the table."""
    share_of_weights: float
    """Most that a standard deviation of the scores by weights counts for, beside logarithms of popularity."""
    coherent_share: float = 0.0
    """What an estimate without a look at single cells counts for in the table; see `denoised_table`."""

    @classmethod
    def of(cls, tau: float, items: int, *, content: bool) -> GramSettings:
        """Return the settings by a rule that benchmarks/choosing/list_settings.py judges on validation items.

        ``tau``: standard deviation of the noise, per cell and per user, of a sum of unit contributions with
        the whole budget; 0 without noise. ``content``: whether there is public data about the items.
        """
        tau = max(tau, _SMALLEST_TAU)
        if tau > LARGEST_TAU:
            return cls(0, 0.0)
        table_items = min(math.ceil(120 * (1e-3 / tau) ** 0.75), items)
        weight = 0.25 * (1.4e-3 / tau) ** 0.45 if content else _MOST_WEIGHT
        return cls(table_items, weight, 0.4 if tau > _NOISY_TAU else 0.0)

    def share_by(self, departs: float) -> float:
        """Return what a standard deviation of the scores by weights counts for, given how far pairs depart.

        That is the lower bound of `dprec.lists.departures`: a table without tastes is no reason to rank
        otherwise than by popularity.
        """
        return min(self.share_of_weights, _PER_DEPARTURE * max(departs, 0.0))


def popularity_share(tau: float, items: int, *, content: bool) -> float:
    """Return the share of a budget that popularity spends, where there is a table.

    That is of mu squared, or of the users where nobody is trusted: noise grows by 1 / sqrt(share) in both.
    Tables of all items have it too, as few pairs tell little of popularity. Beyond the noise with which there
    is a table it is the share there. With content popularity is worth more: weighed by it, it is nearly as
    good as a table where noise is large. Without, it takes more where few of very many items stand out.
    """
    tau = min(max(tau, _SMALLEST_TAU), LARGEST_TAU)
    if content:
        return max(0.5 * math.sqrt(tau / 5e-3), min(tau / 5.5e-3, 0.9))
    many = min(max(math.log2(items / _MANY_ITEMS), 0.0), 1.0)
    noisy = min(max(math.log(tau / _LITTLE_TAU, 3), 0.0), 1.0)
    return min(0.1 + 0.2 * (1 + many) * (tau / 5e-3) ** 2 + 0.2 * many * noisy, 0.9)


def table_items(tau: float, n_items: int, *, content: bool, most_numbers: int | None = None) -> int:
    """Return how many items a rule has take part in a table of pairs, given their noise.

    ``most_numbers``: as many as the table may have where numbers are sampled, which is noise beside, and
    more of it on what is popular.
    """
    ruled = GramSettings.of(tau, n_items, content=content).table_items
    if most_numbers is not None:
        ruled = min(ruled, items_of(most_numbers))
    return min(ruled, n_items)


def worth_a_table(popularity: Floats, items: AnyInts, deviation: float, users: int) -> bool:
    """Return whether a table shows more than its noise; else all is better spent on popularity.

    It does if the largest eigenvalue that popularity alone gives it is well above those of noise
    (`above_noise`): those of tastes are smaller.

    Parameters
    ----------
    popularity : ndarray, shape (all items,)
        As it is known: the sum over users of 1 / sqrt(n) for each of their n items.
    items : ndarray, shape (table's items,)
    deviation : float
        Standard deviation of the noise of a cell of the table.
    """
    item_popularity = popularity[items]
    # Sets have about (popularity.sum() / users)^2 items, so many of them in the table.
    items_per_set = min(float(item_popularity.sum() * popularity.sum()) / users**2, items.size)
    # So many pairs have norm 1; few of them are a whole one or none.
    pairs = users * min(items_per_set / math.sqrt(2), items_per_set**2 / 2)
    largest = 2 * pairs * float(item_popularity @ item_popularity) / float(item_popularity.sum()) ** 2
    return largest >= _LEAST_ABOVE_NOISE * _edge(deviation, items.size)


def popularity_estimate(noisy: Floats, deviation: float) -> Floats:
    """Return the popularity of items from the noisy sum of contributions, above 0, shape (items,)."""
    base = np.full(noisy.size, max(float(noisy.mean()), deviation / np.sqrt(noisy.size)))
    return np.maximum(posterior_means(noisy, deviation, base), base * 1e-3)


def joined_popularity(estimate: Floats, estimate_deviation: float, noisy: Floats, deviation: float) -> Floats:
    """Return the popularity of a table's items from its pairs too, above 0, shape (items,).

    If items went together by popularity alone, a cell would be the product of two numbers; those that fit
    the cells best are joined with what is known.

    Parameters
    ----------
    estimate : ndarray, shape (items,)
        Of a round before, above 0.
    estimate_deviation : float
        Standard deviation of its noise, above 0; infinite where nothing is known.
    noisy : ndarray, shape (cells,)
        As for `denoised_table`.
    deviation : float
        Standard deviation of a cell's noise.
    """
    table = symmetric_table(noisy[off_diagonal(estimate.size)], estimate.size)
    factor = estimate * math.sqrt(max(float(estimate @ table @ estimate), 1e-12)) / float(estimate @ estimate)
    for _ in range(20):
        others = factor @ factor - factor**2
        fitted = table @ factor / np.maximum(others, 1e-12)
        factor = np.maximum((factor + fitted) / 2, _LEAST * factor.mean())
    unit = estimate.sum() / factor.sum()
    return joined(
        estimate, estimate_deviation, factor * unit, (deviation * unit) ** 2 / np.maximum(others, 1e-12)
    )


def popularity_of_pairs(noisy: Floats, deviation: float) -> Floats:
    """Return the popularity of a table's items from its cells alone, above 0, shape (items,).

    The cells of an item with all others, and with itself, add up to nearly the same of each of its users,
    however many items they have.

    Parameters
    ----------
    noisy, deviation
        As for `denoised_table`.
    """
    items = items_of(noisy.size)
    off = off_diagonal(items)
    sums = noisy[~off] + symmetric_table(noisy[off], items).sum(axis=1)
    sums = np.maximum(sums, max(float(sums.mean()), deviation) * _LEAST_SUM)
    return joined_popularity(sums, deviation * math.sqrt(items), noisy, deviation)


def joined_sums(
    first: Floats, first_deviation: float, second: Floats, second_deviation: float
) -> tuple[Floats, float]:
    """Return the mean of two noisy sums of the same by their precision, and the deviation of its noise."""
    precision, more = first_deviation**-2, second_deviation**-2
    return (precision * first + more * second) / (precision + more), (precision + more) ** -0.5


def joined(first: Floats, first_deviation: float, second: Floats, variances: Floats) -> Floats:
    """Return the mean of two estimates by their precision, of which the second may be biased besides.

    How far it is off, noise aside, is read off the differences of both.
    """
    unexplained = (second - first) ** 2 - variances - first_deviation**2
    variances = variances + max(float(unexplained.sum()) / float(second @ second), 0.0) * second**2
    return first + (second - first) / (1 + variances / first_deviation**2)


def popular_items(popularity: Floats, count: int) -> Ints:
    """Return the most popular items in ascending order; of equals the first, shape (count,)."""
    return np.sort(np.argsort(-popularity, kind="stable")[:count])


def denoised_table(
    noisy: Floats, deviation: float, estimate: Floats, coherent_share: float = 0.0, *, of_another: bool = True
) -> DenoisedTable:
    """Return what a noisy sum of pairs of items tells of them.

    Parameters
    ----------
    noisy : ndarray, shape (cells,)
        The upper triangle by rows, its diagonal times `DIAGONAL` as in the contributions.
    deviation : float
        Standard deviation of a cell's noise, above 0.
    estimate : ndarray, shape (items,)
        An estimate of the items' popularity, above 0, in any unit.
    coherent_share : float, optional
        What the same estimate counts for if step 2 is left out, from 0 to 1.
    of_another : bool, optional
        Whether the popularity was estimated from another sum, which then counts as much as this one's.
    """
    items = items_of(noisy.size)
    rows, columns = np.triu_indices(items, 1)
    off = off_diagonal(items)
    popularity = _popularity(noisy[~off] / DIAGONAL, deviation / DIAGONAL, estimate, of_another)
    cells = noisy[off]
    by_popularity = _by_popularity(cells, popularity)
    means = posterior_means(cells, deviation, by_popularity)
    table = np.zeros(cells.size)
    for share, expected in ((1 - coherent_share, means), (coherent_share, by_popularity)):
        if share:
            unexplained = above_noise(symmetric_table(cells - expected, items), deviation)[rows, columns]
            table += share * np.maximum(expected + unexplained, _LEAST * by_popularity)
    return DenoisedTable(symmetric_table(table, items), popularity)


def _popularity(noisy: Floats, deviation: float, estimate: Floats, of_another: bool) -> Floats:
    """Return the popularity of a table's items from the noisy cells of items with themselves, above 0.

    That is the means of what these cells may be given the ``estimate``, or the geometric mean of both if that
    is ``of_another`` sum: their noise is several times that of pairs.
    """
    base = estimate * max(float(noisy @ estimate), 1e-12) / float(estimate @ estimate)
    means = np.maximum(posterior_means(noisy, deviation, base), _LEAST * base)
    if not of_another:
        return means
    both = np.sqrt(means * estimate)
    popularity: Floats = both * (means.sum() / both.sum())
    return popularity


def _by_popularity(cells: Floats, popularity: Floats) -> Floats:
    """Return the multiple of the products of popularities that fits the cells of pairs best, above 0."""
    rows, columns = np.triu_indices(popularity.size, 1)
    products = popularity[rows] * popularity[columns]
    fitted: Floats = products * max(float(cells @ products), 1e-12) / float(products @ products)
    return fitted


def above_noise(table: Floats, deviation: float) -> Floats:
    """Return the part of a symmetric table whose eigenvalues stand above those of noise.

    Independent noise on the cells has no eigenvalue beyond 2 deviation sqrt(items) (Wigner's semicircle).
    An eigenvalue l above that edge is shrunk to sqrt(l^2 - edge^2), the best for a squared error when only
    the table is known (Gavish and Donoho [gavish2017]).
    """
    values, vectors = np.linalg.eigh(table)
    edge = _edge(deviation, len(table))
    shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    above_edge = shrunk != 0
    return (vectors[:, above_edge] * shrunk[above_edge]) @ vectors[:, above_edge].T


def _edge(deviation: float, items: int) -> float:
    return 2 * deviation * math.sqrt(items)


def regularised_inverse(table: DenoisedTable, ridge: float) -> Floats:
    """Return the inverse of the table with a ridge, symmetric, shape (items, items).

    What noise left below 0 among the table's eigenvalues is cut off at the ridge.
    """
    values, vectors = np.linalg.eigh(table.pairs + np.diag(table.popularity))
    inverse: Floats = (vectors / (np.maximum(values, 0.0) + ridge)) @ vectors.T
    return (inverse + inverse.T) / 2


def items_of(cells: int) -> int:
    """Return how many items a table has at most whose upper triangle has so many cells."""
    return (math.isqrt(8 * cells + 1) - 1) // 2


def off_diagonal(items: int) -> Bools:
    """Return which cells of an upper triangle are of two items, shape (cells,)."""
    rows, columns = np.triu_indices(items)
    pairs: Bools = rows != columns
    return pairs


def symmetric_table(cells: Floats, items: int) -> Floats:
    """Return the table whose upper triangle without the diagonal is given, its diagonal 0."""
    table = np.zeros((items, items))
    table[np.triu_indices(items, 1)] = cells
    return table + table.T


def standardised(scores: Floats) -> Floats:
    """Return each row with mean 0 and standard deviation 1, or of zeros where all are equal."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviations = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    return centred / np.maximum(deviations, 1e-12)


def scores(sets: sparse.csr_array, items: AnyInts, weights: Floats, expected: Floats, share: float) -> Floats:
    """Return the scores of all items for some users, from their clean sets, shape (users, items).

    Parameters
    ----------
    sets : csr_array, shape (users, items)
        Ones.
    items : ndarray, shape (table's items,)
        Those of the table.
    weights : ndarray, shape (table's items, table's items)
    expected : ndarray, shape (users, items) or (items,)
        Scores without the table: the logarithm of popularity, with content where there is some.
    share : float
        What a standard deviation of the weights' scores counts for.
    """
    result: Floats = np.tile(expected, (sets.shape[0], 1)) if expected.ndim == 1 else expected.copy()
    result[:, items] += share * standardised(sets[:, items] @ weights)
    return result


_RATIOS = np.concatenate([[0.0], np.geomspace(0.02, 200.0, 33)])
"""Ratios to the base that the prior weighs, 0 and eight in each power of ten."""

_WIDTHS = np.maximum(0.14 * _RATIOS, 0.01)
"""Standard deviation of each ratio's component: half the step between two."""

_STEPS = 60
"""Steps of expectation and maximization."""

_FITTED = 120_000
"""Numbers by which a prior is fitted at most."""

_GOLDEN = (math.sqrt(5) - 1) / 2
"""Its multiples are spread evenly over 0 to 1, and in step with no rows of a table."""

_BLOCK = 1 << 15
"""Numbers that are worked on at once: 34 ratios of so many are 9 MB."""


def posterior_means(noisy: Floats, deviation: float, base: Floats) -> Floats:
    """Return the means of nonnegative numbers given their noisy values, shape (numbers,).

    A number is its base times a ratio, whose prior is the mixture, the same for all, under which the noisy
    values are most likely: a nonparametric maximum likelihood estimate (Kiefer and Wolfowitz [kiefer1956];
    the algorithm and its use for empirical Bayes as in Jiang and Zhang [jiang2009]). It is on ratios because
    counts spread over orders of magnitude and are never negative. Where noise is small beside a number, the
    mean is the noisy value itself.

    Parameters
    ----------
    noisy : ndarray, shape (numbers,)
        Numbers with independent Gaussian noise.
    deviation : float
        The noise's standard deviation, above 0.
    base : ndarray, shape (numbers,)
        Above 0.
    """
    sample: Ints | slice = slice(None)
    if noisy.size > _FITTED:
        sample = (np.arange(_FITTED) * _GOLDEN % 1.0 * noisy.size).astype(np.int64)
    prior = _prior(noisy[sample], deviation, base[sample])
    means = np.empty(noisy.size)
    for block in _blocks(noisy.size):
        centres, variances = _components(base[block])
        component_means = centres + variances / (variances + deviation**2) * (noisy[block, None] - centres)
        weights = _likelihoods(noisy[block], deviation, base[block]) * prior
        means[block] = (weights * component_means).sum(axis=1) / weights.sum(axis=1)
    return np.maximum(means, 0.0)


def _prior(noisy: Floats, deviation: float, base: Floats) -> Floats:
    """Return the mixture under which numbers are most likely, shape (ratios,)."""
    prior = np.full(_RATIOS.size, 1 / _RATIOS.size)
    likelihoods = [_likelihoods(noisy[block], deviation, base[block]) for block in _blocks(noisy.size)]
    for _ in range(_STEPS):
        members = np.zeros(_RATIOS.size)
        for likelihood in likelihoods:
            members += (1 / (likelihood @ prior)) @ likelihood
        prior = prior * members / max(noisy.size, 1)
    return prior


def _blocks(numbers: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, numbers, _BLOCK)]


def _components(base: Floats) -> tuple[Floats, Floats]:
    centres = base[:, None] * _RATIOS
    return centres, (base[:, None] * _WIDTHS) ** 2


def _likelihoods(noisy: Floats, deviation: float, base: Floats) -> Floats:
    """Return how likely each number is under each component, the likeliest 1, shape (numbers, ratios)."""
    centres, variances = _components(base)
    total = variances + deviation**2
    logarithms = -0.5 * ((noisy[:, None] - centres) ** 2 / total + np.log(total))
    return np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
