"""What a worker is given and does: ratings that cells have in common, and one cell run on them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from dprec.binarization import Binarization
from dprec.components import packed, reference_of, unpacked
from dprec.datasets import Dataset
from dprec.errors import InputError, RunError
from dprec.ratings import Ratings
from dprec.splits import Predefined, Split
from simulation.configuration.models import RunConfig
from simulation.execution import SideData, prepared_ratings, run_prepared
from simulation.storage.directories import CONFIG
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunRecord

RatingsKey = tuple[Dataset, Split, Binarization | None, int]
"""Data set, split, binarization and seed."""


def ratings_key(config: RunConfig) -> RatingsKey:
    """Return what the ratings of a run are made from; runs with the same key have the same ratings."""
    seed = 0 if isinstance(config.split, Predefined) else config.seed
    return config.with_absolute_paths().dataset, config.split, config.binarization, seed


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
        cls, dataset: Dataset, split: Split, binarization: Binarization | None, seed: int
    ) -> SharedRatings:
        """Load ratings, given their `ratings_key`.

        Raises
        ------
        InputError
            When they cannot be read.
        """
        train, test = prepared_ratings(dataset, split, binarization, seed)
        return cls(packed(dataset, "dataset"), train, test, SideData.of(dataset, train))

    def joined(self, config: RunConfig) -> RunConfig:
        """Return a configuration with the data set that `_without_dataset` took from it."""
        return config.model_copy(update={"dataset": unpacked(self.dataset, "dataset")})


def _without_dataset(config: RunConfig) -> RunConfig:
    """Return a configuration without its data set, which may hold ratings; see `SharedRatings.joined`."""
    return config.model_copy(update={"dataset": None})


def packed_config(config: RunConfig) -> bytes:
    """Return a configuration without its data set as bytes.

    Raises
    ------
    InputError
        When a user-defined component cannot travel.
    """
    own = [reference_of(component) for component in config.user_defined_classes()]
    return packed(_without_dataset(config), " and ".join(own) or config.name)


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
    return CellEnd(None, seconds, replace(record, config=_without_dataset(record.config)))


def _in_this_process(config: RunConfig, key: str) -> RunConfig:
    """Return a configuration for one process; the cells of a comparison hold different ratings."""
    place = config.simulation.population_dir
    own = None if place is None else f"{place}/{key}"
    options = replace(config.simulation, backend="local", population_dir=own)
    return config.model_copy(update={"simulation": options})
