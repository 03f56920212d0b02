"""What a worker does: run one cell on ratings that it is given."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.components import unpacked
from dprec.errors import InputError, RunError
from simulation.comparison.cell_work import SharedRatings, without_dataset
from simulation.configuration.models import RunConfig
from simulation.execution import run_prepared
from simulation.storage.directories import CONFIG
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunRecord


@dataclass(frozen=True, eq=False)
class CellEnd:
    """How a cell ended."""

    failure: str | None
    """Why it failed, in one line."""
    seconds: float
    """How long it took."""
    record: RunRecord | None = None
    """The result, without the data set, if the worker does not see the cell's directory; otherwise it is
    there.
    """


def run_cell(shared: SharedRatings, config: bytes, place: str) -> CellEnd:
    """Run a cell in this process.

    Parameters
    ----------
    config : bytes
        As from `packed_config`.
    place : str
        The cell's directory, which a node of a cluster may not see. Where it is seen, rounds are kept there.
    """
    started = time.perf_counter()
    path = Path(place)
    directory = RunDirectory(path) if (path / CONFIG).exists() else None
    failure, record = None, None
    try:
        joined = _in_this_process(shared.joined(unpacked(config, place)), path.name)
        record = run_prepared(joined, shared.train, shared.test, directory, side=shared.side)
    except (InputError, RunError) as error:
        failure = str(error)
    except Exception as error:  # a defect in one cell must not end the others
        failure = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    if record is None or directory is not None:
        return CellEnd(failure, seconds)
    return CellEnd(None, seconds, replace(record, config=without_dataset(record.config)))


def _in_this_process(config: RunConfig, key: str) -> RunConfig:
    """Return a configuration for one process; the cells of a comparison hold different ratings."""
    place = config.simulation.population_dir
    own = None if place is None else f"{place}/{key}"
    options = replace(config.simulation, backend="local", population_dir=own)
    return config.model_copy(update={"simulation": options})
