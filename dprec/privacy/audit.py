"""Lower bounds on privacy losses: how well two profiles can be distinguished by what was sent for them.

A guarantee bounds the loss from above, by a proof. Samples bound it from below, whatever the proof
says and however the mechanism is implemented: if an event is e^x times as likely under one profile as
under its neighbour, epsilon is at least x.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta


def proportion_below(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """Return a lower bound of a probability, which fails with chance ``failure`` [clopper1934].

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
    """Return an upper bound of a probability, which fails with chance ``failure``; see `proportion_below`."""
    return 1 - proportion_below(trials - np.asarray(successes), trials, failure)


def loss_at_least(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]], confidence: float
) -> float:
    """Return a lower bound of the privacy loss between two profiles; 0 if no loss was detected.

    Half of the people serve to choose an event, the other half to measure it: the log of a lower bound
    of its probability under one profile over an upper bound under the other (Jagielski et al.
    [jagielski2020], section 4). The event is that everything a person sent, over all rounds, favours
    one of the profiles: that its log-likelihood ratio is beyond some threshold, where the ratio is the
    sum of those of the rounds, or that of all rounds taken as one report. Nothing is assumed about how
    the rounds depend on each other.

    Parameters
    ----------
    one, other : sequence of ndarray of int64, shape (people,)
        What was sent for the two profiles, one array per round, reports numbered from 0.
    confidence : float
        Probability with which the bound holds, between 0 and 1.

    Notes
    -----
    People count as independent. If a server's later questions depend on earlier reports, they are so
    only up to each person's influence on the questions that all are asked.
    """
    if not one or not one[0].size:
        return 0.0
    together = _joined(one, other)
    # For each of the two ratios, two bounds may fail.
    failure = (1 - confidence) / 4
    return max(0.0, *(_measured(*_evidence(*rounds), failure) for rounds in ((one, other), together)))


def _joined(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Return a number for everything that each person sent over all rounds, as if it were one report."""
    rounds = [np.concatenate(sides) for sides in zip(one, other, strict=True)]
    numbers = np.unique(np.stack(rounds, axis=1), axis=0, return_inverse=True)[1].ravel()
    return [numbers[: one[0].size]], [numbers[one[0].size :]]


def _measured(for_one: NDArray[np.float64], for_other: NDArray[np.float64], failure: float) -> float:
    """Choose a threshold of the evidence on the first halves, and measure the loss on the second."""
    sides = [(for_one, for_other), (-for_other, -for_one)]
    chosen = [_promising(speaking[::2], against[::2], failure) for speaking, against in sides]
    best = int(chosen[1][0] > chosen[0][0])
    threshold = chosen[best][1]
    counts = [(int((side[1::2] >= threshold).sum()), side[1::2].size) for side in sides[best]]
    return float(_log_ratio(counts[0][0], counts[1][0], counts[0][1], counts[1][1], failure))


def _evidence(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how much each person's reports favour the one profile, as estimated on the first halves."""
    for_one, for_other = np.zeros(one[0].size), np.zeros(other[0].size)
    for a, b in zip(one, other, strict=True):
        kinds = int(max(a.max(), b.max())) + 1
        # A report that was hardly ever seen favours neither.
        seen = [np.bincount(reports[::2], minlength=kinds) + 1 for reports in (a, b)]
        ratio = np.log(seen[0] / seen[0].sum()) - np.log(seen[1] / seen[1].sum())
        for_one += ratio[a]
        for_other += ratio[b]
    return for_one, for_other


def _promising(
    speaking: NDArray[np.float64], against: NDArray[np.float64], failure: float
) -> tuple[float, float]:
    """Return the largest loss bound that a threshold of the evidence yields, and that threshold."""
    thresholds = np.unique(np.concatenate([speaking, against]))
    counts = [side.size - np.searchsorted(np.sort(side), thresholds) for side in (speaking, against)]
    promises = _log_ratio(counts[0], counts[1], speaking.size, against.size, failure)
    best = int(np.argmax(promises))
    return float(promises[best]), float(thresholds[best])


def _log_ratio(
    count: ArrayLike, other: ArrayLike, trials: int, other_trials: int, failure: float
) -> NDArray[np.float64]:
    low = proportion_below(count, trials, failure)
    high = proportion_above(other, other_trials, failure)
    with np.errstate(divide="ignore"):
        ratio: NDArray[np.float64] = np.log(low) - np.log(high)
    return ratio
