"""Where rankings of a sample order protocols otherwise than rankings of the whole catalogue do.

Which of two recommenders is better among a few drawn items need not be better among all (Krichene and Rendle
[krichene2020]), so what a sample says of protocols stands beside what the catalogue says.
"""

from collections.abc import Sequence
from itertools import permutations

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import number

_DIGITS = 4
"""Decimals at which two protocols must differ in both rankings to be told."""

_FIGURES = {"hit_rate_at_10": "hit rate at 10", "ndcg_at_10": "NDCG at 10", "recall_at_10": "recall at 10"}


def reversed_by_samples(results: Sequence[ProtocolResult]) -> list[str]:
    """Say for which figure, and how often, a sample puts the worse of two results first; with the widest gap.

    ``results``: of one evaluation, at all budgets.
    """
    notes, told = [], set[tuple[tuple[float, float], ...]]()
    for figure, label in _FIGURES.items():
        known = [
            (result, whole, sampled)
            for result in results
            if (whole := result.mean(f"ranking_{figure}")) is not None
            and (sampled := result.mean(f"sampled_ranking_{figure}")) is not None
        ]
        # Of one test item each, recall is the hit rate.
        figures = tuple((whole, sampled) for _, whole, sampled in known)
        if figures in told:
            continue
        told.add(figures)
        apart = [
            (better, worse)
            for better, worse in permutations(known, 2)
            if _above(better[1], worse[1]) and _above(worse[2], better[2])
        ]
        if apart:
            better, worse = max(apart, key=lambda pair: (pair[0][1] - pair[1][1]) * (pair[1][2] - pair[0][2]))
            pairs = len(known) * (len(known) - 1) // 2
            notes.append(
                f"Sampled rankings reverse the order of {len(apart)} of {pairs} pairs by {label}: "
                f"{_named(better[0])} has {number(better[1], _DIGITS)} over the catalogue and "
                f"{number(better[2], _DIGITS)} in the sample, {_named(worse[0])} {number(worse[1], _DIGITS)} "
                f"and {number(worse[2], _DIGITS)}. The catalogue is what people are recommended from."
            )
    return notes


def _above(one: float, other: float) -> bool:
    return round(one, _DIGITS) > round(other, _DIGITS)


def _named(result: ProtocolResult) -> str:
    return result.name if result.budget is None else f"{result.name} at ε = {result.budget:g}"
