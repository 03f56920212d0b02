"""The sections of a run's page about its users, its mechanism's noise and its rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from simulation.analysis.vocabulary import METRICS, loss, main_metric, number, profiles_compared, size
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import draw_rounds_figure, evaluated_rounds
from simulation.pages.page import Cell, Column, Section, figures, number_cell, paragraph, table, text_cell
from simulation.storage.run_files import RunFiles
from simulation.storage.summary import RankingSummary

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
    columns = [Column("per user", numeric=False), *map(Column, _STATISTICS)]
    privacy = run.summary.privacy
    compared = profiles_compared(privacy.epsilon_per_user.max, hides_rated_items=privacy.hides_rated_items)
    losses = (
        ("epsilon_per_rating", "ε per rating"),
        *((name, f"{label}{compared}") for name, label in _USER_LOSSES),
    )
    rows = [
        [Cell(label, label), *(Cell(written(value), value) for value in statistics)]
        for figures_per_user, written in ((_USER_COUNTS, _count), (losses, loss))
        for column, label in figures_per_user
        if (statistics := _spread(run.traffic[column]))
    ]
    return table(f"How {run.summary.traffic.users:,} users differ", columns, rows)


def _spread(values: NDArray[Any]) -> list[float]:
    """Return the statistics of the users of whom a figure is known; none if it is known of nobody."""
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
    columns = [Column("item", numeric=False), Column("true rating"), Column("prediction")]
    rows = [
        [text_cell(run.summary.item_names.get(item, item)), Cell(f"{rating:g}", rating), number_cell(said, 2)]
        for item, rating, said in run.example.predicted
    ]
    shown = table(f"Test ratings of user {run.example.user}", columns, rows)
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
    columns = [Column("metric", numeric=False), *(Column(f"at {cutoff}") for cutoff in ranking.ndcg_at)]
    rows = [[Cell(label, label), *(number_cell(value, 4) for value in at.values())] for label, at in measured]
    return table(f"{title}; means over {ranking.users:,} users with a relevant test rating", columns, rows)


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
        lambda style: draw_noise(style, noise),
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
            lambda style: draw_rounds_figure(style, run, metric),
        )
        content.append(figures([draw(plot)]))
    content.append(_rounds_table(run))
    return [Section("rounds-section", "Round by round", tuple(content))]


def _rounds_table(run: RunFiles) -> Markup:
    metrics = [
        metric
        for metric in METRICS
        if any((record.accuracy or {}).get(metric.column) is not None for record in run.rounds)
    ]
    columns = [Column("round"), Column("replies"), Column("failures")]
    columns += [Column(metric.label) for metric in metrics]
    columns += [Column("up", "message bytes"), Column("down", "message bytes"), Column("seconds")]
    rows = [
        [
            number_cell(record.round, 0),
            number_cell(record.replies, 0),
            number_cell(record.failures, 0),
            *(number_cell((record.accuracy or {}).get(metric.column), metric.digits) for metric in metrics),
            number_cell(record.uplink_message_bytes, 0),
            number_cell(record.downlink_message_bytes, 0),
            number_cell(record.seconds, 2),
        ]
        for record in run.rounds
    ]
    return table("Rounds, all users together", columns, rows)
