"""Words about points: what is shown of one when pointed at, and numbers beside points where there is room."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from simulation.analysis.protocol_results import ProtocolResult
from simulation.analysis.vocabulary import Metric, loss, size, with_spread
from simulation.pages.figures.labels import PointLabel
from simulation.pages.figures.panels import Style, printable


def result_in_words(result: ProtocolResult, metric: Metric) -> str:
    """Return a protocol, its budget, its accuracy and its bytes in one line."""
    budget = "" if result.budget is None else f", ε {loss(result.budget)}"
    accuracy = with_spread(result.average(metric.column), metric.digits)
    spent = "" if result.bytes_per_user is None else f", {size(result.bytes_per_user)} per user"
    return f"{printable(result.name)}{budget}: {metric.label} {accuracy}{spent}"


_LETTER, _LINE, _APART, _MARKER = 0.62, 1.05, 6.0, 5.0
"""Size of text relative to the font size; distance from a point, and half a marker's size, in points."""

_PANEL = 0.78, 0.7
"""Width and height of a panel as shares of the figure's."""

Box = tuple[float, float, float, float]


def label_points(ax: Axes, style: Style, labels: Sequence[PointLabel]) -> None:
    """Write labels beside their points, the first ones first; what has no room is left out.

    Parameters
    ----------
    ax : Axes
        Its limits are final.
    labels : sequence of PointLabel
        One for every point.
    """
    size = style.points - 2
    width, height = (
        72 * side * share for side, share in zip((style.width, style.height), _PANEL, strict=True)
    )
    to_panel = ax.transData + ax.transAxes.inverted()
    places = [to_panel.transform((label.x, label.y)) * (width, height) for label in labels]
    taken: list[Box] = [(x - _MARKER, y - _MARKER, x + _MARKER, y + _MARKER) for x, y in places]
    for label, (x, y) in zip(labels, places, strict=True):
        wide, high = len(label.label) * _LETTER * size, _LINE * size
        if not (0 <= x <= width and 0 <= y <= height):
            continue
        # To the right, to the left, above and below.
        for left, low in (
            (_APART, -high / 2),
            (-_APART - wide, -high / 2),
            (-wide / 2, _APART),
            (-wide / 2, -_APART - high),
        ):
            box = (x + left, y + low, x + left + wide, y + low + high)
            if box[0] >= 0 and box[2] <= width and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                ax.annotate(
                    label.label,
                    (label.x, label.y),
                    (left + wide / 2, low + high / 2),
                    textcoords="offset points",
                    ha="center",
                    va="center",
                    fontsize=size,
                    color=label.colour,
                    parse_math=False,
                )
                break


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
