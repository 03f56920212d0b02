"""The memory that a run needs, said before it begins, and what this process may use."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from clients.faults import FaultOptions
from dprec.errors import LESS_MEMORY, InputError
from dprec.protocols.base import Protocol, Public
from simulation.configuration.models import SimulationOptions
from simulation.engine.ray_cluster import cluster_address

_PROCESS, _WITH_PAGE = 240e6, 325e6
"""Bytes of this process before it loads anything, and once it draws a page, which it does last."""

_WRITTEN_OF_USER, _WRITTEN_OF_RATING = 150, 25
"""Bytes of what a page is drawn from, of which there are columns for each user and for each test rating: one
for four that devices hold, as most splits have it.
"""

_AUDIT, _AUDIT_OF_PERSON = 280e6, 700
"""Bytes of this process in an audit, and of what is compared of each person who takes part at a time."""

_RAY, _WORKER = 400e6, 250e6
"""Bytes of Ray's own processes, and of each of its workers."""

_RESERVED = 600e6
"""Bytes that a whole run addresses beyond what it holds, as libraries that it loads reserve them."""

_REPORTS_HELD = 3.0
"""How often a node has the reports that it adds up: as they are made, joined, and chosen."""


class _MemoryNeeds(NamedTuple):
    """Bytes at the largest moment of a run, beside what processes need for themselves.

    Measured by `benchmarks/memory_model.py`; what has a size of its own is in `Protocol.model_bytes`.
    """

    once: float
    of_cell: float
    """For each cell that the server sees as rated."""
    of_user: float
    of_rating: float = 0.0
    """For each rating, whether the server sees it or not."""


_AVERAGES = "item-average", "user-average", "own-average", "global-mean"
_SUMS_AND_LISTS = (
    *("popularity", "popularity-by-content", "random-list", "item-table", "ease", "ials", "tastes-by-item"),
    *("private-als", "private-item-effects", "collective-als", "item-biases-and-embeddings"),
    *("graph-filters", "federated-factorization", "private-implicit-als"),
)
_NEEDS = {
    **dict.fromkeys(_AVERAGES, _MemoryNeeds(5e6, 12, 150)),
    **dict.fromkeys(_SUMS_AND_LISTS, _MemoryNeeds(15e6, 0, 1_050)),
    "federated-model": _MemoryNeeds(65e6, 0, 1_050),
    "mf": _MemoryNeeds(10e6, 60, 0),
    "nuclear-norm": _MemoryNeeds(36e6, 18, 0),
    "sgd-mf": _MemoryNeeds(5e6, 62, 0),
}
"""By what is learned; see `dprec.protocols.base.Facts`."""

_OTHER_NEEDS = _MemoryNeeds(20e6, 27, 1_200, 48)
"""For all that fits other models to reports, and what was not measured, such as classes of users' own."""


class Needed(NamedTuple):
    """Bytes that a run needs on this machine at most."""

    here: float
    """In this process."""
    elsewhere: float
    """In all others together."""


def needed_memory(
    protocol: Protocol,
    size: tuple[int, int, int],
    simulation: SimulationOptions,
    public: Public | None = None,
    *,
    attacked: bool = False,
) -> Needed:
    """Return the most bytes that a run needs on this machine.

    Parameters
    ----------
    size : tuple of int
        Users, items and ratings.
    simulation : SimulationOptions
        With its backend chosen.
    public : Public, optional
        Of the train ratings; without it, models and reports that do not follow from the size count as empty.
    attacked : bool
        Whether there are attacks, which look at single reports.
    """
    needs = _NEEDS.get(protocol.facts.learns, _OTHER_NEEDS)
    needed = needs.once + needs.of_cell * protocol.seen_cells(*size)
    needed += needs.of_user * size[0] + needs.of_rating * size[2]
    reports = elsewhere = 0.0
    if public is not None:
        unseen = simulation.faults == FaultOptions() and not attacked
        reports, sent = _reports_bytes(protocol, public, size, simulation, unseen=unseen)
        needed += protocol.model_bytes(public) + protocol.attack_bytes(public, sent) * attacked
    if simulation.backend == "local":
        needed += reports
    # The workers of a cluster may all be on other machines.
    elif cluster_address() is None:
        elsewhere = _RAY + simulation.tasks * (_WORKER + reports)
    while_drawing = _WITH_PAGE + _WRITTEN_OF_USER * size[0] + _WRITTEN_OF_RATING * size[2]
    return Needed(max(_PROCESS + needed, while_drawing), elsewhere)


def _reports_bytes(
    protocol: Protocol,
    public: Public,
    size: tuple[int, int, int],
    simulation: SimulationOptions,
    *,
    unseen: bool,
) -> tuple[float, float]:
    """Return the bytes of the reports that a node holds at a time to add them up, and of all of a round."""
    users, _, ratings = size
    if (sent := protocol.sent(public, max(1, ratings // users))) is None:
        return 0.0, 0.0
    round_bytes = protocol.asked_at_once(users) * sent.bits / 8
    reported = round_bytes * simulation.partition_size(users) / users
    return _REPORTS_HELD * protocol.held_at_once(reported, unseen=unseen), round_bytes


def check_memory(
    protocol: Protocol,
    size: tuple[int, int, int],
    simulation: SimulationOptions,
    public: Public | None = None,
    *,
    attacked: bool = False,
) -> None:
    """Raise InputError, with what to lower, for a run that needs more memory than there is.

    The parameters are those of `needed_memory`.
    """
    what = "{:,} users, {:,} items and {:,} ratings".format(*size)
    _check_fits(needed_memory(protocol, size, simulation, public, attacked=attacked), what, LESS_MEMORY)


def check_memory_of_people(people: int) -> None:
    """Raise InputError for an audit in which more people take part at a time than there is memory for."""
    needed = Needed(_AUDIT + _AUDIT_OF_PERSON * people, 0.0)
    _check_fits(needed, f"{people:,} made-up users at a time", "fewer trials, or a larger machine")


def _check_fits(needed: Needed, what: str, helps: str) -> None:
    for bytes_, available in ((sum(needed), available_memory()), (needed.here, addressable_memory())):
        if available is not None and bytes_ > available:
            found = f"{what} need about {bytes_ / 1e9:.1f} GB, {available / 1e9:.1f} GB are available"
            raise InputError("memory", found, helps)


def available_memory(system: Path = Path("/")) -> float | None:
    """Return the most bytes that this process and its children may hold together; None if unknown.

    That is what this process holds, and the least of what is left: on the machine, and in the control groups
    that it is in.
    """
    return _with_what_is_held(system, [*_left_on_machine(system), *_left_in_groups(system)])


def addressable_memory(system: Path = Path("/")) -> float | None:
    """Return the most bytes that this process may hold by its limit of addresses; None without one."""
    return _with_what_is_held(system, [*_left_of_addresses(system)])


def _with_what_is_held(system: Path, free_bytes: list[float]) -> float | None:
    return max(0.0, _of_process(system, "VmRSS:") + min(free_bytes)) if free_bytes else None


def _left_on_machine(system: Path) -> Iterator[float]:
    with suppress(OSError, StopIteration):
        yield 1024 * _number(system / "proc/meminfo", "MemAvailable:")


def _left_of_addresses(system: Path) -> Iterator[float]:
    with suppress(OSError, StopIteration, ValueError):  # or "unlimited"
        lines = (system / "proc/self/limits").read_text().splitlines()
        limit = next(line for line in lines if line.startswith("Max address space")).split()[3]
        yield float(limit) - max(_of_process(system, "VmSize:"), _of_process(system, "VmRSS:") + _RESERVED)


class _Files(NamedTuple):
    """Where a version of control groups says what a group may use, what it uses, and of which kinds."""

    root: str
    most: str
    used: str
    cached: str
    shared: str


_FIRST = _Files("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem")
_SECOND = _Files("", "memory.max", "memory.current", "file", "shmem")


def _left_in_groups(system: Path) -> Iterator[float]:
    """Yield what is left in each group that this process is in, or that such a group is in."""
    lines: list[str] = []
    with suppress(OSError):
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and "memory" not in controllers.split(","):
            continue
        files = _FIRST if controllers else _SECOND
        # In a container, the groups around it cannot be seen, though the path may name them.
        root = system / "sys/fs/cgroup" / files.root
        for group in (root / path.strip("/"), *(root / path.strip("/")).parents):
            with suppress(OSError, StopIteration, ValueError):  # no such group, or one without a limit
                limit, used = (float((group / name).read_text()) for name in (files.most, files.used))
                cached, shared = (
                    _number(group / "memory.stat", name) for name in (files.cached, files.shared)
                )
                # The cache of files counts as used, but gives way.
                yield limit - used + cached - shared
            if group == root:
                break


def _of_process(system: Path, name: str) -> float:
    """Return the bytes that the system says this process has; 0 if it does not say."""
    with suppress(OSError, StopIteration):
        return 1024 * _number(system / "proc/self/status", name)
    return 0.0


def _number(path: Path, name: str) -> float:
    """Return the number that follows a name at the beginning of a line; raises StopIteration if none does."""
    lines = map(str.split, path.read_text().splitlines())
    return float(next(words[1] for words in lines if words[:1] == [name]))
