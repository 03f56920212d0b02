"""What a comparison answers: which protocol to take, at its reference budget and in each trust model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dprec.accounting import LEAST_TRUST_FIRST, Trust
from simulation.analysis.gains import SETS_ONLY, Gain, gain, not_significant, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.vocabulary import Metric


@dataclass(frozen=True)
class TrustAnswer:
    """The most accurate protocol among those of one trust model that hide alike, at one budget."""

    hides: bool
    """Whether the item set is hidden, so that the whole profile is protected."""
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
        return self.against is not None and self.against.significantly_better


def at_each_trust(
    results: Sequence[ProtocolResult],
    metric: Metric,
    *,
    budgets: Sequence[float] = (),
    delta: float | None = None,
) -> list[TrustAnswer]:
    """Return an answer for every trust model, the least trust first, and every budget that is kept.

    Whatever is proved to lose no more than a budget competes at it. Protocols that protect the whole profile
    come first; those that reveal the item set are not compared with them.

    Parameters
    ----------
    budgets : sequence of float
        By default, all that any of the results was given.
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
    """Return results by trust model, the least trust first; those without privacy and the baselines last."""

    def position(result: ProtocolResult) -> tuple[bool, bool, int]:
        trusting = 0 if result.baseline else LEAST_TRUST_FIRST.index(result.trust)
        return result.baseline is not None, result.reference, trusting

    return sorted(results, key=position)


def _keeps(result: ProtocolResult, budget: float, delta: float | None) -> bool:
    """Return whether a result was asked to keep to a budget, or does as its losses compose."""
    if result.budget is not None and result.budget <= budget:
        return True
    composed, needed = result.composed, result.delta
    if delta is None or composed is None or needed is None:
        return False
    return needed <= delta and composed <= budget


def _hides(result: ProtocolResult) -> bool:
    return result.flag("hides_rated_items")


def _proved(results: Sequence[ProtocolResult], metric: Metric) -> list[ProtocolResult]:
    """Return the results with a budget that is proved to be kept, and with the metric."""
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


@dataclass(frozen=True)
class Candidate:
    """A protocol that is named in the answer."""

    result: ProtocolResult
    accuracy: float
    """Its mean over folds and seeds."""
    against: Gain | None
    """How much better it is than nothing sent; None where that was not run."""

    @property
    def beats_nothing_sent(self) -> bool:
        """Whether it is better than nothing sent by more than the uncertainty of the difference."""
        return self.against is not None and self.against.significantly_better


@dataclass(frozen=True)
class Answer:
    """What a comparison says of one evaluation at its reference budget."""

    metric: Metric
    budget: float | None
    """The epsilon that most protocols were given; None where no protocol has a budget."""
    baseline: Candidate | None
    """Nothing sent."""
    best: Candidate | None
    """The most accurate protocol that is proved to keep the budget, among those that beat nothing sent if any
    of them does.
    """
    in_doubt: tuple[ProtocolResult, ...]
    """What is proved to keep the budget and more accurate on average, but hardly better than nothing sent."""
    alike: tuple[ProtocolResult, ...]
    """What is not significantly worse than the best."""
    claimed: Candidate | None
    """The most accurate protocol whose promise is claimed and not proved."""
    set_alone: Candidate | None
    """The baseline that knows the item sets, with no value sent."""
    published: tuple[str, ...]
    published_better: tuple[str, ...]
    """The protocols at the budget as their papers have them, of those held against nothing sent, and those of
    them that beat it.
    """
    without_privacy: Candidate | None
    """The most accurate protocol without privacy."""

    @property
    def nothing_beats_the_baseline(self) -> bool:
        """Whether no protocol at the budget, whatever its promise, beats nothing sent."""
        named = [each for each in (self.best, self.claimed) if each]
        # Before a comparison is finished, there may be no run of both on the same ratings.
        compared = bool(named) and all(each.against for each in named)
        return compared and not any(each.beats_nothing_sent for each in named)

    @property
    def nearest(self) -> Candidate | None:
        """The more accurate of the best that is proved and the best that is claimed."""
        return _most_accurate((each for each in (self.best, self.claimed) if each), self.metric)


def answer_to(results: Sequence[ProtocolResult], metric: Metric, published: Collection[str]) -> Answer:
    """Return the answer of one evaluation.

    Parameters
    ----------
    published : collection of str
        Names of the protocols whose settings are those of their paper.
    """
    baseline, budget = nothing_sent(results), reference_budget(results)
    given = [each for each in results if each.baseline is None and each.budget == budget is not None]
    candidates = list(_candidates(given, baseline, metric))
    proved = [each for each in candidates if not each.result.falls_short]
    best = _most_accurate(proved, metric)
    papers = [each for each in candidates if each.result.name in published and each.against]
    alone = [each for each in results if each.baseline == SETS_ONLY]
    return Answer(
        metric,
        budget,
        _most_accurate(_candidates([baseline] if baseline else [], None, metric), metric),
        best,
        tuple(each.result for each in proved if best and metric.better(each.accuracy, best.accuracy)),
        tuple(not_significant(best.result, results)) if best else (),
        _most_accurate((each for each in candidates if each.result.falls_short), metric),
        _most_accurate(_candidates(alone, baseline, metric), metric),
        tuple(each.result.name for each in papers),
        tuple(each.result.name for each in papers if each.beats_nothing_sent),
        _most_accurate(_candidates([each for each in results if each.reference], baseline, metric), metric),
    )


def _candidates(
    results: Iterable[ProtocolResult], baseline: ProtocolResult | None, metric: Metric
) -> Iterator[Candidate]:
    """Yield the results that have the metric, held against a baseline."""
    for result in results:
        accuracy = result.mean(metric.column)
        if accuracy is not None:
            yield Candidate(result, accuracy, gain(result, baseline, metric) if baseline else None)


def _most_accurate(candidates: Iterable[Candidate], metric: Metric) -> Candidate | None:
    """Return the most accurate of those that beat nothing sent, or of all where none does."""
    return min(
        candidates,
        key=lambda each: (not each.beats_nothing_sent, metric.sort_key(each.accuracy), each.result.name),
        default=None,
    )
