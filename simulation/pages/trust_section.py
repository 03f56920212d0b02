"""The section of a comparison's page that says which protocol to take at each trust."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from simulation.analysis.answer import TrustAnswer, at_each_trust
from simulation.analysis.columns import (
    BYTES_DOWN,
    BYTES_UP,
    SERVER_SEES,
    accuracy_column,
    baseline_columns,
    composed_column,
)
from simulation.analysis.populations import Course, users_needed
from simulation.analysis.vocabulary import DASH, TRUST_IN_WORDS
from simulation.pages.comparison_tables import heading, named_cell, result_cell
from simulation.pages.evaluation_parts import EvaluationPart
from simulation.pages.page import Cell, Column, Section, paragraph, table, text_cell

_WORDS = (
    "The most accurate protocol of each trust that is proved to keep its budget. It beats nothing sent where "
    "the interval of the difference excludes 0. Where a protocol that needs less trust is at least as "
    "accurate, that is named: nothing is gained by trusting more. Where values only are protected, the rated "
    "items are seen, and most of the accuracy may come from them: the baseline of such a protocol is sets-only, "
    "and it does not compare with one that protects the whole profile."
)


def trust_sections(part: EvaluationPart, every: Sequence[Course]) -> list[Section]:
    """Return the section with a line for every trust and budget, if any protocol is proved to keep a budget.

    Parameters
    ----------
    every : sequence of Course
        How protocols do with other numbers of users.
    """
    budgets, delta = part.files.epsilons, part.files.matched_delta
    answers = at_each_trust(part.results, part.metric, budgets=budgets, delta=delta)
    if not answers:
        return []
    lines = _table(answers, part, every)
    return [Section(f"at-each-trust{part.suffix}", part.titled("At each trust"), (paragraph(_WORDS), lines))]


def _table(answers: Sequence[TrustAnswer], part: EvaluationPart, every: Sequence[Course]) -> Markup:
    results, metric = part.results, part.metric
    figures = [accuracy_column(metric), *baseline_columns(metric, results)]
    losses = composed_column(results)
    costs = [BYTES_UP[0], BYTES_DOWN[0], SERVER_SEES]
    needed = [Column("users needed", f"{every[0].ratings} ratings", numeric=False)] if every else []
    columns = [
        Column("trusted", numeric=False),
        Column("protected", numeric=False),
        Column("budget", numeric=False),
        Column("most accurate", numeric=False),
        heading(losses),
        *map(heading, figures),
        Column("beats nothing sent", numeric=False),
        *needed,
        *map(heading, costs),
        Column("as good with less trust", numeric=False),
    ]
    rows = [
        [
            Cell(TRUST_IN_WORDS[answer.trust], answer.trust),
            text_cell("whole profile" if answer.hides else "values only"),
            Cell(f"ε {answer.budget:g}", answer.budget),
            named_cell(answer.best, part.looks, part.links),
            result_cell(losses, answer.best),
            *(result_cell(column, answer.best) for column in figures),
            text_cell(_verdict(answer)),
            *(text_cell(users_needed(every, answer.best)) for _ in needed),
            *(result_cell(column, answer.best) for column in costs),
            text_cell(_less(answer)),
        ]
        for answer in answers
    ]
    return table("One line per trust, what is protected, and budget", columns, rows)


def _verdict(answer: TrustAnswer) -> str:
    if answer.against is None:
        return DASH
    return "yes" if answer.beats_nothing_sent else "no"


def _less(answer: TrustAnswer) -> str | None:
    return None if answer.with_less is None else f"{answer.with_less.name} ({answer.with_less.trust})"
