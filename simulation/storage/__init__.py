"""What is stored on disk: the files of runs and comparisons, their contents and their checks."""

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
