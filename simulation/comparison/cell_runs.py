"""Runs the cells of a comparison, many at a time, each into its own run directory."""

import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dprec.errors import InputError, RunError, one_line
from simulation.comparison.cell_work import (
    CellEnd,
    RatingsKey,
    SharedRatings,
    packed_config,
    ratings_key,
    run_cell,
)
from simulation.comparison.schedule import Schedule
from simulation.comparison.templates import Cell
from simulation.engine.ray_cluster import cluster_address, connected_to_ray
from simulation.storage.directories import SUMMARY
from simulation.storage.run_directory import RunDirectory

_ATTEMPTS = 3
"""How often a cell is begun; one that needs more memory than there is loses every worker."""

_START_SECONDS = 120.0
"""Longest wait for a worker to start while none works."""


class CellWorker:
    """The actor."""

    def start(self) -> None:
        """Answer once the process has started."""

    def run(self, shared: SharedRatings, config: bytes, place: str) -> CellEnd:
        """Run a cell; see `run_cell`."""
        return run_cell(shared, config, place)


def _run_on_ray(cells: Sequence[Cell], folder: Path, jobs: int) -> Iterator[tuple[Cell, CellEnd]]:
    """Run cells on the processors of Ray, and yield each as it ends."""
    with connected_to_ray(jobs) as usable:
        yield from _Pool(cells, folder.absolute()).run(min(usable, len(cells)))


class _Pool:
    """The workers, and the cells that wait or run."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        self._schedule = Schedule(cells)
        self._ratings = _RatingsInStore(cells)
        self._folder = folder
        self._begun: Counter[str] = Counter()
        self._starting: dict[Any, Any] = {}
        self._running: dict[Any, tuple[Any, Cell]] = {}

    def run(self, workers: int) -> Iterator[tuple[Cell, CellEnd]]:
        """Yield each cell as it ends."""
        import ray

        for _ in range(workers):
            self._start()
        while self._running or (self._schedule and self._starting):
            awaited = [*self._running, *self._starting]
            done, _ = ray.wait(awaited, timeout=None if self._running else _START_SECONDS)
            if not done:
                break
            worker, cell = self._running.pop(done[0], None) or (self._starting.pop(done[0]), None)
            try:
                end = ray.get(done[0])
            except ray.exceptions.RayTaskError as error:
                end = CellEnd(f"its worker failed: {one_line(error.cause)}", 0.0)
            except ray.exceptions.RayError as error:
                end, worker = self._lost(worker, cell, type(error).__name__), None
            ended = [] if cell is None or end is None else [(cell, end)]
            for each, its_end in ended:
                self._schedule.ended(each, its_end.seconds)
                self._ratings.ended(each)
            # Who is given the cells may take a while; meanwhile the worker has something to do.
            refused = [] if worker is None else list(self._feed(worker))
            yield from (*ended, *refused)
        while self._schedule:
            yield self._schedule.next_for(None), CellEnd("no worker of Ray is left", 0.0)

    def _start(self) -> None:
        """Start a worker, which gets a processor as soon as one is free."""
        import ray

        remote: Any = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(CellWorker)
        worker = remote.remote()
        self._starting[worker.start.remote()] = worker

    def _feed(self, worker: Any) -> Iterator[tuple[Cell, CellEnd]]:
        """Give a worker the next cell; yield those whose ratings cannot be loaded."""
        while self._schedule:
            cell = self._schedule.next_for(worker)
            try:
                ratings = self._ratings.of(cell)
            except InputError as error:
                self._ratings.ended(cell)
                yield cell, CellEnd(str(error), 0.0)
                continue
            self._begun[cell.key] += 1
            place = str(self._folder / cell.key)
            answer = worker.run.remote(ratings, packed_config(cell.config), place)
            self._running[answer] = worker, cell
            return

    def _lost(self, worker: Any, cell: Cell | None, reason: str) -> CellEnd | None:
        """Let the cell of a worker that was lost run again; return its end if it was begun often enough."""
        if cell is None:
            return None  # it never started
        self._start()
        if self._begun[cell.key] >= _ATTEMPTS:
            return CellEnd(f"its worker was lost {_ATTEMPTS} times: {reason}", 0.0)
        self._schedule.again(cell, worker)
        return None


class _RatingsInStore:
    """Ratings in Ray's object store, as long as a cell needs them."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._needed = Counter(ratings_key(cell.config) for cell in cells)
        self._put: dict[RatingsKey, Any] = {}

    def of(self, cell: Cell) -> Any:
        """Return the reference to a cell's ratings."""
        import ray

        key = ratings_key(cell.config)
        if key not in self._put:
            self._put[key] = ray.put(SharedRatings.load(*key))
        return self._put[key]

    def ended(self, cell: Cell) -> None:
        """Note that a cell needs its ratings no more."""
        key = ratings_key(cell.config)
        self._needed[key] -= 1
        if not self._needed[key]:
            self._put.pop(key, None)


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
        ended = _run_on_ray(waiting, folder, jobs or processors(len(waiting)))
    for cell, end in ended:
        yield cell, _stored(cell, end, RunDirectory(folder / cell.key))


def finished(cell: Cell, folder: Path) -> bool:
    """Return whether the folder of the cells holds the result of one."""
    return (folder / cell.key / SUMMARY).exists()


def processors(cells: int) -> int:
    """Return how many cells to run at a time by default."""
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
