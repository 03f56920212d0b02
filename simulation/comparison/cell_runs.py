"""Runs the cells of a comparison, many at a time, each into its own run directory.

One start of Ray serves all cells: each cell is a Ray task that runs its whole population in one worker,
which gives the same bits as any other division of the work and leaves no core idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from dprec.binarization import Binarization
from dprec.datasets.base import Dataset
from dprec.errors import InputError, RunError
from dprec.own_classes import reference_of
from dprec.packing import packed, unpacked
from dprec.ratings import Ratings
from dprec.splits import Split
from simulation.comparison.templates import Cell
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.engine.ray_connection import connected_to_ray
from simulation.execution import prepared_ratings, run_prepared
from simulation.storage.names import CONFIG, SUMMARY
from simulation.storage.run_directory import RunDirectory

Failure = str


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int, backend: str
) -> Iterator[tuple[Cell, Failure | None]]:
    """Run the unfinished cells, and yield every cell as it ends; finished ones at once.

    Parameters
    ----------
    cells : sequence of Cell
    folder : Path
        Holds one run directory per cell.
    jobs : int
        Number of cells to run at a time.
    backend : {"ray", "local"}

    Yields
    ------
    cell : Cell
    failure : str or None
        Why it failed; the other cells go on.
    """
    waiting = []
    for cell in cells:
        if (folder / cell.key / SUMMARY).exists():
            yield cell, None
        else:
            # Claimed here, so that a directory that cannot be written to stops the comparison at once.
            RunDirectory.claim(folder / cell.key, cell.config, resume=True)
            waiting.append(cell)
    if backend == "local" or not waiting:
        for cell in waiting:
            yield cell, _run_cell(str(folder / cell.key), *_own_configuration(cell))
        return
    yield from _on_ray(waiting, folder, min(jobs, len(waiting)))


def _on_ray(cells: Sequence[Cell], folder: Path, jobs: int) -> Iterator[tuple[Cell, Failure | None]]:
    import ray

    with connected_to_ray(jobs) as at_once:
        remote: Any = ray.remote(num_cpus=1, max_retries=0)(_run_cell)
        waiting = deque(cells)
        running: dict[Any, Cell] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                cell = waiting.popleft()
                place = str((folder / cell.key).absolute())
                running[remote.remote(place, *_own_configuration(cell))] = cell
            (done,), _ = ray.wait(list(running), num_returns=1)
            cell = running.pop(done)
            try:
                yield cell, ray.get(done)
            except ray.exceptions.RayError as error:
                yield cell, f"its worker was lost: {type(error).__name__}"


def _own_configuration(cell: Cell) -> tuple[bytes, ...]:
    """Return the configuration of a cell if its file cannot hold it all: with classes of somebody's own."""
    own = [reference_of(component) for component in cell.config.own_classes()]
    return (packed(cell.config.with_absolute_paths(), " and ".join(own)),) if own else ()


def _run_cell(directory: str, packed_config: bytes | None = None) -> Failure | None:
    """Run the cell whose configuration is in a directory; return why it failed, if it did."""
    try:
        file = Path(directory) / CONFIG
        config = load(file) if packed_config is None else unpacked(packed_config, str(file))
        train, test = _ratings(config.dataset, config.split, config.binarization, config.seed)
        run_prepared(_in_this_process(config, directory), train, test, RunDirectory(Path(directory)))
    except (InputError, RunError) as error:
        return str(error)
    except Exception as error:  # a defect in one cell must not end the others
        return f"{type(error).__name__}: {error}"
    return None


def _in_this_process(config: RunConfig, directory: str) -> RunConfig:
    """Return a configuration for one process; the cells of a comparison hold different ratings."""
    place = config.simulation.population_dir
    own = None if place is None else f"{place}/{Path(directory).name}"
    options = replace(config.simulation, backend="local", population_dir=own)
    return config.model_copy(update={"simulation": options})


@lru_cache(maxsize=2)
def _ratings(
    dataset: Dataset, split: Split, binarization: Binarization | None, seed: int
) -> tuple[Ratings, Ratings]:
    """Load ratings once for the cells of a worker that share them."""
    return prepared_ratings(dataset, split, binarization, seed)
