"""The answer of a comparison in words: at most four short sentences for each thing that is predicted."""

from __future__ import annotations

import math

from dprec.accounting import ComparableUnit
from simulation.analysis.answer import Answer, Choice
from simulation.analysis.gains import gain_digits
from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, loss, number, plural, size

_MOST_NAMES = 3
"""Names that are listed; of more, only their number is said."""

PROTECTED: dict[ComparableUnit, dict[bool, str]] = {
    "rating": {False: "the value of one rating", True: "one rating, given or not"},
    "user": {False: "all values of a user, the item set revealed", True: "a user's whole profile"},
}
"""What is protected, by the unit and whether the item set is hidden."""


def answer_sentences(answer: Answer) -> tuple[str, ...]:
    """Return what a comparison says of one evaluation: the first sentence is its verdict."""
    if answer.waiting:
        return (f"{answer.waiting[0].upper()}{answer.waiting[1:]}.",)
    if answer.budget is None:
        return (_without_budgets(answer),)
    if not answer.choices:
        return (_without_proof(answer),)
    said = [_chosen(choice, answer, first=place == 0) for place, choice in enumerate(answer.choices)]
    return (*said, _guesses(answer))


def price(result: ProtocolResult) -> str:
    """Say what a user sends and receives: as messages, and on the network."""
    messages, network = result.bytes_per_user, result.network_bytes_per_user
    if messages == 0:
        return "nothing is sent"
    carried = "" if network is None else f", {size(network)} on the network"
    return f"{'–' if messages is None else size(messages)} of messages{carried}"


def guess(epsilon: float) -> float:
    """Return how sure a guesser is at most afterwards of what was as likely as not: e^ε / (1 + e^ε)."""
    return 1 / (1 + math.exp(-epsilon))


_GUESSED: dict[ComparableUnit, str] = {"rating": "one rating", "user": "all that a user sends"}


def guess_in_words(epsilon: float, unit: ComparableUnit) -> str:
    """Say what an epsilon means for a guesser."""
    return f"a 50 % guess of {_GUESSED[unit]} becomes right with at most {_sure(epsilon)}"


def _sure(epsilon: float) -> str:
    """Write the share of `guess`; certainty where it rounds to that."""
    percent = 100 * guess(epsilon)
    return "certainty (> 99.9 %)" if percent > 99.9 else f"{percent:.{1 if percent > 99 else 0}f} %"


def _chosen(choice: Choice, answer: Answer, *, first: bool) -> str:
    """Return the sentence on what to take for one thing that is protected."""
    cell, metric = choice.cell, answer.metric
    delta = "" if cell.delta is None else f", δ = {cell.delta:g}"
    lead = f"ε = {cell.epsilon:g} for {PROTECTED[cell.unit][cell.hides]}{delta}: "
    best = cell.best
    assert best is not None  # there is no choice without
    base = _base(answer, choice) if first or not cell.hides else ""
    if cell.against and not cell.against.better:
        return f"{lead}nothing beats sending nothing{base}; nearest, {_named(best)}, {cell.against.written}."
    named = f"{_named(best)}{_alike(choice)}, {_reached(best, metric)}"
    gained = "" if cell.against is None else f", {cell.against.written} than nothing sent"
    unsure = " (how sure is not known)" if first and cell.against and cell.against.low is None else ""
    return f"{lead}{named}{gained}{base}{unsure}; {price(best)}{_without_trust(choice)}."


def _named(result: ProtocolResult) -> str:
    return f"{result.title} in the {_model(result)}"


def _model(result: ProtocolResult) -> str:
    words = TRUST_IN_WORDS[result.trust]
    return words if words.endswith("model") else f"model of {words}"


def _reached(result: ProtocolResult, metric: Metric) -> str:
    name = metric.label
    inside = name[0].lower() + name[1:] if name[1:2].islower() else name
    return f"{inside} {number(result.mean(metric.column), gain_digits(metric))}"


def _base(answer: Answer, choice: Choice) -> str:
    """Say what is reached with nothing sent, and by item sets alone where those are revealed."""
    digits = gain_digits(answer.metric)
    base = [number(answer.baseline, digits)] if answer.baseline is not None else []
    if answer.sets_alone is not None and not choice.cell.hides:
        base.append(f"item sets alone {number(answer.sets_alone, digits)}")
    return f" ({'; '.join(base)})" if base else ""


def _alike(choice: Choice) -> str:
    names = [result.title for result in choice.alike]
    few = listed(names) if len(names) <= _MOST_NAMES else plural(len(names), "other protocol")
    return f" (not significantly worse: {few})" if names else ""


def _without_trust(choice: Choice) -> str:
    """Say what those who trust nobody get instead."""
    cell = choice.local
    if choice.cell.trust == "local":
        return ""
    if cell.best is None or cell.against is None:
        return "" if cell.best else "; in the local model nothing protects it"
    if not cell.against.better:
        return "; in the local model nothing beats sending nothing"
    return f"; in the local model {cell.best.title}, {cell.against.written}"


def _guesses(answer: Answer) -> str:
    """Say what epsilon means for a guesser; of a whole user too, where losses add up."""
    cell = answer.choices[0].cell
    said = f"At ε = {cell.epsilon:g}, {guess_in_words(cell.epsilon, cell.unit)}"
    whole = None if cell.unit == "user" or cell.best is None else cell.best.epsilon("user")
    if whole is None or cell.best is None:
        return f"{said}."
    return f"{said}; of {_GUESSED['user']}, with {cell.best.title}, {_sure(whole)}."


def _without_budgets(answer: Answer) -> str:
    named = answer.without_privacy
    reached = f"; {named.title} reaches {_reached(named, answer.metric)}" if named else ""
    return f"No protocol here has a budget{reached}."


def _without_proof(answer: Answer) -> str:
    claimed = answer.claimed
    said = f"No protocol here is proved to keep ε = {loss(answer.budget)} per {answer.unit}"
    if claimed is None:
        return f"{said}."
    return f"{said}; {claimed.title} ({claimed.word} only) reaches {_reached(claimed, answer.metric)}."
