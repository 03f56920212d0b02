"""Which protocol to take at each trust and budget: the most accurate, held against nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from dprec.accounting import LEAST_TRUST_FIRST, Trust
from simulation.analysis.floors import Gain, gain, nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting


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
    settings : sequence of Setting
        Those that predict the same.
    measure : Measure
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
