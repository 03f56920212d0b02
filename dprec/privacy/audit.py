"""Privacy losses from below: how surely two profiles can be told apart by what was sent for them.

A guarantee bounds the loss from above by a proof. Samples bound it from below, whatever the proof
says and however the mechanism is written: an event that is so much likelier under one profile than
under its neighbour needs at least that much epsilon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta


def proportion_below(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """Return what a probability exceeds, but for chance ``failure`` (Clopper and Pearson, 1934).

    Parameters
    ----------
    successes : array_like of int
        From 0 to ``trials``.
    trials : int
    failure : float
        Between 0 and 1.
    """
    counts = np.asarray(successes)
    bounds = beta.ppf(failure, np.maximum(counts, 1), trials - counts + 1)
    return np.where(counts > 0, bounds, 0.0)


def proportion_above(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """Return what a probability stays below, but for chance ``failure``; see `proportion_below`."""
    return 1 - proportion_below(trials - np.asarray(successes), trials, failure)


def loss_at_least(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]], confidence: float
) -> float:
    """Return a lower bound of the privacy loss between two profiles; 0 where nothing was found.

    Half of the people choose an event for every round, the other half measure it: log of the least
    that its probability may be under one profile over the most that it may be under the other
    (Jagielski et al., "Auditing differentially private machine learning", NeurIPS 2020, section 4).
    What a device sends in different rounds is drawn independently, so that losses add up.

    Parameters
    ----------
    one, other : sequence of ndarray of int64, shape (people,)
        What was sent for the two profiles, one array per round, reports numbered from 0.
    confidence : float
        Probability with which the bound holds, between 0 and 1.
    """
    # Both proportions of every round may fail.
    failure = (1 - confidence) / (2 * max(1, len(one)))
    best = 0.0
    chosen: list[list[tuple[NDArray[np.int64], float]]] = [
        [_likeliest_event(a[::2], b[::2], failure) for a, b in zip(*sides, strict=True)]
        for sides in ((one, other), (other, one))
    ]
    # One direction is measured: the more promising.
    first, second = (sum(promise for _, promise in events) for events in chosen)
    sides = (one, other) if first >= second else (other, one)
    for (event, _), a, b in zip(chosen[first < second], *sides, strict=True):
        best += max(0.0, float(_log_ratio(_count(a[1::2], event), _count(b[1::2], event), failure)))
    return best


def _likeliest_event(
    one: NDArray[np.int64], other: NDArray[np.int64], failure: float
) -> tuple[NDArray[np.int64], float]:
    """Return the reports that tell one profile best, and the loss that they promise."""
    kinds = int(max(one.max(initial=-1), other.max(initial=-1))) + 1
    counts = np.bincount(one, minlength=kinds), np.bincount(other, minlength=kinds)
    # By likelihood ratio, a report that was hardly seen in the middle.
    order = np.argsort(-(counts[0] + 1) / (counts[1] + 1), kind="stable")
    sums = tuple(np.cumsum(count[order]) for count in counts)
    promises = _log_ratio((sums[0], one.size), (sums[1], other.size), failure)
    most = int(np.argmax(promises)) if kinds else -1
    return order[: most + 1], max(0.0, float(promises[most])) if kinds else 0.0


def _count(reports: NDArray[np.int64], event: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    return np.asarray(np.isin(reports, event).sum()), reports.size


def _log_ratio(
    one: tuple[NDArray[np.int64], int], other: tuple[NDArray[np.int64], int], failure: float
) -> NDArray[np.float64]:
    low, high = proportion_below(*one, failure), proportion_above(*other, failure)
    with np.errstate(divide="ignore"):
        ratio: NDArray[np.float64] = np.log(low) - np.log(high)
    return ratio
