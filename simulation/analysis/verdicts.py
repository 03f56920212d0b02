"""Which settings are better than nothing sent, in a sentence for each thing that is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dprec.privacy.units import ComparableUnit
from simulation.analysis.gains import Gain, gain, gain_digits, nothing_sent
from simulation.analysis.protocol_results import Evaluation, ProtocolResult
from simulation.analysis.vocabulary import Metric, listed, number, plural


@dataclass(frozen=True)
class Verdict:
    """Which protocols of one budget are better than nothing sent by more than their uncertainty."""

    budget: float | None
    """None for protocols without one."""
    better: tuple[str, ...]
    not_better: tuple[str, ...]
    """Names of protocols."""
    nearest: tuple[str, Gain]
    """The protocol that gains the most, or is the least worse."""


def verdicts(results: Sequence[ProtocolResult], metric: Metric) -> list[Verdict]:
    """Return a verdict for every budget, ascending, and for no budget at last.

    Parameters
    ----------
    settings : sequence of Setting
        Those that predict the same; without the baseline with nothing sent there is no verdict.
    """
    baseline = nothing_sent(results)
    if baseline is None:
        return []
    by_budget: dict[float | None, dict[str, Gain]] = {}
    for result in results:
        against = None if result.baseline else gain(result, baseline, metric)
        if against:
            by_budget.setdefault(result.budget, {})[result.name] = against
    ascending = sorted(by_budget, key=lambda budget: (budget is None, budget or 0.0))
    return [_verdict(budget, by_budget[budget]) for budget in ascending]


def _verdict(budget: float | None, gains: Mapping[str, Gain]) -> Verdict:
    return Verdict(
        budget,
        tuple(name for name, against in gains.items() if against.beyond_doubt),
        tuple(name for name, against in gains.items() if not against.beyond_doubt),
        max(gains.items(), key=lambda entry: entry[1].mean),
    )


def verdict_sentences(
    groups: Mapping[Evaluation, Sequence[ProtocolResult]], unit: ComparableUnit
) -> dict[Evaluation, str]:
    """Say of every thing that is predicted what is not better than nothing sent; nothing without that baseline.

    Parameters
    ----------
    groups : mapping
        The settings of every evaluation.
    unit : {"rating", "user"}
        What the budgets are counted for.
    """
    return {
        evaluation: sentence
        for evaluation, results in groups.items()
        if (sentence := _sentence(results, evaluation.metric, unit))
    }


def _sentence(results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit) -> str | None:
    baseline, every = nothing_sent(results), verdicts(results, metric)
    reached = baseline.mean(metric.column) if baseline else None
    if reached is None or not every:
        return None
    repeated = any(verdict.nearest[1].half_width is not None for verdict in every)
    base = f"nothing sent ({metric.label} {number(reached, gain_digits(metric))})"
    base += " by more than the uncertainty of the difference" if repeated else ""
    # What is better without privacy is no news, unless there is nothing else to say.
    said = [verdict for verdict in every if verdict.budget is not None or verdict.not_better] or every
    alike = groupby(said, key=lambda verdict: (verdict.budget is None, verdict.better, verdict.not_better))
    clauses = [
        _clause([*group], "it" if place else base, unit, metric) for place, (_, group) in enumerate(alike)
    ]
    sentence = "; ".join(clauses) + ("" if repeated else " (one run each: the uncertainty is unknown)")
    return f"{sentence[0].upper()}{sentence[1:]}."


def _clause(alike: Sequence[Verdict], base: str, unit: ComparableUnit, metric: Metric) -> str:
    """Say what holds at budgets at which the same protocols are better."""
    last = alike[-1]
    private = last.budget is not None
    kind = "private protocol" if private else "protocol"
    budgets = listed(f"{verdict.budget:g}" for verdict in alike if verdict.budget is not None)
    where = f"at ε = {budgets} per {unit}," if private else "without privacy"
    return f"{where} {' '.join(_who(last, kind, base))}" + _nearest(alike, metric)


def _who(verdict: Verdict, kind: str, base: str) -> Iterator[str]:
    """Yield who beats the base and who does not."""
    better, others = verdict.better, verdict.not_better
    count = len(better) + len(others)
    if count == 1:
        yield f"{(better or others)[0]} {'beats' if better else 'does not beat'} {base}"
    elif not better:
        yield f"none of the {plural(count, kind)} beats {base}"
    elif not others:
        yield f"each of the {plural(count, kind)} beats {base}"
    else:
        yield f"{listed(better)} {'beats' if len(better) == 1 else 'beat'} {base},"
        yield f"{listed(others)} {'does' if len(others) == 1 else 'do'} not"


def _nearest(alike: Sequence[Verdict], metric: Metric) -> str:
    """Say how far the nearest is where none is better, at the largest of the budgets."""
    last = alike[-1]
    if last.better:
        return ""
    name, against = last.nearest
    where = f" at ε = {last.budget:g}" if len(alike) > 1 else ""
    who = f"nearest{where}: {name}, " if len(last.not_better) > 1 else f"{where.strip()}: " if where else ""
    return f" ({who}{against.written(gain_digits(metric))})"
