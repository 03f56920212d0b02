"""The simulated population on disk: every node opens it and sees only the users it hosts.

Each run has its own folder, named after the run key that its messages carry as their group. Arrays
are memory-mapped, so a worker's memory grows with its cohorts and not with the population.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from flwr.app import Context, Message
from numpy.typing import NDArray

from clients.faults import FaultOptions
from dprec.errors import InputError
from dprec.options import Options, option, own_classes
from dprec.own_classes import reference_of
from dprec.packing import packed, unpacked
from dprec.ratings import Ratings, RatingScale
from dprec.run_keys import InstalledKeys
from dprec.setups import AnySetup, Setup, from_json, to_json
from dprec.wire.broadcast import Factors

POPULATION_KEY = "population"
"""Key of the run configuration that gives a deployed app the folder of the runs."""

SetupT = TypeVar("SetupT", bound=Setup)

_OWN_SETUP = "setup.pickle"
"""File of a setup with classes from outside this project: part of the installation, which a device trusts."""

_RUN_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, eq=False)
class HeldFactors:
    """What a device remembers of the last round in which it was asked.

    Parameters
    ----------
    round_index : int
    factors : ndarray of float16 or float32, shape (items, rank)
        The broadcast of that round.
    """

    round_index: int
    factors: Factors


@dataclass(frozen=True, eq=False)
class Population:
    """All users of a run, and what their devices are set up to do.

    Parameters
    ----------
    indptr, items, levels : ndarray
        The ratings that the devices hold, as in `dprec.ratings.Ratings`.
    scale : RatingScale
    n_items : int
    users_per_node : int
    individual_reports : bool
        Whether the node of several users sends each of their reports, even where the server needs no more
        than their sum.
    keys : InstalledKeys
        What devices and network draw from; the seed of the run cannot be computed from them.
    faults : FaultOptions
        What goes wrong between the devices and the server.
    setup : Setup
        The protocol's settings as installed on the devices. They include the privacy budgets: a
        device accepts none from the server.
    exact : ndarray or None
        The unrounded ratings of a continuous scale.
    held : HeldFactors or None
        What the devices last received before the run was interrupted.
    key : str
        Run key, under which a device remembers what it answered.
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    levels: NDArray[np.uint8]
    scale: RatingScale
    n_items: int
    users_per_node: int
    individual_reports: bool
    keys: InstalledKeys
    faults: FaultOptions
    setup: Setup
    exact: NDArray[np.float64] | None = None
    held: HeldFactors | None = None
    key: str = ""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.indptr.size - 1

    @property
    def adds_up(self) -> bool:
        """Whether a node adds up its users' reports where it can; that of one user has nothing to add up."""
        return self.users_per_node > 1 and not self.individual_reports

    def installed(self, kind: type[SetupT]) -> SetupT:
        """Return the setup, which must be of the kind that a request is for.

        Raises
        ------
        ValueError
            When the devices are set up for another protocol.
        """
        if not isinstance(self.setup, kind):
            raise ValueError(f"the request is not for devices set up for {self.setup.kind}")
        return self.setup

    def cohort(self, partition: int) -> Cohort:
        """Return the users that the node of a partition hosts."""
        start = min(partition * self.users_per_node, self.n_users)
        return Cohort(self, start, min(start + self.users_per_node, self.n_users))


@dataclass(frozen=True, eq=False)
class Cohort:
    """The users ``start`` to ``stop`` of a population, hosted by one node.

    Attributes
    ----------
    counts : ndarray of int64, shape (users,)
    items, levels, values : ndarray, shape (ratings,)
        Their rated items, and the levels and true values of the ratings, by user.
    first_rating : int
        Place of the first of these ratings in the population.
    """

    population: Population
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of users."""
        return self.stop - self.start

    @property
    def counts(self) -> NDArray[np.int64]:
        """Ratings of each user, shape (users,)."""
        return np.diff(self.population.indptr[self.start : self.stop + 1])

    @property
    def first_rating(self) -> int:
        """Place of the cohort's first rating in the population."""
        return int(self.population.indptr[self.start])

    @property
    def items(self) -> NDArray[np.int32]:
        """Rated items, by user."""
        return self.population.items[self._ratings]

    @property
    def levels(self) -> NDArray[np.uint8]:
        """Levels of the ratings, by user."""
        return self.population.levels[self._ratings]

    @property
    def values(self) -> NDArray[np.float64]:
        """True ratings, by user; unrounded if the scale is continuous."""
        if self.population.exact is not None:
            return self.population.exact[self._ratings]
        return self.population.scale.values[self.levels - 1]

    @property
    def _ratings(self) -> slice:
        return slice(self.first_rating, int(self.population.indptr[self.stop]))


@dataclass(frozen=True, kw_only=True)
class _Description(Options):
    """The contents of population.json: everything about a population except its arrays."""

    scale: tuple[float, ...] = option("Levels of the rating scale, ascending.")
    continuous: bool = option("Whether true ratings lie between the levels.")
    n_items: int = option("Items of the catalogue.", ge=1)
    users_per_node: int = option("Users of a cohort.", ge=1)
    individual_reports: bool = option("Whether nodes send reports rather than their sum.")
    keys: InstalledKeys = option("What devices and network draw from.")
    faults: FaultOptions = option("What goes wrong between the devices and the server.")
    setup: AnySetup | None = option("What is installed on the devices; none if it is in setup.pickle.")


@dataclass(frozen=True, kw_only=True)
class _HeldRound(Options):
    """What held.json holds, beside the factors in held.npy."""

    round: int = option("The last round that the devices were asked in.", ge=1)


def write_population(
    directory: Path,
    ratings: Ratings,
    *,
    users_per_node: int,
    keys: InstalledKeys,
    faults: FaultOptions,
    setup: Setup,
    individual_reports: bool = False,
) -> None:
    """Write what the devices hold to a new directory; see `Population` for the parameters."""
    directory.mkdir(parents=True)
    np.save(directory / "indptr.npy", ratings.indptr)
    np.save(directory / "items.npy", ratings.items)
    np.save(directory / "levels.npy", ratings.levels)
    if ratings.exact is not None:
        np.save(directory / "exact.npy", ratings.exact)
    own = [reference_of(component) for component in own_classes(setup)]
    if own:
        (directory / _OWN_SETUP).write_bytes(packed(setup, " and ".join(own)))
    description = _Description(
        scale=tuple(ratings.scale.values.tolist()),
        continuous=ratings.scale.continuous,
        n_items=ratings.n_items,
        users_per_node=users_per_node,
        individual_reports=individual_reports,
        keys=keys,
        faults=faults,
        setup=setup if not own else None,
    )
    (directory / "population.json").write_text(to_json(description), encoding="utf-8")


def write_held_factors(directory: Path, held: HeldFactors) -> None:
    """Write what the devices of an interrupted run had received, before they start again."""
    np.save(directory / "held.npy", held.factors)
    (directory / "held.json").write_text(to_json(_HeldRound(round=held.round_index)), encoding="utf-8")


@lru_cache(maxsize=4)
def open_population(directory: str) -> Population:
    """Open a population; it stays open, so a worker reads its description once.

    Raises
    ------
    InputError
        When population.json is missing, or it or held.json is damaged.
    """
    folder = Path(directory)
    path = folder / "population.json"
    if not path.exists():
        raise InputError(
            str(path), f"not on {platform.node()}", "a folder that every node sees; TMPDIR sets it"
        )
    description = from_json(_Description, path.read_text(encoding="utf-8"), str(path))
    return Population(
        indptr=np.load(folder / "indptr.npy", mmap_mode="r"),
        items=np.load(folder / "items.npy", mmap_mode="r"),
        levels=np.load(folder / "levels.npy", mmap_mode="r"),
        scale=RatingScale(np.array(description.scale), description.continuous),
        n_items=description.n_items,
        users_per_node=description.users_per_node,
        individual_reports=description.individual_reports,
        keys=description.keys,
        faults=description.faults,
        setup=description.setup or unpacked((folder / _OWN_SETUP).read_bytes(), str(folder / _OWN_SETUP)),
        exact=_stored(folder / "exact.npy"),
        held=_held(folder),
        key=folder.name,
    )


def _stored(path: Path) -> NDArray[Any] | None:
    return np.load(path, mmap_mode="r") if path.exists() else None


def _held(folder: Path) -> HeldFactors | None:
    factors = _stored(folder / "held.npy")
    if factors is None:
        return None
    path = folder / "held.json"
    return HeldFactors(from_json(_HeldRound, path.read_text(encoding="utf-8"), str(path)).round, factors)


def partition_of(context: Context) -> int:
    """Return the partition of the node, its position among all nodes."""
    return int(context.node_config["partition-id"])


def cohort_of(root: str | None, message: Message, context: Context) -> Cohort:
    """Return the cohort that a message is for.

    Parameters
    ----------
    root : str or None
        Folder of the runs; None to take it from the run configuration, as deployed apps do.
    message : Message
        Its group is the run key.
    context : Context

    Raises
    ------
    ValueError
        When the key is not a plain name: a path could give a run a second name, and a device
        remembers what it answered by the name.
    """
    key = message.metadata.group_id
    if not _RUN_KEY.fullmatch(key):
        raise ValueError(f"not a run key: {key!r}")
    folder = Path(root if root is not None else str(context.run_config[POPULATION_KEY]))
    return open_population(str(folder / key)).cohort(partition_of(context))
