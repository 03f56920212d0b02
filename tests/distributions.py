"""Whether numbers follow the distribution that they should, from samples large enough to find what is wrong.

A check of good draws fails with a probability of `FALSE_ALARM` at most, and refuses a sample in which a
deviation that is wrong by `WRONG` would be found with less than `POWER`. So a test of a hundred checks fails
by chance less than once in a million times.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FALSE_ALARM = 1e-8
WRONG, POWER = 0.05, 0.99

_WITHIN = 6.0
"""Standard errors of a mean or a variance: normal numbers are farther off with a probability of 2e-9, and
what is left of skewness in so many draws does not make it a tenth of `FALSE_ALARM`."""

_FEWEST = 25
"""Draws that are expected in a class, at least: then its count is nearly normal."""


def check_drawn(drawn: ArrayLike, distribution: Any, classes: int = 32) -> None:
    """Check the mean, the variance and the shape of draws from a distribution of `scipy.stats`, frozen."""
    values = np.asarray(drawn, dtype=np.float64).ravel()
    mean, variance, excess = (float(moment) for moment in distribution.stats("mvk"))
    assert abs(values.mean() - mean) <= _WITHIN * np.sqrt(variance / values.size)
    check_variance(values - mean, variance, 3 + excess)
    edges = np.unique(distribution.ppf(np.arange(1, classes) / classes))
    # Of whole numbers, an edge belongs to the class below it.
    below = distribution.cdf(edges)
    check_counts(
        np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1),
        np.diff(below, prepend=0.0, append=1.0),
    )


def check_variance(deviates: ArrayLike, variance: float, kurtosis: float = 3.0) -> None:
    """Check that the mean square of independent deviates is their variance, given their kurtosis."""
    squares = np.asarray(deviates, dtype=np.float64).ravel() ** 2
    error = np.sqrt((kurtosis - 1) / squares.size)
    surely = _WITHIN + float(stats.norm.ppf(POWER))
    assert surely * error <= 1 - (1 - WRONG) ** 2, f"{squares.size} draws would not show what is wrong"
    found = float(squares.mean()) / variance
    assert abs(found - 1) <= _WITHIN * error, f"{np.sqrt(found):.4f} times the deviation"


def check_counts(counts: ArrayLike, shares: ArrayLike) -> None:
    """Check by chi-square that independent draws fall into classes with some probabilities."""
    observed, probabilities = _pooled(np.asarray(counts), np.asarray(shares, dtype=np.float64))
    assert abs(probabilities.sum() - 1) < 1e-9, "shares of another whole"
    assert observed.size > 1, "a single class, which tells nothing"
    surprise = stats.chisquare(observed, probabilities * observed.sum()).pvalue
    assert surprise > FALSE_ALARM, f"classes with these counts have a probability of {surprise:.1e}"


def check_share(hits: int, draws: int, share: float, wrong: float = WRONG) -> None:
    """Check exactly how often something happened, where a share wrong by so much of itself would be found."""
    error = np.sqrt(share * (1 - share) / draws)
    surely = float(stats.norm.isf(FALSE_ALARM / 2) + stats.norm.ppf(POWER))
    assert surely * error <= wrong * share, f"{draws} draws would not show what is wrong"
    surprise = stats.binomtest(int(hits), draws, share).pvalue
    assert surprise > FALSE_ALARM, f"{hits} of {draws}, which is as rare as {surprise:.1e}"


def check_independent(first: ArrayLike, second: ArrayLike, classes: int = 8) -> None:
    """Check by chi-square that two columns of draws, in classes by size, tell nothing of each other."""
    one, other = (_classes(np.asarray(column).ravel(), classes) for column in (first, second))
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1)
    assert min(table.shape) > 1, "a column of one class, which tells nothing"
    surprise = stats.chi2_contingency(table, correction=False).pvalue
    assert surprise > FALSE_ALARM, f"a table that has a probability of {surprise:.1e} if they are independent"


def _classes(column: NDArray[Any], classes: int) -> NDArray[np.int64]:
    """Return the class of each number: about as many in each, equal numbers in one, and none of them rare."""
    _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
    fewest = np.sqrt(_FEWEST * column.size)
    least = fewest if counts.size <= classes else max(column.size / classes, fewest)
    of_value, before, left = np.zeros(counts.size, dtype=np.int64), 0, column.size
    for value, count in enumerate(counts[:-1].tolist()):
        before, left = before + count, left - count
        full = before >= least and left >= fewest
        of_value[value + 1] = of_value[value] + full
        before = 0 if full else before
    return of_value[place.reshape(-1)]


def _pooled(
    counts: NDArray[np.int64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return classes of which each is expected often enough: rare ones are taken together."""
    rare = shares * counts.sum() < _FEWEST
    observed, probabilities = counts[~rare].astype(np.float64), shares[~rare]
    if not rare.any():
        return observed, probabilities
    rest, share = counts[rare].sum(), shares[rare].sum()
    if share * counts.sum() < _FEWEST:
        # Too rare even together: exactly, and then with the likeliest class.
        assert stats.binom.sf(rest - 1, counts.sum(), share) > FALSE_ALARM, f"{rest} of what hardly occurs"
        place = int(np.argmax(probabilities))
        observed[place] += rest
        probabilities[place] += share
        return observed, probabilities
    return np.append(observed, rest), np.append(probabilities, share)
