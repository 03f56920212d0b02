"""The sections of a run's page about its users, its mechanism's noise, its rounds and its completion."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from markupsafe import Markup

from dprec.channel import Channel
from simulation.analysis.columns import TableColumn, figure_column, text_column, written_column
from simulation.analysis.protocol_results import metrics_of, result_of
from simulation.analysis.vocabulary import DASH, Metric, loss, number, profiles_compared
from simulation.pages.figures.completions import alter_ego_plots, draw_completion, numbers
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.page import Section, figures, paragraph, table
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import RankingSummary
from strategies.participation import RoundRecord

_USER_FIGURES = {
    "ratings": "ratings",
    "uplink_message_bytes": "messages from the device, bytes",
    "uplink_network_bytes": "network from the device, bytes",
    "downlink_message_bytes": "messages to the device, bytes",
    "downlink_network_bytes": "network to the device, bytes",
    "messages": "messages, both ways",
    "epsilon_per_rating": "ε per rating",
    "epsilon_per_user": "ε per user",
    "epsilon_composed": "ε per user, composed",
}
"""Columns of traffic.csv, and what they are called."""

_STATISTICS = ("mean", "smallest", "5th percentile", "median", "95th percentile", "largest")

_Figures = tuple[str, Sequence[float]]
"""What a line is called, and its figures."""


def user_table(run: RunFiles) -> Markup:
    """Return how every figure that applies is distributed over the users."""
    privacy = run.summary.privacy
    compared = profiles_compared(privacy.epsilon_per_user.max, hides_rated_items=privacy.hides_rated_items)
    lines: list[_Figures] = []
    for column, label in _USER_FIGURES.items():
        known = run.traffic[column][np.isfinite(run.traffic[column])]
        if known.size:
            statistics = [float(known.mean()), *np.percentile(known, (0, 5, 50, 95, 100)).tolist()]
            lines.append((f"{label}{compared}" if "per user" in label else label, statistics))

    columns: list[TableColumn[_Figures]] = [text_column("per user", itemgetter(0))]
    columns += [
        TableColumn(name, "", partial(_figure, place), partial(_written, place))
        for place, name in enumerate(_STATISTICS)
    ]
    return table(f"How {run.summary.traffic.users:,} users differ", columns, lines)


def _figure(place: int, line: _Figures) -> float:
    return line[1][place]


def _written(place: int, line: _Figures) -> str:
    """Write a loss, a count, or the mean of counts."""
    label, value = line[0], line[1][place]
    return loss(value) if "ε" in label else number(value, 0 if value == round(value) or value >= 100 else 1)


def example_sections(run: RunFiles) -> list[Section]:
    """Return the section with some predictions of one user, if anybody has enough test ratings."""
    if run.example is None:
        return []
    names = run.summary.item_names
    columns: list[TableColumn[tuple[str, float, float]]] = [
        text_column("item", lambda line: names.get(line[0], line[0])),
        written_column("true rating", lambda line: line[1], "{:g}".format),
        figure_column("prediction", "", lambda line: line[2], 2),
    ]
    shown = table(f"Test ratings of user {run.example.user}", columns, run.example.predicted)
    return [Section("example", "Predictions for one user", (shown,))]


def ranking_sections(run: RunFiles) -> list[Section]:
    """Return the figures of lists from the catalogue, if they were measured."""
    rankings = {
        "Among all items that a user has not rated": run.summary.accuracy.ranking,
        "Among sampled items": run.summary.accuracy.sampled_ranking,
    }
    words = paragraph("Lists by predicted rating; hits are items with a relevant test rating.")
    return [
        Section("ranking", "Ranking over the catalogue", (words, _ranking_table(title, measured)))
        for title, measured in rankings.items()
        if measured is not None
    ]


_Cutoffs = tuple[str, Mapping[int, float | None]]


def _ranking_table(title: str, ranking: RankingSummary) -> Markup:
    columns: list[TableColumn[_Cutoffs]] = [
        text_column("metric", lambda line: line[0].removesuffix("_at").replace("_", " ")),
        *(figure_column(f"at {each}", "", partial(_at_cutoff, each), 4) for each in ranking.ndcg_at),
    ]
    of = f"means over {ranking.users:,} users with a relevant test rating"
    return table(f"{title}; {of}", columns, [each for each in ranking if each[0].endswith("_at")])


def _at_cutoff(cutoff: int, line: _Cutoffs) -> float | None:
    return line[1][cutoff]


def noise_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on what the mechanism sends, if it is a channel."""
    noise = run.channel
    if noise is None:
        return []
    median = f" Calibrated for the median user, who reports {noise.cells:,} cells." if noise.per_user else ""
    plot = Plot(
        "noise",
        "What the mechanism sends, and what the server reads",
        f"{_symbols_in_words(noise.channel)} The mean of what is read rises with a slope of "
        f"{noise.slope:.2f}; below 1, reports are pulled to the middle of the scale.{median}",
        f"A true {noise.ratings[0]:g} is read as {noise.expected[0]:.2f} on average, a true "
        f"{noise.ratings[-1]:g} as {noise.expected[-1]:.2f}.",
        partial(draw_noise, noise),
        full_width=True,
    )
    return [Section("noise-section", "Noise of the mechanism", (figures([draw(plot)]),))]


def _symbols_in_words(channel: Channel) -> str:
    """Say what is sent, which is a symbol, and what number the server reads for it."""
    if channel.symbols != 2:
        return f"What is sent is one of {channel.symbols} symbols, each read as a number."
    no, yes = ("not rated" if np.isnan(value) else f"{value:.3g}" for value in channel.values)
    return f"A bit is sent: the server reads {no} for a 0 and {yes} for a 1."


def rounds_sections(run: RunFiles) -> list[Section]:
    """Return the table of the rounds, if there are any."""
    if not run.rounds:
        return []
    measured = [
        figure_column(each.label, "", partial(_measured, each), each.digits)
        for each in metrics_of([result_of(run.summary)])
        if any(_measured(each, record) is not None for record in run.rounds)
    ]
    columns = [figure_column(name, "", attrgetter(name), 0) for name in ("round", "replies", "failures")]
    columns += measured
    for way in ("up", "down"):
        columns.append(figure_column(way, "message bytes", attrgetter(f"{way}link_message_bytes"), 0))
    columns.append(figure_column("seconds", "", attrgetter("seconds"), 2))
    shown = table("Rounds, all users together", columns, run.rounds)
    return [Section("rounds-section", "Round by round", (shown,))]


def _measured(metric: Metric, record: RoundRecord) -> float | None:
    return (record.accuracy or {}).get(metric.column)


_MIXTURE = "log_likelihood", "pi", "sigma"


def completion_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on the completion's diagnostics, with their figures, if it reports any."""
    diagnostics = run.summary.completion_diagnostics
    if not diagnostics:
        return []
    content: list[str] = []
    trace, pi, sigma = (numbers(diagnostics.get(key)) for key in _MIXTURE)
    drawn = len(trace) > 1 and len(pi) == len(sigma) > 0 and min(sigma) > 0
    if drawn:
        plot = Plot(
            "completion",
            "How the mixture was fitted",
            "The log-likelihood must never fall. The mixture is the completion's estimate of the noise.",
            f"The log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps.",
            partial(draw_completion, trace, pi, sigma),
            full_width=True,
        )
        content.append(figures([draw(plot)]))
    content += [_layers_table(diagnostics)] if diagnostics.get("layers") else []
    if plots := alter_ego_plots(_with_names(diagnostics, run.summary.item_names)):
        content.append(figures([draw(plot) for plot in plots]))
    rows = [
        (key.replace("x_sim", "X-Sim").replace("_", " "), _shown(value))
        for key, value in diagnostics.items()
        if not isinstance(value, dict) and not (drawn and key in _MIXTURE)
    ]
    columns: list[TableColumn[tuple[str, str | None]]] = [
        text_column(title, itemgetter(place)) for place, title in enumerate(("diagnostic", "value"))
    ]
    content += [table("Diagnostics", columns, rows, sortable=False)] if rows else []
    heading = f"What the completion learned ({run.summary.completion})"
    return [Section("completion-section", heading, tuple(content))]


_LAYERS = {"NN": "away from bridges", "NB": "next to a bridge", "BB": "bridges"}


def _layers_table(diagnostics: dict[str, Any]) -> Markup:
    """Return how many items every layer of two domains has, and how many edges were kept between them."""
    sides, edges = ("source", "target"), diagnostics["edges"]
    counts = {f"{name}: {words}": name for name, words in _LAYERS.items()}
    lines = [(words, [diagnostics["layers"][side][name] for side in sides]) for words, name in counts.items()]
    lines += [(f"edges, {name}", edges[name]) for name in ("NN to NB", "NB to BB")]
    lines.append(("edges between the domains", [edges["between the domains"]] * 2))
    columns: list[TableColumn[_Figures]] = [text_column("items", itemgetter(0))]
    columns += [
        figure_column(str(diagnostics["domains"][side]), "", partial(_figure, place), 0)
        for place, side in enumerate(sides)
    ]
    return table("The two domains as layers", columns, lines, sortable=False)


def _with_names(diagnostics: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return diagnostics in which the items of an AlterEgo are called by their names."""
    ego = diagnostics.get("alter_ego")
    if not ego:
        return diagnostics
    named = {
        side: [[names.get(item, item), rating] for item, rating in ego[side]] for side in ("before", "after")
    }
    return {**diagnostics, "alter_ego": {**ego, **named}}


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:5]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)
