"""Audits what a trusted server releases: the completed matrices of two small data sets, many times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dprec.auditing import Sent, class_edges, learning, measured
from dprec.completion import Observations
from dprec.ratings import RatingScale
from simulation.auditing.promise import Promise
from simulation.auditing.result import Finding
from simulation.protocols.trusted_server import TrustedServerProtocol

MOST_RELEASES = 600
"""Largest number of completions of each data set; each takes milliseconds."""

_SHAPE = (2, 2)
_CLASSES = 12
_PROBES = (
    ("one sign, in the completed matrix", 1, (-1.0, 1.0, 1.0, 1.0)),
    ("both signs of a user, in the completed matrix", 2, (-1.0, -1.0, 1.0, 1.0)),
)
"""What differs from two users who like both of two items: in words, in how many signs, and the signs."""


def release_findings(
    protocol: TrustedServerProtocol,
    promise: Promise,
    scale: RatingScale,
    trials: int,
    seed: int,
    failure: float,
) -> Iterator[Finding]:
    """Yield how well the completed matrices of neighbouring data sets could be distinguished.

    Parameters
    ----------
    scale : RatingScale
        Of the signs.
    trials : int
        Number of completions of each data set; at most `MOST_RELEASES` are made.
    failure : float
        Probability with which one of the bounds may fail.
    """
    count, sets = min(trials, MOST_RELEASES), len(_PROBES) + 1
    base = _released(protocol, (1.0, 1.0, 1.0, 1.0), scale, range(seed, seed + sets * count, sets))
    for place, (test, entries, signs) in enumerate(_PROBES, start=1):
        seeds = range(seed + place, seed + place + sets * count, sets)
        other = _released(protocol, signs, scale, seeds)
        result = measured([_in_classes(base, other)], failure / len(_PROBES))
        promised, unit = promise.loss(entries), promise.unit_of(entries)
        yield Finding(test, unit, promised, result.at_least, None, exact=False, power=result.power(promised))


def _released(
    protocol: TrustedServerProtocol, signs: tuple[float, ...], scale: RatingScale, seeds: range
) -> NDArray[np.float64]:
    """Complete a data set with every seed; return all entries, shape (seeds, cells)."""
    users, items = np.divmod(np.arange(len(signs), dtype=np.int32), np.int32(_SHAPE[1]))
    observed = Observations(users, items, np.array(signs), _SHAPE, scale)
    epsilon = protocol.privacy.epsilon
    return np.array(
        [
            protocol.perturbation.complete(protocol.completion, observed, epsilon, seed).hidden(users, items)
            for seed in seeds
        ]
    )


def _in_classes(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[Sent, Sent]:
    """Return releases as numbers, and in a few classes of each entry, the same for both data sets."""
    edges = class_edges(np.concatenate([learning(one), learning(other)]), _CLASSES)

    def sent(released: NDArray[np.float64]) -> Sent:
        classes = tuple(np.searchsorted(*each) for each in zip(edges.T, released.T, strict=True))
        return Sent((np.zeros(len(released), dtype=np.int64),), classes, released.astype(np.float32))

    return sent(one), sent(other)
