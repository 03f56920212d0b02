"""The answer of a comparison in words: sentences for each thing that is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dprec.accounting import ComparableUnit
from simulation.analysis.answer import Answer, Candidate, TrustAnswer
from simulation.analysis.gains import SETS_ONLY, Gain, gain, gain_digits, nothing_sent
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, loss, number, plural

_MOST_NAMES = 3
"""Names that are listed; of more, only their number is said."""


def answer_sentences(answer: Answer, unit: ComparableUnit) -> tuple[str, ...]:
    """Return what a comparison says of one evaluation, in at most two sentences."""
    first = _first(answer, unit)
    second = "; ".join(_context(answer))
    return (first, f"{second[0].upper()}{second[1:]}.") if second else (first,)


def trust_sentences(answer: Answer, at_trusts: Sequence[TrustAnswer], delta: float | None) -> tuple[str, ...]:
    """Return what a comparison of whole users says of one evaluation: a line for each trust model at the end.

    Parameters
    ----------
    at_trusts : sequence of TrustAnswer
        At the budget of the answer.
    delta : float or None
        With which the budget holds.
    """
    if not at_trusts:
        return answer_sentences(answer, "user")
    with_delta = "" if delta is None else f" with δ = {delta:g}"
    depends = (
        "every protocol here that is proved to keep its budget has the same trust model"
        if len(at_trusts) == 1
        else "the most accurate protocol that is proved to keep its budget depends on the trust model"
    )
    lead = f"At ε = {answer.budget:g} per user{with_delta}, {depends}"
    if answer.baseline:
        lead += f"; nothing sent reaches {_reached(answer.baseline, answer.metric)}"
    return (f"{lead}.", *(_at_trust(each, answer) for each in at_trusts))


def _first(answer: Answer, unit: ComparableUnit) -> str:
    """Return the sentence about the protocol to take, or that says that there is none."""
    if answer.budget is None:
        return _without_budgets(answer)
    at = f"At ε = {answer.budget:g} per {unit}"
    if answer.baseline and answer.nothing_beats_the_baseline:
        return (
            f"{at} nothing here beats sending nothing: {_nearest(answer, answer.baseline, answer.nearest)}."
        )
    best, claimed = answer.best, answer.claimed
    if best is None:
        named = "" if claimed is None else f"; {_claims(claimed.result, unit)}, {_reaches(answer, claimed)}"
        return f"{at} no protocol here is proved to keep its budget{named}."
    if answer.baseline and best.against and not best.beats_nothing_sent:
        return (
            f"{at} no protocol that is proved to keep its budget beats sending nothing: "
            f"{_nearest(answer, answer.baseline, best)}."
        )
    alike = f" (not significantly worse: {_few(answer.alike)})" if answer.alike else ""
    significantly = " and significantly beats nothing sent" if answer.in_doubt else ""
    per_user = best.result.epsilon("user") if unit == "rating" else None
    compared = best.result.profiles_compared(per_user, " on the ")
    summed = "" if per_user is None else f", up to {loss(per_user)} per user{compared}"
    return (
        f"{at}{summed}, the most accurate protocol that is proved to keep its budget{significantly} is "
        f"{best.result.name}{alike}: it {_reaches(answer, best)}, {_costs(best.result)}."
    )


def _claims(result: ProtocolResult, unit: ComparableUnit) -> str:
    """Name a protocol with what it claims, which may be another epsilon than it was asked for."""
    claimed = result.claimed(unit)
    verb = "declares" if result.status == "declared" else "claims"
    return f"{result.name}, which {verb} {'to' if claimed is None else f'ε = {loss(claimed)}'}"


def _without_budgets(answer: Answer) -> str:
    named = answer.without_privacy or answer.baseline
    if named is None:
        return "No protocol here has a budget."
    return f"No protocol here has a budget; {named.result.name} {_reaches(answer, named)}."


def _nearest(answer: Answer, baseline: Candidate, nearest: Candidate | None) -> str:
    """Say what nothing sent reaches, and which protocol comes nearest to it or is hardly better."""
    reached = f"every device alone reaches {_reached(baseline, answer.metric)}"
    if nearest is None or nearest.against is None:
        return reached
    doubt = ", which may be chance" if nearest.against.mean > 0 else ""
    written = nearest.against.written(gain_digits(answer.metric))
    promise = f" ({nearest.result.word}, not proved)" if nearest.result.falls_short else ""
    return f"{reached}, and the nearest protocol, {nearest.result.name}{promise}, is {written}{doubt}"


def _reaches(answer: Answer, named: Candidate) -> str:
    reaches, metric = f"reaches {_reached(named, answer.metric)}", answer.metric
    if answer.baseline is None or named.against is None:
        return reaches
    written = named.against.written(gain_digits(metric))
    return f"{reaches}, {written} than nothing sent ({_number(answer.baseline.accuracy, metric)})"


def _costs(result: ProtocolResult) -> str:
    up, down = (result.mean(f"{way}link_message_mean_per_user") for way in ("up", "down"))
    return (
        f"for {number(up, 0)} bytes up and {number(down, 0)} down per user; "
        f"the server sees {result.server_sees}"
    )


def _context(answer: Answer) -> Iterator[str]:
    """Yield what item sets give alone, what published protocols do, and what no privacy gives."""
    metric = answer.metric
    best = answer.best or answer.claimed
    if answer.set_alone and best and not best.result.flag("hides_rated_items"):
        yield _set_alone(answer.set_alone, metric)
    if answer.baseline and answer.published:
        yield _published(answer.published, answer.published_better)
    if (clear := answer.without_privacy) and answer.budget is not None:
        yield f"without privacy {clear.result.name} reaches {_number(clear.accuracy, metric)}"


def _set_alone(alone: Candidate, metric: Metric) -> str:
    return (
        "item sets alone, which the server sees and a table tells all users something of, give "
        f"{_number(alone.accuracy, metric)} ({alone.result.name})"
    )


def _published(names: Sequence[str], better: Sequence[str]) -> str:
    """Say which of the published protocols beat nothing sent."""
    if len(names) == 1:
        return f"the published {names[0]} {'beats' if better else 'does not beat'} nothing sent"
    systems = f"the {len(names)} published systems ({listed(names)})"
    if not better:
        return f"none of {systems} beats nothing sent"
    if len(better) == len(names):
        return f"each of {systems} beats nothing sent"
    return f"of {systems}, {listed(better)} {'beats' if len(better) == 1 else 'beat'} nothing sent"


def _at_trust(at_trust: TrustAnswer, answer: Answer) -> str:
    """Say which protocol to take in a trust model, or that none significantly beats nothing sent."""
    metric, best, against = answer.metric, at_trust.best, at_trust.against
    trusted = TRUST_IN_WORDS[at_trust.trust]
    kept = "ratings protected, item set hidden" if at_trust.hides else "ratings protected, item set revealed"
    budget = "" if best.budget == at_trust.budget else f" at ε = {best.budget:g}"
    reached = f"{best.name}{budget}, {_label(metric)} {_number(best.mean(metric.column), metric)}"
    if against is not None:
        reached += f", {against.written(gain_digits(metric))}"
    not_better = "the most accurate does not significantly beat sending nothing: "
    sentence = (
        not_better + reached if against and not against.significantly_better else f"{reached}, {_costs(best)}"
    )
    if answer.set_alone and not at_trust.hides:
        sentence += f"; {_set_alone(answer.set_alone, metric)}"
    return f"{trusted[0].upper()}{trusted[1:]} ({kept}): {sentence}."


def _few(results: Sequence[ProtocolResult]) -> str:
    names = [result.name for result in results]
    return listed(names) if len(names) <= _MOST_NAMES else plural(len(names), "protocol")


def _number(value: float | None, metric: Metric) -> str:
    return number(value, gain_digits(metric))


def _label(metric: Metric) -> str:
    """Return the name of a metric inside a sentence."""
    name = metric.label
    return name[0].lower() + name[1:] if name[1:2].islower() else name


def _reached(named: Candidate, metric: Metric) -> str:
    return f"{_label(metric)} {_number(named.accuracy, metric)}"


_READS_SETS = "calibrated"
"""Completion that reads the item sets beside what was reported."""


def item_set_sentence(results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit) -> str | None:
    """Say what item sets alone give, and what reports add to them; None if no protocol reads them."""
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
    sentence = f"Item sets alone, without values, give {metric.label} {accuracy} ({alone.name})"
    baseline = nothing_sent(results)
    hidden = baseline.mean(metric.column) if baseline else None
    if hidden is not None:
        sentence += f", against {number(hidden, digits)} with nothing sent"
    sentence += (
        "; the server sees them, and the table that devices are sent tells all users something of them"
    )
    sentence += "; where a protocol hides the item set, nothing of this remains"
    added = listed(_added(readers, alone, metric))
    return f"{sentence}." + (f" Compared with {alone.name}, {added} per {unit}." if added else "")


def _unknown(readers: Sequence[ProtocolResult]) -> str | None:
    """Say that nothing here tells the share of the set, if there is a protocol that reads it."""
    if not readers:
        return None
    names = list(dict.fromkeys(result.name for result in readers))
    verb = "predicts" if len(names) == 1 else "predict"
    return (
        f"{listed(names)} {verb} also from the item sets, which are revealed; what these give without any "
        f"value reported, the baseline {SETS_ONLY} says. Where a protocol hides them, none of it holds."
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


class _Verdict(NamedTuple):
    """Which protocols of one budget are better than nothing sent, and the one that gains the most."""

    budget: float | None
    better: tuple[str, ...]
    not_better: tuple[str, ...]
    nearest: tuple[str, Gain]


def _verdicts(results: Sequence[ProtocolResult], baseline: ProtocolResult, metric: Metric) -> list[_Verdict]:
    """Return a verdict for every budget, ascending, and for no budget at last."""
    by_budget: dict[float | None, dict[str, Gain]] = {}
    for result in results:
        against = None if result.baseline else gain(result, baseline, metric)
        if against:
            by_budget.setdefault(result.budget, {})[result.name] = against
    return [
        _Verdict(
            budget,
            tuple(name for name, against in gains.items() if against.significantly_better),
            tuple(name for name, against in gains.items() if not against.significantly_better),
            max(gains.items(), key=lambda entry: entry[1].mean),
        )
        for budget, gains in sorted(by_budget.items(), key=lambda own: (own[0] is None, own[0] or 0.0))
    ]


def verdict_sentence(results: Sequence[ProtocolResult], metric: Metric, unit: ComparableUnit) -> str | None:
    """Say what is not better than nothing sent; None without that baseline."""
    baseline = nothing_sent(results)
    reached = baseline.mean(metric.column) if baseline else None
    every = _verdicts(results, baseline, metric) if baseline else []
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


def _clause(alike: Sequence[_Verdict], base: str, unit: ComparableUnit, metric: Metric) -> str:
    """Say what holds at budgets at which the same protocols are better."""
    last = alike[-1]
    private = last.budget is not None
    kind = "private protocol" if private else "protocol"
    budgets = listed(f"{verdict.budget:g}" for verdict in alike if verdict.budget is not None)
    where = f"at ε = {budgets} per {unit}," if private else "without privacy"
    return f"{where} {' '.join(_who(last, kind, base))}" + _nearest_words(alike, metric)


def _who(verdict: _Verdict, kind: str, base: str) -> Iterator[str]:
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


def _nearest_words(alike: Sequence[_Verdict], metric: Metric) -> str:
    """Say how far the nearest is where none is better, at the largest of the budgets."""
    last = alike[-1]
    if last.better:
        return ""
    name, against = last.nearest
    where = f" at ε = {last.budget:g}" if len(alike) > 1 else ""
    who = f"nearest{where}: {name}, " if len(last.not_better) > 1 else f"{where.strip()}: " if where else ""
    return f" ({who}{against.written(gain_digits(metric))})"
