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
from simulation.analysis.columns import ResultColumn, SmallTable, run_table, tables_of_comparison, text_column
from simulation.analysis.comparison_files import declared_in_run, read_comparison
from simulation.analysis.populations import Projection, check_population
from simulation.pages.audit_page import audit_page, presets_page
from simulation.pages.comparison_page import comparison_page
from simulation.pages.comparison_plots import evaluation_plots
from simulation.pages.deployment import comparison_projections, reference_traffic, run_projections
from simulation.pages.evaluation_parts import evaluation_parts, representative_runs
from simulation.pages.figures.looks import looks_of
from simulation.pages.figures.noise import draw_noise
from simulation.pages.figures.panels import Panel
from simulation.pages.figures.rendering import Draw, Plot, Rendered, render
from simulation.pages.figures.users import draw_summary
from simulation.pages.page import table
from simulation.pages.run_page import run_page
from simulation.pages.single_file import in_one_file
from simulation.storage.directories import (
    AUDIT,
    CONFIG,
    FIGURES,
    REPORT,
    SINGLE_FILE,
    TABLE,
    PresetsRecord,
    parse_audit,
)
from simulation.storage.files import Row, read_text, unusable, write_atomically
from simulation.storage.run_files import RunFiles, RunRecord, holds_comparison, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def report(
    directory: str | Path,
    population: float | None = None,
    progress: Progress = silent,
    *,
    png: bool = False,
    single_file: bool = False,
) -> Path:
    """Build the page and the figures of the directory of a run, a comparison or an audit.

    Parameters
    ----------
    directory : str or Path
        Only its files are read, so that a page can be rebuilt anywhere.
    population : float, optional
        Number of users in a deployment, whose traffic is projected.
    png : bool
        Whether the figures are written as PNG too.
    single_file : bool
        Whether a page is written too that holds what the page links to: the pages of runs, and the table.

    Returns
    -------
    Path
        The page, or the one that holds everything; the figures are beside it, as SVG.

    Raises
    ------
    InputError
        When the directory is not that of a finished run, comparison or audit, or a file in it is damaged.
    """
    check_population(population)
    folder = Path(directory)
    if single_file and (folder / TABLE).is_file():
        report_runs(folder, progress, png=png)
    try:
        page = _page_of(folder, population, _keeping(folder, progress, png))
        write_atomically(folder / REPORT, page)
        if not single_file:
            return folder / REPORT
        write_atomically(folder / SINGLE_FILE, in_one_file(page, folder))
    except OSError as error:
        raise unusable(folder, error) from None
    return folder / SINGLE_FILE


def _page_of(folder: Path, population: float | None, draw: Draw) -> str:
    if (folder / AUDIT).is_file():
        audit = parse_audit(read_text(folder / AUDIT, "a file that `dprec audit` wrote"), str(folder / AUDIT))
        values = audit.model_dump(by_alias=True)
        return presets_page(values["presets"]) if isinstance(audit, PresetsRecord) else audit_page(values)
    if holds_comparison(folder):
        return comparison_page(read_comparison(folder), population, draw)
    run = read_run(folder)
    config = (folder / CONFIG).read_text(encoding="utf-8")
    return run_page(run, config, population, draw, declared_in_run(run.summary, folder))


def report_runs(directory: str | Path, progress: Progress = silent, *, png: bool = False) -> None:
    """Build the page of one run per protocol of a comparison, to which the comparison's page then links.

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
    parts = evaluation_parts(files, looks_of(files.results))
    main = next((plot for part in parts for plot in evaluation_plots(part)), None)
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
