"""What a comparison answers at its reference budget: which protocol to take, or that none is worth it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from simulation.analysis.floors import Gain, gain, nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.rivals import not_told_apart
from simulation.analysis.seen_sets import SETS_ONLY
from simulation.analysis.selection import reference_budget
from simulation.analysis.settings import Setting


@dataclass(frozen=True)
class Candidate:
    """A protocol that is named in the answer.

    Parameters
    ----------
    setting : Setting
    accuracy : float
        Its mean over folds and seeds.
    against : Gain or None
        How much better it is than nothing sent; None where that was not run.
    """

    setting: Setting
    accuracy: float
    against: Gain | None

    @property
    def beats_nothing_sent(self) -> bool:
        """Whether it is better than nothing sent by more than the uncertainty of the difference."""
        return self.against is not None and self.against.beyond_doubt


@dataclass(frozen=True)
class Answer:
    """What a comparison says of one evaluation at its reference budget.

    Parameters
    ----------
    measure : Measure
    budget : float or None
        The epsilon that most protocols were given; None where no protocol has a budget.
    floor : Candidate or None
        Nothing sent.
    best : Candidate or None
        The most accurate protocol that is proved to keep the budget, among those that beat nothing sent if
        any of them does.
    in_doubt : tuple of Setting
        What is proved to keep the budget and more accurate on average, but hardly better than nothing sent.
    alike : tuple of Setting
        What cannot be told apart from it.
    claimed : Candidate or None
        The most accurate protocol whose promise is claimed and not proved.
    set_alone : Candidate or None
        The floor from which items were rated, with no value sent.
    published, published_better : tuple of str
        The protocols at the budget as their papers have them, of those held against nothing sent, and those
        of them that beat it.
    without_privacy : Candidate or None
        The most accurate protocol without privacy.
    """

    measure: Measure
    budget: float | None
    floor: Candidate | None
    best: Candidate | None
    in_doubt: tuple[Setting, ...]
    alike: tuple[Setting, ...]
    claimed: Candidate | None
    set_alone: Candidate | None
    published: tuple[str, ...]
    published_better: tuple[str, ...]
    without_privacy: Candidate | None

    @property
    def nothing_beats_the_floor(self) -> bool:
        """Whether no protocol at the budget, whatever its promise, beats nothing sent."""
        named = [each for each in (self.best, self.claimed) if each]
        # Before a comparison is finished, there may be no run of both on the same ratings.
        compared = bool(named) and all(each.against for each in named)
        return compared and not any(each.beats_nothing_sent for each in named)

    @property
    def nearest(self) -> Candidate | None:
        """The more accurate of the best that is proved and the best that is claimed."""
        return most_accurate((each for each in (self.best, self.claimed) if each), self.measure)


def answer_to(settings: Sequence[Setting], measure: Measure, published: Collection[str]) -> Answer:
    """Return the answer of one evaluation.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    measure : Measure
    published : collection of str
        Names of the protocols whose settings are those of their paper.
    """
    floor, budget = nothing_sent(settings), reference_budget(settings)
    given = [each for each in settings if each.floor is None and each.budget == budget is not None]
    candidates = list(_candidates(given, floor, measure))
    proved = [each for each in candidates if not each.setting.falls_short]
    best = most_accurate(proved, measure)
    papers = [each for each in candidates if each.setting.name in published and each.against]
    alone = [each for each in settings if each.floor == SETS_ONLY]
    return Answer(
        measure,
        budget,
        most_accurate(_candidates([floor] if floor else [], None, measure), measure),
        best,
        tuple(each.setting for each in proved if best and measure.better(each.accuracy, best.accuracy)),
        tuple(not_told_apart(best.setting, settings)) if best else (),
        most_accurate((each for each in candidates if each.setting.falls_short), measure),
        most_accurate(_candidates(alone, floor, measure), measure),
        tuple(each.setting.name for each in papers),
        tuple(each.setting.name for each in papers if each.beats_nothing_sent),
        most_accurate(_candidates([each for each in settings if each.reference], floor, measure), measure),
    )


def _candidates(settings: Iterable[Setting], floor: Setting | None, measure: Measure) -> Iterator[Candidate]:
    """Yield the settings that have the measure, held against a floor."""
    for setting in settings:
        accuracy = setting.mean(measure.column)
        if accuracy is not None:
            yield Candidate(setting, accuracy, gain(setting, floor, measure) if floor else None)


def most_accurate(candidates: Iterable[Candidate], measure: Measure) -> Candidate | None:
    """Return the most accurate of those that beat nothing sent, or of all where none does."""
    return min(
        candidates,
        key=lambda each: (not each.beats_nothing_sent, measure.sort_key(each.accuracy), each.setting.name),
        default=None,
    )
