"""Builds report.html and figures/ from the files of a directory alone, and what notebooks show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dprec.channel import Channel
from dprec.errors import InputError
from dprec.progress import Progress, silent
from dprec.reports import DeviceChannel
from simulation.analysis.columns import (
    ResultColumn,
    SmallTable,
    run_table,
    tables_of_comparison,
    text_column,
)
from simulation.analysis.comparison_files import declared_in_run, read_comparison
from simulation.analysis.populations import Projection, check_population
from simulation.pages.comparison_page import comparison_page, evaluation_plots
from simulation.pages.deployment import comparison_projections, reference_traffic, run_projections
from simulation.pages.evaluation_parts import evaluation_parts, representative_runs
from simulation.pages.figures.looks import looks_of
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.panels import Panel
from simulation.pages.figures.rendering import Draw, Plot, Rendered, render
from simulation.pages.figures.users import draw_summary
from simulation.pages.page import table
from simulation.pages.run_page import run_page
from simulation.storage.directories import CONFIG, FIGURES, REPORT
from simulation.storage.files import unusable, write_atomically
from simulation.storage.run_files import RunFiles, RunRecord, holds_comparison, read_run
from simulation.storage.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOT_DRAWN = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 40"><text x="8" y="24" fill="currentColor" '
    'font-size="12">This figure is drawn when all runs are finished.</text></svg>'
)
"""In place of a figure."""


def report(
    directory: str | Path,
    population: float | None = None,
    progress: Progress = silent,
    *,
    png: bool = False,
) -> Path:
    """Build the page and the figures of a run directory or a comparison directory.

    Parameters
    ----------
    directory : str or Path
        Only its files are read, so that a page can be rebuilt anywhere.
    population : float, optional
        Number of users in a deployment, whose traffic is projected.
    png : bool
        Whether the figures are written as PNG too.

    Returns
    -------
    Path
        The page; the figures are beside it, as SVG.

    Raises
    ------
    InputError
        When the directory is not that of a finished run or comparison, or a file in it is damaged.
    """
    check_population(population)
    folder = Path(directory)
    return _built(folder, population, _keeping(folder, progress, png))


def outline(directory: str | Path) -> Path:
    """Build the page of a comparison that runs or was interrupted, without the figures, which take long.

    Raises
    ------
    InputError
        As `report`.
    """
    return _built(Path(directory), None, lambda plot: Rendered(plot, _NOT_DRAWN, _NOT_DRAWN))


def _built(folder: Path, population: float | None, draw: Draw) -> Path:
    try:
        if holds_comparison(folder):
            content = comparison_page(read_comparison(folder), population, draw)
        else:
            run = read_run(folder)
            config = (folder / CONFIG).read_text(encoding="utf-8")
            declared = declared_in_run(run.summary, folder)
            content = run_page(run, config, population, draw, declared)
        write_atomically(folder / REPORT, content)
    except OSError as error:
        raise unusable(folder, error) from None
    return folder / REPORT


def report_runs(directory: str | Path, progress: Progress = silent, *, png: bool = False) -> None:
    """Build the page of one run per protocol of a comparison, to which the comparison's page then links.

    Parameters
    ----------
    directory : str or Path
        Of a comparison.
    png : bool
        As for `report`.

    Raises
    ------
    InputError
        As `report`.
    """
    folders = list(representative_runs(read_comparison(Path(directory))).values())
    for done, folder in enumerate(folders):
        progress("writing the pages of runs", done, len(folders))
        report(folder, png=png)


def _shown(panels: Sequence[Panel]) -> Figure:
    # Pages do without matplotlib, which takes longer to load than they take to be written.
    from simulation.pages.figures.drawing import to_figure

    return to_figure(panels)


def plot(result: RunRecord) -> Figure:
    """Return the main figure of a run; see `RunResult.plot`."""
    return _shown(draw_summary(RunFiles.of(result)))


def plot_comparison(directory: Path) -> Figure:
    """Return the main figure of a comparison; see `ComparisonResult.plot`."""
    files = read_comparison(directory)
    looks = looks_of(files.results)
    plots = (each for part in evaluation_parts(files, looks) for each in evaluation_plots(part))
    main = next(plots, None)
    if main is None:
        raise InputError("plot", f"nothing to draw in {directory}", "a comparison with finished runs")
    return _shown(main.draw())


def projected(directory: str | Path, population: float) -> list[tuple[str, Projection]]:
    """Project the traffic of a run, by direction, or of a comparison, by protocol, to a population.

    Raises
    ------
    InputError
        As `report`.
    """
    check_population(population)
    folder = Path(directory)
    if holds_comparison(folder):
        return comparison_projections(reference_traffic(read_comparison(folder)), population)
    return run_projections(read_run(folder), population)


def _keeping(folder: Path, progress: Progress, png: bool) -> Draw:
    """Return a function that renders a figure and writes its files."""
    figures = folder / FIGURES
    numbers = count(1)

    def draw(plot: Plot) -> Rendered:
        progress(f"writing {REPORT}, figure {next(numbers)}", 0, 0)
        rendered = render(plot, png=png)
        figures.mkdir(exist_ok=True)
        write_atomically(figures / f"{plot.name}.svg", rendered.svg)
        if rendered.png is not None:
            write_atomically(figures / f"{plot.name}.png", rendered.png)
        return rendered

    return draw


def plot_channel(channel: Channel | DeviceChannel) -> Figure:
    """Draw what a channel sends for every true rating, and its mean."""
    noise = channel if isinstance(channel, DeviceChannel) else DeviceChannel(channel, 1, per_user=False)
    return _shown(draw_noise(noise))


def run_html(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as HTML."""
    return _html(run_table(summary), str(summary["name"]))


def comparison_html(rows: Sequence[Row], name: str) -> str:
    """Return the tables of a comparison as HTML, one per evaluation."""
    return "".join(_html(each, name) for each in tables_of_comparison(rows))


def _html(small: SmallTable, name: str) -> str:
    first: ResultColumn = text_column(small.first, lambda result: result.name)
    # Not to be sorted, each is what it shows.
    columns = [first, *(replace(column, value=column.text) for column in small.columns)]
    return str(table(small.title or name, columns, small.results, sortable=False))
