"""The simulated population in a folder: every node opens it and sees only the users it hosts.

Each run has its own folder, named after the run key that its messages carry as their group. The ratings are
in shards (`clients.shards`), so a worker's memory grows with its partitions and not with the population.

A population's folder may be shared, so nothing in it is run: it holds settings, and names classes. Which
classes these are, where they are imported from, and the code of those that no other process can import come
from the process that started the run, through the channel by which it starts workers: this process itself,
or Ray.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, TypeVar
from zipfile import BadZipFile

import numpy as np
from flwr.app import Context, Message
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from clients.faults import Attendance, FaultOptions, fates
from clients.places import place_of, write_whole
from clients.shards import HeldRatings, ShardedRatings, StoredProfiles, contents_of, write_shards
from dprec import components
from dprec.arrays import AnyArray, Bools, Floats, Int32s, Ints, Uint8s, offsets
from dprec.components import from_json, is_told_by_its_settings, to_json
from dprec.errors import InputError
from dprec.exchange import Refusal, RefusalCode
from dprec.personalization import OrdinalProcess
from dprec.protocols.base import Protocol
from dprec.protocols.registry import AnyProtocol
from dprec.randomness import Draws, InstalledKeys, Keys
from dprec.ratings import Ratings, RatingScale

Received = Callable[[OrdinalProcess], Floats]
"""What the devices of a partition have received: it predicts every item, shape (users, items).

NaN for items that nothing is known of.
"""


@dataclass(frozen=True)
class Brought:
    """What messages bring for one run."""

    folders: tuple[str, ...] = ()
    """Where its own classes are imported from."""
    classes: frozenset[str] = frozenset()
    """``module:Class`` of those that the population's folder may name."""
    protocol: bytes | None = None
    """What is installed on the devices, packed, where it cannot be told by names and settings."""

    @classmethod
    def for_protocol(cls, protocol: Protocol) -> "Brought":
        """Return what has to be brought for it; raises InputError for a component that cannot travel."""
        classes = components.user_defined_classes(protocol)
        names = [components.reference_of(component) for component in classes]
        if not classes:
            return NOTHING
        if all(map(components.is_importable, classes)) and is_told_by_its_settings(_Told(protocol=protocol)):
            return cls(folders=components.import_folders(), classes=frozenset(names))
        return cls(protocol=components.packed(protocol, " and ".join(names)))

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Read the run's classes where they are, and no other class from outside."""
        components.import_from(self.folders)
        with components.importing_only(self.classes):
            yield

    def unpacked_protocol(self, where: str) -> Protocol:
        """Return the protocol that was brought; raises InputError without one, or without a class of it."""
        if self.protocol is None:
            raise InputError(f"{where}, protocol", "none", "a protocol, unless the run's messages bring it")
        return components.unpacked(self.protocol, "protocol")


NOTHING = Brought()
"""For a run whose components are all of dprec."""


@dataclass(frozen=True, kw_only=True)
class _Told(components.Options):
    """A protocol as a population's folder describes it."""

    protocol: AnyProtocol = components.option("One of ours, with any components.")


ProtocolT = TypeVar("ProtocolT", bound=Protocol)

# The files of a run; the devices of an interrupted run have the last as well.
_POPULATION, _HELD = "population.json", "held.npz"

_RUN_KEY = re.compile(r"[A-Za-z0-9_-]+")


class PopulationError(InputError):
    """A node cannot read the population that it hosts: a failure of the simulation, not of a device."""


@dataclass(frozen=True, eq=False)
class HeldQuestion:
    """What a device remembers of the last round in which it was asked."""

    round_index: int
    sent: bytes
    """By which everybody was sent what it holds of that round."""
    question: bytes
    """What its answer was bound to; see `dprec.protocols.rounds.Device`."""
    kept: tuple[AnyArray, ...] | None = None
    """What devices keep besides, users first; None where they keep nothing."""


@dataclass(frozen=True, eq=False)
class Population:
    """All users of a run, and what is installed on their devices."""

    ratings: HeldRatings
    """The ratings that the devices hold."""
    users_per_node: int
    individual_reports: bool
    """Whether the node of several users sends each of their reports where the server needs only their sum."""
    keys: Keys
    """What devices and network draw from; the seed of the run cannot be computed from them."""
    faults: FaultOptions
    """What goes wrong between the devices and the server."""
    protocol: Protocol
    """The protocol's settings as installed on the devices. They include the privacy budgets: a device accepts
    none from the server.
    """
    absent: Bools | None = None
    """Whose device never answers; None for nobody; shape (users,)."""
    attendance: Attendance | None = None
    """Who answers in which round; None where faults are drawn."""
    epsilons: Uint8s | None = None
    """The number of each user's own epsilon; None if all have the same; shape (users,)."""
    crafted: int = 0
    """So many users, the last ones, choose what they report, which says most for their profiles."""
    targets: tuple[int, ...] = ()
    """Items that these care for; none for all."""
    held: HeldQuestion | None = None
    """What the devices last received before the run was interrupted."""
    key: str = ""
    """Run key, under which a device remembers what it answered."""
    devices_of_sums: int | None = None
    """Number of devices that take part in a sum, if not one for each user: of a device that stands by itself.
    """
    show: Callable[[Received], None] = lambda received: None
    """Called with what a device has received for its predictions. In a simulation, devices make none: it
    computes those that it evaluates.
    """

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.ratings.n_users

    @property
    def devices(self) -> int:
        """Number of devices that take part in a sum."""
        return self.n_users if self.devices_of_sums is None else self.devices_of_sums

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return self.ratings.n_items

    @property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return self.ratings.scale

    @property
    def adds_up(self) -> bool:
        """Whether a node adds up its users' reports where it can."""
        return not self.individual_reports

    @property
    def unseen(self) -> bool:
        """Whether nobody looks at single reports of a sum: none is sent, crafted, lost or damaged."""
        return self.adds_up and not self.crafted and self.attendance is None and self.faults == FaultOptions()

    def fates(self, round_index: int, first_user: int, users: int) -> NDArray[np.int8]:
        """Return what becomes of the replies of consecutive users; see `clients.faults.fates`."""
        if self.attendance is not None:
            return self.attendance.of_round(round_index, first_user, users)
        return fates(self.faults, self.keys.network_seed, round_index, first_user, users)

    def installed(self, *kinds: type[ProtocolT]) -> ProtocolT:
        """Return what is installed; raises Refusal unless it is of the kinds that a request is for."""
        if not isinstance(self.protocol, kinds):
            what = f"the request is not for devices that take part in {self.protocol.kind}"
            raise Refusal(RefusalCode.NOT_SET_UP, what)
        return self.protocol

    def partition(self, partition_id: int) -> "Partition":
        """Return the users that the node of a partition hosts."""
        start = min(partition_id * self.users_per_node, self.n_users)
        return Partition(self, start, min(start + self.users_per_node, self.n_users))


@dataclass(frozen=True, eq=False)
class Partition:
    """The users ``start`` to ``stop`` of a population, hosted by one node."""

    population: Population
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of users."""
        return self.stop - self.start

    @property
    def counts(self) -> Ints:
        """Ratings of each user, shape (users,)."""
        return self._profiles.counts

    @property
    def items(self) -> Int32s:
        """Rated items, by user."""
        return self._profiles.items

    @property
    def levels(self) -> Uint8s:
        """Levels of the ratings, by user; 0 of those that are shown without an answer."""
        return self._profiles.levels

    @property
    def values(self) -> Floats:
        """True ratings, by user; unrounded if the scale is continuous, NaN of implicit data."""
        return self.rounded_values if self._profiles.exact is None else self._profiles.exact

    @property
    def rounded_values(self) -> Floats:
        """Ratings as a mechanism is given them, by user; NaN of implicit data, and without an answer."""
        scale = self.population.scale
        if scale.implicit:
            return np.full(self.levels.size, np.nan)
        return np.append(np.nan, scale.values)[self.levels]

    @property
    def numbers(self) -> Uint8s | None:
        """The number of each user's epsilon; None if users have none of their own."""
        epsilons = self.population.epsilons
        return None if epsilons is None else epsilons[self.start : self.stop]

    @property
    def refuses(self) -> Bools:
        """Whose device sends nothing, shape (users,)."""
        absent = self.population.absent
        return np.zeros(self.size, dtype=np.bool_) if absent is None else absent[self.start : self.stop]

    @property
    def parts_that_lie(self) -> "tuple[tuple[Partition, bool], ...]":
        """The users whose reports are drawn, and then those who choose them, as far as there are any."""
        if not self.population.crafted:
            return ((self, False),)
        first = min(max(self.start, self.population.n_users - self.population.crafted), self.stop)
        honest, malicious = replace(self, stop=first), replace(self, start=first)
        return tuple((part, lies) for part, lies in ((honest, False), (malicious, True)) if part.size)

    def divided(self, users: int) -> "Iterator[Partition]":
        """Yield parts of so many consecutive users at most."""
        for start in range(self.start, self.stop, users):
            yield replace(self, start=start, stop=min(start + users, self.stop))

    @cached_property
    def _profiles(self) -> StoredProfiles:
        with _of_the_simulation():
            return self.population.ratings.profiles(self.start, self.stop)


@dataclass(frozen=True, kw_only=True)
class _Description(components.Options):
    """The contents of population.json: how a run installs its devices, and where their ratings are."""

    ratings: str = components.option("Folder of the ratings' shards; empty for that of this file.")
    fingerprint: str = components.option("Identifies the ratings.")
    users_per_node: int = components.option("Users of a partition.", ge=1)
    individual_reports: bool = components.option("Whether nodes send reports rather than their sum.")
    keys: InstalledKeys = components.option("What devices and network draw from.")
    faults: FaultOptions = components.option("What goes wrong between the devices and the server.")
    protocol: AnyProtocol | None = components.option(
        "What is installed on the devices; none if messages bring it."
    )
    absent: Annotated[str, Field(pattern="^([0-9a-f]{2})*$")] = components.option(
        "Whose devices never answer, a bit for each user, in hexadecimal; empty for nobody.", ""
    )
    attendance: Annotated[tuple[str, ...] | None, BeforeValidator(components.as_tuple)] = components.option(
        "Who answers in each round, a digit for each user; none where faults are drawn.", None
    )
    epsilons: Annotated[str, Field(pattern="^[0-9]*$")] = components.option(
        "The number of each user's own epsilon, a digit each; empty if all have the same.", ""
    )
    crafted: int = components.option("Users, the last ones, who choose what they report.", 0, ge=0)
    targets: Annotated[tuple[int, ...], BeforeValidator(components.as_tuple)] = components.option(
        "Items that these care for; none for all.", ()
    )


def write_population(
    directory: Path,
    ratings: Ratings,
    *,
    users_per_node: int,
    keys: InstalledKeys,
    faults: FaultOptions,
    protocol: Protocol | None,
    absent: Bools | None = None,
    attendance: Attendance | None = None,
    epsilons: Uint8s | None = None,
    crafted: int = 0,
    targets: tuple[int, ...] = (),
    individual_reports: bool = False,
    shards: Path | None = None,
) -> None:
    """Write what the devices hold to a new directory.

    No protocol where messages bring it (`clients.population`). ``absent``: whose device never answers, by
    default nobody's. ``epsilons``: the number of each user's own, if they have any. ``crafted``: so many
    users, the last ones, choose what they report; ``targets``: items that they care for. ``shards``: where
    the ratings are, or are to be written; by default in the directory itself. Raises FileExistsError when the
    directory exists, and InputError as `write_shards`.
    """
    directory.mkdir(parents=True)
    index = write_shards(directory if shards is None else shards, ratings)
    description = _Description(
        ratings="" if shards is None else str(shards),
        fingerprint=index.fingerprint,
        users_per_node=users_per_node,
        individual_reports=individual_reports,
        keys=keys,
        faults=faults,
        protocol=protocol,
        absent="" if absent is None else np.packbits(absent).tobytes().hex(),
        attendance=None if attendance is None else attendance.rows(),
        epsilons="" if epsilons is None else (epsilons + ord("0")).tobytes().decode(),
        crafted=crafted,
        targets=targets,
    )
    write_whole(directory / _POPULATION, to_json(description).encode())


def write_held_question(directory: Path, received: HeldQuestion) -> None:
    """Write what the devices of an interrupted run had received, before they start again."""
    file = BytesIO()
    sent, question = (
        np.frombuffer(content, dtype=np.uint8) for content in (received.sent, received.question)
    )
    state = {f"kept {place}": array for place, array in enumerate(received.kept or ())}
    np.savez(file, allow_pickle=False, round=received.round_index, sent=sent, question=question, **state)
    write_whole(directory / _HELD, file.getvalue())


@lru_cache(maxsize=4)
def open_population(directory: str, brought: Brought = NOTHING) -> Population:
    """Open a population; it stays open, so a worker reads its description once.

    Without ``brought``, the folder can name no class from outside dprec. Raises InputError when a file is
    damaged, missing or of another run, or names a class that nobody has brought.
    """
    folder = place_of(directory)
    path = folder / _POPULATION
    with brought.importing():
        description = from_json(_Description, contents_of(path).decode(errors="replace"), str(path))
    shards = place_of(description.ratings) if description.ratings else folder
    ratings = ShardedRatings.open(shards)
    if ratings.index.fingerprint != description.fingerprint:
        found = f"the devices of another run ({ratings.index.fingerprint})"
        raise InputError(str(shards), found, f"those that this run wrote ({description.fingerprint})")
    bits = np.frombuffer(bytes.fromhex(description.absent), np.uint8)
    absent = np.unpackbits(bits, count=ratings.n_users).astype(np.bool_) if bits.size else None
    return Population(
        ratings=ratings,
        users_per_node=description.users_per_node,
        individual_reports=description.individual_reports,
        keys=description.keys,
        faults=description.faults,
        protocol=description.protocol or brought.unpacked_protocol(str(path)),
        absent=absent,
        attendance=_attendance(description.attendance, ratings.n_users, str(path)),
        epsilons=_epsilons(description.epsilons, ratings.n_users, str(path)),
        crafted=description.crafted,
        targets=description.targets,
        held=_held(folder),
        key=folder.name,
    )


def _attendance(rows: tuple[str, ...] | None, n_users: int, where: str) -> Attendance | None:
    """Return who answers in which round, as a population's folder says it."""
    if rows is None:
        return None
    try:
        return Attendance.of(rows, n_users)
    except ValueError as error:
        raise InputError(where, f"attendance: {error}", "a digit for each user, in each round") from None


def _epsilons(digits: str, n_users: int, where: str) -> Uint8s | None:
    """Return the number of each user's own epsilon, as a population's folder says it; None without any."""
    if digits and len(digits) != n_users:
        raise InputError(f"{where}, epsilons", f"{len(digits)} digits", f"one for each of {n_users} users")
    return np.frombuffer(digits.encode(), dtype=np.uint8) - ord("0") if digits else None


def _held(folder: Path) -> HeldQuestion | None:
    path = folder / _HELD
    if not path.exists():
        return None
    try:
        with np.load(BytesIO(contents_of(path)), allow_pickle=False) as archive:
            names = [name for name in archive.files if name.startswith("kept ")]
            state = tuple(archive[f"kept {place}"] for place in range(len(names))) or None
            return HeldQuestion(
                int(archive["round"]), archive["sent"].tobytes(), archive["question"].tobytes(), state
            )
    except (ValueError, EOFError, KeyError, BadZipFile) as error:
        raise InputError(str(path), f"no arrays ({error})", "a file of dprec") from None


@contextmanager
def _of_the_simulation() -> Iterator[None]:
    """Raise as a `PopulationError` what is wrong with the files of a population."""
    try:
        yield
    except InputError as error:
        raise PopulationError(error.where, error.found, error.accepted) from error


def partition_id_of(context: Context) -> int:
    """Return the partition of the node, its position among all nodes."""
    return int(context.node_config["partition-id"])


def partition_of(root: str, message: Message, context: Context, brought: Mapping[str, Brought]) -> Partition:
    """Return the partition that a message is for, whose group is the run key.

    Raises PopulationError when the population cannot be opened. Raises Refusal when the key is not a plain
    name: a path could give a run a second name, and a device remembers what it answered by the name.
    """
    key = message.metadata.group_id
    if not _RUN_KEY.fullmatch(key):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, f"not a run key: {key!r}")
    with _of_the_simulation():
        return open_population(f"{root}/{key}", brought.get(key, NOTHING)).partition(partition_id_of(context))


def device_draws(partition: Partition, purpose: str) -> Draws:
    """Return the draws of a partition's users for one purpose.

    They depend on the run and on all that is installed on the devices: with another mechanism, budget or
    number of rounds they are others. Where devices repeat their answers in all runs, they depend on none of
    them, but on each rating as it is answered; see `dprec.schedules.Answers`.
    """
    population, keys = partition.population, partition.population.keys
    protocol = population.protocol
    memory = protocol.memory(population.scale, purpose)
    users = partition.start, offsets(partition.counts)
    if memory is None:
        installed = population.protocol.drawn_by
        return keys.draws(*users, partition.items, partition.values, purpose, installed)
    return keys.memoised(*users, partition.items, partition.rounded_values, purpose, memory)


def lasting_draws(partition: Partition, purpose: str) -> Draws:
    """Return draws that, unlike those of `device_draws`, are the same after a user's ratings have changed."""
    population = partition.population
    nobody, nothing = np.zeros(partition.size + 1, dtype=np.int64), np.zeros(0)
    installed = population.protocol.drawn_by
    return population.keys.draws(
        partition.start, nobody, nothing.astype(np.int32), nothing, purpose, installed
    )


def draws_of_rounds(partition: Partition, purpose: str) -> Draws:
    """Return the draws of a partition that is asked again and again, made ready in its first round."""
    ready = _ready(partition.population)
    whose = partition.start, partition.stop, purpose
    if whose not in ready:
        ready[whose] = device_draws(partition, purpose)
    return ready[whose]


@lru_cache(maxsize=4)
def _ready(population: Population) -> dict[tuple[int, int, str], Draws]:
    """Return what a worker has made ready for a population: 16 bytes for each user of its partitions."""
    return {}
