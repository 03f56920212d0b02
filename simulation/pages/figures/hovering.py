"""What a figure on a page shows of the place that a reader points at."""

from __future__ import annotations

import re
from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

_PREFIX = "shows: "
_GROUP = re.compile(rf'<g id="{_PREFIX}([^"]*)">')


def show_on_hover(ax: Axes, places: Iterable[tuple[float, float, str]]) -> None:
    """Have places of a panel show words when pointed at.

    Each is a marker that cannot be seen, whose name in the SVG is what it shows: a page makes targets of them
    (`inline_svg`), and a file titles (`titled`).

    Parameters
    ----------
    ax : Axes
        Its limits are final; a place beyond them is left out.
    places : iterable of (float, float, str)
        In data coordinates, with the words.
    """
    (left, right), (low, high) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
    for x, y, words in places:
        if left <= x <= right and low <= y <= high:
            ax.add_artist(Line2D([x], [y], marker="o", markersize=10, alpha=0, zorder=5, gid=_PREFIX + words))


def shown_by(identifier: str) -> str | None:
    """Return what a group of an SVG shows when pointed at, by its identifier; None for any other group."""
    return identifier.removeprefix(_PREFIX) if identifier.startswith(_PREFIX) else None


def titled(svg: str) -> str:
    """Return an SVG file in which places have titles, which browsers show, for names."""
    return _GROUP.sub(r"<g><title>\1</title>", svg)
