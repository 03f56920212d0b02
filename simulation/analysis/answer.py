"""What a comparison answers, in words: which protocol to take, and whom one has to trust."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dprec.accounting import LEAST_TRUST_FIRST, ComparableUnit, Trust
from dprec.errors import plural
from simulation.analysis.decision import SLACK, GridCell, Limits, candidates, decide, decision_grid
from simulation.analysis.gains import NOTHING_SENT, POPULARITY, SETS_ONLY, gain_digits, strongest
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.analysis.vocabulary import (
    Metric,
    listed,
    loss,
    number,
    protected,
    size,
    unit_in_words,
)


class Answer(NamedTuple):
    """What a comparison says of one evaluation at its reference budget."""

    sentences: tuple[str, ...]
    """The first is the verdict."""
    cells: tuple[GridCell, ...] = ()
    """What to take for what budgets were given for, values and whole profiles, whomever one trusts; then for
    a whole user, where budgets were given for a rating. What keeps one for a user stands for that alone.
    """


def answer_to(
    results: Sequence[ProtocolResult],
    metric: Metric,
    unit: ComparableUnit,
    delta: float | None = None,
    *,
    waiting: str | None = None,
) -> Answer:
    """Return the answer of one evaluation, with the unit and the delta in which protocols were matched.

    ``waiting``: why there is no answer yet; until each protocol has a run, nothing else is said.
    """
    if waiting:
        return Answer((f"{waiting[0].upper()}{waiting[1:]}.",))
    budget = reference_budget(results)
    epsilons = [] if budget is None else [budget]

    def chosen(unit: ComparableUnit, *hiding: bool) -> list[list[GridCell]]:
        """Return the cells of all trust models for what is protected, that to take first."""
        grid = decision_grid(results, metric, unit, delta, epsilons=epsilons)
        filled = [[cell for cell in grid if cell.best and cell.hides == hides] for hides in hiding]
        return [_chosen_first(cells, metric) for cells in filled if cells]

    # A budget per rating is for its value first, and one per user for the whole profile.
    choices = for_users = chosen("user", True, False)
    if unit == "rating":
        # Beside it, those of a whole user that are worth it; what keeps more is named for that alone.
        worth = [choice for choice in for_users if not choice[0].nothing_sent_wins] or for_users[:1]
        stronger = {id(choice[0].best): choice for choice in worth}
        choices = [stronger.pop(id(choice[0].best), choice) for choice in chosen("rating", False, True)]
        choices += stronger.values()
    if not choices:
        return Answer((_without_choice(results, metric, budget, unit),))
    forms = {name: strongest(results, name) for name in (NOTHING_SENT, SETS_ONLY, POPULARITY)}
    reached = {name: None if form is None else form.mean(metric.column) for name, form in forms.items()}
    sentences = [
        _sentence(cell, others, metric, reached, first=place == 0)
        for place, (cell, *others) in enumerate(choices)
    ]
    cells = tuple(choice[0] for choice in choices)
    return Answer((*sentences, _guesses(cells[0])), cells)


def _chosen_first(cells: Sequence[GridCell], metric: Metric) -> list[GridCell]:
    """Return the cells of trust models, first that with the most accurate, or as accurate with less trust."""

    def place(cell: GridCell) -> tuple[bool, float]:
        reached = cell.best.mean(metric.column) if cell.best else None
        return cell.against is None or not cell.against.better, metric.sort_key(reached or 0.0)

    by_trust, first = {cell.trust: cell for cell in cells}, min(cells, key=place)
    while first.with_less and (less := by_trust.get(first.with_less.trust)) and less.best is first.with_less:
        first = less
    return [first, *(cell for cell in cells if cell is not first)]


_MOST_NAMES = 3
"""Names that are listed; of more, only their number is said."""


def _sentence(
    cell: GridCell,
    others: Sequence[GridCell],
    metric: Metric,
    reached: Mapping[str, float | None],
    *,
    first: bool,
) -> str:
    """Return the sentence on what to take for one thing that is protected.

    ``others``: the cells of other trust models.
    ``reached``: what nothing sent reaches, item sets alone and popularity, by the names of these baselines.
    """
    best, against, digits = cell.best, cell.against, gain_digits(metric)
    assert best is not None, "a choice without a protocol"
    delta = "" if cell.delta is None else f", δ = {cell.delta:g}"
    scope = protected(cell.unit, cell.hides, lists=best.lists)
    lead = f"ε = {cell.epsilon:g} for {scope}{delta}: "
    nothing, sets, popular = (reached[name] for name in (NOTHING_SENT, SETS_ONLY, POPULARITY))
    bases = [] if nothing is None else [number(nothing, digits)]
    # Item sets count where they are revealed.
    bases += [] if sets is None or cell.hides else [f"item sets alone {number(sets, digits)}"]
    bases += [] if popular is None else [f"popularity, without privacy, {number(popular, digits)}"]
    base = f" ({'; '.join(bases)})" if bases and (first or not cell.hides) else ""
    named = f"{best.title} in the {best.trust} model"
    if against and not against.better:
        none = f"none of these protocols beats {against.base}"
        return f"{lead}{none}{base}; nearest, {named}, {against.written}."
    names = [result.title for result in cell.alike]
    few = listed(names) if len(names) <= _MOST_NAMES else plural(len(names), "other protocol")
    alike = f" (not significantly worse: {few})" if names else ""
    gained = "" if against is None else f", {against.written} than {against.base}"
    unsure = " (without an interval: it may be chance)" if first and against and against.low is None else ""
    instead = _with_less_trust(cell, others, metric, popular)
    return f"{lead}{named}{alike}, {_reached(best, metric)}{gained}{base}{unsure}; {price(best)}{instead}."


def _with_less_trust(
    cell: GridCell, others: Sequence[GridCell], metric: Metric, popular: float | None
) -> str:
    """Say what protects as much for who trusts less, and where popularity, without privacy, is better."""
    less, digits = LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(cell.trust)], gain_digits(metric)
    said = []
    for other in (other for trust in reversed(less) for other in others if other.trust == trust):
        assert other.best is not None, "a choice without a protocol"
        reached = other.best.mean(metric.column)
        named = f"{other.best.title} {number(reached, digits)}"
        if other.against is not None and other.nothing_sent_wins:
            named = f"none beats {other.against.base}"
        elif popular is not None and reached is not None and metric.better(popular, reached):
            named += ", below popularity"
        said.append(f"in the {other.trust} model {named}")
    if less and not any(other.trust == "local" for other in others):
        said.append("in the local model none of these protocols protects it")
    return "".join(f"; {words}" for words in said)


def _reached(result: ProtocolResult, metric: Metric) -> str:
    name = metric.label
    inside = name[0].lower() + name[1:] if name[1:2].islower() else name
    return f"{inside} {number(result.mean(metric.column), gain_digits(metric))}"


def _without_choice(
    results: Sequence[ProtocolResult], metric: Metric, budget: float | None, unit: ComparableUnit
) -> str:
    """Say that no protocol keeps a budget, and what the most accurate reaches all the same."""
    condition = "has a budget" if budget is None else f"is proved to keep ε = {loss(budget)} per {unit}"
    competing = [candidate for candidate in candidates(results, metric) if candidate.result.baseline is None]
    # Without a limit, whatever has the budget competes.
    inside = decide(
        (candidate for candidate in competing if candidate.result.budget == budget), Limits(math.inf, unit)
    )
    nearest = next(iter(inside), None)
    if nearest is None:
        return f"No protocol here {condition}."
    only = f" ({nearest.result.word} only)" if nearest.result.falls_short else ""
    reached = _reached(nearest.result, metric)
    return f"No protocol here {condition}; {nearest.result.title}{only} reaches {reached}."


def price(result: ProtocolResult) -> str:
    """Say what a user sends and receives: as messages, and on the network."""
    messages, network = result.bytes_per_user, result.network_bytes_per_user
    if messages == 0:
        return "nothing is sent"
    carried = "" if network is None else f", {size(network)} on the network"
    return f"{'–' if messages is None else size(messages)} of messages{carried}"


def _guesses(cell: GridCell) -> str:
    """Say what epsilon means for a guesser; of a whole user too, where losses add up."""
    best, epsilon, apart = cell.best, cell.epsilon, ""
    assert best is not None, "a choice without a protocol"
    if cell.unit == "user" and cell.hides:
        between = _between(epsilon, best)
        if between is None:
            apart = "; between any two profiles nothing is proved"
        elif between > epsilon * SLACK:
            apart = f"; between any two profiles ε is {loss(between)}: {guess(between)}"
    elif cell.unit == "rating" and (per_user := best.epsilon("user")):
        apart = f"; of {guessed(per_user, 'user', best)}, with {best.title}, {guess(per_user)}"
    return f"At ε = {epsilon:g}, {guess_in_words(epsilon, cell.unit, best)}{apart}."


def guess_in_words(epsilon: float, unit: ComparableUnit, result: ProtocolResult) -> str:
    """Say what an epsilon that a result keeps means for a guesser."""
    return becomes_right(epsilon, result, f" of {guessed(epsilon, unit, result)}")


def becomes_right(epsilon: float, result: ProtocolResult, of: str = "") -> str:
    """Say how sure a guess becomes at most, and whose it is if not everybody's; ``of``: what is guessed."""
    by = guesser(result)
    return f"a 50 % guess{of}{by and f', {by},'} becomes right with at most {guess(epsilon)}"


_GUESSERS: dict[Trust, str] = {"central": "by anybody but the server"}
"""Whose guesses epsilon bounds, where not everybody's."""


def guesser(result: ProtocolResult) -> str:
    """Say whose guesses the epsilon of a result bounds; nothing where everybody's."""
    return _GUESSERS.get(result.needed_trust, "")


def guessed(epsilon: float, unit: ComparableUnit, result: ProtocolResult) -> str:
    """Say what an epsilon leaves uncertain: no item set that is seen, no profiles that are further apart."""
    if unit == "rating":
        return f"one {unit_in_words(unit, lists=result.lists)}"
    if not result.hides:
        return "all values that a user sends"
    between = _between(epsilon, result)
    any_two_as_close = between is not None and between <= epsilon * SLACK
    return "all that a user sends" if any_two_as_close else "whether a user has this profile or none"


def _between(epsilon: float, result: ProtocolResult) -> float | None:
    """Return the loss between any two profiles; what one device sends is held against any other's."""
    has_column = "epsilon_any_two" in result.rows[0]
    return epsilon if not has_column and result.trust == "local" else result.any_two


def guess(epsilon: float, beyond: str = "certainty (> 99.9 %)") -> str:
    """Write how sure a guesser is at most afterwards of what was as likely as not: e^ε / (1 + e^ε)."""
    percent = 100 / (1 + math.exp(-epsilon))
    return beyond if percent > 99.9 else f"{percent:.{1 if percent > 99 else 0}f} %"
