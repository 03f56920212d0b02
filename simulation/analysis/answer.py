"""What a comparison answers: which protocol to take, at its reference budget and at each trust."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dprec.privacy.guarantee import LEAST_TRUST_FIRST, Trust
from simulation.analysis.gains import SETS_ONLY, Gain, gain, not_told_apart, nothing_sent
from simulation.analysis.settings import Setting, reference_budget
from simulation.analysis.vocabulary import Measure


@dataclass(frozen=True)
class TrustAnswer:
    """The most accurate protocol among those whose users trust alike and hide alike, at one budget.

    Parameters
    ----------
    hides : bool
        Whether it stays hidden which items a user rated, so that the whole profile is protected.
    trust : {"server", "sum", "shuffler", "nobody"}
    budget : float
    best : Setting
    against : Gain or None
        How much better it is than nothing sent; None where that was not run.
    with_less : Setting or None
        What is at least as accurate at the budget, hides as much and needs less trust: the best of that.
    """

    hides: bool
    trust: Trust
    budget: float
    best: Setting
    against: Gain | None
    with_less: Setting | None

    @property
    def beats_nothing_sent(self) -> bool:
        """Whether it is better than nothing sent by more than the uncertainty of the difference."""
        return self.against is not None and self.against.beyond_doubt


def at_each_trust(
    settings: Sequence[Setting],
    measure: Measure,
    *,
    budgets: Sequence[float] = (),
    delta: float | None = None,
) -> list[TrustAnswer]:
    """Return an answer for every trust, the least first, and every budget that a protocol keeps to.

    Whatever is proved to lose no more than a budget competes at it. Protocols that protect the whole profile
    come first, and are not compared with those that show which items were rated.

    Parameters
    ----------
    budgets : sequence of float
        By default, all that any of the settings was given.
    delta : float, optional
        With which losses count as they compose; by default what was asked for counts.
    """
    floor, proved, answers = nothing_sent(settings), _proved(settings, measure), []
    given = budgets or {each.budget for each in proved if each.budget is not None}
    for hides, trust, budget in product((True, False), LEAST_TRUST_FIRST, sorted(given)):
        within = [each for each in proved if _keeps(each, budget, delta)]
        alike = [each for each in within if (_hides(each), each.trust) == (hides, trust)]
        if alike:
            best = _best(alike, measure)
            against = None if floor is None else gain(best, floor, measure)
            with_less = _with_less(best, within, measure)
            answers.append(TrustAnswer(hides, trust, budget, best, against, with_less))
    return answers


def by_trust(settings: Sequence[Setting]) -> list[Setting]:
    """Return settings by whom users trust, the least first; those without privacy and the floors last."""

    def place(setting: Setting) -> tuple[bool, bool, int]:
        trusting = 0 if setting.floor else LEAST_TRUST_FIRST.index(setting.trust)
        return setting.floor is not None, setting.reference, trusting

    return sorted(settings, key=place)


def _keeps(setting: Setting, budget: float, delta: float | None) -> bool:
    """Return whether a setting was asked to keep to a budget, or does as its losses compose."""
    if setting.budget is not None and setting.budget <= budget:
        return True
    composed, needed = setting.composed, setting.delta
    if delta is None or composed is None or needed is None:
        return False
    return needed <= delta and composed <= budget


def _hides(setting: Setting) -> bool:
    return setting.flag("hides_rated_items")


def _proved(settings: Sequence[Setting], measure: Measure) -> list[Setting]:
    """Return the settings with a budget that is proved to be kept, and with the measure."""
    return [
        each
        for each in settings
        if each.floor is None
        and each.budget is not None
        and not each.falls_short
        and each.average(measure.column) is not None
    ]


def _best(settings: Sequence[Setting], measure: Measure) -> Setting:
    return min(settings, key=lambda each: (measure.sort_key(each.mean(measure.column) or 0.0), each.name))


def _with_less(best: Setting, others: Sequence[Setting], measure: Measure) -> Setting | None:
    reached, less = best.mean(measure.column), LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(best.trust)]
    as_good = [
        each
        for each in others
        if each.trust in less
        and _hides(each) >= _hides(best)
        and reached is not None
        and not measure.better(reached, each.mean(measure.column) or 0.0)
    ]
    return _best(as_good, measure) if as_good else None


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
        return _most_accurate((each for each in (self.best, self.claimed) if each), self.measure)


def answer_to(settings: Sequence[Setting], measure: Measure, published: Collection[str]) -> Answer:
    """Return the answer of one evaluation.

    Parameters
    ----------
    published : collection of str
        Names of the protocols whose settings are those of their paper.
    """
    floor, budget = nothing_sent(settings), reference_budget(settings)
    given = [each for each in settings if each.floor is None and each.budget == budget is not None]
    candidates = list(_candidates(given, floor, measure))
    proved = [each for each in candidates if not each.setting.falls_short]
    best = _most_accurate(proved, measure)
    papers = [each for each in candidates if each.setting.name in published and each.against]
    alone = [each for each in settings if each.floor == SETS_ONLY]
    return Answer(
        measure,
        budget,
        _most_accurate(_candidates([floor] if floor else [], None, measure), measure),
        best,
        tuple(each.setting for each in proved if best and measure.better(each.accuracy, best.accuracy)),
        tuple(not_told_apart(best.setting, settings)) if best else (),
        _most_accurate((each for each in candidates if each.setting.falls_short), measure),
        _most_accurate(_candidates(alone, floor, measure), measure),
        tuple(each.setting.name for each in papers),
        tuple(each.setting.name for each in papers if each.beats_nothing_sent),
        _most_accurate(_candidates([each for each in settings if each.reference], floor, measure), measure),
    )


def _candidates(settings: Iterable[Setting], floor: Setting | None, measure: Measure) -> Iterator[Candidate]:
    """Yield the settings that have the measure, held against a floor."""
    for setting in settings:
        accuracy = setting.mean(measure.column)
        if accuracy is not None:
            yield Candidate(setting, accuracy, gain(setting, floor, measure) if floor else None)


def _most_accurate(candidates: Iterable[Candidate], measure: Measure) -> Candidate | None:
    """Return the most accurate of those that beat nothing sent, or of all where none does."""
    return min(
        candidates,
        key=lambda each: (not each.beats_nothing_sent, measure.sort_key(each.accuracy), each.setting.name),
        default=None,
    )
