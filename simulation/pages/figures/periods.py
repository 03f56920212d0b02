"""A run of several collections, period by period: its accuracy, and what averaging tells of a rating."""

from collections.abc import Sequence

import numpy as np

from dprec.arrays import Floats
from simulation.analysis.vocabulary import Metric
from simulation.pages.figures.marks import Axis, Line, plain_axis
from simulation.pages.figures.panels import MUTED, SERIES, Panel, chart
from simulation.storage.run_files import RunFiles

_RECOVERED = "recovered"

_OTHERS = (
    ("newcomers_0", "newcomers, with no own rating", SERIES[1], ""),
    ("nothing_sent", "nothing sent", MUTED, "3 2"),
)
"""Keys of what else is measured in each period, what it is called, its colour and its dashes."""


def has_periods(run: RunFiles) -> bool:
    """Return whether a run followed a schedule."""
    return run.config.get("schedule") is not None


def draw_accuracy(run: RunFiles, metric: Metric, title: str, width: float) -> Panel:
    """Draw the accuracy of the predictions of each next period."""
    periods = np.array([record.round for record in run.rounds], dtype=np.float64)
    told = [(metric.column, "users present", SERIES[0], ""), *_OTHERS]
    curves = [(_column(run, key), label, colour, dashes) for key, label, colour, dashes in told]
    known = [curve for curve in curves if np.isfinite(curve[0]).any()]
    values = np.concatenate([curve[0][np.isfinite(curve[0])] for curve in known])
    y = plain_axis(float(values.min()), float(values.max()), metric.heading, pad=0.08, grid=True)
    lines = [
        Line(
            periods,
            own,
            colour,
            1.5,
            dashes,
            "" if dashes else "o",
            2.2,
            label=label,
            words=_words(label, own),
        )
        for own, label, colour, dashes in reversed(known)
    ]
    return chart(title, _periods(run), y, lines, width=width, height=180)


def draw_averaging(run: RunFiles, width: float) -> Panel | None:
    """Draw how many ratings whoever reads all reports comes to know; None if no report depends on any."""
    shares = _column(run, _RECOVERED)
    if not np.isfinite(shares).any():
        return None
    periods = np.array([record.round for record in run.rounds], dtype=np.float64)
    y = plain_axis(0.5, 1.0, "share of the reported ratings", ticks=5, percent=True, grid=True)
    words = _words("recovered", 100 * shares)
    line = Line(periods, shares, SERIES[0], 1.7, "", "o", 2.2, words=words)
    return chart("Ratings that all reports so far tell", _periods(run), y, [line], width=width, height=180)


def draw_periods(run: RunFiles, metric: Metric) -> list[Panel]:
    """Draw both."""
    averaging = draw_averaging(run, _HALF)
    panels = [draw_accuracy(run, metric, f"{metric.label} in the next period", _HALF)]
    return panels if averaging is None else [*panels, averaging]


_HALF = 510.0
"""Width of one of two panels beside each other."""


def _column(run: RunFiles, key: str) -> Floats:
    """Return a figure of all periods, NaN where there is none."""
    figures = [(record.accuracy or {}).get(key) for record in run.rounds]
    return np.array([np.nan if figure is None else figure for figure in figures], dtype=np.float64)


def _periods(run: RunFiles) -> Axis:
    days = run.config["schedule"]["days"]
    return plain_axis(1, max(2, len(run.rounds)), f"period of {days:g} days", ticks=5)


def _words(label: str, figures: Floats) -> Sequence[str]:
    return [f"period {place}: {label} {figure:.4g}" for place, figure in enumerate(figures.tolist(), start=1)]
