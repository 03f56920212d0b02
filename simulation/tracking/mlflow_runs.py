"""Tracking with MLflow: a run of the experiment "dprec", where MLFLOW_TRACKING_URI says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from simulation.tracking.trackers import Scalar, required

_EXPERIMENT = "dprec"

_PARAMETERS_AT_ONCE = 100
"""MLflow refuses more in one request."""


class MlflowTracker:
    """Keeps settings as parameters and figures as metrics, whose step is the round.

    Parameters
    ----------
    name : str
        Of the run.
    directory : Path
        Not used: MLflow has a place of its own.

    Raises
    ------
    InputError
        When MLflow is not installed.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self._mlflow = required("mlflow")
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            self._mlflow.set_experiment(_EXPERIMENT)
        self._mlflow.start_run(run_name=name)

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Log the parameters."""
        pairs = list(values.items())
        for start in range(0, len(pairs), _PARAMETERS_AT_ONCE):
            self._mlflow.log_params(dict(pairs[start : start + _PARAMETERS_AT_ONCE]))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Log metrics; those of the whole run under ``final.``, without a step."""
        if round_index is None:
            self._mlflow.log_metrics({f"final.{figure}": value for figure, value in values.items()})
        else:
            self._mlflow.log_metrics(dict(values), step=round_index)

    def close(self, failure: str | None) -> None:
        """End the run as finished or failed."""
        self._mlflow.end_run("FINISHED" if failure is None else "FAILED")
