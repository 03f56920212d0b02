"""Which protocol to take at each trust and budget: the most accurate, held against nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from dprec.privacy.guarantee import LEAST_TRUST_FIRST, Trust
from simulation.analysis.gains import Gain, gain, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric


@dataclass(frozen=True)
class TrustAnswer:
    """The most accurate protocol among those whose users trust alike and hide alike, at one budget."""

    hides: bool
    """Whether it stays hidden which items a user rated, so that the whole profile is protected."""
    trust: Trust
    budget: float
    best: ProtocolResult
    against: Gain | None
    """How much better it is than nothing sent; None where that was not run."""
    with_less: ProtocolResult | None
    """What is at least as accurate at the budget, hides as much and needs less trust: the best of that."""

    @property
    def beats_nothing_sent(self) -> bool:
        """Whether it is better than nothing sent by more than the uncertainty of the difference."""
        return self.against is not None and self.against.beyond_doubt


def at_each_trust(
    results: Sequence[ProtocolResult],
    metric: Metric,
    *,
    budgets: Sequence[float] = (),
    delta: float | None = None,
) -> list[TrustAnswer]:
    """Return an answer for every trust, the least first, and every budget that a protocol keeps to.

    Whatever is proved to lose no more than a budget competes at it. Protocols that protect the whole profile
    come first, and are not compared with those that show which items were rated.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    budgets : sequence of float
        By default, all that any of the settings was given.
    delta : float, optional
        With which losses count as they compose; by default what was asked for counts.
    """
    baseline, proved, answers = nothing_sent(results), _proved(results, metric), []
    given = budgets or {each.budget for each in proved if each.budget is not None}
    for hides, trust, budget in product((True, False), LEAST_TRUST_FIRST, sorted(given)):
        within = [each for each in proved if _keeps(each, budget, delta)]
        alike = [each for each in within if (_hides(each), each.trust) == (hides, trust)]
        if alike:
            best = _best(alike, metric)
            against = None if baseline is None else gain(best, baseline, metric)
            with_less = _with_less(best, within, metric)
            answers.append(TrustAnswer(hides, trust, budget, best, against, with_less))
    return answers


def by_trust(results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return settings by whom users trust, the least first; those without privacy and the baselines last."""

    def place(result: ProtocolResult) -> tuple[bool, bool, int]:
        trusting = 0 if result.baseline else LEAST_TRUST_FIRST.index(result.trust)
        return result.baseline is not None, result.reference, trusting

    return sorted(results, key=place)


def _keeps(result: ProtocolResult, budget: float, delta: float | None) -> bool:
    """Return whether a setting was asked to keep to a budget, or does as its losses compose."""
    if result.budget is not None and result.budget <= budget:
        return True
    composed, needed = result.composed, result.delta
    if delta is None or composed is None or needed is None:
        return False
    return needed <= delta and composed <= budget


def _hides(result: ProtocolResult) -> bool:
    return result.flag("hides_rated_items")


def _proved(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the settings with a budget that is proved to be kept, and with the measure."""
    return [
        each
        for each in results
        if each.baseline is None
        and each.budget is not None
        and not each.falls_short
        and each.average(metric.column) is not None
    ]


def _best(results: Sequence[ProtocolResult], metric: Metric) -> ProtocolResult:
    return min(results, key=lambda each: (metric.sort_key(each.mean(metric.column) or 0.0), each.name))


def _with_less(
    best: ProtocolResult, others: Sequence[ProtocolResult], metric: Metric
) -> ProtocolResult | None:
    reached, less = best.mean(metric.column), LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(best.trust)]
    as_good = [
        each
        for each in others
        if each.trust in less
        and _hides(each) >= _hides(best)
        and reached is not None
        and not metric.better(reached, each.mean(metric.column) or 0.0)
    ]
    return _best(as_good, metric) if as_good else None
