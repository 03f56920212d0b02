"""Whether a run uses Ray, where the configuration leaves it to the number of users."""

from dataclasses import replace

from simulation.configuration.models import SimulationOptions
from simulation.engine.ray_cluster import ADDRESS, cluster_address

RAY_PAYS_FROM = 1_000_000
"""Users up to which one process was sooner than Ray with two processors, in twenty rounds too: measured by
`benchmarks/backends.py`.
"""


def chosen(options: SimulationOptions, users: int) -> SimulationOptions:
    """Return the settings of a run of so many users with its backend in place of ``auto``."""
    if options.backend != "auto":
        return options
    ray = _asked(options) is not None or users >= RAY_PAYS_FROM
    return replace(options, backend="ray" if ray else "local")


def cells_use_ray(backend: str, jobs: int, cells: int) -> bool:
    """Return whether so many cells of a comparison, so many at a time, run on Ray.

    ``backend``: that of the configuration; ``auto`` is Ray where cells can run beside one another.
    """
    beside = min(jobs, cells) > 1 or cluster_address() is not None
    return beside if backend == "auto" else backend == "ray"


def choice(options: SimulationOptions, users: int) -> str:
    """Return in words which backend a run of so many users has, and what has chosen it."""
    if options.backend != "auto":
        return options.backend
    by = _asked(options) or f"{users:,} users, auto: ray from {RAY_PAYS_FROM:,}"
    return f"{chosen(options, users).backend} ({by})"


def _asked(options: SimulationOptions) -> str | None:
    """Return by what ``auto`` is asked for Ray, whatever the number of users."""
    if cluster_address() is not None:
        return ADDRESS
    return None if options.workers in (None, 1) else f"workers {options.workers}"
