"""The figure of a run's three answers: how accurate, how private, how many bytes; and its course in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dprec.arrays import Floats
from dprec.metrics import LONGEST_LIST
from simulation.analysis.protocol_results import result_of
from simulation.analysis.vocabulary import Metric, loss, main_metric, number, profiles_compared, short, size
from simulation.pages.drawing import (
    Plot,
    curve,
    entry,
    legend,
    log_axis,
    nothing,
    percent,
    point,
    shade,
    titled,
)
from simulation.pages.looks import DASHED, INK, MUTED, SERIES, SOLID, TRUST_LOOKS, Look
from simulation.storage.run_files import RANK, RunRecord
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def summary_plot(run: RunRecord) -> Plot:
    """Return the figure of a run's three answers."""
    metric, reading = main_metric(run.summary.accuracy.metrics()), ""
    if run.config.get("schedule") is not None:
        reading = "Accuracy: what is predicted of the ratings of the next period. "
    elif metric and len(evaluated_rounds(run.rounds, metric)) > 1:
        reading = "Accuracy: one point per evaluated round. "
    elif metric and run.summary.dataset.scale:
        reading = "Dots and bars: median, middle 50 % and 90 % of the predictions; dashed: perfect ones. "
    elif metric:
        reading = "Test items among the first of each list. "
    median = size(float(np.median(run.bytes_per_user)))
    return Plot(
        "summary",
        "The run at a glance",
        f"{reading}ε and bytes: the share of users with at most so much. Bytes count whole messages in both "
        "directions.",
        f"Accuracy, ε per user, and bytes per user, median {median}.",
        [partial(draw, run=run) for draw in (_draw_accuracy, _draw_losses, _draw_bytes)],
        full_width=True,
        width=330,
        height=210,
    )


def _colour(run: RunRecord) -> str:
    return TRUST_LOOKS[run.summary.privacy.trust].colour


def _draw_bytes(ax: Axes, run: RunRecord) -> None:
    spent = run.bytes_per_user
    title = f"How many bytes: {size(float(spent.mean()))} per user"
    _draw_shares(ax, title, spent, _colour(run), "bytes per user, both ways", in_bytes=True)


def _draw_losses(ax: Axes, run: RunRecord) -> None:
    privacy = run.summary.privacy
    losses, how = run.traffic["epsilon_per_user"], ""
    if not np.isfinite(losses).all():
        # Where noise is added to sums, a loss is bounded by composition alone.
        losses, how = run.traffic["epsilon_composed"], f", δ = {privacy.delta:g}"
    if not np.isfinite(losses).all():
        why = "the loss has no bound"
        if privacy.trusts_server:
            why = f"no privacy: the server\nsees {result_of(run.summary).server_sees}"
        if privacy.status in ("claimed", "declared"):
            claimed = loss(privacy.epsilon_claimed.per_user)
            why = f"ε {claimed} per user is {privacy.status},\nnothing is proved"
        nothing(ax, "How private: no bound", why)
        return
    largest = float(losses.max())
    compared = profiles_compared(largest, hides_rated_items=privacy.hides_rated_items)
    title = f"How private: ε {short(largest)} per user at most"
    _draw_shares(ax, title, losses, _colour(run), f"ε per user{compared}{how}", in_bytes=False)


def _draw_shares(ax: Axes, title: str, values: Floats, colour: str, label: str, *, in_bytes: bool) -> None:
    """Draw which share of the users has at most so much, with median and 95th percentile marked."""

    def written(value: float) -> str:
        return size(value) if in_bytes else f"ε {short(value)}"

    quantiles = np.percentile(values, np.arange(101))
    low, high = float(quantiles[0]), float(quantiles[-1])
    if high - low <= 0.01 * abs(high):
        within = "" if high - low <= 1e-9 * abs(high) else ", within 1 %"
        nothing(ax, title, f"{label}: {written(float(quantiles[50]))}\nfor every user{within}")
        return
    if low > 0 and high / low > 60:
        log_axis(ax.xaxis, [low, high], size if in_bytes else short)
    elif in_bytes:
        ax.xaxis.set_major_formatter(lambda value, _: size(value))
        ax.locator_params("x", nbins=4)
    shares = np.linspace(0, 1, 101)
    ax.fill_between(quantiles, shares, color=colour, alpha=0.28, linewidth=0)
    ax.plot(quantiles, shares, color=colour)
    ax.set_ylim(0, 1.02)
    handles = []
    for share, name, dashes in ((50, "median", SOLID), (95, "95th percentile", DASHED)):
        value = float(quantiles[share])
        ax.vlines(value, 0, share / 100, color=INK, linewidth=1.1, linestyle=dashes)
        handles.append(entry(f"{name} {written(value)}", Look(INK, "", dashes)))
    percent(ax.yaxis)
    titled(ax, title, x=label, y="share of users")
    legend(ax, handles)


def _draw_accuracy(ax: Axes, run: RunRecord) -> None:
    accuracy = run.summary.accuracy.metrics()
    metric = main_metric(accuracy)
    if metric is None:
        deployed = run.summary.devices == "deployed"
        nothing(ax, "How accurate", "known to the devices only" if deployed else "no accuracy was measured")
        return
    reached, baseline = accuracy[metric.column], run.summary.nothing_sent
    assert reached is not None, "a main metric without a value"
    title = f"How accurate: {metric.label} {reached:.4g}"
    if run.config.get("schedule") is not None:
        lines = {
            metric.column: ("users present", Look(SERIES[0], "o")),
            "newcomers_0": ("newcomers, with no own rating", Look(SERIES[1], "o")),
            "nothing_sent": ("nothing sent", Look(MUTED, "o", DASHED)),
        }
        _draw_periods(ax, run, title, metric.heading, lines)
    elif len(evaluated_rounds(run.rounds, metric)) > 1:
        draw_rounds(ax, run, metric, title, baseline)
    elif RANK in run.predictions:
        _draw_ranks(ax, title, run.predictions[RANK][:], _colour(run))
    else:
        titled(ax, title, *_worse(metric, reached, baseline))
        ratings, predictions = (run.predictions[name][:] for name in ("rating", "prediction"))
        _draw_predictions(ax, ratings, predictions, _colour(run))


HELD_AGAINST = ("rmse", "sign_accuracy")
"""The metrics of `Summary.nothing_sent`."""


def _worse(metric: Metric, reached: float, baseline: float | None) -> list[str]:
    """Say that a run is worse than nothing sent, if it is."""
    if baseline is None or metric.column not in HELD_AGAINST or not metric.better(baseline, reached):
        return []
    return [f"Worse than nothing sent, by {number(abs(reached - baseline), metric.digits - 1)}."]


def evaluated_rounds(rounds: Sequence[RoundRecord], metric: Metric) -> list[tuple[int, float, float]]:
    """Return number, cumulative bytes and accuracy of the rounds that were evaluated."""
    spent, evaluated = 0.0, []
    for record in rounds:
        spent += record.uplink_message_bytes + record.downlink_message_bytes
        value = (record.accuracy or {}).get(metric.column)
        if value is not None:
            evaluated.append((record.round, spent, value))
    return evaluated


def draw_rounds(ax: Axes, run: RunRecord, metric: Metric, title: str, baseline: float | None) -> None:
    """Draw accuracy against the cumulative bytes per user, and what is reached with nothing sent across."""
    rounds = evaluated_rounds(run.rounds, metric)
    spent = np.array([total for _, total, _ in rounds]) / run.summary.traffic.users
    values = np.array([value for *_, value in rounds])
    if metric.column not in HELD_AGAINST:
        baseline = None
    heights = values if baseline is None else np.append(values, baseline)
    margin = 0.08 * float(np.ptp(heights)) or 0.5
    ax.set_ylim(heights.min() - margin, heights.max() + margin)
    if spent.min() > 0:
        log_axis(ax.xaxis, spent, size)
    else:
        ax.set_xlim(0, 1.05 * spent.max())
        ax.xaxis.set_major_formatter(lambda value, _: size(value))
    words = [
        f"round {place}: {metric.label} {value:.{metric.digits}f}, {size(at)} per user so far"
        for at, (place, _, value) in zip(spent, rounds, strict=True)
    ]
    label = f"rounds {rounds[0][0]} to {rounds[-1][0]}"
    handles = [curve(ax, spent, values, Look(_colour(run), "o"), label, words, markersize=5)]
    if baseline is not None:
        shade(ax, np.array(ax.get_xlim()), np.full(2, baseline), metric)
        nothing_sent = f"nothing sent: {number(baseline, metric.digits - 1)}"
        handles.append(entry(nothing_sent, Look(INK), linewidth=1.2))
    notes = _worse(metric, rounds[-1][2], baseline)
    titled(ax, title, *notes, x="bytes per user so far, both ways", y=metric.heading)
    legend(ax, handles)


def _draw_ranks(ax: Axes, title: str, ranks: Floats, colour: str) -> None:
    """Draw which share of the test items is among the first of the lists."""
    lengths = np.arange(1, LONGEST_LIST + 1)
    shares = np.array([np.mean(ranks <= length) for length in lengths])
    ax.set_ylim(0, max(float(shares[-1]), 0.01) * 1.05)
    words = [f"{share:.1%} among the first {length}" for length, share in zip(lengths, shares, strict=True)]
    curve(ax, lengths, shares, Look(colour, "o"), "", words, markersize=5)
    percent(ax.yaxis)
    ax.set_xticks([1, *range(5, LONGEST_LIST + 1, 5)])
    titled(ax, title, x="length of the lists", y="share of test items")


_MOST_GROUPS, PREDICTION_QUANTILES = 12, (5, 25, 50, 75, 95)


def _draw_predictions(ax: Axes, ratings: Floats, predictions: Floats, colour: str) -> None:
    """Draw the distribution of predictions for every true rating, with the line of perfect predictions."""
    groups = group_by_rating(ratings, predictions)
    places = [place for place, _ in groups]
    p5, p25, median, p75, p95 = np.array([quantiles for _, quantiles in groups]).T
    ends = [places[0], places[-1]]
    ax.plot(ends, ends, color=MUTED, linewidth=1.1, linestyle=DASHED)
    ax.vlines(places, p5, p95, color=colour, linewidth=1.4, alpha=0.5)
    ax.vlines(places, p25, p75, color=colour, linewidth=6, alpha=0.5)
    words = [
        f"true rating {place:g}: median {quantiles[2]:.2f}, "
        f"middle 50 % {quantiles[1]:.2f} to {quantiles[3]:.2f}, "
        f"middle 90 % {quantiles[0]:.2f} to {quantiles[4]:.2f}"
        for place, quantiles in groups
    ]
    point(ax, places, median, colour, words)
    if len(places) <= 6:
        ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.set(xlabel="true rating", ylabel="prediction")


def group_by_rating(ratings: Floats, predictions: Floats) -> list[tuple[float, Floats]]:
    """Return every true rating, or middle of a tenth of the scale, and the quantiles of its predictions."""
    levels = starts = np.unique(ratings)
    if levels.size > _MOST_GROUPS:
        edges = np.linspace(levels[0], levels[-1], 11)
        starts, levels = edges[:-1], (edges[1:] + edges[:-1]) / 2
    groups = []
    for level, start, stop in zip(levels, starts, [*starts[1:], np.inf], strict=True):
        of_level = predictions[(start <= ratings) & (ratings < stop)]
        if of_level.size:
            groups.append((float(level), np.percentile(of_level, PREDICTION_QUANTILES)))
    return groups


def _draw_periods(
    ax: Axes, run: RunRecord, title: str, y: str, lines: Mapping[str, tuple[str, Look]]
) -> None:
    """Draw figures of all periods by their keys, with names and looks; NaN where there is none."""
    handles, periods = [], range(1, len(run.rounds) + 1)
    for key, (label, look) in lines.items():
        figures = _by_period(run, key)
        if np.isfinite(figures).any():
            words = [
                f"period {at}: {label} {figure:.4g}" for at, figure in zip(periods, figures, strict=True)
            ]
            handles.append(curve(ax, periods, figures, look, label, words, markersize=4))
    titled(ax, title, x=f"period of {run.config['schedule']['days']:g} days", y=y)
    legend(ax, handles if len(lines) > 1 else [])


def _by_period(run: RunRecord, key: str) -> Floats:
    return np.array([(record.accuracy or {}).get(key) for record in run.rounds], dtype=np.float64)


def rounds_plot(run: RunRecord) -> Plot | None:
    """Return the figure of losses and updates from round to round; None where several rounds have neither."""
    panels = {
        "ε so far": ("largest ε per user", [("", [record.epsilon for record in run.rounds])]),
        "Updates before clipping": (
            "norm",
            [(name, [record.observed.get(name) for record in run.rounds]) for name in ("norm", "clip")],
        ),
        "Loss": ("loss of the model", [("", [record.observed.get("loss") for record in run.rounds])]),
    }

    def draw(ax: Axes, title: str, y: str, lines: Sequence[tuple[str, Floats]]) -> None:
        numbers, looks = [record.round for record in run.rounds], (Look(_colour(run), "o"), Look(INK))
        handles = []
        for (name, values), look in zip(lines, looks, strict=False):
            words = [
                f"round {at}: {name or y} {value:.4g}" for at, value in zip(numbers, values, strict=True)
            ]
            handles.append(curve(ax, numbers, values, look, name, words, markersize=4))
        ax.set_ylim(bottom=min(0.0, float(np.nanmin([values for _, values in lines]))))
        ax.locator_params("x", integer=True)
        titled(ax, title, x="round", y=y)
        legend(ax, handles if len(lines) > 1 else [])

    parts = []
    for title, (y, series) in panels.items():
        read = [(name, np.array(values, dtype=np.float64)) for name, values in series]
        lines = [(name, values) for name, values in read if np.count_nonzero(np.isfinite(values)) > 1]
        if lines:
            parts.append(partial(draw, title=title, y=y, lines=lines))
    if not parts:
        return None
    observed = (
        " The norm is a median of updates before they are clipped, and the model's loss a mean: a simulation "
        "computes them, and no device sends them."
    )
    return Plot(
        "rounds",
        "Losses and updates",
        "ε is the largest loss of any user in all rounds so far." + observed * (len(parts) > 1),
        f"What changes over {len(run.rounds)} rounds.",
        parts,
        full_width=len(parts) > 1,
        width=330,
        height=180,
    )


_RECOVERED = "recovered"


def averaging_plot(run: RunRecord) -> Plot | None:
    """Return the figure of what those who read all reports come to know; None where reports tell nothing."""
    if run.config.get("schedule") is None or not np.isfinite(_by_period(run, _RECOVERED)).any():
        return None

    def draw(ax: Axes) -> None:
        ax.set_ylim(0.5, 1.0)
        percent(ax.yaxis)
        lines = {_RECOVERED: (_RECOVERED, Look(SERIES[0], "o"))}
        _draw_periods(ax, run, "Recovered", "share of the reported ratings", lines)

    return Plot(
        "periods",
        "Ratings that all reports so far tell",
        "The share of the reported ratings of which the likeliest level, given all reports so far, is the "
        "true one, as far as reports tell levels apart: fresh noise averages out, and what is answered once "
        "does not.",
        f"Share of ratings that are recovered in each of {len(run.rounds)} periods.",
        [draw],
    )
