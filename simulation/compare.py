"""The verb "compare": protocols x epsilons x folds x seeds, from one file to a table and a page."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from simulation.comparison.estimate import Announce
    from simulation.comparison.planning import Comparison
    from simulation.comparison.running import ComparisonResult
    from simulation.configuration.parts import GivenParts


def compare(
    config: str | Path | Mapping[str, Any],
    output: str | Path,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    population: float | None = None,
    page: bool = True,
    progress: Progress = silent,
    announce: Announce | None = None,
    **parts: Unpack[GivenParts],
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table and page.

    Parameters
    ----------
    config : str, Path or mapping
        The path of the comparison's file, the name of a preset, the values of a comparison, or a file of
        ratings, on which the published systems and ours are compared.
    output : str or Path
        The comparison's directory.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    jobs : int, optional
        Number of cells to run at a time; one per core by default.
    resume : bool
        Continue an interrupted comparison; its finished cells are kept.
    population, page, progress
        As for `simulation.run`.
    announce : callable, optional
        Called with a sentence on what a long comparison may take, before its first run.
    **parts
        Ratings that you hold, or other parts to replace; see `simulation.configuration.parts.GivenParts`.

    Raises
    ------
    InputError
        When the configuration, the data or the output directory cannot be used; raised before any cell runs.
    KeyboardInterrupt
        When interrupted; the table and the page then hold what is finished.
    """
    _check(population)
    comparison = _loaded(config, overrides, parts)
    return _compared(comparison, output, jobs, resume, population, page, progress, announce)


def _compared(
    comparison: Comparison,
    output: str | Path,
    jobs: int | None,
    resume: bool,
    population: float | None,
    page: bool,
    progress: Progress,
    announce: Announce | None,
) -> ComparisonResult:
    from simulation.comparison.estimate import unheard
    from simulation.comparison.running import run_comparison

    with _kept_when_interrupted(page):
        result = run_comparison(
            comparison,
            output,
            jobs=jobs,
            resume=resume,
            progress=progress,
            tabulated=_outline if page else None,
            announce=announce or unheard,
        )
        if result.rows and page:
            _draw(result, population, progress)
    return result


def _check(population: float | None) -> None:
    from simulation.analysis.projection import check_population

    check_population(population)


def _loaded(
    config: str | Path | Mapping[str, Any], overrides: Sequence[str], parts: GivenParts
) -> Comparison:
    from simulation.comparison.planning import load_comparison
    from simulation.configuration.parts import checked_parts

    return load_comparison(config, overrides, checked_parts(parts))


@contextmanager
def _kept_when_interrupted(page: bool) -> Iterator[None]:
    """Say on an interrupt what is finished, after writing its page."""
    from simulation.comparison.running import InterruptedComparison

    try:
        yield
    except InterruptedComparison as interrupted:
        if interrupted.result.rows and page:
            _outline(interrupted.result.directory)
        interrupted.add_note(_what_is_finished(interrupted.result))
        raise


def _outline(directory: Path) -> None:
    """Write the page without its figures, which take long."""
    from simulation.pages import outline

    outline(directory)


def _draw(result: ComparisonResult, population: float | None, progress: Progress) -> None:
    from simulation.comparison.running import InterruptedComparison
    from simulation.pages import report, report_runs

    try:
        report_runs(result.directory, progress)
        report(result.directory, population, progress)
    except KeyboardInterrupt:
        raise InterruptedComparison(result) from None


def _what_is_finished(result: ComparisonResult) -> str:
    from simulation.storage.names import REPORT, TABLE

    files = [path for name in (TABLE, REPORT) if (path := result.directory / name).is_file()]
    counted = f"{len(result.rows)} of {len(result.comparison.cells)} runs are finished"
    listed = f": {', '.join(map(str, files))}" if files else ""
    return f"{counted}{listed}; --resume -o {result.directory} goes on, and draws the figures"
