"""How likely an audit would detect a leak of twice what is promised, at its number of trials."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

_TAIL = 1e-6
_COUNTS = 100


def power_of(
    curve: NDArray[np.float64], trials: int, promised: float, failure: float, delta: float = 0.0
) -> float:
    """Return the probability that a leak of twice the promise would be detected by the best of some events.

    The leak is supposed to double the privacy loss of an event and of its complement. A detection is a
    Clopper-Pearson bound on the loss above the promise.

    Parameters
    ----------
    curve : ndarray of float64, shape (events, 2)
        Probabilities of events under the profile that they favour and under the other, as measured.
    trials : int
        Number of people per profile.
    promised : float
        Epsilon; infinite if nothing is promised.
    failure : float
        Probability with which the bound of each of the two probabilities may fail.
    delta : float
        Probability beyond which the promise holds.
    """
    powers = [
        detection(*doubled(one, other), trials, promised, failure, delta) for one, other in curve.tolist()
    ]
    return max(powers, default=0.0)


def doubled(one: float, other: float) -> tuple[float, float]:
    """Return the probabilities of an event if its log ratio, and that of its complement, were twice as large.

    Parameters
    ----------
    one, other : float
        Probabilities of the event under two profiles.
    """
    if not (0 < other < one < 1):
        return one, other
    ratio, complement = (one / other) ** 2, ((1 - one) / (1 - other)) ** 2
    rare = (1 - complement) / (ratio - complement)
    return ratio * rare, rare


def detection(
    one: float, other: float, trials: int, promised: float, failure: float, delta: float = 0.0
) -> float:
    """Return the probability that the log ratio of two probabilities is bounded above a promise.

    Parameters
    ----------
    one, other : float
        True probabilities of the event.
    trials : int
        Number of people per profile.
    failure : float
        Of each of the two Clopper-Pearson bounds.
    delta : float
        Subtracted from the first probability.
    """
    if trials == 0 or one <= other:
        return 0.0
    low, high = binom.ppf([_TAIL, 1 - _TAIL], trials, other)
    edges = np.unique(np.linspace(low, high + 1, _COUNTS).astype(np.int64))
    shares = np.diff(binom.cdf(edges - 1, trials, other))
    # Of counts that are taken together, the largest is the hardest to beat.
    counts = edges[1:] - 1
    high = beta.ppf(1 - failure, counts + 1, np.maximum(trials - counts, 1))
    needed = np.exp(min(promised, 700.0)) * high + delta
    least = binom.isf(failure, trials, np.minimum(needed, 1.0)) + 1
    detected = np.where(needed < 1, binom.sf(least - 1, trials, one), 0.0)
    return float(np.clip(np.sum(shares * detected), 0.0, 1.0))
