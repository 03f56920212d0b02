"""The main table of a comparison, in LaTeX."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from simulation.analysis.columns import (
    BYTES_BOTH_WAYS,
    SERVER_SEES,
    TRUST,
    ResultColumn,
    asked_column,
    composed_column,
    spread_column,
    text_column,
)
from simulation.analysis.protocol_results import (
    ProtocolResult,
    by_evaluation,
    distinguishing_words,
    metrics_of,
    read_comparison,
)

_WRITTEN: dict[str, str | int | None] = {
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    # After the end of a row these would be its arguments.
    "*": "{*}",
    "[": "{[}",
    "–": "--",
    "±": r"$\pm$",
    "ε": r"$\varepsilon$",
    "δ": r"$\delta$",
}
"""How LaTeX is told a character that it would take for a command, or that its fonts lack."""


_SAMPLED = "sampled_ranking_hit_rate_at", "sampled_ranking_ndcg_at"
"""How columns begin that stand beside the main metric, as He et al. [he2017] and many after them report."""

_NEEDED = "% \\usepackage{booktabs}\n"
_NAME: ResultColumn = text_column("protocol", lambda result: result.name)


def escaped(text: str) -> str:
    """Return text as LaTeX typesets it."""
    return text.translate(str.maketrans(_WRITTEN))


def latex(directory: Path) -> str:
    """Return the tables of a comparison, one for each evaluation, a line for each protocol at each budget.

    Raises InputError when the comparison cannot be read.
    """
    comparison = read_comparison(directory)
    name = str(comparison.config.get("name", directory.name))
    title = str(comparison.config.get("title", name))
    groups, budget_column = by_evaluation(comparison.results), asked_column(comparison.matched_unit)
    delta, tables = comparison.matched_delta, [_NEEDED]
    for place, (evaluation, results) in enumerate(groups.items(), 1):
        metric = evaluation.metric
        accuracy = spread_column(metric, results)
        metrics = metrics_of(results)
        every = [
            [sampled_metric for sampled_metric in metrics if sampled_metric.column.startswith(name)]
            for name in _SAMPLED
        ]
        sampled = [cutoffs[0] for cutoffs in every if cutoffs]
        measured = [
            replace(spread_column(table_metric, results), unit="") for table_metric in (metric, *sampled)
        ]
        lost = composed_column(results)
        columns = (_NAME, budget_column, lost, TRUST, SERVER_SEES, *measured, *BYTES_BOTH_WAYS)
        words = ", ".join([title, *distinguishing_words(evaluation, list(groups))])
        # The caption says what the ± of the accuracy is.
        caption = f"{words}. {accuracy.title} {accuracy.unit}".strip() + "."
        caption += "" if delta is None else f" δ = {delta:g}."
        label = name if len(groups) == 1 else f"{name}-{place}"
        tables.append(_table(columns, results, caption, label))
    return "\n".join(tables)


def _table(
    columns: Sequence[ResultColumn], results: Sequence[ProtocolResult], caption: str, label: str
) -> str:
    """Return one table."""

    def row(cells: Iterable[str]) -> str:
        return "    " + " & ".join(map(escaped, cells)) + r" \\"

    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{escaped(caption)}}}",
        rf"  \label{{tab:{re.sub('[^A-Za-z0-9.-]', '-', label)}}}",
        rf"  \begin{{tabular}}{{{''.join('r' if column.numeric else 'l' for column in columns)}}}",
        r"    \toprule",
        row(f"{column.title} {column.unit}".strip() for column in columns),
        r"    \midrule",
        *(row(column.text(result) for column in columns) for result in results),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
