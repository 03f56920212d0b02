"""Which protocol to take at each trust and budget: the most accurate, held against nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dprec.privacy.guarantee import LEAST_TRUST_FIRST, Trust
from simulation.analysis.floors import Gain, gain, nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.settings import Setting


@dataclass(frozen=True)
class TrustAnswer:
    """The most accurate protocol among those whose users trust alike, at one budget.

    Parameters
    ----------
    trust : {"server", "sum", "shuffler", "nobody"}
    budget : float
    best : Setting
    against : Gain or None
        How much better it is than nothing sent; None where that was not run.
    with_less : Setting or None
        What is at least as accurate at the budget and needs less trust: the most accurate of that.
    """

    trust: Trust
    budget: float
    best: Setting
    against: Gain | None
    with_less: Setting | None

    @property
    def beats_nothing_sent(self) -> bool:
        """Whether it is better than nothing sent by more than the uncertainty of the difference."""
        return self.against is not None and self.against.beyond_doubt


def at_each_trust(settings: Sequence[Setting], measure: Measure) -> list[TrustAnswer]:
    """Return an answer for every trust, the least first, and every budget that a protocol is proved to keep.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same.
    measure : Measure
    """
    floor, answers = nothing_sent(settings), []
    for trust in LEAST_TRUST_FIRST:
        alike = [each for each in _proved(settings, measure) if each.trust == trust]
        for budget in sorted({each.budget for each in alike if each.budget is not None}):
            best = _best([each for each in alike if each.budget == budget], measure)
            answers.append(
                TrustAnswer(
                    trust,
                    budget,
                    best,
                    None if floor is None else gain(best, floor, measure),
                    _with_less(best, _proved(settings, measure), measure),
                )
            )
    return answers


def by_trust(settings: Sequence[Setting]) -> list[Setting]:
    """Return settings by whom users trust, the least first; those without privacy and the floors last."""

    def place(setting: Setting) -> tuple[bool, bool, int]:
        trusting = 0 if setting.floor else LEAST_TRUST_FIRST.index(setting.trust)
        return setting.floor is not None, setting.reference, trusting

    return sorted(settings, key=place)


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
    sign = 1 if measure.lower_is_better else -1
    return min(settings, key=lambda each: (sign * (each.mean(measure.column) or 0.0), each.name))


def _with_less(best: Setting, settings: Sequence[Setting], measure: Measure) -> Setting | None:
    reached, less = best.mean(measure.column), LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(best.trust)]
    as_good = [
        each
        for each in settings
        if each.budget == best.budget
        and each.trust in less
        and reached is not None
        and not measure.better(reached, each.mean(measure.column) or 0.0)
    ]
    return _best(as_good, measure) if as_good else None
