"""How users differ, in a run and between protocols, the three answers of a run, and its periods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dprec.arrays import Floats
from dprec.metrics import LONGEST_LIST
from simulation.analysis.protocol_results import ComparisonFiles
from simulation.analysis.vocabulary import (
    DASH,
    Metric,
    loss,
    main_metric,
    number,
    profiles_compared,
    short,
    size,
)
from simulation.pages.deployment import Traffic
from simulation.pages.drawing import (
    Panel,
    Plot,
    curve,
    entry,
    legend,
    log_axis,
    nothing,
    percent,
    point,
    titled,
)
from simulation.pages.looks import (
    DASHED,
    INK,
    MUTED,
    RULE,
    SERIES,
    SOLID,
    TRUST_LOOKS,
    Look,
    Looks,
    printable,
    shortened,
)
from simulation.pages.page import Section
from simulation.pages.words import at_budget
from simulation.storage.files import Columns
from simulation.storage.run_files import RANK, RunRecord, bytes_per_user
from simulation.storage.summary import PrivacySummary
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def _colour(run: RunRecord) -> str:
    return TRUST_LOOKS[run.summary.privacy.trust].colour


def _histogram(ax: Axes, title: str, values: Floats, colour: str, unit: str, label: str) -> None:
    """Draw how a figure is distributed over the users, with median and 95th percentile marked."""
    low, high = float(values.min()), float(values.max())
    median, p95 = np.percentile(values, (50, 95)).tolist()
    if high - low <= 0.01 * abs(high):
        within = "" if high - low <= 1e-9 * abs(high) else ", within 1 %"
        nothing(ax, title, f"{label}: {_measured(median, unit)}\nfor every user{within}")
        return
    logarithmic = low > 0 and high / low > 60
    edges = bins(values, logarithmic=logarithmic)
    shares = np.histogram(values, edges)[0] / values.size
    if logarithmic:
        log_axis(ax.xaxis, [low, high], size if unit == "B" else short)
    elif unit == "B":
        ax.xaxis.set_major_formatter(lambda value, _: size(value))
        ax.locator_params("x", nbins=4)
    ax.stairs(shares, edges, fill=True, color=colour, alpha=0.28)
    ax.stairs(shares, edges, color=colour, linewidth=1.2)
    marked = ((median, "median", SOLID), (p95, "95th percentile", DASHED))
    for value, _, dashes in marked:
        ax.axvline(value, color=INK, linewidth=1.1, linestyle=dashes)
    titled(ax, title, x=label, y="share of users")
    percent(ax.yaxis)
    legend(
        ax,
        [entry(f"{name} {_measured(value, unit)}", Look(INK, "", dashes)) for value, name, dashes in marked],
    )


_BINS = 30


def bins(values: Floats, *, logarithmic: bool) -> Floats:
    """Return edges of bins; between the possible values if these are evenly spaced, as integers are.

    Each bin then holds as many possible values as every other, or at least one on a logarithmic axis.
    """
    low, high = float(values.min()), float(values.max())
    edges = np.geomspace(low, high, _BINS + 1) if logarithmic else np.linspace(low, high, _BINS + 1)
    step = float(np.diff(np.unique(values)).min())
    places = (values - low) / step
    if not np.allclose(places, np.round(places), atol=1e-6):
        edges[-1] = np.nextafter(high, np.inf)
        return edges
    if logarithmic:
        last = (high - low) / step + 1
        between = np.unique(np.append(np.round((edges[:-1] - low) / step), last))
        return np.maximum(low + step * (between - 0.5), low / 2)
    together = np.ceil(((high - low) / step + 1) / _BINS)
    return np.arange(low, high + step * (together + 0.5), step * together) - step / 2


def _measured(value: float, unit: str) -> str:
    return size(value) if unit == "B" else f"{unit}{short(value)}"


def evaluated_rounds(rounds: Sequence[RoundRecord], metric: Metric) -> list[tuple[int, float, float]]:
    """Return number, cumulative bytes and accuracy of the rounds that were evaluated."""
    spent, evaluated = 0.0, []
    for record in rounds:
        spent += record.uplink_message_bytes + record.downlink_message_bytes
        value = (record.accuracy or {}).get(metric.column)
        if value is not None:
            evaluated.append((record.round, spent, value))
    return evaluated


HELD_AGAINST = ("rmse", "sign_accuracy")
"""The metrics of `Summary.nothing_sent`."""


def _worse(metric: Metric, reached: float, baseline: float | None) -> list[str]:
    """Say that a run is worse than nothing sent, if it is."""
    if baseline is None or metric.column not in HELD_AGAINST or not metric.better(baseline, reached):
        return []
    return [f"Worse than nothing sent, by {number(abs(reached - baseline), metric.digits - 1)}."]


def summary_panels(run: RunRecord) -> list[Panel]:
    """Return the three answers of a run: how accurate, how private, how many bytes per person."""
    spent = run.bytes_per_user
    title = f"How many bytes: {size(float(spent.mean()))} per user"
    traffic = partial(
        _histogram,
        title=title,
        values=spent,
        colour=_colour(run),
        unit="B",
        label="bytes per user, both ways",
    )
    return [partial(_draw_accuracy, run=run), partial(_draw_losses, run=run), traffic]


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
    if has_periods(run):
        draw_periods(ax, run, metric, title)
    elif len(evaluated_rounds(run.rounds, metric)) > 1:
        draw_rounds(ax, run, metric, title, baseline)
    elif RANK in run.predictions:
        _draw_ranks(ax, title, run.predictions[RANK], _colour(run))
    else:
        titled(ax, title, *_worse(metric, reached, baseline))
        _draw_predictions(ax, run.predictions["rating"], run.predictions["prediction"], _colour(run))


def shade(ax: Axes, x: Floats, y: Floats, metric: Metric) -> None:
    """Draw what is reached with nothing sent as a line across a panel, and shade what is worse."""
    left, right = ax.get_xlim()
    places, line = np.concatenate([[left], x, [right]]), np.concatenate([y[:1], y, y[-1:]])
    worst = ax.get_ylim()[metric.lower_is_better]
    # Where the line lies beyond the worst end, nothing that is shown is worse.
    edge = np.minimum(line, worst) if metric.lower_is_better else np.maximum(line, worst)
    ax.fill_between(places, edge, worst, color=RULE, alpha=0.45, linewidth=0)
    ax.plot(places, line, color=INK, linewidth=1.2)


def draw_rounds(ax: Axes, run: RunRecord, metric: Metric, title: str, baseline: float | None) -> None:
    """Draw accuracy against the cumulative bytes per user, and what is reached with nothing sent across."""
    rounds = evaluated_rounds(run.rounds, metric)
    spent = np.array([total for _, total, _ in rounds]) / run.summary.traffic.users
    values = np.array([value for *_, value in rounds])
    handles = []
    if baseline is not None and metric.column in HELD_AGAINST:
        handles.append(
            entry(f"nothing sent: {number(baseline, metric.digits - 1)}", Look(INK), linewidth=1.2)
        )
        values = np.append(values, baseline)
    margin = 0.08 * float(np.ptp(values)) or 0.5
    ax.set_ylim(values.min() - margin, values.max() + margin)
    if spent.min() > 0:
        log_axis(ax.xaxis, spent, size)
    else:
        ax.set_xlim(0, 1.05 * spent.max())
        ax.xaxis.set_major_formatter(lambda value, _: size(value))
    if handles:
        shade(ax, np.array(ax.get_xlim()), np.full(2, baseline), metric)
    words = [
        f"round {place}: {metric.label} {value:.{metric.digits}f}, {size(at)} per user so far"
        for at, (place, _, value) in zip(spent, rounds, strict=True)
    ]
    named = f"rounds {rounds[0][0]} to {rounds[-1][0]}"
    look = Look(_colour(run), "o")
    handles.insert(0, curve(ax, spent, values[: spent.size], look, named, words, markersize=5))
    titled(
        ax,
        title,
        *_worse(metric, rounds[-1][2], baseline),
        x="bytes per user so far, both ways",
        y=metric.heading,
    )
    legend(ax, handles)


def _draw_ranks(ax: Axes, title: str, ranks: Floats, colour: str) -> None:
    """Draw which share of the test items is among the first of the lists."""
    lengths = np.arange(1, LONGEST_LIST + 1)
    shares = np.array([np.mean(ranks <= length) for length in lengths])
    ax.set_ylim(0, max(float(shares[-1]), 0.01) * 1.05)
    words = [f"{share:.1%} among the first {length}" for length, share in zip(lengths, shares, strict=True)]
    curve(ax, lengths, shares, Look(colour, "o"), "", words, markersize=5)
    percent(ax.yaxis)
    titled(ax, title, x="length of the lists", y="share of test items")


def _draw_losses(ax: Axes, run: RunRecord) -> None:
    losses, how = run.traffic["epsilon_per_user"], ""
    if not np.isfinite(losses).all():
        # Where noise is added to sums, a loss is bounded by composition alone.
        losses, how = run.traffic["epsilon_composed"], f", δ = {run.summary.privacy.delta:g}"
    known = losses[np.isfinite(losses)]
    if known.size < losses.size or not known.size:
        nothing(ax, "How private: no bound", _unbounded_in_words(run.summary.privacy))
        return
    largest = float(known.max())
    compared = profiles_compared(largest, hides_rated_items=run.summary.privacy.hides_rated_items)
    title = f"How private: ε {short(largest)} per user at most"
    _histogram(ax, title, known, _colour(run), "ε ", f"ε per user{compared}{how}")


def _unbounded_in_words(privacy: PrivacySummary) -> str:
    if privacy.status in ("claimed", "declared"):
        return f"ε {loss(privacy.epsilon_claimed.per_user)} per user is {privacy.status},\nnothing is proved"
    return "no privacy: the server\nsees true ratings" if privacy.trusts_server else "the loss has no bound"


_MOST_GROUPS, PREDICTION_QUANTILES = 12, (5, 25, 50, 75, 95)


def _draw_predictions(ax: Axes, ratings: Floats, predictions: Floats, colour: str) -> None:
    """Draw the distribution of predictions for every true rating, with the line of perfect predictions."""
    groups = group_by_rating(ratings, predictions)
    places = [place for place, _ in groups]
    least, lower, middle, upper, most = np.array([quantiles for _, quantiles in groups]).T
    ends = [places[0], places[-1]]
    ax.plot(ends, ends, color=MUTED, linewidth=1.1, linestyle=DASHED)
    ax.vlines(places, least, most, color=colour, linewidth=1.4, alpha=0.5)
    ax.vlines(places, lower, upper, color=colour, linewidth=6, alpha=0.5)
    words = [
        f"true rating {place:g}: median {each[2]:.2f}, middle 50 % {each[1]:.2f} to {each[3]:.2f}, "
        f"middle 90 % {each[0]:.2f} to {each[4]:.2f}"
        for place, each in groups
    ]
    point(ax, places, middle, colour, words)
    if len(places) <= 6:
        ax.set_xticks(places, [f"{place:g}" for place in places])
    ax.set(xlabel="true rating", ylabel="prediction")


def group_by_rating(ratings: Floats, predictions: Floats) -> list[tuple[float, Floats]]:
    """Return every true rating, or middle of a tenth of the scale, and the quantiles of its predictions."""
    levels, of_rating = np.unique(ratings, return_inverse=True)
    if levels.size > _MOST_GROUPS:
        edges = np.linspace(levels[0], levels[-1], 11)
        of_rating = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, 9)
        levels = (edges[1:] + edges[:-1]) / 2
    return [
        (float(level), np.percentile(predictions[of_rating == place], PREDICTION_QUANTILES))
        for place, level in enumerate(levels)
        if (of_rating == place).any()
    ]


def has_periods(run: RunRecord) -> bool:
    """Return whether a run followed a schedule."""
    return run.config.get("schedule") is not None


_PERIODS = (
    ("nothing_sent", "nothing sent", MUTED, DASHED),
    ("newcomers_0", "newcomers, with no own rating", SERIES[1], SOLID),
)
"""Keys of what else is measured in each period, what it is called, its colour and its dashes."""


def draw_periods(ax: Axes, run: RunRecord, metric: Metric, title: str) -> None:
    """Draw the accuracy of the predictions of each next period."""
    handles = []
    for key, label, colour, dashes in (*_PERIODS, (metric.column, "users present", SERIES[0], SOLID)):
        figures = _by_period(run, key)
        if np.isfinite(figures).any():
            handles.append(_draw_period(ax, figures, label, Look(colour, "o", dashes)))
    days = run.config["schedule"]["days"]
    titled(ax, title, x=f"period of {days:g} days", y=metric.heading)
    legend(ax, handles[::-1])


def draw_averaging(ax: Axes, run: RunRecord) -> None:
    """Draw how many ratings whoever reads all reports comes to know."""
    ax.set_ylim(0.5, 1.0)
    _draw_period(ax, _by_period(run, _RECOVERED), "recovered", Look(SERIES[0], "o"))
    percent(ax.yaxis)
    days = run.config["schedule"]["days"]
    titled(
        ax,
        "Ratings that all reports so far tell",
        x=f"period of {days:g} days",
        y="share of the reported ratings",
    )


def periods_panels(run: RunRecord, metric: Metric) -> list[Panel]:
    """Return both; the second where a report depends on a rating."""
    title = f"{metric.label} in the next period"
    panels: list[Panel] = [partial(draw_periods, run=run, metric=metric, title=title)]
    known = np.isfinite(_by_period(run, _RECOVERED)).any()
    return [*panels, partial(draw_averaging, run=run)] if known else panels


_RECOVERED = "recovered"


def _by_period(run: RunRecord, key: str) -> Floats:
    """Return a figure of all periods, NaN where there is none."""
    figures = [(record.accuracy or {}).get(key) for record in run.rounds]
    return np.array([np.nan if figure is None else figure for figure in figures], dtype=np.float64)


def _draw_period(ax: Axes, figures: Floats, label: str, look: Look) -> Artist:
    periods = range(1, figures.size + 1)
    words = [f"period {place}: {label} {figure:.4g}" for place, figure in zip(periods, figures, strict=True)]
    return curve(ax, periods, figures, look, label, words, markersize=4)


SPREAD_QUANTILES = (0, 5, 25, 50, 75, 95, 100)


@dataclass(frozen=True, eq=False)
class Spread:
    """How a figure is distributed over the users of a protocol."""

    name: str
    label: str
    quantiles: Floats
    """At `SPREAD_QUANTILES` per cent; shape (7,)."""


def draw_spreads(ax: Axes, spreads: Sequence[Spread], axis: str, looks: Looks, *, in_bytes: bool) -> None:
    """Draw one strip per protocol: all users, 90 %, 50 % and the median, which is also beside the name."""
    ordered = sorted(spreads, key=lambda spread: -float(spread.quantiles[3]))
    measured: Callable[[float], str] = size if in_bytes else lambda value: f"ε {short(value)}"
    every = np.concatenate([spread.quantiles for spread in spreads])
    least, _ = log_axis(ax.xaxis, every[every > 0], size if in_bytes else short)
    ax.set_ylim(-0.7, len(ordered) - 0.3)
    for row, spread in enumerate(ordered):
        colour = looks[spread.name].colour
        low, p5, p25, median, p75, p95, high = np.maximum(spread.quantiles, least).tolist()
        for start, end, width, opacity in ((low, high, 1, 0.7), (p5, p95, 4, 0.4), (p25, p75, 8, 0.55)):
            ax.hlines(row, start, end, color=colour, linewidth=width, alpha=opacity)
        words = f"median {measured(median)}, 95th percentile {measured(p95)}, largest {measured(high)}"
        point(ax, [median], [row], colour, [f"{printable(spread.label)}: {words}"], markersize=5)
    names = [f"{shortened(spread.label)}  {measured(float(spread.quantiles[3]))}" for spread in ordered]
    ax.set_yticks(range(len(names)), names)
    ax.grid(visible=True, axis="x")
    ax.set_xlabel(axis)


def users_section(files: ComparisonFiles, traffic: Traffic, looks: Looks) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""

    def plots(name: str, title: str, axis: str, of: Callable[[Columns], Floats]) -> Iterator[Plot]:
        spent = [(result.name, label, of(columns)) for result, label, columns in traffic]
        spreads = [
            Spread(name, label, np.percentile(values, SPREAD_QUANTILES))
            for name, label, values in spent
            # A logarithmic axis has no place for what sends and loses nothing.
            if np.isfinite(values).all() and values.max() > 0
        ]
        medians = "; ".join(f"{each.label} {each.quantiles[3]:,.4g}" for each in spreads)
        draw = partial(draw_spreads, spreads=spreads, axis=axis, looks=looks, in_bytes=of is bytes_per_user)
        if spreads:
            yield Plot(
                name,
                title,
                f"Line: all users. Bars: the middle 90 % and 50 %. Dot: the median.{at_budget(files)}",
                f"{title}, medians: {medians}.",
                [draw],
                height=50.0 + 15 * len(spreads),
            )

    drawn = [
        *plots("bytes-per-user", "Bytes per user", "bytes per user, both directions", bytes_per_user),
        *plots("epsilon-per-user", "ε per user", "ε per user", lambda columns: columns["epsilon_per_user"]),
    ]
    why = "No protocol here sends anything." if traffic else "The runs themselves are not in this directory."
    return Section("users", "How users differ", (drawn or f"{DASH} {why}",))
