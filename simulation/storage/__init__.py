"""What is stored on disk: the files of runs and comparisons, their contents and their checks.

What is exported is imported on first use: a table of names needs `simulation.storage.column` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulation.storage.files import Columns, Row
    from simulation.storage.run_directory import Checkpoints, RunDirectory
    from simulation.storage.run_files import RunRecord, holds_comparison, read_run
    from simulation.storage.summary import Summary, read_summary

__all__ = [
    "Checkpoints",
    "Columns",
    "Row",
    "RunDirectory",
    "RunRecord",
    "Summary",
    "holds_comparison",
    "read_run",
    "read_summary",
]

_MODULES = ("files", "run_directory", "run_files", "summary")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            if hasattr(loaded := import_module(f"{__name__}.{module}"), name):
                return getattr(loaded, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
