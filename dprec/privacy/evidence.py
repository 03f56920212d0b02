"""How much what a person sent favours one profile over another, in several ways.

Each way is learned from the first part of the people alone; see `dprec.auditing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dprec.auditing import LogisticRegression

Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Evidence for the first of two profiles: of the people with the first, and of those with the second."""

_PARTS = 4
_LEARNERS = 4000


@dataclass(frozen=True, eq=False)
class Sent:
    """What people with the same profile sent."""

    rounds: tuple[NDArray[np.int64], ...]
    """One array per round; equal reports have equal numbers, from 0; shape (people,)."""
    symbols: tuple[NDArray[np.int64], ...]
    """The symbols that the reports hold, one array per round and cell; empty if they were not decoded;
    shape (people,).
    """
    features: NDArray[np.float32]
    """Numbers that a classifier may use; shape (people, features)."""

    @classmethod
    def of_rounds(cls, rounds: Sequence[NDArray[np.int64]]) -> Self:
        """Return reports of which nothing but their numbers is known."""
        return cls(tuple(rounds), (), np.zeros((rounds[0].size, 0), dtype=np.float32))

    @property
    def people(self) -> int:
        """Number of people."""
        return len(self.features)


def learning(values: NDArray[Any]) -> NDArray[Any]:
    """Return the part of the people from which evidence is learned."""
    return values[::_PARTS]


def choosing(values: NDArray[Any]) -> NDArray[Any]:
    """Return the part of the people by which event and threshold are chosen."""
    return values[1::_PARTS]


def bounding(values: NDArray[Any]) -> NDArray[Any]:
    """Return the part of the people, half of them, from which bounds follow."""
    return values[np.arange(len(values)) % _PARTS >= _PARTS // 2]


def class_edges(values: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Return where classes with equal shares of the values meet, shape (classes - 1, ...)."""
    edges: NDArray[np.float64] = np.quantile(values, np.linspace(0, 1, classes + 1)[1:-1], axis=0)
    return edges


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
        yield _classified(one.features, other.features)


def _joined(
    one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Return a number for everything that each person sent over all rounds, as if it were one report."""
    numbers = np.zeros(one[0].size + other[0].size, dtype=np.int64)
    for sides in zip(one, other, strict=True):
        reports = np.concatenate(sides)
        numbers = np.unique(numbers * (reports.max() + 1) + reports, return_inverse=True)[1].ravel()
    return [numbers[: one[0].size]], [numbers[one[0].size :]]


def _sum_of_ratios(one: Sequence[NDArray[np.int64]], other: Sequence[NDArray[np.int64]]) -> Scores:
    for_one, for_other = np.zeros(one[0].size), np.zeros(other[0].size)
    for a, b in zip(one, other, strict=True):
        kinds = int(max(a.max(), b.max())) + 1
        # A report that was hardly ever seen favours neither.
        seen = [np.bincount(learning(reports), minlength=kinds) + 1 for reports in (a, b)]
        ratio = np.log(seen[0] / seen[0].sum()) - np.log(seen[1] / seen[1].sum())
        for_one += ratio[a]
        for_other += ratio[b]
    return for_one, for_other


def _classified(one: NDArray[np.float32], other: NDArray[np.float32]) -> Scores:
    learners = [learning(side)[:_LEARNERS] for side in (one, other)]
    labels = np.repeat([True, False], [len(side) for side in learners])
    learned = LogisticRegression.fit(np.concatenate(learners), labels)
    return learned.scores(one), learned.scores(other)
