"""Runs the cells of a comparison, many at a time: what workers are given, and a run directory for each."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

from dprec.binarization import Binarization
from dprec.components import CodeError, packed, reference_of, unpacked
from dprec.datasets import Dataset
from dprec.errors import InputError, RunError, one_line
from dprec.ratings import Ratings
from dprec.splits import Predefined, Split
from simulation.analysis.vocabulary import grouped_by
from simulation.comparison.planning import middle
from simulation.comparison.templates import Cell
from simulation.configuration.models import EvaluationOptions, RunConfig
from simulation.engine.choosing import cells_use_ray
from simulation.engine.grids import START_SECONDS
from simulation.engine.ray_cluster import cluster_address, connected_to_ray, why_lost, working_nodes
from simulation.engine.session import temporary_folder
from simulation.evaluation import Evaluator
from simulation.execution import SideData, prepared_ratings, run_prepared
from simulation.storage.directories import CONFIG, SUMMARY
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunRecord


class CellQueue:
    """The cells that wait, and how long those like them took.

    ``cells``: of equal cost, the earlier one runs first.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._seconds: dict[Hashable, float] = {}
        self._waiting = list(grouped_by((_fit_key(cell), cell) for cell in cells).values())
        of_protocols = grouped_by((_cost_key(cell), cell) for cell in cells).values()
        middles = (
            (of_protocol, middle([*{cell.epsilon for cell in of_protocol}])) for of_protocol in of_protocols
        )
        self._first = {
            next(cell.key for cell in of_protocol if cell.epsilon == budget)
            for of_protocol, budget in middles
        }

    def __len__(self) -> int:
        return len(self._waiting)

    def next(self) -> list[Cell]:
        """Return the cells that a worker should run now, one after the other; they no longer wait.

        They share a fit that takes long, or are a single one. Raises ValueError when no cell waits.
        """

        def preference(cells: list[Cell]) -> tuple[bool, bool, float]:
            # One run of each baseline and then of each protocol, so that an interrupted comparison has an
            # answer; then the costliest, so that the workers end together.
            first = [
                cell for cell in cells if cell.key in self._first and _cost_key(cell) not in self._seconds
            ]
            baseline = any(cell.baseline is not None for cell in first)
            return baseline, bool(first), sum(self._seconds.get(_cost_key(cell), 0.0) for cell in cells)

        chosen = max(self._waiting, key=preference)
        self._waiting.remove(chosen)
        return chosen

    def ended(self, cell: Cell, seconds: float) -> None:
        """Note how long a cell took."""
        # The first of those that share a fit takes longest, and it is the first of which costs are known.
        self._seconds.setdefault(_cost_key(cell), seconds)


def _cost_key(cell: Cell) -> Hashable:
    """Return what cells of about the same cost share."""
    return cell.protocol, cell.population


def _fit_key(cell: Cell) -> Hashable:
    """Return what identifies a fit that cells of the same ratings share; the cell's own key without one."""
    fit = cell.config.protocol.facts.fit
    return cell.key if fit is None else (ratings_key(cell.config), fit)


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
        side = SideData.of(dataset, train, users=users)
        if not test.scale.implicit:
            side = replace(
                side, alone=Evaluator(train, test, EvaluationOptions(), None, side.catalogue).alone
            )
        return cls(packed(dataset, "dataset"), train, test, side)


def packed_config(config: RunConfig) -> bytes:
    """Return a configuration as bytes, without its data set, which may hold ratings.

    Raises InputError when a user-defined component cannot travel.
    """
    references = [reference_of(component) for component in config.user_defined_classes()]
    return packed(config.model_copy(update={"dataset": None}), " and ".join(references) or config.name)


@dataclass(frozen=True, eq=False)
class CellEnd:
    """How a cell ended."""

    failure: str | None
    """Why it failed, in one line."""
    seconds: float = 0.0
    """How long it took."""
    record: RunRecord | None = None
    """The result, if the worker does not see the cell's directory; otherwise it is there."""


Job = tuple[bytes, str, bytes]
"""A configuration, as from `packed_config`; the cell's directory; a packed `recording` of who is told."""


def run_cell(shared: SharedRatings, config: bytes, place: str, recorded: bytes) -> CellEnd:
    """Run a cell in this process.

    A node of a cluster may not see the cell's directory. Where it is seen, rounds are kept there.
    """
    started, path = perf_counter(), Path(place)
    directory = RunDirectory(path) if (path / CONFIG).exists() else None
    failure, record = None, None
    try:
        cell_config: RunConfig = unpacked(config, place)
        # The cells of a comparison hold different ratings.
        population = (
            cell_config.simulation.devices_dir and f"{cell_config.simulation.devices_dir}/{path.name}"
        )
        options = replace(cell_config.simulation, backend="local", devices_dir=population)
        dataset = unpacked(shared.dataset, "dataset")
        cell_config = cell_config.model_copy(update={"simulation": options, "dataset": dataset})
        recorded_in = None if directory is None else path
        with unpacked(recorded, "track")(cell_config, recorded_in, name=path.name) as recording:
            record = run_prepared(
                cell_config, shared.train, shared.test, directory, side=shared.side, ended=recording.round
            )
            recording.finish(record)
    except (InputError, RunError) as error:
        failure = str(error)
    except Exception as error:  # a defect in one cell must not end the others
        failure = CodeError.of(error).line
    return CellEnd(failure, perf_counter() - started, record if directory is None else None)


def run_together(shared: SharedRatings, jobs: Sequence[Job], scratch: str) -> list[CellEnd]:
    """Run cells in this process, one after the other; see `run_cell`.

    ``scratch``: where temporary folders are made, if this node has it. They outlast a worker that is killed,
    and its owner deletes them.
    """
    if Path(scratch).is_dir():
        tempfile.tempdir = scratch
    return [run_cell(shared, *job) for job in jobs]


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int | None, backend: str, recorded: bytes
) -> Generator[tuple[Cell, str | None], None, None]:
    """Run the unfinished cells, and yield every cell as it ends with why it failed; finished ones at once.

    ``folder``: holds one run directory per cell.
    ``jobs``: number of cells to run at a time; by default one per core, of a cluster all that are free.
    ``backend``: see `cells_use_ray`; ``recorded``: as of a `Job`.
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
    run = _on_ray if cells_use_ray(backend, at_once, len(waiting)) else _in_this_process
    for cell, end in run(waiting, folder.absolute(), at_once, recorded):
        failure, directory = end.failure, RunDirectory(folder / cell.key)
        if end.record is not None:
            try:
                directory.write(end.record)
            except RunError as error:
                failure = str(error)
        elif failure is None and not directory.finished:
            failure = f"its worker wrote to another folder named {directory.path}"
        yield cell, failure


_ATTEMPTS = 3
"""How often cells are begun; those that need more memory than there is lose every worker."""


def _on_ray(
    cells: Sequence[Cell], folder: Path, jobs: int, recorded: bytes
) -> Iterator[tuple[Cell, CellEnd]]:
    """Run cells in tasks of Ray, whose object store has their ratings as long as any cell needs these."""
    import ray

    queue, needed = CellQueue(cells), Counter(ratings_key(cell.config) for cell in cells)
    ratings: dict[RatingsKey, Any] = {}
    running: dict[Any, list[Cell]] = {}
    with temporary_folder() as scratch, connected_to_ray(jobs) as usable:
        remote: Any = ray.remote(num_cpus=1, max_retries=_ATTEMPTS - 1, scheduling_strategy="SPREAD")
        task = remote(run_together)
        while queue or running:
            together, ends = list[Cell](), list[CellEnd]()
            if queue and len(running) < usable:
                together = queue.next()
                key = ratings_key(together[0].config)
                jobs_of = [
                    (packed_config(cell.config), str(folder / cell.key), recorded) for cell in together
                ]
                try:
                    ratings[key] = ratings.get(key) or ray.put(SharedRatings.load(*key))
                    running[task.remote(ratings[key], jobs_of, str(scratch))] = together
                    continue
                except InputError as error:
                    ends = [CellEnd(str(error)) for _ in together]
            elif done := ray.wait([*running], timeout=START_SECONDS)[0]:
                together = running.pop(done[0])
                try:
                    ends = ray.get(done[0])
                except ray.exceptions.RayTaskError as error:
                    ends = [CellEnd(f"its worker failed: {one_line(error.cause or error)}") for _ in together]
                except ray.exceptions.RayError as error:
                    lost = f"its worker was lost {_ATTEMPTS} times: {why_lost(error)}"
                    ends = [CellEnd(lost) for _ in together]
            elif not working_nodes():
                together = [cell for batch in running.values() for cell in batch]
                ends = [CellEnd("no node of Ray is left") for _ in together]
                running.clear()
            for cell, end in zip(together, ends, strict=True):
                queue.ended(cell, end.seconds)
                needed.subtract([ratings_key(cell.config)])
                yield cell, end
            for key in [key for key in ratings if not needed[key]]:
                del ratings[key]


def _in_this_process(
    cells: Sequence[Cell], folder: Path, _jobs: int, recorded: bytes
) -> Iterator[tuple[Cell, CellEnd]]:
    queue, load = CellQueue(cells), lru_cache(maxsize=2)(SharedRatings.load)
    while queue:
        for cell in queue.next():
            place = str(folder / cell.key)
            try:
                end = run_cell(load(*ratings_key(cell.config)), packed_config(cell.config), place, recorded)
            except InputError as error:
                end = CellEnd(str(error))
            queue.ended(cell, end.seconds)
            yield cell, end
