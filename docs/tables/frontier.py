"""Draws what each ingredient of predicting on the device buys, and prints it and its price as tables.

    dprec compare configs/experiments/frontier.yaml -o DIR
    python -m docs.tables.frontier DIR [--to docs/frontier.png]

Every other protocol of the comparison is its first one with one thing changed; the figure shows how much its
error then grows, at every budget.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from simulation.analysis.protocol_results import ProtocolResult, by_protocol, read_results
from simulation.analysis.vocabulary import DASH, METRICS
from simulation.pages.looks import INK

RMSE = METRICS[0]

_DAYS = 7

Errors = Mapping[str, Mapping[float | None, float]]
"""The mean error of every protocol at every budget; under None if it has no budget."""


def errors(results: Sequence[ProtocolResult]) -> dict[str, dict[float | None, float]]:
    """Return the errors of the protocols that are no baselines, and of sets-only."""
    shown = [result for result in results if result.baseline in (None, "sets-only")]
    return {
        name: {result.budget: mean for result in own if (mean := result.mean(RMSE.column)) is not None}
        for name, own in by_protocol(shown).items()
    }


def budgets(every: Errors) -> list[float]:
    """Return the budgets, ascending."""
    return sorted({budget for own in every.values() for budget in own if budget is not None})


def table(every: Errors) -> str:
    """Return the errors as a table in Markdown; without a budget they stand in the first column."""
    columns = [None, *budgets(every)]
    heads = ["ε per rating", "none", *(f"{budget:g}" for budget in budgets(every))]
    rows = [heads, ["---"] * len(heads)]
    for name, own in every.items():
        rows.append([f"`{name}`", *(f"{own[at]:.3f}" if at in own else DASH for at in columns)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def prices(results: Sequence[ProtocolResult]) -> str:
    """Return the bytes of payload per user as a table in Markdown; means over the budgets."""
    heads = ["payload in bytes per user", "up", "down", "down per day, refreshed weekly"]
    rows = [heads, ["---"] * len(heads)]
    for name, own in by_protocol(results).items():
        up, down = (
            np.mean([result.mean(f"{way}_payload_mean_per_user") or 0.0 for result in own])
            for way in ("uplink", "downlink")
        )
        rows.append([f"`{name}`", *(f"{size:,.0f}" for size in (up, down, down / _DAYS))])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def drawn(every: Errors) -> Figure:
    """Return the figure: a line per ingredient, a marker per budget."""
    whole, *changed = [name for name, own in every.items() if None not in own]
    figure = Figure(figsize=(7, 0.4 * len(changed) + 1.2), layout="constrained")
    axes = figure.subplots()
    for place, budget in enumerate(budgets(every)):
        both = [name for name in changed if budget in every[name] and budget in every[whole]]
        axes.plot(
            [every[name][budget] - every[whole][budget] for name in both],
            [changed.index(name) for name in both],
            linestyle="none",
            marker="os^DvPX<"[place],
            color=f"C{place}",
            label=f"ε = {budget:g}",
        )
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(changed)), changed)
    axes.invert_yaxis()
    axes.set_xlabel(f"{RMSE.label} added to that of {whole}")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(title="per rating")
    return figure


def main() -> None:
    """Print the table and draw the figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("directory", type=Path, help="of the comparison")
    arguments.add_argument("--to", type=Path, default=Path("docs/frontier.png"), help="where to draw")
    chosen = arguments.parse_args()
    results = read_results(chosen.directory / "comparison.csv")
    every = errors(results)
    print(table(every), prices(results), sep="\n\n")
    with mpl.rc_context({"svg.hashsalt": "dprec", "font.size": 9}):
        drawn(every).savefig(chosen.to, dpi=150)


if __name__ == "__main__":
    main()
