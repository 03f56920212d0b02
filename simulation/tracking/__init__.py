"""Experiment trackers: they are given a run's settings, its rounds as they come, and its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from simulation.tracking.trackers import CsvTracker, MlflowTracker, TensorboardTracker, Tracker, WandbTracker

TRACKERS: dict[str, Callable[[str, Path], Tracker]] = {
    "csv": CsvTracker,
    "mlflow": MlflowTracker,
    "tensorboard": TensorboardTracker,
    "wandb": WandbTracker,
}
"""The trackers, by name: from the name of a run and its directory."""

__all__ = ["TRACKERS", "Tracker"]
