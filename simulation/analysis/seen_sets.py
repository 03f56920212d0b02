"""What a comparison says of protocols that read which items were rated: what that set alone gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dprec.accounting import ComparableUnit
from simulation.analysis.evaluations import Evaluation
from simulation.analysis.floors import Gain, gain, gain_digits, nothing_sent
from simulation.analysis.measures import Measure
from simulation.analysis.numbers import number
from simulation.analysis.settings import Setting
from simulation.analysis.vocabulary import listed

SETS_ONLY = "sets-only"
"""The floor with no value sent, whose devices know which items everybody rated."""

_READS_SETS = "calibrated"
"""Completion that reads which items were rated beside what was reported about them."""


def seen_set_sentences(
    groups: Mapping[Evaluation, Sequence[Setting]], unit: ComparableUnit
) -> dict[Evaluation, str]:
    """Say of every thing that is predicted what the visible set alone gives, and what reports add to it.

    Parameters
    ----------
    groups : mapping
        The settings of every evaluation; those without a protocol that reads the set are left out.
    unit : {"rating", "user"}
        What the budgets are counted for.
    """
    return {
        evaluation: sentence
        for evaluation, settings in groups.items()
        if (sentence := _sentence(settings, evaluation.measure, unit))
    }


def _sentence(settings: Sequence[Setting], measure: Measure, unit: ComparableUnit) -> str | None:
    readers = [
        setting
        for setting in settings
        if {row.get("completion") for row in setting.rows} == {_READS_SETS}
        and not (setting.floor or setting.flag("hides_rated_items") or setting.flag("trusts_server"))
    ]
    alone = next((setting for setting in settings if setting.floor == SETS_ONLY), None)
    reached = alone.mean(measure.column) if alone else None
    if alone is None or reached is None:
        return _unknown(readers)
    digits = gain_digits(measure)
    accuracy = number(reached, digits)
    sentence = f"The rated items alone, without values, give {measure.label} {accuracy} ({alone.name})"
    floor = nothing_sent(settings)
    hidden = floor.mean(measure.column) if floor else None
    if hidden is not None:
        sentence += f", against {number(hidden, digits)} with nothing sent"
    sentence += (
        "; the server sees them, and the table that devices are sent tells all users something of them"
    )
    sentence += "; where a protocol hides which items were rated, nothing of this remains"
    added = listed(_added(readers, alone, measure))
    return f"{sentence}." + (f" Compared with {alone.name}, {added} per {unit}." if added else "")


def _unknown(readers: Sequence[Setting]) -> str | None:
    """Say that nothing here tells the share of the set, if there is a protocol that reads it."""
    if not readers:
        return None
    names = list(dict.fromkeys(setting.name for setting in readers))
    verb = "predicts" if len(names) == 1 else "predict"
    return (
        f"{listed(names)} {verb} also from which items were rated, since that is seen; what it gives without "
        f"a report of any value, the floor {SETS_ONLY} would say. Where the set is hidden, none of it holds."
    )


def _added(readers: Sequence[Setting], alone: Setting, measure: Measure) -> list[str]:
    """Return how far the best reader of each budget is from the set alone, by ascending budget."""
    best: dict[float, tuple[str, Gain]] = {}
    for setting in readers:
        against = gain(setting, alone, measure)
        if setting.budget is None or against is None:
            continue
        if setting.budget not in best or against.mean > best[setting.budget][1].mean:
            best[setting.budget] = (setting.name, against)
    return [
        f"{name} is {against.written(gain_digits(measure))} at ε = {budget:g}"
        for budget, (name, against) in sorted(best.items())
    ]
