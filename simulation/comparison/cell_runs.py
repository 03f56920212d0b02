"""Runs the cells of a comparison, many at a time, each into its own run directory.

Each cell runs its whole population in one process, which gives the same bits as any other division of the
work and leaves no core idle.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from dprec.errors import InputError, RunError
from simulation.comparison.cell_runs import run_on_ray
from simulation.comparison.cell_work import CellEnd, SharedRatings, packed_config, ratings_key, run_cell
from simulation.comparison.schedule import Schedule
from simulation.comparison.templates import Cell
from simulation.engine.ray_cluster import cluster_address
from simulation.storage.directories import SUMMARY
from simulation.storage.run_directory import RunDirectory

Failure = str


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int | None, backend: str
) -> Generator[tuple[Cell, Failure | None], None, None]:
    """Run the unfinished cells, and yield every cell as it ends; finished ones at once.

    Parameters
    ----------
    folder : Path
        Holds one run directory per cell.
    jobs : int or None
        Number of cells to run at a time; by default one per core, of a cluster all that are free.
    backend : {"ray", "local"}

    Yields
    ------
    cell : Cell
    failure : str or None
        Why it failed; the other cells go on.
    """
    waiting = []
    for cell in cells:
        if finished(cell, folder):
            yield cell, None
        else:
            # Claimed here, so that a directory that cannot be written to stops the comparison at once.
            RunDirectory.claim(folder / cell.key, cell.config, resume=True)
            waiting.append(cell)
    if not waiting:
        return
    if backend == "local":
        ended = _in_this_process(waiting, folder)
    else:
        ended = run_on_ray(waiting, folder, jobs or processors(len(waiting)))
    for cell, end in ended:
        yield cell, _stored(cell, end, RunDirectory(folder / cell.key))


def finished(cell: Cell, folder: Path) -> bool:
    """Return whether the folder of the cells holds the result of one."""
    return (folder / cell.key / SUMMARY).exists()


def processors(cells: int) -> int:
    """Return how many cells to run at a time, if nobody says."""
    return os.cpu_count() or 1 if cluster_address() is None else cells


def _in_this_process(cells: Sequence[Cell], folder: Path) -> Iterator[tuple[Cell, CellEnd]]:
    schedule = Schedule(cells)
    load = lru_cache(maxsize=2)(SharedRatings.load)
    while schedule:
        cell = schedule.next_for("this process")
        try:
            shared = load(*ratings_key(cell.config))
        except InputError as error:
            yield cell, CellEnd(str(error), 0.0)
            continue
        end = run_cell(shared, packed_config(cell.config), str(folder / cell.key))
        schedule.ended(cell, end.seconds)
        yield cell, end


def _stored(cell: Cell, end: CellEnd, directory: RunDirectory) -> Failure | None:
    """Write the result of a cell if its worker could not; return why the cell failed, if it did."""
    if end.record is not None:
        try:
            directory.write(replace(end.record, config=cell.config))
        except RunError as error:
            return str(error)
    elif end.failure is None and not directory.finished:
        return f"its worker wrote to another folder named {directory.path}"
    return end.failure
