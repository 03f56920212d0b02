"""What a run needs of this machine's memory, estimated before it starts.

The constants are rounded up from the measurements of `benchmarks/memory_model.py`, which checks them. They
hold for the largest moment of a run: with the ratings loaded, the reports decoded and the completion at work.
"""

from dataclasses import dataclass
from pathlib import Path

from dprec.errors import InputError
from simulation.configuration.models import SimulationOptions
from simulation.engine.ray_cluster import cluster_address

_GIGABYTE = 1e9
_PROCESS, _RAY, _WORKER = 300e6, 400e6, 250e6
"""Bytes of this process before it loads anything, of Ray's own processes, and of each of its workers."""


@dataclass(frozen=True)
class Bytes:
    """What a run needs at most for each of its parts, in bytes."""

    rating: float
    """For each cell that the server sees as rated."""
    user: float
    item: float


NEEDS = {
    "mf": Bytes(120, 7_000, 7_000),  # at its default rank, 20
    "item-average": Bytes(40, 150, 250),
    "federated-factorization": Bytes(65, 200, 100),
}
"""What runs need by the name of their completion, where it was measured by itself."""

OTHER_NEEDS = Bytes(170, 2_700, 1_600)
"""What a run needs with any other completion."""


def needed_memory(
    users: int, items: int, cells: int, *, completion: str, simulation: SimulationOptions
) -> float:
    """Return the most bytes that a run needs on this machine, all processes together."""
    needs = NEEDS.get(completion, OTHER_NEEDS)
    fixed = _PROCESS
    # The workers of a cluster may all be on other machines.
    if simulation.backend == "ray" and cluster_address() is None:
        fixed += _RAY + simulation.workers * _WORKER
    return fixed + needs.rating * cells + needs.user * users + needs.item * items


def check_memory(
    users: int, items: int, cells: int, *, completion: str, simulation: SimulationOptions
) -> None:
    """Raise InputError, with what to lower, for a run that needs more memory than this machine has."""
    needed = needed_memory(users, items, cells, completion=completion, simulation=simulation)
    available = available_memory()
    if available is not None and needed > available:
        found = (
            f"{users:,} users, {items:,} items and {cells:,} cells need about {needed / _GIGABYTE:.1f} GB, "
            f"{available / _GIGABYTE:.1f} GB are available"
        )
        raise InputError("memory", found, "fewer users, ratings or simulation.workers, or a larger machine")


def available_memory(system: Path = Path("/")) -> float | None:
    """Return the bytes that this process and its children may still use; None if unknown."""
    try:
        lines = (system / "proc/meminfo").read_text().splitlines()
        available = next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    group = system / "sys/fs/cgroup"
    try:
        limit = float((group / "memory.max").read_text())
        used = float((group / "memory.current").read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        # The cache of files counts as used, but gives way.
        return min(available, limit - used + float(statistics.get("file", 0)))
    except (OSError, ValueError):  # no group, or one without a limit
        return available
