"""What a comparison answers, as data and in words: which protocol to take, and whom one has to trust."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from simulation.analysis.gains import (
    NOTHING_SENT,
    SETS_ONLY,
    Gain,
    gain,
    gain_digits,
    not_significant,
    nothing_sent,
    shown_from,
    strongest,
)
from simulation.analysis.populations import Course, users_needed
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.vocabulary import TRUST_IN_WORDS, Metric, listed, loss, number, plural, size

SLACK = 1 + 1e-9
"""Losses add up in floating point, and may exceed what was asked for by its rounding."""


@dataclass(frozen=True)
class GridCell:
    """The protocol to take in one trust model, for one thing that is protected, at one epsilon."""

    unit: ComparableUnit
    """What epsilon is for."""
    hides: bool
    """Whether the item set is hidden, so that the whole profile is protected; otherwise values only."""
    trust: Trust
    epsilon: float
    best: ProtocolResult | None = None
    """The most accurate that is proved to lose no more, of those that beat nothing sent if any does; None if
    nothing is.
    """
    against: Gain | None = None
    """How much better it is than nothing sent; None where that was not run."""
    with_less: ProtocolResult | None = None
    """What needs less trust, protects as much and is as accurate: trusting more buys nothing here."""
    users_needed: str | None = None
    """With how many users the best beats nothing sent; None where that was not tried."""
    alike: tuple[ProtocolResult, ...] = ()
    """What competes in the same cell, ran at the same budget and is not significantly worse."""

    @property
    def delta(self) -> float | None:
        """With which the loss of the best holds; None where it holds without."""
        if self.best is None or _within(self.best.epsilon(self.unit), self.epsilon):
            return None
        return self.best.delta

    @property
    def nothing_sent_wins(self) -> bool:
        """Whether even the best is not better than nothing sent."""
        return self.against is not None and not self.against.better


def decision_grid(
    results: Sequence[ProtocolResult],
    metric: Metric,
    unit: ComparableUnit,
    delta: float | None,
    *,
    epsilons: Sequence[float] = (),
    every: Sequence[Course] = (),
) -> list[GridCell]:
    """Return a cell for all that is protected, every trust model and every epsilon, in this order.

    Whatever is proved to lose no more than an epsilon competes at it, whatever it was asked for. Protocols
    that reveal the item set are not compared with those that hide it, nor those of two trust models.

    Of losses per user by composition those count that hold with ``delta``, or each with its own; of epsilons,
    by default all that any protocol was given. What hides the item set comes first, the least trust, and the
    smallest epsilon.
    """
    competing = [each for each in candidates(results, metric) if each.result.baseline is None]
    proved = [each for each in competing if each.result.status == "proved"]
    columns = sorted(epsilons or {each.result.budget for each in proved if each.result.budget is not None})
    hidden = [hides for hides in (True, False) if any(each.hides == hides for each in proved)]
    models = [trust for trust in LEAST_TRUST_FIRST if any(each.result.trust == trust for each in proved)]
    cells = []
    for hides, trust, epsilon in product(hidden, models, columns):
        within = [each for each in proved if _within(kept_epsilon(each.result, unit, delta), epsilon)]
        cells.append(_filled(GridCell(unit, hides, trust, epsilon), within, metric, every))
    return cells


def _filled(cell: GridCell, within: Sequence[Candidate], metric: Metric, every: Sequence[Course]) -> GridCell:
    """Return a cell with the best of those that are proved to keep its epsilon; empty if none competes."""
    own = [each for each in within if (each.hides, each.result.trust) == (cell.hides, cell.trust)]
    best = next(iter(preferred(own, metric)), None)
    if best is None:
        return cell
    alike = tuple(not_significant(best.result, [each.result for each in own]))
    less, needed = _with_less(best, within, metric), users_needed(every, best.result)
    return replace(
        cell, best=best.result, against=best.against, with_less=less, users_needed=needed, alike=alike
    )


def by_trust(results: Sequence[ProtocolResult]) -> list[ProtocolResult]:
    """Return results by trust model, the least trust first; those without privacy and the baselines last."""

    def position(result: ProtocolResult) -> tuple[bool, bool, int]:
        trusting = 0 if result.baseline else LEAST_TRUST_FIRST.index(result.trust)
        return result.baseline is not None, result.reference, trusting

    return sorted(results, key=position)


@dataclass(frozen=True)
class Candidate:
    """A protocol that is compared with others."""

    result: ProtocolResult
    accuracy: float
    against: Gain | None
    """How much better it is than nothing sent; None where that was not run."""

    @property
    def hides(self) -> bool:
        """Whether the item set is hidden."""
        return self.result.flag("hides_rated_items")

    @property
    def better(self) -> bool:
        """Whether it counts as better than nothing sent."""
        return self.against is not None and self.against.better


def candidates(results: Sequence[ProtocolResult], metric: Metric) -> list[Candidate]:
    """Return the results that have a metric, held against nothing sent."""
    baseline = nothing_sent(results)
    return [
        Candidate(each, accuracy, gain(each, baseline, metric) if baseline and each is not baseline else None)
        for each in results
        if (accuracy := each.mean(metric.column)) is not None
    ]


def _within(loss: float | None, epsilon: float) -> bool:
    return loss is not None and loss <= epsilon * SLACK


def kept_epsilon(result: ProtocolResult, unit: ComparableUnit, delta: float | None) -> float | None:
    """Return the smallest epsilon that a result is proved to keep, with a delta as in `decision_grid`."""
    if result.status != "proved":
        return None
    losses = [result.epsilon(unit)]
    if unit == "user" and (delta is None or (result.delta is not None and result.delta <= delta * SLACK)):
        losses.append(result.composed)
    return min((each for each in losses if each is not None), default=None)


def preferred(every: Iterable[Candidate], metric: Metric) -> list[Candidate]:
    """Return candidates as they are taken: those that beat nothing sent first, of equal ones the cheapest."""

    def place(each: Candidate) -> tuple[bool, float, float, float, str]:
        own, cost = each.result, each.result.bytes_per_user or 0.0
        return not each.better, metric.sort_key(each.accuracy), cost, own.budget or 0.0, own.name

    return sorted(every, key=place)


def _with_less(best: Candidate, others: Sequence[Candidate], metric: Metric) -> ProtocolResult | None:
    """Return the best of what needs less trust, protects as much and does as well at the digits shown."""
    trusted = LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(best.result.trust)]
    alike = [each for each in others if each.result.trust in trusted and each.hides >= best.hides]
    less = next(iter(preferred(alike, metric)), None)
    if less is None or best.better > less.better:
        return None
    behind = metric.sort_key(less.accuracy) - metric.sort_key(best.accuracy)
    as_good = behind < shown_from(gain_digits(metric)) or not_significant(best.result, [less.result])
    return less.result if as_good else None


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
    unproved = [each for each in every if each.result.budget == budget and each.result.baseline is None]

    def reached(baseline: str) -> float | None:
        form = strongest(results, baseline)
        return None if form is None else form.mean(metric.column)

    def of(unit: ComparableUnit, *hiding: bool) -> list[Choice]:
        epsilons = [] if budget is None else [budget]
        grid = decision_grid(results, metric, unit, delta, epsilons=epsilons)
        chosen = (_choice([each for each in grid if each.hides == hides], metric) for hides in hiding)
        return [each for each in chosen if each]

    # A budget per rating is for its value first, and one per user for the whole profile.
    whole = of("user", True, False)
    choices = whole if unit == "user" else _with_user(of("rating", False, True), whole)
    named = None if choices else next(iter(preferred(unproved, metric)), None)
    return Answer(
        *(metric, unit, budget, reached(NOTHING_SENT), reached(SETS_ONLY), tuple(choices)),
        unproved=named.result if named else None,
        waiting=waiting,
    )


def _with_user(choices: Sequence[Choice], whole: Sequence[Choice]) -> list[Choice]:
    """Return choices with the first of a whole user that is worth it, unless it names the same again."""
    worth = [each for each in whole if not each.cell.nothing_sent_wins] or whole
    added = [each for each in worth[:1] if not any(each.cell.best is own.cell.best for own in choices)]
    return [*choices, *added]


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
        else "whether a user has this profile or none"
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
        none = f"none of these protocols beats {cell.against.base}"
        return f"{lead}{none}{base}; nearest, {named}, {cell.against.written}."
    gained = "" if cell.against is None else f", {cell.against.written} than {cell.against.base}"
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
        return "; in the local model none of these protocols protects it"
    gained = f", {local.against.written}" if local.against else ""
    instead = f"none beats {local.against.base}" if local.against and local.nothing_sent_wins else ""
    return f"; in the local model {instead or f'{local.best.title}{gained}'}"


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
