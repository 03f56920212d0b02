"""Experiment trackers: they are given a run's settings, its rounds as they come, and its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simulation.tracking.base import Tracker
from simulation.tracking.csv_file import CsvTracker
from simulation.tracking.mlflow_runs import MlflowTracker
from simulation.tracking.tensorboard_events import TensorboardTracker
from simulation.tracking.wandb_runs import WandbTracker

TRACKERS: dict[str, Callable[[str, Path], Tracker]] = {
    "csv": CsvTracker,
    "mlflow": MlflowTracker,
    "tensorboard": TensorboardTracker,
    "wandb": WandbTracker,
}
"""The trackers, by name: from the name of a run and its directory."""

__all__ = ["TRACKERS", "Tracker"]
