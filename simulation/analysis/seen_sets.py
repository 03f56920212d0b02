"""What a comparison says of protocols that read which items were rated: what that set alone gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dprec.privacy.units import ComparableUnit
from simulation.analysis.gains import Gain, gain, gain_digits, nothing_sent
from simulation.analysis.protocol_results import Evaluation, ProtocolResult
from simulation.analysis.vocabulary import Metric, listed, number

SETS_ONLY = "sets-only"
"""The baseline with no value sent, whose devices know which items everybody rated."""

_READS_SETS = "calibrated"
"""Completion that reads which items were rated beside what was reported about them."""


def item_set_sentences(
    groups: Mapping[Evaluation, Sequence[ProtocolResult]], unit: ComparableUnit
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
        for evaluation, results in groups.items()
        if (sentence := _sentence(results, evaluation.metric, unit))
    }


def _sentence(results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit) -> str | None:
    readers = [
        result
        for result in results
        if {row.get("completion") for row in result.rows} == {_READS_SETS}
        and not (result.baseline or result.flag("hides_rated_items") or result.flag("trusts_server"))
    ]
    alone = next((result for result in results if result.baseline == SETS_ONLY), None)
    reached = alone.mean(metric.column) if alone else None
    if alone is None or reached is None:
        return _unknown(readers)
    digits = gain_digits(metric)
    accuracy = number(reached, digits)
    sentence = f"The rated items alone, without values, give {metric.label} {accuracy} ({alone.name})"
    baseline = nothing_sent(results)
    hidden = baseline.mean(metric.column) if baseline else None
    if hidden is not None:
        sentence += f", against {number(hidden, digits)} with nothing sent"
    sentence += (
        "; the server sees them, and the table that devices are sent tells all users something of them"
    )
    sentence += "; where a protocol hides which items were rated, nothing of this remains"
    added = listed(_added(readers, alone, metric))
    return f"{sentence}." + (f" Compared with {alone.name}, {added} per {unit}." if added else "")


def _unknown(readers: Sequence[ProtocolResult]) -> str | None:
    """Say that nothing here tells the share of the set, if there is a protocol that reads it."""
    if not readers:
        return None
    names = list(dict.fromkeys(result.name for result in readers))
    verb = "predicts" if len(names) == 1 else "predict"
    return (
        f"{listed(names)} {verb} also from which items were rated, since that is seen; what it gives without "
        f"a report of any value, the baseline {SETS_ONLY} would say. Where the set is hidden, none of it holds."
    )


def _added(readers: Sequence[ProtocolResult], alone: ProtocolResult, metric: Metric) -> list[str]:
    """Return how far the best reader of each budget is from the set alone, by ascending budget."""
    best: dict[float, tuple[str, Gain]] = {}
    for result in readers:
        against = gain(result, alone, metric)
        if result.budget is None or against is None:
            continue
        if result.budget not in best or against.mean > best[result.budget][1].mean:
            best[result.budget] = (result.name, against)
    return [
        f"{name} is {against.written(gain_digits(metric))} at ε = {budget:g}"
        for budget, (name, against) in sorted(best.items())
    ]
