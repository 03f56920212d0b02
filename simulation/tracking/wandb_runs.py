"""Tracking with Weights & Biases: a run of the project "dprec", or of the one in WANDB_PROJECT."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from simulation.tracking.trackers import Scalar, required

_PROJECT = "dprec"


class WandbTracker:
    """Keeps settings as the run's configuration, rounds as its history, and figures as its summary.

    Parameters
    ----------
    name : str
        Of the run.
    directory : Path
        Where its local files go.

    Raises
    ------
    InputError
        When wandb is not installed.
    """

    def __init__(self, name: str, directory: Path) -> None:
        wandb = required("wandb")
        project = os.environ.get("WANDB_PROJECT", _PROJECT)
        self._run = wandb.init(project=project, name=name, dir=str(directory))

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Keep the configuration."""
        self._run.config.update(dict(values))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Log a round, or update the summary."""
        if round_index is None:
            self._run.summary.update(dict(values))
        else:
            self._run.log(dict(values), step=round_index)

    def close(self, failure: str | None) -> None:
        """Finish the run; an exit code of 1 marks it as failed."""
        self._run.finish(exit_code=0 if failure is None else 1)
