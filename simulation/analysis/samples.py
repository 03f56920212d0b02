"""Where rankings of a sample order protocols otherwise than rankings of the whole catalogue do.

Which of two recommenders is better among a few drawn items need not be better among all (Krichene and Rendle
[krichene2020]), so what a sample says of protocols stands beside what the catalogue says.
"""

import math
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import number

_DIGITS = 4
"""Decimals at which two protocols must differ in both rankings to be told."""

_QUANTILE = 1.96
"""Standard errors of a difference that chance exceeds once in twenty times."""

_FIGURES = {"hit_rate_at_10": "hit rate at 10", "ndcg_at_10": "NDCG at 10", "recall_at_10": "recall at 10"}


class _Ranked(NamedTuple):
    """A result by one figure."""

    result: ProtocolResult
    catalogue: float
    """From 0 to 1."""
    sampled: float
    users: float

    def below(self, other: "_Ranked") -> bool:
        """Return whether the other is better over the catalogue and worse in the sample."""
        return _above(other.catalogue, self.catalogue) and _above(self.sampled, other.sampled)

    def chance(self, other: "_Ranked", figure: str) -> float:
        """Return by how much two results may differ by chance, at most.

        What lies between 0 and 1 with a mean m varies by m (1 - m) at most, and two results for the same
        users differ less by chance than two for others.
        """
        spread = sum(mean * (1 - mean) for mean in (getattr(self, figure), getattr(other, figure)))
        return _QUANTILE * math.sqrt(spread / min(self.users, other.users))

    def surely_below(self, other: "_Ranked") -> bool:
        """Return whether neither of the differences can be chance."""
        apart = {"catalogue": other.catalogue - self.catalogue, "sampled": self.sampled - other.sampled}
        return all(gap > self.chance(other, figure) for figure, gap in apart.items())


def reversed_by_samples(results: Sequence[ProtocolResult]) -> list[str]:
    """Say for which figure, and how often, a sample puts the worse of two results first; with the widest gap.

    ``results``: of one evaluation, at all budgets.
    """
    notes, reported = [], set[tuple[tuple[float, float], ...]]()
    for figure, label in _FIGURES.items():
        rankings = [
            _Ranked(result, catalogue, sampled, result.mean("ranking_users") or 1.0)
            for result in results
            if (catalogue := result.mean(f"ranking_{figure}")) is not None
            and (sampled := result.mean(f"sampled_ranking_{figure}")) is not None
        ]
        # Of one test item each, recall is the hit rate.
        figures = tuple((ranking.catalogue, ranking.sampled) for ranking in rankings)
        if figures in reported:
            continue
        reported.add(figures)
        if apart := [(better, worse) for better, worse in permutations(rankings, 2) if worse.below(better)]:
            pairs = len(rankings) * (len(rankings) - 1) // 2
            notes.append(f"Sampled rankings reverse the order of {_reversals_in_words(apart, pairs, label)}")
    return notes


def _reversals_in_words(apart: list[tuple[_Ranked, _Ranked]], pairs: int, label: str) -> str:
    """Return how many pairs are reversed, how many of these beyond chance, and the widest of them."""
    sure = [(better, worse) for better, worse in apart if worse.surely_below(better)]
    better, worse = max(
        sure or apart,
        key=lambda pair: (pair[0].catalogue - pair[1].catalogue) * (pair[1].sampled - pair[0].sampled),
    )
    beyond = f"{len(sure)} of them beyond chance (95 %)" if sure else "none of them beyond chance (95 %)"
    return (
        f"{len(apart)} of {pairs} pairs by {label}, {beyond}: {_at_budget(better.result)} has "
        f"{number(better.catalogue, _DIGITS)} over the catalogue and {number(better.sampled, _DIGITS)} "
        f"in the sample, {_at_budget(worse.result)} {number(worse.catalogue, _DIGITS)} and "
        f"{number(worse.sampled, _DIGITS)}. The catalogue is what people are recommended from."
    )


def _above(one: float, other: float) -> bool:
    return round(one, _DIGITS) > round(other, _DIGITS)


def _at_budget(result: ProtocolResult) -> str:
    return result.name if result.budget is None else f"{result.name} at ε = {result.budget:g}"
