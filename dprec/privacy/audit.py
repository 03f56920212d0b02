"""Lower bounds on privacy losses: how well two profiles can be distinguished by what was sent for them.

A guarantee bounds the loss from above, by a proof. Samples bound it from below, whatever the proof
says and however the mechanism is implemented: if an event is e^x times as likely under one profile as
under its neighbour, epsilon is at least x (Jagielski et al. [jagielski2020], section 4). If a promise holds
beyond a probability delta, delta is subtracted from the first of the two probabilities.

The people who sent something are divided into three parts. The first serves to estimate how much a
report favours a profile (`dprec.auditing`), the second to choose profiles, evidence and threshold,
the third to bound the probabilities of the event that was chosen. So a bound holds whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

from dprec.auditing import Scores, Sent, bounding, choosing, power_of, scores_of

_THRESHOLDS = 2000

_CURVE = 16
_ONE_DEVIATION = 0.16
"""Events by which the power is judged, and how likely each bound of their probabilities fails."""


def proportion_below(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """Return a lower bound of a probability, which fails with chance ``failure`` [clopper1934].

    Parameters
    ----------
    successes : array_like of int
        From 0 to ``trials``.
    failure : float
        Between 0 and 1.
    """
    counts = np.asarray(successes)
    bounds = beta.ppf(failure, np.maximum(counts, 1), trials - counts + 1)
    return np.where(counts > 0, bounds, 0.0)


def proportion_above(successes: ArrayLike, trials: int, failure: float) -> NDArray[np.float64]:
    """Return an upper bound of a probability, which fails with chance ``failure``; see `proportion_below`."""
    return 1 - proportion_below(trials - np.asarray(successes), trials, failure)


@dataclass(frozen=True, eq=False)
class Measurement:
    """How well the best pair of profiles could be distinguished."""

    pair: int
    """Index of the pair that was chosen."""
    at_least: float
    """Lower bound on the loss; 0 if none was detected."""
    trials: int
    """Number of people per profile whose reports bound it."""
    failure: float
    """Probability with which the bound may fail."""
    delta: float
    """Probability beyond which the loss is bounded."""
    curve: NDArray[np.float64]
    """Probabilities of events under the profile that they favour, bounded from below, and under the other,
    bounded from above, so that few people do not promise much power; shape (events, 2).
    """

    def power(self, promised: float) -> float:
        """Return the probability that a leak of twice the promise would be detected; see `audit_power`."""
        return power_of(self.curve, self.trials, promised, self.failure / 2, self.delta)


def loss_at_least(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]], confidence: float
) -> float:
    """Return a lower bound of the privacy loss between two profiles; 0 if no loss was detected.

    Parameters
    ----------
    one, other : sequence of ndarray of int64, shape (people,)
        What was sent for the two profiles, one array per round, reports numbered from 0.
    confidence : float
        Probability with which the bound holds, between 0 and 1.
    """
    if not one:
        return 0.0
    sides = Sent.of_rounds(one), Sent.of_rounds(other)
    return measured([sides], 1 - confidence).at_least


def measured(pairs: Sequence[tuple[Sent, Sent]], failure: float, delta: float = 0.0) -> Measurement:
    """Bound the largest loss between pairs of profiles from below.

    Everybody's reports of all rounds count as one event, so nothing is assumed about how the rounds
    depend on each other.

    Parameters
    ----------
    failure : float
        Probability with which the bound may fail, between 0 and 1.
    delta : float
        Probability beyond which the loss is bounded.

    Notes
    -----
    People count as independent. If a server's later questions depend on earlier reports, they are so
    only up to each person's influence on the questions that all are asked.
    """
    best, chosen, pair = (-np.inf, 0.0), None, 0
    for number, sides in enumerate(pairs):
        if min(side.people for side in sides) == 0:
            continue
        for scores in scores_of(*sides):
            for one, other in (scores, (-scores[1], -scores[0])):
                promising = _promising(choosing(one), choosing(other), failure / 2, delta)
                if promising[0] > best[0]:
                    best, chosen, pair = promising, (one, other), number
    if chosen is None:
        return Measurement(0, 0.0, 0, failure, delta, np.zeros((0, 2)))
    counts = [int((bounding(side) >= best[1]).sum()) for side in chosen]
    sizes = [bounding(side).size for side in chosen]
    bound = float(_log_ratio(counts[0], counts[1], sizes[0], sizes[1], failure / 2, delta))
    return Measurement(pair, max(0.0, bound), min(sizes), failure, delta, _curve(chosen))


def _promising(
    speaking: NDArray[np.float64], against: NDArray[np.float64], failure: float, delta: float
) -> tuple[float, float]:
    """Return the largest loss bound that a threshold of the evidence yields, and that threshold."""
    thresholds = _thinned(np.unique(np.concatenate([speaking, against])), _THRESHOLDS)
    counts = [side.size - np.searchsorted(np.sort(side), thresholds) for side in (speaking, against)]
    promises = _log_ratio(counts[0], counts[1], speaking.size, against.size, failure, delta)
    best = int(np.argmax(promises))
    return float(promises[best]), float(thresholds[best])


def _curve(scores: Scores) -> NDArray[np.float64]:
    """Return bounds of the probabilities that the evidence is beyond each of some thresholds."""
    thresholds = _thinned(np.unique(np.concatenate([choosing(side) for side in scores])), _CURVE)
    one, other = (np.sort(bounding(side)) for side in scores)
    above = [side.size - np.searchsorted(side, thresholds) for side in (one, other)]
    low = proportion_below(above[0], one.size, _ONE_DEVIATION)
    high = proportion_above(above[1], other.size, _ONE_DEVIATION)
    return np.stack([low, high], axis=1)


def _thinned(values: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return at most so many of ascending values, evenly."""
    return values[np.unique(np.linspace(0, values.size - 1, most).astype(np.int64))]


def _log_ratio(
    count: ArrayLike, other: ArrayLike, trials: int, other_trials: int, failure: float, delta: float
) -> NDArray[np.float64]:
    low = np.maximum(proportion_below(count, trials, failure) - delta, 0.0)
    high = proportion_above(other, other_trials, failure)
    with np.errstate(divide="ignore"):
        ratio: NDArray[np.float64] = np.log(low) - np.log(high)
    return ratio
