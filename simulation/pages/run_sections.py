"""The sections of a run's page about its users, its mechanism's noise, its rounds and its completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from simulation.analysis.columns import TableColumn, figure_column, text_column, written_column
from simulation.analysis.vocabulary import (
    DASH,
    METRICS,
    Metric,
    loss,
    main_metric,
    number,
    profiles_compared,
    size,
)
from simulation.pages.figures.completions import cross_domain_plots, draw_completion, numbers
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import draw_rounds, evaluated_rounds
from simulation.pages.page import Section, figures, paragraph, table
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import RankingSummary
from strategies.participation import RoundRecord

_USER_COUNTS = (
    ("ratings", "number of ratings"),
    ("uplink_payload_bytes", "payload from the device, bytes"),
    ("uplink_message_bytes", "messages from the device, bytes"),
    ("downlink_payload_bytes", "payload to the device, bytes"),
    ("downlink_message_bytes", "messages to the device, bytes"),
    ("uplink_network_bytes", "network from the device, bytes"),
    ("downlink_network_bytes", "network to the device, bytes"),
    ("messages", "number of messages"),
)
_USER_LOSSES = (
    ("epsilon_per_user", "ε per user, sum"),
    ("epsilon_composed", "ε per user, composed"),
)
_STATISTICS = ("mean", "smallest", "5th percentile", "median", "95th percentile", "largest")


def user_table(run: RunFiles) -> Markup:
    """Return how every figure that applies is distributed over the users."""
    privacy = run.summary.privacy
    compared = profiles_compared(privacy.epsilon_per_user.max, hides_rated_items=privacy.hides_rated_items)
    losses = (
        ("epsilon_per_rating", "ε per rating"),
        *((name, f"{label}{compared}") for name, label in _USER_LOSSES),
    )
    lines = [
        _UserFigures(label, statistics, written)
        for figures_per_user, written in ((_USER_COUNTS, _count), (losses, loss))
        for column, label in figures_per_user
        if (statistics := _spread(run.traffic[column]))
    ]
    columns = [text_column("per user", lambda line: line.label), *map(_statistic, range(len(_STATISTICS)))]
    return table(f"How {run.summary.traffic.users:,} users differ", columns, lines)


class _UserFigures(NamedTuple):
    """How a figure is distributed over the users: its statistics, and how they are written."""

    label: str
    statistics: Sequence[float]
    written: Callable[[float], str]


def _statistic(place: int) -> TableColumn[_UserFigures]:
    return TableColumn(
        _STATISTICS[place],
        "",
        lambda line: line.statistics[place],
        lambda line: line.written(line.statistics[place]),
    )


def _spread(values: NDArray[Any]) -> list[float]:
    """Return the statistics of the users of whom a figure is known; none without such users."""
    known = values[np.isfinite(values)]
    if not known.size:
        return []
    return [float(known.mean()), *np.percentile(known, (0, 5, 50, 95, 100)).tolist()]


def _count(value: float) -> str:
    """Write a count, or the mean of counts."""
    return number(value, 0 if value == round(value) or value >= 100 else 1)


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
    accuracy = run.summary.accuracy
    rankings = (
        ("Among all items that a user has not rated", accuracy.ranking),
        ("Among sampled items", accuracy.sampled_ranking),
    )
    heading = "Ranking over the catalogue"
    return [
        Section("ranking", heading, (paragraph(_RANKED), _ranking_table(title, measured)))
        for title, measured in rankings
        if measured is not None
    ]


_RANKED = (
    "Lists by predicted rating; hits are items with a relevant test rating. The F-score above ranks what "
    "evaluation.candidates says: a user's own test items, unless set otherwise."
)


def _ranking_table(title: str, ranking: RankingSummary) -> Markup:
    measured = (
        ("NDCG", ranking.ndcg_at),
        ("hit rate", ranking.hit_rate_at),
        ("MRR", ranking.mrr_at),
        ("recall", ranking.recall_at),
        ("precision", ranking.precision_at),
        ("coverage of the catalogue", ranking.coverage_at),
    )
    columns: list[TableColumn[tuple[str, Mapping[int, float | None]]]] = [
        text_column("metric", lambda line: line[0]),
        *(figure_column(f"at {cutoff}", "", partial(_at_cutoff, cutoff), 4) for cutoff in ranking.ndcg_at),
    ]
    of = f"means over {ranking.users:,} users with a relevant test rating"
    return table(f"{title}; {of}", columns, measured)


def _at_cutoff(cutoff: int, line: tuple[str, Mapping[int, float | None]]) -> float | None:
    return line[1][cutoff]


def noise_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on what the mechanism sends, if it is a channel."""
    noise = run.channel
    if noise is None:
        return []
    calibrated = (
        f" Calibrated for the median user, who reports {noise.cells:,} cells." if noise.per_user else ""
    )
    plot = Plot(
        "noise",
        "What the mechanism sends",
        "If the mean of what is sent rises more slowly than the true rating, reports are pulled to the "
        f"middle of the scale: here the slope is {noise.slope:.2f}.{calibrated}",
        f"Left: probabilities of what is sent for each of {noise.ratings.size} true ratings. Right: the mean "
        f"of what is sent runs from {noise.expected[0]:.2f} for a true {noise.ratings[0]:g} to "
        f"{noise.expected[-1]:.2f} for a true {noise.ratings[-1]:g}, a slope of {noise.slope:.2f}.",
        lambda: draw_noise(noise),
        full_width=True,
    )
    return [Section("noise-section", "Noise of the mechanism", (figures([draw(plot)]),))]


def rounds_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on the accuracy and the bytes of every round, if there are rounds."""
    if not run.rounds:
        return []
    metric = main_metric(run.summary.accuracy.metrics())
    evaluated = evaluated_rounds(run.rounds, metric) if metric else []
    content: list[str] = []
    if metric and len(evaluated) > 1:
        users = run.summary.traffic.users
        (first, _, start), (last, total, end) = evaluated[0], evaluated[-1]
        plot = Plot(
            "rounds",
            "Accuracy against bytes, by round",
            "Each point is an evaluated round; bytes are the mean per user up to then.",
            f"{metric.label} goes from {start:.4g} after round {first} to {end:.4g} after round {last}, "
            f"after {size(total / users)} per user on average.",
            lambda: [draw_rounds(run, metric, run.summary.nothing_sent)],
        )
        content.append(figures([draw(plot)]))
    content.append(_rounds_table(run))
    return [Section("rounds-section", "Round by round", tuple(content))]


def _rounds_table(run: RunFiles) -> Markup:
    metrics = [
        metric for metric in METRICS if any(_measured(metric, record) is not None for record in run.rounds)
    ]
    columns: list[TableColumn[RoundRecord]] = [
        figure_column("round", "", lambda record: record.round, 0),
        figure_column("replies", "", lambda record: record.replies, 0),
        figure_column("failures", "", lambda record: record.failures, 0),
        *(figure_column(each.label, "", partial(_measured, each), each.digits) for each in metrics),
        figure_column("up", "message bytes", lambda record: record.uplink_message_bytes, 0),
        figure_column("down", "message bytes", lambda record: record.downlink_message_bytes, 0),
        figure_column("seconds", "", lambda record: record.seconds, 2),
    ]
    return table("Rounds, all users together", columns, run.rounds)


def _measured(metric: Metric, record: RoundRecord) -> float | None:
    return (record.accuracy or {}).get(metric.column)


def completion_sections(run: RunFiles, draw: Draw) -> list[Section]:
    """Return the section on the completion's diagnostics, with their figures, if it reports any."""
    diagnostics = run.summary.completion_diagnostics
    if not diagnostics:
        return []
    content: list[str] = []
    trace = numbers(diagnostics.get("log_likelihood"))
    pi, sigma = numbers(diagnostics.get("pi")), numbers(diagnostics.get("sigma"))
    drawn = len(trace) > 1 and len(pi) == len(sigma) > 0 and min(sigma) > 0
    if drawn:
        widest = max(range(len(pi)), key=pi.__getitem__)
        plot = Plot(
            "completion",
            "How the mixture was fitted",
            "The log-likelihood must never fall. The mixture is the completion's estimate of the noise.",
            f"Left: the log-likelihood rises from {trace[0]:,.0f} to {trace[-1]:,.0f} in {len(trace)} steps. "
            f"Right: {len(pi)} Gaussians around 0; the one with the largest share, {pi[widest]:.2f}, has a "
            f"standard deviation of {sigma[widest]:.2f}.",
            lambda: draw_completion(trace, pi, sigma),
            full_width=True,
        )
        content.append(figures([draw(plot)]))
    plots = cross_domain_plots(_with_names(diagnostics, run.summary.item_names))
    if plots:
        content.append(figures([draw(plot) for plot in plots]))
    rows = [
        (_label(key), _shown(value))
        for key, value in diagnostics.items()
        if not (drawn and key == "log_likelihood") and not (plots and isinstance(value, dict))
    ]
    columns: list[TableColumn[tuple[str, str | None]]] = [
        text_column("diagnostic", itemgetter(0)),
        text_column("value", itemgetter(1)),
    ]
    content.append(table("Diagnostics", columns, rows, sortable=False))
    heading = f"What the completion learned ({run.summary.completion})"
    return [Section("completion-section", heading, tuple(content))]


def _with_names(diagnostics: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return diagnostics in which the items of an AlterEgo are called by their names."""
    ego = diagnostics.get("alter_ego")
    if not ego:
        return diagnostics
    named = {
        side: [[names.get(item, item), rating] for item, rating in ego[side]] for side in ("before", "after")
    }
    return {**diagnostics, "alter_ego": {**ego, **named}}


def _label(key: str) -> str:
    """Write the name of a diagnostic in words."""
    return key.replace("x_sim", "X-Sim").replace("_", " ")


def _shown(value: Any) -> str | None:
    if isinstance(value, list):
        few = [_shown(entry) or DASH for entry in value[:8]]
        return ", ".join(few) + (f", … ({len(value)} in all)" if len(value) > len(few) else "")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.5g}"
    return None if value is None else str(value)
