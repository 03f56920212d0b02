"""Simulated deployments: configuration, engine, run directory, comparisons and the command line.

What this package exports, `dprec` hands on: `from dprec import run`. The verbs are imported here, so that
`simulation.run` is always the function and never the module of that name; each imports what it needs when it
is called. `load` and `RunConfig` are imported on first use, because the configuration models import every
component.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulation.verbs import attack, audit, compare, diff, export, ls, plot, run, tune

if TYPE_CHECKING:
    from simulation.configuration.loading import load
    from simulation.configuration.models import RunConfig

__all__ = ["RunConfig", "attack", "audit", "compare", "diff", "export", "load", "ls", "plot", "run", "tune"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name == "RunConfig":
        from simulation.configuration.models import RunConfig

        return RunConfig
    if name == "load":
        from simulation.configuration.loading import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
