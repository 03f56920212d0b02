"""The section of a comparison's page about how users differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from simulation.analysis.comparison_files import ComparisonFiles
from simulation.analysis.protocol_results import ProtocolResult, reference_budget
from simulation.pages.figures.looks import Looks
from simulation.pages.figures.rendering import Draw, Plot
from simulation.pages.figures.users import SPREAD_QUANTILES, Spread, draw_spreads
from simulation.pages.page import Section, dashed, figures
from simulation.storage.run_files import bytes_per_user
from simulation.storage.tables import Columns


def user_section(
    files: ComparisonFiles, traffic: Sequence[tuple[ProtocolResult, str, Columns]], looks: Looks, draw: Draw
) -> Section:
    """Return how bytes and losses are distributed over the users of every protocol."""
    heading = "How users differ"
    if not traffic:
        return Section("users", heading, (dashed("The runs themselves are not in this directory."),))
    reference = reference_budget(files.results)
    budget = "" if reference is None else f" ε = {reference:g} unless the label says otherwise."
    caption = f"{_CAPTION}{budget}"
    spent = _spreads((result, label, bytes_per_user(columns)) for result, label, columns in traffic)
    if not spent:
        return Section("users", heading, (dashed("No protocol here sends anything."),))
    losses = _spreads((result, label, columns["epsilon_per_user"]) for result, label, columns in traffic)
    plots = [
        Plot(
            "bytes-per-user",
            "Bytes per user",
            caption,
            "Bytes per user of each protocol. " + _medians(spent, "bytes"),
            lambda style: draw_spreads(
                style,
                spent,
                "bytes per user, both directions",
                looks,
                in_bytes=True,
            ),
        )
    ]
    if losses:
        plots.append(
            Plot(
                "epsilon-per-user",
                "ε per user",
                caption,
                "Privacy loss per user of each protocol. " + _medians(losses, "epsilon"),
                lambda style: draw_spreads(
                    style,
                    losses,
                    "ε per user, over everything that is sent",
                    looks,
                    in_bytes=False,
                ),
            )
        )
    content: list[str] = [figures([draw(plot) for plot in plots])]
    if not losses:
        content.append(dashed("ε per user: no protocol here has one."))
    return Section("users", heading, tuple(content))


_CAPTION = (
    "Thin line: all users. Bars: the middle 90 % and 50 %. Dot, and figure beside the name: the median."
)


def _spreads(figures_of_users: Iterable[tuple[ProtocolResult, str, NDArray[np.float64]]]) -> list[Spread]:
    """Return what can be drawn on a logarithmic axis: not the baseline that sends nothing and loses nothing."""
    return [
        Spread(result.name, label, np.percentile(values, SPREAD_QUANTILES))
        for result, label, values in figures_of_users
        if np.isfinite(values).all() and values.max() > 0
    ]


def _medians(spreads: Sequence[Spread], unit: str) -> str:
    return "; ".join(
        f"{spread.label} median {spread.quantiles[3]:,.4g} {unit}, largest {spread.quantiles[-1]:,.4g}"
        for spread in spreads
    ) + "."  # fmt: skip
