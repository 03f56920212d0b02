"""What a comparison answers at its reference budget: which protocol to take, or that none is worth it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from simulation.analysis.gains import Gain, gain, not_significant, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.sentences import SETS_ONLY
from simulation.analysis.vocabulary import Metric


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
        return self.against is not None and self.against.beyond_doubt


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
    """What cannot be told apart from it."""
    claimed: Candidate | None
    """The most accurate protocol whose promise is claimed and not proved."""
    set_alone: Candidate | None
    """The baseline from which items were rated, with no value sent."""
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
        return most_accurate((each for each in (self.best, self.claimed) if each), self.metric)


def answer_to(results: Sequence[ProtocolResult], metric: Metric, published: Collection[str]) -> Answer:
    """Return the answer of one evaluation.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    published : collection of str
        Names of the protocols whose settings are those of their paper.
    """
    baseline, budget = nothing_sent(results), reference_budget(results)
    given = [each for each in results if each.baseline is None and each.budget == budget is not None]
    candidates = list(_candidates(given, baseline, metric))
    proved = [each for each in candidates if not each.result.falls_short]
    best = most_accurate(proved, metric)
    papers = [each for each in candidates if each.result.name in published and each.against]
    alone = [each for each in results if each.baseline == SETS_ONLY]
    return Answer(
        metric,
        budget,
        most_accurate(_candidates([baseline] if baseline else [], None, metric), metric),
        best,
        tuple(each.result for each in proved if best and metric.better(each.accuracy, best.accuracy)),
        tuple(not_significant(best.result, results)) if best else (),
        most_accurate((each for each in candidates if each.result.falls_short), metric),
        most_accurate(_candidates(alone, baseline, metric), metric),
        tuple(each.result.name for each in papers),
        tuple(each.result.name for each in papers if each.beats_nothing_sent),
        most_accurate(_candidates([each for each in results if each.reference], baseline, metric), metric),
    )


def _candidates(
    results: Iterable[ProtocolResult], baseline: ProtocolResult | None, metric: Metric
) -> Iterator[Candidate]:
    """Yield the settings that have the measure, held against a baseline."""
    for result in results:
        accuracy = result.mean(metric.column)
        if accuracy is not None:
            yield Candidate(result, accuracy, gain(result, baseline, metric) if baseline else None)


def most_accurate(candidates: Iterable[Candidate], metric: Metric) -> Candidate | None:
    """Return the most accurate of those that beat nothing sent, or of all where none does."""
    return min(
        candidates,
        key=lambda each: (not each.beats_nothing_sent, metric.sort_key(each.accuracy), each.result.name),
        default=None,
    )
