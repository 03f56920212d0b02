"""Runs a comparison, from its configuration to its table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dprec.errors import InputError, within
from dprec.progress import Announce, Progress, silent, unheard
from dprec.ratings import Ratings
from simulation.comparison.cell_runs import Failure, finished, processors, run_cells
from simulation.comparison.mechanism_noise import sampled_noise
from simulation.comparison.planning import Comparison
from simulation.comparison.schedule import Contender, Sample, estimate
from simulation.comparison.tabulation import Pauses, Tabulation
from simulation.comparison.templates import Cell, LeftOut, of_entry
from simulation.execution import load_ratings, prepared_ratings
from simulation.storage.columns import typed_frame, write_parquet
from simulation.storage.directories import CELLS, SUMMARY, ComparisonDirectory, fingerprint
from simulation.storage.summarise import of_all_protocols
from simulation.storage.summary import read_summary
from simulation.storage.tables import Row

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_STAGE = "running"


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """What a comparison produced."""

    comparison: Comparison
    directory: Path
    rows: list[Row]
    """The lines of comparison.csv."""
    timings: list[Row]
    """The lines of timing.csv."""
    failures: dict[str, str]
    """Why cells failed, by their keys."""

    def to_pandas(self) -> pd.DataFrame:
        """Return comparison.csv as a data frame, whose ``attrs["meanings"]`` say what its columns are.

        Raises
        ------
        ModuleNotFoundError
            When pandas is not installed.
        """
        return typed_frame(self.rows)

    def to_parquet(self, path: str | Path) -> None:
        """Write comparison.csv as a Parquet file, whose columns have types and say what they are.

        Raises
        ------
        InputError
            When pyarrow is not installed, or the file cannot be written.
        """
        write_parquet(Path(path), self.rows)

    def plot(self) -> Figure:
        """Draw accuracy against epsilon, or against bytes without epsilons: the main figure of the page.

        Returns
        -------
        matplotlib.figure.Figure
            Independent of pyplot; `savefig` writes it.

        Raises
        ------
        InputError
            When no run is finished, or the directory no longer holds the comparison.
        """
        from simulation.pages import plot_comparison  # matplotlib is loaded only when something is drawn

        return plot_comparison(self.directory)

    def notes_on_ratings(self) -> list[str]:
        """Return what the runs say of ratings from a user's file, such as what their scale reveals."""
        summaries = (
            self.directory / CELLS / cell.key
            for cell in self.comparison.cells
            if cell.config.dataset.own and cell.population is None
        )
        finished = (read_summary(folder) for folder in summaries if (folder / SUMMARY).is_file())
        return next(filter(None, (of_all_protocols(each.privacy.notes) for each in finished)), [])

    def __repr__(self) -> str:
        ended = f"{len(self.rows)} of {len(self.comparison.cells)} runs"
        return f"ComparisonResult({self.comparison.config.name}: {ended}, in {self.directory})"

    def _repr_html_(self) -> str:
        from simulation.pages import comparison_html

        return comparison_html(self.rows, self.comparison.config.name)


class InterruptedComparison(KeyboardInterrupt):
    """An interrupt of a comparison, whose table holds what is finished."""

    def __init__(self, result: ComparisonResult) -> None:
        super().__init__()
        self.result = result


def run_comparison(
    comparison: Comparison,
    output: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    tabulated: Callable[[Path], object] | None = None,
    announce: Announce = unheard,
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table.

    Parameters
    ----------
    output : str or Path
        The comparison's directory.
    jobs : int, optional
        Number of cells to run at a time; one per core by default.
    resume : bool
        Continue an interrupted comparison; its finished cells are kept.
    tabulated : callable, optional
        Called with the directory now and then while cells run, when it holds the table of the finished ones.
    announce : callable, optional
        Called with a sentence on what a long comparison may take, before its first run.

    Raises
    ------
    InputError
        When the configuration, the data or the output directory cannot be used; raised before any cell runs.
    InterruptedComparison
        When cells had begun; the table of the finished ones is written.
    """
    if jobs is not None and jobs < 1:
        raise InputError("jobs", str(jobs), "at least 1")
    comparison, directory, samples = _claimed(comparison, output, resume, progress)
    _say_what_it_takes(comparison, directory, samples, jobs, announce, progress)
    table, failures = Tabulation(comparison.cells, directory), dict[str, str]()

    def result() -> ComparisonResult:
        return ComparisonResult(comparison, directory.path, *table.write(), failures)

    backend = comparison.config.simulation.backend
    try:
        with closing(run_cells(comparison.cells, directory.cells, jobs, backend)) as ended:
            _follow(ended, table, failures, progress, tabulated)
    except KeyboardInterrupt:
        raise InterruptedComparison(result()) from None
    return result()


def _claimed(
    comparison: Comparison, output: str | Path, resume: bool, progress: Progress
) -> tuple[Comparison, ComparisonDirectory, dict[Contender, Sample]]:
    """Return what of a comparison suits the ratings, its directory, and samples of the ratings."""
    comparison, fingerprints, samples = _checked(comparison, progress)
    noise = sampled_noise(comparison)
    directory = ComparisonDirectory.claim_for(output, comparison.to_yaml(fingerprints), resume=resume)
    if noise:
        directory.write_noise(noise)
    return comparison, directory, samples


def _say_what_it_takes(
    comparison: Comparison,
    directory: ComparisonDirectory,
    samples: Mapping[Contender, Sample],
    jobs: int | None,
    announce: Announce,
    progress: Progress,
) -> None:
    """Announce what the unfinished cells may take, if that is long."""
    waiting = [cell for cell in comparison.cells if not finished(cell, directory.cells)]
    if announce is unheard or not waiting:
        return
    progress("estimating what it will take", 0, 1)
    workers = 1 if comparison.config.simulation.backend == "local" else jobs or processors(len(waiting))
    expected = estimate(waiting, samples, min(workers, len(waiting)))
    if expected.is_worth_a_line:
        announce(expected.words)


def _follow(
    ended: Iterable[tuple[Cell, Failure | None]],
    table: Tabulation,
    failures: dict[str, str],
    progress: Progress,
    tabulated: Callable[[Path], object] | None,
) -> None:
    """Note how every cell ends, and now and then write the table."""
    pauses, planned = Pauses(), len(table.cells)
    progress(_STAGE, 0, planned)
    for cell, failure in ended:
        if failure is None:
            table.finished.add(cell.key)
        else:
            failures[cell.key] = failure
        progress(_STAGE, len(table.finished) + len(failures), planned)
        if tabulated is not None and table.finished and pauses.due:
            with pauses.spending():
                table.write()
                tabulated(table.directory.path)


def _checked(
    comparison: Comparison, progress: Progress
) -> tuple[Comparison, dict[str, str], dict[Contender, Sample]]:
    """Check each protocol at each of its budgets; return what suits the ratings, with their fingerprints.

    Beside these come samples of the ratings, for an estimate of what the cells take.

    Ratings are those of the protocol's first fold and seed on every population: what a check depends on, the
    numbers of users and items and the scale, hardly differs between folds.
    """
    fingerprints: dict[str, str] = {}
    unsuited: dict[str, LeftOut] = {}
    samples: dict[Contender, Sample] = {}
    prepare = lru_cache(maxsize=3)(prepared_ratings)
    budgets = _at_each_budget(comparison.cells)
    for done, ((name, population), cells) in enumerate(budgets.items()):
        progress("checking protocols and ratings", done, len(budgets))
        try:
            train, test = _suitable_ratings(cells, prepare)
        except _UnsuitedError as error:
            if not comparison.other_data:
                raise InputError(error.where, error.found, error.accepted) from None
            unsuited[name] = LeftOut(name, f"{error.found}; accepted: {error.accepted}")
            continue
        samples[name, population] = Sample.of(train, test)
        key = name if population is None else f"{name} of {population}"
        config = cells[0].config
        fingerprints[key] = fingerprint(train, test, config.dataset.catalogue(train.item_ids))
    if unsuited:
        comparison = comparison.without(list(unsuited.values()))
    kept = {cell.protocol for cell in comparison.cells}
    own = {key: value for key, value in fingerprints.items() if key.split(" of ")[0] in kept}
    return comparison, own, samples


def _at_each_budget(cells: Sequence[Cell]) -> dict[tuple[str, str | None], list[Cell]]:
    """Return the first cell of every protocol at each of its budgets, by the protocol and the population."""
    firsts: dict[tuple[str, str | None], dict[float | None, Cell]] = {}
    for cell in cells:
        firsts.setdefault((cell.protocol, cell.population), {}).setdefault(cell.epsilon, cell)
    return {key: list(of_budgets.values()) for key, of_budgets in firsts.items()}


class _UnsuitedError(InputError):
    """Ratings that are in order, and that a protocol cannot be run on."""


def _suitable_ratings(
    cells: Sequence[Cell], prepare: Callable[..., tuple[Ratings, Ratings]]
) -> tuple[Ratings, Ratings]:
    """Return the ratings of a protocol's first cell, checked by the protocol at each of its budgets."""
    first = cells[0]
    with of_entry(first.where):
        readable = load_ratings(first.config.model_copy(update={"binarization": None}), prepare)
    cell = first
    try:
        cut = first.config.binarization is not None
        train, test = load_ratings(first.config, prepare) if cut else readable
        for cell in cells:
            with within("protocol"):
                cell.config.protocol.check(train)
    except InputError as error:
        raise _UnsuitedError(f"{cell.where}: {error.where}", error.found, error.accepted) from None
    return train, test
