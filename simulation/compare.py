"""The verb "compare": protocols x epsilons x folds x seeds, from one file to a table and a page."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Unpack
from weakref import finalize

from dprec.errors import InputError
from dprec.progress import Announce, Progress, silent, unheard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from simulation.comparison.planning import Comparison
    from simulation.comparison.running import ComparisonResult
    from simulation.configuration.loading import GivenParts


def compare(
    config: str | Path | Mapping[str, Any],
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    population: float | None = None,
    page: bool = True,
    progress: Progress = silent,
    announce: Announce = unheard,
    **parts: Unpack[GivenParts],
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table and page.

    Parameters
    ----------
    config : str, Path or mapping
        A comparison's file, its values, the name of a preset; or a file of ratings to compare all systems on.
    output : str or Path, optional
        The comparison's directory; by default a temporary one, without a page, as long as the result lives.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    jobs : int, optional
        Number of cells to run at a time; one per core by default.
    resume, population, page, progress
        As for `simulation.run`; finished cells are kept.
    announce : callable, optional
        Called with a sentence on what a long comparison may take, before its first run.
    **parts
        Ratings that you hold, or other parts to replace; see `simulation.configuration.loading.GivenParts`.

    Raises
    ------
    InputError, KeyboardInterrupt
        Before any cell runs, when the input or the directory cannot be used; with what is finished on disk.
    """
    from simulation.comparison.running import run_comparison

    _check(population, output, resume)
    comparison, page = _loaded(config, overrides, parts), page and output is not None
    with _directory(output) as (folder, held), _kept_when_interrupted(page):
        run_cells = partial(run_comparison, comparison, jobs=jobs, resume=resume, announce=announce)
        result = run_cells(folder, progress=progress, tabulated=_outline if page else None)
        held(result)
        if result.rows and page:
            _draw(result, population, progress)
    return result


@contextmanager
def _directory(
    output: str | Path | None,
) -> Iterator[tuple[str | Path, Callable[[ComparisonResult], object]]]:
    """Yield the directory of a comparison, and what ties one that nobody named to the life of the result."""
    if output is not None:
        yield output, lambda result: None
        return
    folder = Path(mkdtemp(prefix="dprec-"))
    try:
        yield folder, lambda result: finalize(result, rmtree, folder, ignore_errors=True)
    except Exception:
        # An interrupt names the directory as the place to go on from, so that it stays.
        rmtree(folder, ignore_errors=True)
        raise


def _check(population: float | None, output: str | Path | None, resume: bool) -> None:
    from simulation.analysis.populations import check_population

    if output is None and resume:
        raise InputError("resume", "no directory", "output=DIR, the one that was interrupted")
    check_population(population)


def _loaded(
    config: str | Path | Mapping[str, Any], overrides: Sequence[str], parts: GivenParts
) -> Comparison:
    from simulation.comparison.planning import load_comparison
    from simulation.configuration.loading import checked_parts

    return load_comparison(config, overrides, checked_parts(parts, "epsilons"))


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
    from simulation.storage.directories import REPORT, TABLE

    files = [path for name in (TABLE, REPORT) if (path := result.directory / name).is_file()]
    counted = f"{len(result.rows)} of {len(result.comparison.cells)} runs are finished"
    listed = f": {', '.join(map(str, files))}" if files else ""
    return f"{counted}{listed}; --resume -o {result.directory} goes on, and draws the figures"
