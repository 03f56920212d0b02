"""Builds report.html and figures/ from the files of a directory alone, and what notebooks show."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from markupsafe import Markup, escape

from dprec.channel import Channel
from dprec.errors import InputError
from dprec.progress import Progress, silent
from dprec.reports import DeviceChannel
from simulation.analysis.columns import ResultColumn, SmallTable, run_table, tables_of_comparison, text_column
from simulation.analysis.populations import (
    Projection,
    check_population,
    comparison_projections,
    reference_traffic,
    run_projections,
)
from simulation.analysis.protocol_results import declared_in_run, read_comparison
from simulation.pages.audit_page import audit_page, presets_page
from simulation.pages.comparison_page import comparison_page, parts_of
from simulation.pages.drawing import Draw, Plot, Rendered, render, to_figure
from simulation.pages.noise import noise_plot
from simulation.pages.page import table
from simulation.pages.run_figures import summary_plot
from simulation.pages.run_page import run_page
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
from simulation.storage.run_files import RunRecord, holds_comparison, read_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def report(
    directory: str | Path,
    population: float | None = None,
    progress: Progress = silent,
    *,
    png: bool = False,
    single_file: bool = False,
    examples: bool = False,
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
    examples : bool
        Whether the page of a run shows a user's ratings, which are personal data; made-up ones are shown.

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
        page = _page_of(folder, population, _keeping(folder, progress, png), examples=examples)
        write_atomically(folder / REPORT, page)
        if not single_file:
            return folder / REPORT
        write_atomically(folder / SINGLE_FILE, in_one_file(page, folder))
    except OSError as error:
        raise unusable(folder, error) from None
    return folder / SINGLE_FILE


def _page_of(folder: Path, population: float | None, draw: Draw, *, examples: bool) -> str:
    if (folder / AUDIT).is_file():
        audit = parse_audit(read_text(folder / AUDIT, "a file that `dprec audit` wrote"), str(folder / AUDIT))
        values = audit.model_dump(by_alias=True)
        return presets_page(values["presets"]) if isinstance(audit, PresetsRecord) else audit_page(values)
    if holds_comparison(folder):
        return comparison_page(read_comparison(folder), population, draw)
    run = read_run(folder)
    config = (folder / CONFIG).read_text(encoding="utf-8")
    declared = declared_in_run(run.summary, folder)
    return run_page(run, config, population, draw, declared, examples=examples)


def report_runs(directory: str | Path, progress: Progress = silent, *, png: bool = False) -> None:
    """Build the page of one run per protocol of a comparison, to which the comparison's page then links.

    Raises
    ------
    InputError
        As `report`.
    """
    folders = [folder for _, folder in read_comparison(Path(directory)).shown_cells]
    for done, folder in enumerate(folders):
        progress("writing the pages of runs", done, len(folders))
        report(folder, png=png)


def plot(result: RunRecord) -> Figure:
    """Return the main figure of a run; see `RunResult.plot`."""
    return to_figure(summary_plot(result.as_stored()))


def plot_comparison(directory: Path) -> Figure:
    """Return the main figure of a comparison; see `ComparisonResult.plot`."""
    main = next(filter(None, (part.plot() for part in parts_of(read_comparison(directory)))), None)
    if main is None:
        raise InputError("plot", f"nothing to draw in {directory}", "a comparison with finished runs")
    return to_figure(main)


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
    return to_figure(noise_plot(noise))


def run_html(summary: Mapping[str, Any]) -> str:
    """Return the table of a run as HTML."""
    return _html(run_table(summary), str(summary["name"]))


def comparison_html(rows: Sequence[Row], name: str) -> str:
    """Return the tables of a comparison as HTML, one per evaluation."""
    return "".join(_html(small, name) for small in tables_of_comparison(rows))


def _html(small: SmallTable, name: str) -> str:
    first: ResultColumn = text_column(small.first, attrgetter("name"))
    # Not to be sorted, each is what it shows.
    columns = [first, *(replace(column, value=column.text) for column in small.columns)]
    return str(table(small.title or name, columns, small.results, sortable=False))


_LINK = re.compile(r'<a href="([^"#:]+)"')
"""A link to a file beside the page; text has no quotation marks, since they are escaped."""

_IDENTIFIER = re.compile(r'(?<= id=")[^"]+(?=")')
_REFERENCE = re.compile(r'(?<= )(href="#|for="|aria-[a-z]+="|[a-z-]+="url\(#)([^")]+)')

_TYPES = {".csv": "text/csv", ".svg": "image/svg+xml", ".png": "image/png"}
"""Files that a page may link to, beside those of runs."""

_LARGEST = 1 << 25
"""Bytes of the largest of them."""


def in_one_file(page: str, folder: Path) -> str:
    """Return a page with everything inside that it links to in its directory; a large file is refused."""
    runs: dict[Path, str] = {}

    def inside(link: re.Match[str]) -> str:
        target = (folder / unquote(unescape(link[1]))).resolve()
        # A page may come from anywhere; what it links to must not lead out of its directory.
        if not target.is_file() or not target.is_relative_to(folder.resolve()):
            return "<a"
        if target.name == REPORT:
            if target not in runs:
                runs[target] = _section(f"run-{len(runs) + 1}", target)
            return f'<a href="#run-{list(runs).index(target) + 1}"'
        if target.suffix not in _TYPES:
            return "<a"
        if (size := target.stat().st_size) > _LARGEST:
            raise InputError(str(target), f"{size:,} bytes", f"{_LARGEST:,} at most in a single file")
        content = base64.b64encode(target.read_bytes()).decode()
        start = Markup('<a download="{}" href="data:{};base64,{}"')
        return str(start.format(target.name, _TYPES[target.suffix], content))

    before, end, after = _LINK.sub(inside, page).rpartition("</main>")
    return "".join([before, *runs.values(), end, after])


def _section(place: str, path: Path) -> str:
    """Return what the page of a run says as a folded section, with identifiers of its own."""
    page = path.read_text(encoding="utf-8")
    content = page.partition('<main id="main">')[2].rpartition("</main>")[0]
    identifiers = set(_IDENTIFIER.findall(content))

    def renamed(reference: re.Match[str]) -> str:
        names = (f"{place}-{name}" if name in identifiers else name for name in reference[2].split(" "))
        return reference[1] + " ".join(names)

    content = _REFERENCE.sub(renamed, _IDENTIFIER.sub(lambda match: f"{place}-{match[0]}", content))
    heading = f'<h2 id="{place}">One run: {escape(path.parent.name)}</h2>'
    return (
        f'<section aria-labelledby="{place}">\n<details class="folded">\n<summary>{heading}</summary>\n'
        f"{_LINK.sub('<a', content)}</details>\n</section>\n"
    )
