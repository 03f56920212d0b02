"""Lower bounds on privacy losses: how well two profiles can be distinguished by what was sent for them.

A guarantee bounds the loss from above, by a proof. Samples bound it from below, whatever the proof says and
however the mechanism is implemented: if an event is e^x times as likely under one profile as under its
neighbour, epsilon is at least x (Jagielski et al. [jagielski2020], section 4). If a promise holds beyond a
probability delta, delta is subtracted from the first of the two probabilities.

The people who sent something are divided into three parts. The first serves to estimate how much a report
favours a profile, in several ways (`scores_of`), the second to choose profiles, evidence and threshold, the
third to bound the probabilities of the event that was chosen. So a bound holds whatever was chosen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dprec.arrays import AnyArray, Bools, Floats, Ints

_NEWTON_STEPS = 12


def log_odds(features: NDArray[np.floating], labels: Bools, ridge: float = 1.0) -> tuple[Floats, float]:
    """Learn to tell two classes apart by logistic regression.

    Returns the weights of the features, shape (features,), and an intercept, whose sum is the log odds of the
    class True. The ridge is on half the squared standardised weights.
    """
    centre, spread = features.mean(axis=0), features.std(axis=0)
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
    design = np.column_stack([(features - centre) * scale, np.ones(len(features))]).astype(np.float64)
    penalty = np.append(np.full(design.shape[1] - 1, ridge), 1e-9)
    weights = np.zeros(design.shape[1])
    for _ in range(_NEWTON_STEPS):
        chances = scipy.special.expit(design @ weights)
        slope = design.T @ (labels - chances) - penalty * weights
        curvature = (design * (chances * (1 - chances))[:, None]).T @ design + np.diag(penalty)
        weights = weights + np.linalg.solve(curvature, slope)
    unscaled = weights[:-1] * scale
    return unscaled, float(weights[-1] - unscaled @ centre)


Scores = tuple[Floats, Floats]
"""Evidence for the first of two profiles: of the people with the first, and of those with the second."""

_PARTS = 4


@dataclass(frozen=True, eq=False)
class Sent:
    """What people with the same profile sent."""

    rounds: tuple[Ints, ...]
    """One array per round; equal reports have equal numbers, from 0; shape (people,)."""
    symbols: tuple[Ints, ...]
    """The symbols that the reports hold, one array per round and cell; empty if they were not decoded;
    shape (people,).
    """
    features: NDArray[np.float32]
    """Numbers that a classifier may use; shape (people, features)."""

    @classmethod
    def of_rounds(cls, rounds: Sequence[Ints]) -> Self:
        """Return reports of which nothing but their numbers is known."""
        return cls(tuple(rounds), (), np.zeros((rounds[0].size, 0), dtype=np.float32))


def learning(values: AnyArray) -> AnyArray:
    """Return the part of the people from which evidence is learned."""
    return values[::_PARTS]


def choosing(values: AnyArray) -> AnyArray:
    """Return the part of the people by which event and threshold are chosen."""
    return values[1::_PARTS]


def bounding(values: AnyArray) -> AnyArray:
    """Return the part of the people, half of them, from which bounds follow."""
    return values[np.arange(len(values)) % _PARTS >= _PARTS // 2]


def class_edges(values: AnyArray, classes: int) -> Floats:
    """Return where classes with equal shares of the values meet, shape (classes - 1, ...)."""
    return np.quantile(values, np.linspace(0, 1, classes + 1)[1:-1], axis=0)


def scores_of(one: Sent, other: Sent) -> Iterator[Scores]:
    """Yield evidence of several kinds.

    These are the log-likelihood ratios of the reports, added up over the rounds; of all rounds taken as one
    report; of the symbols, added up over cells and rounds; and the score of a classifier.
    """
    yield _sum_of_ratios(one.rounds, other.rounds)
    if len(one.rounds) > 1:
        yield _sum_of_ratios(*_joined(one.rounds, other.rounds))
    if len(one.symbols) > 1:
        yield _sum_of_ratios(one.symbols, other.symbols)
    if one.features.shape[1]:
        learners = [learning(side.features)[:4000] for side in (one, other)]
        labels = np.repeat([True, False], [len(side) for side in learners])
        weights, intercept = log_odds(np.concatenate(learners), labels)
        yield one.features @ weights + intercept, other.features @ weights + intercept


def _joined(one: Sequence[Ints], other: Sequence[Ints]) -> tuple[list[Ints], list[Ints]]:
    """Return a number for everything that each person sent over all rounds, as if it were one report."""
    numbers = np.zeros(one[0].size + other[0].size, dtype=np.int64)
    for sides in zip(one, other, strict=True):
        reports = np.concatenate(sides)
        numbers = np.unique(numbers * (reports.max() + 1) + reports, return_inverse=True)[1].ravel()
    return [numbers[: one[0].size]], [numbers[one[0].size :]]


def _sum_of_ratios(one: Sequence[Ints], other: Sequence[Ints]) -> Scores:
    for_one, for_other = np.zeros(one[0].size), np.zeros(other[0].size)
    for a, b in zip(one, other, strict=True):
        kinds = int(max(a.max(), b.max())) + 1
        # A report that was hardly ever seen favours neither.
        counts = [np.bincount(learning(reports), minlength=kinds) + 1 for reports in (a, b)]
        ratio = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
        for_one += ratio[a]
        for_other += ratio[b]
    return for_one, for_other


_THRESHOLDS = 2000

_ONE_DEVIATION = 0.16
"""Events by which the power is judged, and how likely each bound of their probabilities fails."""


def proportion_below(successes: ArrayLike, trials: int, failure: float) -> Floats:
    """Return a lower bound of a probability, which fails with chance ``failure`` [clopper1934]."""
    from scipy.stats import beta  # every start of a process would wait for it

    counts = np.asarray(successes)
    bounds = beta.ppf(failure, np.maximum(counts, 1), trials - counts + 1)
    return np.where(counts > 0, bounds, 0.0)


def proportion_above(successes: ArrayLike, trials: int, failure: float) -> Floats:
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
    curve: Floats
    """Probabilities of events under the profile that they favour, bounded from below, and under the other,
    bounded from above, so that few people do not promise much power; shape (events, 2).
    """

    def power(self, promised: float) -> float:
        """Return the probability that a leak of twice the promise would be detected by its best event.

        The leak is supposed to double the privacy loss of an event and of its complement. A detection is a
        Clopper-Pearson bound on the loss above the promise.
        """
        failure = self.failure / 2
        powers = [
            detection(*doubled(one, other), self.trials, promised, failure, self.delta)
            for one, other in self.curve.tolist()
        ]
        return max(powers, default=0.0)


def measured(pairs: Sequence[tuple[Sent, Sent]], failure: float, delta: float = 0.0) -> Measurement:
    """Bound the largest loss between pairs of profiles from below.

    Everybody's reports of all rounds count as one event, so nothing is assumed about how the rounds depend on
    each other.

    People count as independent. If a server's later questions depend on earlier reports, they are so only up
    to each person's influence on the questions that all are asked.
    """
    best, best_scores, pair = (-np.inf, 0.0), None, 0
    for number, sides in enumerate(pairs):
        if min(len(side.features) for side in sides) == 0:
            continue
        for scores in scores_of(*sides):
            for one, other in (scores, (-scores[1], -scores[0])):
                # The largest bound that a threshold of the evidence yields.
                samples = choosing(one), choosing(other)
                thresholds = _thinned(np.unique(np.concatenate(samples)), _THRESHOLDS)
                above = [side.size - np.searchsorted(np.sort(side), thresholds) for side in samples]
                bounds = _log_ratio(above[0], above[1], samples[0].size, samples[1].size, failure / 2, delta)
                promising = int(np.argmax(bounds))
                if bounds[promising] > best[0]:
                    best = float(bounds[promising]), float(thresholds[promising])
                    best_scores, pair = (one, other), number
    if best_scores is None:
        return Measurement(0, 0.0, 0, failure, delta, np.zeros((0, 2)))
    counts = [int((bounding(side) >= best[1]).sum()) for side in best_scores]
    sizes = [bounding(side).size for side in best_scores]
    bound = float(_log_ratio(counts[0], counts[1], sizes[0], sizes[1], failure / 2, delta))
    thresholds = _thinned(np.unique(np.concatenate([choosing(side) for side in best_scores])), 16)
    above = [side.size - np.searchsorted(np.sort(side), thresholds) for side in map(bounding, best_scores)]
    low = proportion_below(above[0], sizes[0], _ONE_DEVIATION)
    high = proportion_above(above[1], sizes[1], _ONE_DEVIATION)
    curve = np.stack([low, high], axis=1)
    return Measurement(pair, max(0.0, bound), min(sizes), failure, delta, curve)


def _thinned(values: Floats, count: int) -> Floats:
    """Return at most so many of ascending values, evenly."""
    return values[np.unique(np.linspace(0, values.size - 1, count).astype(np.int64))]


def _log_ratio(
    count: ArrayLike, other: ArrayLike, trials: int, other_trials: int, failure: float, delta: float
) -> Floats:
    low = np.maximum(proportion_below(count, trials, failure) - delta, 0.0)
    high = proportion_above(other, other_trials, failure)
    with np.errstate(divide="ignore"):
        ratio: Floats = np.log(low) - np.log(high)
    return ratio


_REST = 1e-6


def doubled(one: float, other: float) -> tuple[float, float]:
    """Return the probabilities of an event with log ratios, and its complement's, twice as large."""
    if not (0 < other < one < 1):
        return one, other
    ratio, complement = (one / other) ** 2, ((1 - one) / (1 - other)) ** 2
    rare = (1 - complement) / (ratio - complement)
    return ratio * rare, rare


def detection(
    one: float, other: float, trials: int, promised: float, failure: float, delta: float = 0.0
) -> float:
    """Return the probability that the log ratio of two probabilities is bounded above a promise."""
    from scipy.stats import beta, binom

    if trials == 0 or one <= other:
        return 0.0
    low, high = binom.ppf([_REST, 1 - _REST], trials, other)
    edges = np.unique(np.linspace(low, high + 1, 100).astype(np.int64))
    shares = np.diff(binom.cdf(edges - 1, trials, other))
    # Of counts that are taken together, the largest is the hardest to beat.
    counts = edges[1:] - 1
    high = beta.ppf(1 - failure, counts + 1, np.maximum(trials - counts, 1))
    least_share = np.exp(min(promised, 700.0)) * high + delta
    least = binom.isf(failure, trials, np.minimum(least_share, 1.0)) + 1
    detected = np.where(least_share < 1, binom.sf(least - 1, trials, one), 0.0)
    return float(np.clip(np.sum(shares * detected), 0.0, 1.0))
