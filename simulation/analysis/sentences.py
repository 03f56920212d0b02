"""The answer of a comparison in words: at most four short sentences for each thing that is predicted."""

import math

from dprec.accounting import ComparableUnit
from simulation.analysis.answer import SLACK, Answer, Choice, GridCell
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
    if not answer.choices:
        return (_without_choice(answer),)
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


def guess_in_words(epsilon: float, unit: ComparableUnit, result: ProtocolResult) -> str:
    """Say what an epsilon that a result keeps means for a guesser."""
    return _guess_of(_guessed(epsilon, unit, result), epsilon)


def _guessed(epsilon: float, unit: ComparableUnit, result: ProtocolResult) -> str:
    """Say what an epsilon leaves uncertain: no item set that is seen, no profiles that are further apart."""
    if unit == "rating":
        return "one rating"
    if not result.flag("hides_rated_items"):
        return "all values that a user sends"
    between = _between(epsilon, result)
    return (
        "all that a user sends"
        if between is not None and between <= epsilon * SLACK
        else "whether a user takes part"
    )


def _between(epsilon: float, result: ProtocolResult) -> float | None:
    """Return the loss between any two profiles; what one device sends is held against any other's."""
    known = "epsilon_any_two" in result.rows[0]
    return epsilon if not known and result.trust == "local" else result.any_two


def _guess_of(what: str, epsilon: float) -> str:
    return f"a 50 % guess of {what} becomes right with at most {_sure(epsilon)}"


def _sure(epsilon: float) -> str:
    """Write the share of `guess`; certainty where it rounds to that."""
    percent = 100 * guess(epsilon)
    return "certainty (> 99.9 %)" if percent > 99.9 else f"{percent:.{1 if percent > 99 else 0}f} %"


def _chosen(choice: Choice, answer: Answer, *, first: bool) -> str:
    """Return the sentence on what to take for one thing that is protected."""
    cell, metric, best = choice.cell, answer.metric, choice.cell.best
    assert best is not None  # there is no choice without
    delta = "" if cell.delta is None else f", δ = {cell.delta:g}"
    lead = f"ε = {cell.epsilon:g} for {PROTECTED[cell.unit][cell.hides]}{delta}: "
    base = _base(answer, cell) if first or not cell.hides else ""
    model = TRUST_IN_WORDS[best.trust]
    named = f"{best.title} in the {model if model.endswith('model') else f'model of {model}'}"
    if cell.against and not cell.against.better:
        return f"{lead}nothing beats sending nothing{base}; nearest, {named}, {cell.against.written}."
    gained = "" if cell.against is None else f", {cell.against.written} than nothing sent"
    unsure = " (uncertainty unknown)" if first and cell.against and cell.against.low is None else ""
    reached = f"{_alike(cell)}, {_reached(best, metric)}"
    return f"{lead}{named}{reached}{gained}{base}{unsure}; {price(best)}{_without_trust(choice)}."


def _reached(result: ProtocolResult, metric: Metric) -> str:
    name = metric.label
    inside = name[0].lower() + name[1:] if name[1:2].islower() else name
    return f"{inside} {number(result.mean(metric.column), gain_digits(metric))}"


def _base(answer: Answer, cell: GridCell) -> str:
    """Say what is reached with nothing sent, and by item sets alone where those are revealed."""
    digits = gain_digits(answer.metric)
    base = [number(answer.baseline, digits)] if answer.baseline is not None else []
    if answer.sets_alone is not None and not cell.hides:
        base.append(f"item sets alone {number(answer.sets_alone, digits)}")
    return f" ({'; '.join(base)})" if base else ""


def _alike(cell: GridCell) -> str:
    names = [result.title for result in cell.alike]
    few = listed(names) if len(names) <= _MOST_NAMES else plural(len(names), "other protocol")
    return f" (not significantly worse: {few})" if names else ""


def _without_trust(choice: Choice) -> str:
    """Say what those who trust nobody get instead."""
    local = choice.local
    if choice.cell.trust == "local":
        return ""
    if local is None or local.best is None:
        return "; in the local model nothing protects it"
    gained = f", {local.against.written}" if local.against else ""
    instead = "nothing beats sending nothing" if local.nothing_sent_wins else f"{local.best.title}{gained}"
    return f"; in the local model {instead}"


def _guesses(answer: Answer) -> str:
    """Say what epsilon means for a guesser; of a whole user too, where losses add up."""
    cell = answer.choices[0].cell
    best, epsilon = cell.best, cell.epsilon
    assert best is not None  # there is no choice without
    what, between, apart = _guessed(epsilon, cell.unit, best), _between(epsilon, best), ""
    if cell.unit == "user" and cell.hides:
        if between is None:
            apart = "; between any two profiles nothing is proved"
        elif between > epsilon * SLACK:
            apart = f"; between any two profiles ε is {loss(between)}: {_sure(between)}"
    elif cell.unit == "rating" and (whole := best.epsilon("user")):
        apart = f"; of {_guessed(whole, 'user', best)}, with {best.title}, {_sure(whole)}"
    return f"At ε = {epsilon:g}, {_guess_of(what, epsilon)}{apart}."


def _without_choice(answer: Answer) -> str:
    """Say that no protocol keeps a budget, and what the most accurate reaches all the same."""
    kept = "has a budget" if answer.budget is None else f"is proved to keep ε = {loss(answer.budget)}"
    said = f"No protocol here {kept}" + ("" if answer.budget is None else f" per {answer.unit}")
    if answer.unproved is None:
        return f"{said}."
    only = f" ({answer.unproved.word} only)" if answer.unproved.falls_short else ""
    return f"{said}; {answer.unproved.title}{only} reaches {_reached(answer.unproved, answer.metric)}."
