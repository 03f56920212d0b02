"""A session: one start of Flower that serves any number of runs, each with its own population."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from flwr.serverapp import Grid

from clients.brought import NOTHING, Brought
from clients.faults import FaultOptions
from clients.places import folder_inside, place_of
from clients.population import HeldFactors, write_held_factors, write_population
from dprec.exchange import Setup
from dprec.randomness import InstalledKeys
from dprec.ratings import Ratings
from simulation.configuration.models import SimulationOptions
from simulation.engine.runtime import open_grid
from simulation.engine.temporary import temporary_folder
from strategies.roster import Roster, identify


@dataclass
class Session:
    """A started simulation.

    Parameters
    ----------
    grid : Grid
    node_ids : tuple of int
        Ids of the nodes, in the order of the partitions.
    root : Path
        Folder that holds the populations of the runs, from `place_of`.
    startup_seconds : float
        How long the start took.
    individual_reports : bool
        Whether every report is carried to the server, even where it needs no more than their sum.
    shards : Path, optional
        Where the ratings of all runs are, or are to be written; by default, each run has its own.
    brought : dict
        What messages bring to the nodes for runs with classes from outside dprec, by run key.
    """

    grid: Grid
    node_ids: tuple[int, ...]
    root: Path
    startup_seconds: float
    individual_reports: bool = False
    shards: Path | None = None
    brought: dict[str, Brought] = field(default_factory=dict)
    _runs: int = 0

    def install(
        self, train: Ratings, *, users_per_node: int, keys: InstalledKeys, faults: FaultOptions, setup: Setup
    ) -> str:
        """Give the devices their ratings and settings; return the run key that names them.

        Raises
        ------
        InputError
            When the ratings or a component of somebody's own cannot be given to them.
        """
        self._runs += 1
        key = f"{self._runs:08d}"
        brought = Brought.for_setup(setup)
        if brought != NOTHING:
            self.brought[key] = brought
        write_population(
            self.root / key,
            train,
            users_per_node=users_per_node,
            keys=keys,
            faults=faults,
            setup=setup if brought.setup is None else None,
            individual_reports=self.individual_reports,
            shards=self.shards,
        )
        return key

    def restore(self, group: str, held: HeldFactors) -> None:
        """Give the devices what they had received before a run was interrupted."""
        write_held_factors(self.root / group, held)

    def roster(self, n_users: int, users_per_node: int) -> Roster:
        """Return which node hosts which of a run's users."""
        nodes = -(-n_users // users_per_node)
        return Roster(self.node_ids[:nodes], n_users, users_per_node)


@contextmanager
def open_session(options: SimulationOptions, nodes: int) -> Iterator[Session]:
    """Start a simulation and stop it afterwards.

    Parameters
    ----------
    options : SimulationOptions
    nodes : int
        Number of Flower nodes, enough for the largest of the runs.
    """
    started = time.perf_counter()
    shards = None if options.population_dir is None else place_of(options.population_dir)
    brought: dict[str, Brought] = {}
    with (
        temporary_folder() if shards is None else folder_inside(shards) as folder,
        open_grid(options.backend, str(folder), nodes, options.workers, brought) as grid,
    ):
        node_ids = identify(grid)
        seconds = time.perf_counter() - started
        yield Session(grid, node_ids, folder, seconds, shards=shards, brought=brought)
