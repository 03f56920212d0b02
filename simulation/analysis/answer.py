"""What a comparison answers, as data and in words: which protocol to take, and whom one has to trust."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit
from simulation.analysis.decision import SLACK, GridCell, candidates, decision_grid, preferred
from simulation.analysis.gains import NOTHING_SENT, SETS_ONLY, gain_digits, strongest
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, loss, number, plural, size


def by_trust(results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return results by trust model, the least trust first; those without privacy and the baselines last."""

    def position(result: ProtocolResult) -> tuple[bool, bool, int]:
        trusting = 0 if result.baseline else LEAST_TRUST_FIRST.index(result.trust)
        return result.baseline is not None, result.reference, trusting

    return sorted(results, key=position)


class Choice(NamedTuple):
    """The protocol to take for one thing that is protected, whomever one trusts."""

    cell: GridCell
    """Of the trust model with the most accurate, or of one with less trust that is as accurate."""
    local: GridCell | None
    """The same if nobody is trusted; None if nothing protects it then."""


@dataclass(frozen=True)
class Answer:
    """What a comparison says of one evaluation at its reference budget."""

    metric: Metric
    unit: ComparableUnit
    """In which most protocols were given the budget."""
    budget: float | None
    """The epsilon that most protocols were given; None where no protocol has a budget."""
    baseline: float | None
    """What nothing sent reaches."""
    sets_alone: float | None
    """What the item sets give with no value sent."""
    choices: tuple[Choice, ...]
    """For what budgets were given for: values and whole profiles; then for a whole user, where budgets were
    given for a rating and another protocol is the one to take.
    """
    unproved: ProtocolResult | None
    """Where there is no choice, the most accurate protocol that claims the budget, or has none."""
    waiting: str | None = None
    """Why there is no answer yet: until each protocol has a run, nothing is said."""


def answer_to(
    results: Sequence[ProtocolResult],
    metric: Metric,
    unit: ComparableUnit,
    delta: float | None = None,
    *,
    waiting: str | None = None,
) -> Answer:
    """Return the answer of one evaluation, with the unit and the delta in which protocols were matched."""
    budget, every = reference_budget(results), candidates(results, metric)

    def reached(baseline: str) -> float | None:
        form = strongest(results, baseline)
        return None if form is None else form.mean(metric.column)

    def of(unit: ComparableUnit, *hiding: bool) -> list[Choice]:
        epsilons = [] if budget is None else [budget]
        grid = decision_grid(results, metric, unit, delta, epsilons=epsilons)
        chosen = (_choice([each for each in grid if each.hides == hides], metric) for hides in hiding)
        return [each for each in chosen if each]

    # A budget per rating is for its value first, and one per user for the whole profile.
    choices = whole = of("user", True, False)
    if unit == "rating":
        # Beside it, the first of a whole user that is worth it, unless it names the same again.
        choices = of("rating", False, True)
        worth = [each for each in whole if not each.cell.nothing_sent_wins] or whole
        choices += [each for each in worth[:1] if not any(each.cell.best is own.cell.best for own in choices)]
    unproved = [each for each in every if each.result.budget == budget and each.result.baseline is None]
    named = None if choices else next(iter(preferred(unproved)), None)
    return Answer(
        *(metric, unit, budget, reached(NOTHING_SENT), reached(SETS_ONLY), tuple(choices)),
        unproved=named.result if named else None,
        waiting=waiting,
    )


def _choice(cells: Sequence[GridCell], metric: Metric) -> Choice | None:
    """Return what to take, of the cells of all trust models; None if nothing is proved in any."""

    def place(cell: GridCell) -> tuple[bool, float]:
        reached = cell.best.mean(metric.column) if cell.best else None
        return cell.against is None or not cell.against.better, metric.sort_key(reached or 0.0)

    filled = {each.trust: each for each in cells if each.best}
    cell = min(filled.values(), key=place, default=None)
    while cell and cell.with_less and (less := filled.get(cell.with_less.trust)):
        if less.best is not cell.with_less:
            break
        cell = less
    return Choice(cell, filled.get("local")) if cell else None


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
    sentences = [_chosen(choice, answer, first=place == 0) for place, choice in enumerate(answer.choices)]
    return (*sentences, _guesses(answer))


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
    what = _guessed(epsilon, unit, result)
    return f"a 50 % guess of {what} becomes right with at most {_sure(epsilon)}"


def _guessed(epsilon: float, unit: ComparableUnit, result: ProtocolResult) -> str:
    """Say what an epsilon leaves uncertain: no item set that is seen, no profiles that are further apart."""
    if unit == "rating":
        return "one rating"
    if not result.hides:
        return "all values that a user sends"
    between = _between(epsilon, result)
    near = between is not None and between <= epsilon * SLACK
    return "all that a user sends" if near else "whether a user has this profile or none"


def _between(epsilon: float, result: ProtocolResult) -> float | None:
    """Return the loss between any two profiles; what one device sends is held against any other's."""
    known = "epsilon_any_two" in result.rows[0]
    return epsilon if not known and result.trust == "local" else result.any_two


def _sure(epsilon: float) -> str:
    """Write the share of `guess`; certainty where it rounds to that."""
    percent = 100 * guess(epsilon)
    return "certainty (> 99.9 %)" if percent > 99.9 else f"{percent:.{1 if percent > 99 else 0}f} %"


def _chosen(choice: Choice, answer: Answer, *, first: bool) -> str:
    """Return the sentence on what to take for one thing that is protected."""
    cell, best, against = choice.cell, choice.cell.best, choice.cell.against
    assert best is not None  # there is no choice without
    delta = "" if cell.delta is None else f", δ = {cell.delta:g}"
    lead = f"ε = {cell.epsilon:g} for {PROTECTED[cell.unit][cell.hides]}{delta}: "
    base = _base(answer, cell) if first or not cell.hides else ""
    model = TRUST_IN_WORDS[best.trust]
    named = f"{best.title} in the {model if model.endswith('model') else f'model of {model}'}"
    if against and not against.better:
        none = f"none of these protocols beats {against.base}"
        return f"{lead}{none}{base}; nearest, {named}, {against.written}."
    names = [result.title for result in cell.alike]
    few = listed(names) if len(names) <= _MOST_NAMES else plural(len(names), "other protocol")
    alike = f" (not significantly worse: {few})" if names else ""
    gained = "" if against is None else f", {against.written} than {against.base}"
    unsure = " (uncertainty unknown)" if first and against and against.low is None else ""
    reached = f"{alike}, {_reached(best, answer.metric)}"
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


def _without_trust(choice: Choice) -> str:
    """Say what those who trust nobody get instead."""
    local = choice.local
    if choice.cell.trust == "local":
        return ""
    if local is None or local.best is None:
        return "; in the local model none of these protocols protects it"
    gained = f", {local.against.written}" if local.against else ""
    instead = f"none beats {local.against.base}" if local.against and local.nothing_sent_wins else ""
    return f"; in the local model {instead or f'{local.best.title}{gained}'}"


def _guesses(answer: Answer) -> str:
    """Say what epsilon means for a guesser; of a whole user too, where losses add up."""
    cell = answer.choices[0].cell
    best, epsilon, apart = cell.best, cell.epsilon, ""
    assert best is not None  # there is no choice without
    if cell.unit == "user" and cell.hides:
        between = _between(epsilon, best)
        if between is None:
            apart = "; between any two profiles nothing is proved"
        elif between > epsilon * SLACK:
            apart = f"; between any two profiles ε is {loss(between)}: {_sure(between)}"
    elif cell.unit == "rating" and (whole := best.epsilon("user")):
        apart = f"; of {_guessed(whole, 'user', best)}, with {best.title}, {_sure(whole)}"
    return f"At ε = {epsilon:g}, {guess_in_words(epsilon, cell.unit, best)}{apart}."


def _without_choice(answer: Answer) -> str:
    """Say that no protocol keeps a budget, and what the most accurate reaches all the same."""
    kept = "has a budget" if answer.budget is None else f"is proved to keep ε = {loss(answer.budget)}"
    none = f"No protocol here {kept}" + ("" if answer.budget is None else f" per {answer.unit}")
    if answer.unproved is None:
        return f"{none}."
    only = f" ({answer.unproved.word} only)" if answer.unproved.falls_short else ""
    return f"{none}; {answer.unproved.title}{only} reaches {_reached(answer.unproved, answer.metric)}."
