"""Groups of users of the committed results: their accuracy, and who is worse off than alone."""

from __future__ import annotations

from dataclasses import replace

from docs.tables import column_table
from docs.tables.results import RESULTS
from simulation.analysis.columns import text_column
from simulation.analysis.groups import read_groups
from simulation.analysis.vocabulary import number
from simulation.storage.column import Column
from simulation.storage.summary import GroupSummary


def groups(name: str, divided: str, budget: str, *protocols: str) -> str:
    """Return RMSE and the share worse off than alone, in brackets by luck, at a budget or without one.

    Users are divided by activity, or by columns of the users' table, joined by commas.
    """
    held: dict[str, dict[str, GroupSummary]] = {}
    for line in read_groups(RESULTS / name):
        if line.by in divided.split(",") and line.epsilon in (None, float(budget)):
            held.setdefault(line.figures.group, {})[line.name] = line.figures

    def told(protocol: str) -> Column[str]:
        def text(group: str) -> str:
            own = held[group][protocol]
            worse, luck = (100 * (share or 0.0) for share in (own.worse, own.worse_by_chance))
            return f"{number(own.rmse, 3)}, {worse:.0f} % ({luck:.0f})"

        return replace(text_column(f"`{protocol}`", text), holds=float)

    def alone(group: str) -> str:
        return number(held[group][protocols[0]].rmse_alone, 3)

    first: Column[str] = text_column("", str)
    return column_table(
        [first, replace(text_column("alone", alone), holds=float), *map(told, protocols)], list(held)
    )
