"""What is stored on disk: the files of runs and comparisons, their contents and their checks."""

from simulation.storage.checkpoints import Checkpoints
from simulation.storage.comparison_directory import ComparisonDirectory
from simulation.storage.run_directory import RunDirectory
from simulation.storage.run_files import RunFiles, holds_comparison, read_run
from simulation.storage.run_record import RunRecord
from simulation.storage.summary import Summary, read_summary
from simulation.storage.tables import Columns, Row

__all__ = [
    "Checkpoints",
    "Columns",
    "ComparisonDirectory",
    "Row",
    "RunDirectory",
    "RunFiles",
    "RunRecord",
    "Summary",
    "holds_comparison",
    "read_run",
    "read_summary",
]
