"""Runs a comparison, from its configuration to its table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from dprec.components import packed
from dprec.datasets import Dataset
from dprec.errors import InputError, interrupts_noted, within
from dprec.progress import Progress, silent
from dprec.protocols.base import check_suits
from dprec.ratings import Ratings
from simulation.analysis.vocabulary import grouped_by
from simulation.comparison.cell_runs import run_cells
from simulation.comparison.noise import sampled_noise
from simulation.comparison.planning import Comparison, of_entry, on_populations
from simulation.comparison.tabulation import Tabulation
from simulation.comparison.templates import Cell
from simulation.engine.choosing import cells_use_ray
from simulation.engine.ray_cluster import check_way_to_ray
from simulation.execution import check_scales, load_ratings, prepared_ratings
from simulation.storage.columns import typed_frame, write_parquet
from simulation.storage.directories import (
    CELLS,
    COMPARISON,
    NOISE,
    REPORT,
    SUMMARY,
    TABLE,
    alone,
    check_claimable,
    claim,
    fingerprint,
)
from simulation.storage.files import Row, csv_of_rows, write_atomically
from simulation.storage.summary import read_summary
from simulation.tracking.trackers import Callback, check_trackers, recording

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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
        """Write comparison.csv as a Parquet file, whose columns have types.

        Under ``columns``, its metadata holds a JSON object with each column's meaning and unit.

        Raises
        ------
        InputError
            When the file cannot be written.
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

    def notes_on_ratings(self) -> tuple[str, ...]:
        """Return what was read in the runs, and what these say of ratings from a user's file."""
        first: dict[Dataset, Path] = {}
        for cell in self.comparison.cells:
            folder = self.directory / CELLS / cell.key
            if cell.population is None and (folder / SUMMARY).is_file():
                first.setdefault(cell.config.dataset, folder)
        summaries = [read_summary(folder) for folder in first.values()]
        read = [summary.read.sentence for summary in summaries if summary.read is not None]
        return tuple(
            dict.fromkeys([*read, *(note for summary in summaries for note in summary.dataset.notes)])
        )

    @property
    def how_far(self) -> str:
        """How many of its runs are finished, and how to go on."""
        files = [path for name in (TABLE, REPORT) if (path := self.directory / name).is_file()]
        return _how_far(len(self.rows), len(self.comparison.cells), self.directory, files)

    def __repr__(self) -> str:
        ended = f"{len(self.rows)} of {len(self.comparison.cells)} runs"
        return f"ComparisonResult({self.comparison.config.name}: {ended}, in {self.directory})"

    def _repr_html_(self) -> str:
        from simulation.pages import comparison_html

        return comparison_html(self.rows, self.comparison.config.name)


_FIRST_SECONDS, _SHARE = 10.0, 0.02
"""The table is first written after so many seconds, and then again for such a share of the time."""


def run_comparison(
    comparison: Comparison,
    output: str | Path,
    *,
    jobs: int | None = None,
    resume: bool = False,
    progress: Progress = silent,
    tabulated: Callable[[Path], object] | None = None,
    track: Sequence[str | Callback] = (),
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table.

    Parameters
    ----------
    output, jobs, resume
        As for `dprec.compare`.
    tabulated : callable, optional
        Called with the directory now and then while cells run, when it holds the table of the finished ones.
    track
        As for `dprec.run`.

    Raises
    ------
    InputError, KeyboardInterrupt
        Before any cell runs, when the input cannot be used; once the finished cells are written.
    """
    check_trackers(track)
    recorded = packed(partial(recording, tuple(track), group=comparison.config.name), "track")
    check_claimable(output, COMPARISON, resume=resume)
    comparison, fingerprints = _checked(comparison, jobs, progress)
    noise = sampled_noise(comparison)
    with alone(output):
        directory = claim(output, COMPARISON, comparison.to_yaml(fingerprints), resume=resume)
        table, failures = Tabulation(comparison.cells, directory), dict[str, str]()
        backend = comparison.config.simulation.backend

        def so_far() -> ComparisonResult:
            return ComparisonResult(comparison, directory, *table.write(), failures)

        with interrupts_noted(partial(_noted, so_far, table)):
            if noise:
                write_atomically(directory / NOISE, csv_of_rows(noise))
            try:
                with closing(run_cells(table.cells, directory / CELLS, jobs, backend, recorded)) as ended:
                    _follow(ended, table, failures, progress, tabulated)
            except KeyboardInterrupt:
                if so_far().rows and tabulated is not None:
                    tabulated(directory)
                raise
            return so_far()


def _noted(so_far: Callable[[], ComparisonResult], table: Tabulation) -> str:
    """Return how far a comparison is, also where its table cannot be written."""
    try:
        return so_far().how_far
    except OSError:  # such as that of a full disk, which ended it
        return _how_far(len(table.finished), len(table.cells), table.directory)


def _how_far(finished: int, planned: int, directory: Path, files: Sequence[Path] = ()) -> str:
    """Say how many runs are finished, in which files they are told of, and how to go on."""
    listed = f": {', '.join(map(str, files))}" if files else ""
    counted = f"{finished} of {planned} runs are finished{listed}"
    return f"{counted}; the same command with --resume -o {directory} goes on"


def _follow(
    ended: Iterable[tuple[Cell, str | None]],
    table: Tabulation,
    failures: dict[str, str],
    progress: Progress,
    tabulated: Callable[[Path], object] | None,
) -> None:
    """Note how every cell ends, and now and then write the table."""
    planned, due = len(table.cells), monotonic() + _FIRST_SECONDS
    progress("running", 0, planned)
    for cell, failure in ended:
        if failure is None:
            table.finished.add(cell.key)
        else:
            failures[cell.key] = failure
        progress("running", len(table.finished) + len(failures), planned)
        if tabulated is not None and table.finished and (began := monotonic()) >= due:
            table.write()
            tabulated(table.directory)
            due = monotonic() + (monotonic() - began) / _SHARE


def _make_ready(comparison: Comparison, jobs: int | None, progress: Progress) -> None:
    """Check that cells can be run as is asked, and compile all kernels."""
    from dprec.kernels.compilation import prepare

    if jobs is not None and jobs < 1:
        raise InputError("jobs", str(jobs), "at least 1")
    backend, at_once = comparison.config.simulation.backend, jobs or os.cpu_count() or 1
    if cells_use_ray(backend, at_once, len(comparison.cells)):
        check_way_to_ray()
    prepare(progress)


def _check_at_each_budget(cells: Sequence[Cell], train: Ratings, test: Ratings) -> None:
    """Refuse ratings that the protocol of some cells cannot be run on, or not for so many users."""
    for cell in reversed({cell.epsilon: cell for cell in reversed(cells)}.values()):
        with within("protocol"):
            check_suits(cell.config.protocol, train, test)
        check_scales(cell.config, train)


def _checked(
    comparison: Comparison, jobs: int | None, progress: Progress
) -> tuple[Comparison, dict[str, str]]:
    """Check each protocol at each of its budgets; return what suits the ratings, with their fingerprints.

    Ratings are those of the protocol's first fold and seed on every population: what a check depends on, the
    numbers of users and items and the scale, hardly differs between folds. All kernels are compiled, so that
    the workers find them on disk.
    """
    _make_ready(comparison, jobs, progress)
    fingerprints: dict[tuple[str, str | None], str] = {}
    unsuited: dict[str, str] = {}
    of_populations: dict[tuple[str, str], str] = {}
    load = lru_cache(maxsize=3)(prepared_ratings)
    listed = {entry.name for entry in comparison.config.protocols}
    by_protocol = grouped_by(((cell.protocol, cell.population), cell) for cell in comparison.cells)
    for done, ((name, population), cells) in enumerate(by_protocol.items()):
        progress("checking protocols and ratings", done, len(by_protocol))
        config, where = cells[0].config, cells[0].where
        with of_entry(where):
            train, test = load_ratings(config.model_copy(update={"binarization": None}), load)
        try:
            if config.binarization is not None:
                train, test = load_ratings(config, load)
            _check_at_each_budget(cells, train, test)
        except InputError as error:
            # Ratings that are in order, and that a protocol cannot be run on.
            why = f"{error.found}; accepted: {error.accepted}"
            if population is not None:
                of_populations[name, population] = why
                continue
            if not comparison.other_data and name in listed:
                raise InputError(f"{where}: {error.where}", error.found, error.accepted) from None
            unsuited[name] = why
            continue
        users = config.dataset.users_table(train.user_ids) if config.reads_users else None
        catalogue = config.dataset.catalogue(train.item_ids)
        fingerprints[name, population] = fingerprint(train, test, catalogue, users)
    if unsuited or of_populations:
        comparison = comparison.without(unsuited, of_populations)
    remaining = {cell.protocol for cell in comparison.cells}
    by_name = {
        on_populations(name, [population] if population else []): value
        for (name, population), value in fingerprints.items()
        if name in remaining
    }
    return comparison, by_name
