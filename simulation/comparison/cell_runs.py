"""Runs the cells of a comparison, many at a time: what workers are given, and a run directory for each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from dprec.binarization import Binarization
from dprec.components import packed, reference_of, unpacked
from dprec.datasets import Dataset
from dprec.errors import InputError, RunError, one_line
from dprec.ratings import Ratings
from dprec.splits import Predefined, Split
from simulation.analysis.vocabulary import grouped_by
from simulation.comparison.planning import middle
from simulation.comparison.templates import Cell
from simulation.configuration.models import RunConfig
from simulation.engine.grids import START_SECONDS
from simulation.engine.ray_cluster import cluster_address, connected_to_ray
from simulation.execution import SideData, prepared_ratings, run_prepared
from simulation.storage.directories import CONFIG, SUMMARY
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunRecord


class Schedule:
    """The cells that wait, and how long those like them took.

    ``cells``: of equal cost, the earlier one runs first.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._waiting = list(cells)
        self._seconds: dict[Hashable, float] = {}
        self._last_fit: dict[Hashable, Hashable] = {}
        of_protocols = grouped_by((_like(cell), cell) for cell in cells).values()
        middles = ((own, middle([*{cell.epsilon for cell in own}])) for own in of_protocols)
        self._first = {next(cell.key for cell in own if cell.epsilon == budget) for own, budget in middles}

    def __len__(self) -> int:
        return len(self._waiting)

    def next_for(self, worker: Hashable) -> Cell:
        """Return the cell that a worker should run, which no longer waits.

        Raises ValueError when no cell waits.
        """
        held = self._last_fit.get(worker)
        others = {fit for owner, fit in self._last_fit.items() if owner != worker}

        def preference(cell: Cell) -> tuple[bool, bool, bool, bool, float]:
            fit, seconds = _fit_key(cell), self._seconds.get(_like(cell))
            continues, elsewhere = fit is not None and fit == held, fit is not None and fit in others
            # One run of each baseline and then of each protocol, so that an interrupted comparison has an
            # answer; then the costliest, so that the workers end together.
            first = cell.key in self._first and seconds is None
            return first and cell.baseline is not None, first, continues, not elsewhere, seconds or 0.0

        chosen = max(self._waiting, key=preference)
        self._waiting.remove(chosen)
        if (fit := _fit_key(chosen)) is not None:
            self._last_fit[worker] = fit
        return chosen

    def ended(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        # The first of those that share a fit takes longest, and it is the first of which costs are known.
        self._seconds.setdefault(_like(cell), seconds)

    def again(self, cell: Cell, worker: Hashable) -> None:
        """Let a cell wait again after the worker that ran it was lost."""
        self._last_fit.pop(worker, None)
        self._waiting.append(cell)


def _like(cell: Cell) -> Hashable:
    """Return what cells of about the same cost share."""
    return cell.protocol, cell.population


def _fit_key(cell: Cell) -> Hashable:
    """Return what identifies a fit that does not depend on the cell's seed; None without one."""
    fit = cell.config.protocol.facts.fit
    return None if fit is None else (ratings_key(cell.config), fit)


RatingsKey = tuple[Dataset, Split, Binarization | None, int, bool]
"""Data set, split, binarization, seed, and whether the users' table is read."""


def ratings_key(config: RunConfig) -> RatingsKey:
    """Return what the ratings of a run are made from; runs with the same key have the same ratings."""
    seed = 0 if isinstance(config.split, Predefined) else config.seed
    dataset, users = config.with_absolute_paths().dataset, config.reads_users
    return dataset, config.division, config.binarization, seed, users


@dataclass(frozen=True, eq=False)
class SharedRatings:
    """What cells with the same `ratings_key` are given."""

    dataset: bytes
    """The data set, packed; its class may be user-defined."""
    train: Ratings
    test: Ratings
    side: SideData

    @classmethod
    def load(
        cls, dataset: Dataset, split: Split, binarization: Binarization | None, seed: int, users: bool
    ) -> SharedRatings:
        """Load ratings, given their `ratings_key`; raises InputError when they cannot be read."""
        train, test = prepared_ratings(dataset, split, binarization, seed)
        return cls(packed(dataset, "dataset"), train, test, SideData.of(dataset, train, users=users))


def packed_config(config: RunConfig) -> bytes:
    """Return a configuration as bytes, without its data set, which may hold ratings.

    Raises InputError when a user-defined component cannot travel.
    """
    own = [reference_of(component) for component in config.user_defined_classes()]
    return packed(config.model_copy(update={"dataset": None}), " and ".join(own) or config.name)


@dataclass(frozen=True, eq=False)
class CellEnd:
    """How a cell ended."""

    failure: str | None
    """Why it failed, in one line."""
    seconds: float = 0.0
    """How long it took."""
    record: RunRecord | None = None
    """The result, if the worker does not see the cell's directory; otherwise it is there."""


def run_cell(shared: SharedRatings, config: bytes, place: str) -> CellEnd:
    """Run a cell in this process.

    ``config``: as from `packed_config`.
    ``place``: the cell's directory, which a node of a cluster may not see. Where it is seen, rounds are kept
    there.
    """
    started, path = perf_counter(), Path(place)
    directory = RunDirectory(path) if (path / CONFIG).exists() else None
    failure, record = None, None
    try:
        own: RunConfig = unpacked(config, place)
        # The cells of a comparison hold different ratings.
        population = own.simulation.population_dir and f"{own.simulation.population_dir}/{path.name}"
        options = replace(own.simulation, backend="local", population_dir=population)
        dataset = unpacked(shared.dataset, "dataset")
        own = own.model_copy(update={"simulation": options, "dataset": dataset})
        record = run_prepared(own, shared.train, shared.test, directory, side=shared.side)
    except (InputError, RunError) as error:
        failure = str(error)
    except Exception as error:  # a defect in one cell must not end the others
        failure = f"{type(error).__name__}: {error}"
    return CellEnd(failure, perf_counter() - started, record if directory is None else None)


class CellWorker:
    """The actor."""

    def start(self) -> None:
        """Answer once the process has started."""

    def run(self, shared: SharedRatings, config: bytes, place: str) -> CellEnd:
        """Run a cell; see `run_cell`."""
        return run_cell(shared, config, place)


_ATTEMPTS = 3
"""How often a cell is begun; one that needs more memory than there is loses every worker."""


class _Pool:
    """The workers, the cells that wait or run, and their ratings in Ray's object store."""

    def __init__(self, cells: Sequence[Cell], folder: Path) -> None:
        self._schedule, self._folder = Schedule(cells), folder
        self._needed = Counter(ratings_key(cell.config) for cell in cells)
        self._ratings: dict[RatingsKey, Any] = {}
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
            done, _ = ray.wait(awaited, timeout=None if self._running else START_SECONDS)
            if not done:
                break
            worker, cell = self._running.pop(done[0], None) or (self._starting.pop(done[0]), None)
            end: CellEnd | None
            try:
                end = ray.get(done[0])
            except ray.exceptions.RayTaskError as error:
                end = CellEnd(f"its worker failed: {one_line(error.cause)}")
            except ray.exceptions.RayError as error:
                end = None
                if cell is not None:  # a worker that never started is not replaced
                    self._start()
                    if self._begun[cell.key] < _ATTEMPTS:
                        self._schedule.again(cell, worker)
                    else:
                        reason = type(error).__name__
                        end = CellEnd(f"its worker was lost {_ATTEMPTS} times: {reason}")
                worker = None
            ended = [] if cell is None or end is None else [self._ended(cell, end)]
            if cell is not None and end is not None:
                self._schedule.ended(cell, end.seconds)
            # Who is given the cells may take a while; meanwhile the worker has something to do.
            refused = [] if worker is None else list(self._feed(worker))
            yield from (*ended, *refused)
        while self._schedule:
            yield self._schedule.next_for(None), CellEnd("no worker of Ray is left")

    def _start(self) -> None:
        """Start a worker, which gets a processor as soon as one is free."""
        import ray

        remote: Any = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(CellWorker)
        worker = remote.remote()
        self._starting[worker.start.remote()] = worker

    def _feed(self, worker: Any) -> Iterator[tuple[Cell, CellEnd]]:
        """Give a worker the next cell; yield those whose ratings cannot be loaded."""
        import ray

        while self._schedule:
            cell = self._schedule.next_for(worker)
            key = ratings_key(cell.config)
            try:
                self._ratings[key] = self._ratings.get(key) or ray.put(SharedRatings.load(*key))
            except InputError as error:
                yield self._ended(cell, CellEnd(str(error)))
                continue
            self._begun[cell.key] += 1
            place = str(self._folder / cell.key)
            answer = worker.run.remote(self._ratings[key], packed_config(cell.config), place)
            self._running[answer] = worker, cell
            return

    def _ended(self, cell: Cell, end: CellEnd) -> tuple[Cell, CellEnd]:
        """Let go of ratings that no cell needs any more."""
        key = ratings_key(cell.config)
        self._needed[key] -= 1
        if not self._needed[key]:
            self._ratings.pop(key, None)
        return cell, end


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int | None, backend: str
) -> Generator[tuple[Cell, str | None], None, None]:
    """Run the unfinished cells, and yield every cell as it ends with why it failed; finished ones at once.

    ``folder``: holds one run directory per cell.
    ``jobs``: number of cells to run at a time; by default one per core, of a cluster all that are free.
    ``backend``, {"ray", "local"}.
    """
    waiting = []
    for cell in cells:
        if (folder / cell.key / SUMMARY).exists():
            yield cell, None
        else:
            # Begun here, so that a directory that cannot be written to stops the comparison at once.
            RunDirectory.claim(folder / cell.key, cell.config, resume=True)
            waiting.append(cell)
    if not waiting:
        return
    at_once = jobs or (os.cpu_count() or 1 if cluster_address() is None else len(waiting))
    run = _in_this_process if backend == "local" else _on_ray
    for cell, end in run(waiting, folder.absolute(), at_once):
        failure, directory = end.failure, RunDirectory(folder / cell.key)
        if end.record is not None:
            try:
                directory.write(end.record)
            except RunError as error:
                failure = str(error)
        elif failure is None and not directory.finished:
            failure = f"its worker wrote to another folder named {directory.path}"
        yield cell, failure


def _on_ray(cells: Sequence[Cell], folder: Path, jobs: int) -> Iterator[tuple[Cell, CellEnd]]:
    with connected_to_ray(jobs) as usable:
        yield from _Pool(cells, folder).run(min(usable, len(cells)))


def _in_this_process(cells: Sequence[Cell], folder: Path, _jobs: int) -> Iterator[tuple[Cell, CellEnd]]:
    schedule, load = Schedule(cells), lru_cache(maxsize=2)(SharedRatings.load)
    while schedule:
        cell = schedule.next_for("this process")
        try:
            end = run_cell(
                load(*ratings_key(cell.config)), packed_config(cell.config), str(folder / cell.key)
            )
        except InputError as error:
            end = CellEnd(str(error))
        else:
            schedule.ended(cell, end.seconds)
        yield cell, end
