"""Experiment trackers: a file, MLflow, TensorBoard, and Weights & Biases."""

import csv
import importlib
import math
import os
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dprec.errors import InputError, RunError, listed
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten
from simulation.storage.files import unusable
from simulation.storage.run_files import RunRecord, line_of
from strategies.participation import RoundRecord

Scalar = bool | int | float | str


class Tracker(typing.Protocol):
    """Keeps the figures of one run, in the order in which they come."""

    def settings(self, values: Mapping[str, Scalar]) -> None:
        """Keep the settings of the run, by dotted key; called once, first."""

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Keep figures of a round, counted from 1, or with None those of the whole run, at its end."""

    def close(self, failure: str | None) -> None:
        """End the record, and say why if the run failed."""


PACKAGES = {
    "mlflow": ("mlflow", "MLflow"),
    "tensorboard": ("tensorboardX", "tensorboardX"),
    "wandb": ("wandb", "wandb"),
}
"""The module that a tracker needs, and the package that holds it, by the extra of dprec that installs it."""


def required(extra: str) -> Any:
    """Import the module of a tracker.

    ``extra``: the extra of dprec that installs it, and the name of the tracker.
    Raises InputError.
    """
    module, package = PACKAGES[extra]
    try:
        return importlib.import_module(module)
    except ImportError:
        accepted = f"csv, which needs nothing, or: pip install 'dprec[{extra}]'"
        raise InputError("track", f"{extra}, but {package} is not installed", accepted) from None


_TRACKED, _HEADER = "tracked.csv", ["round", "figure", "value"]


class _CsvTracker:
    """Appends lines ``round,figure,value`` to tracked.csv in the run directory; the run's own have no round.

    A run that is resumed goes on at the end of the file. Settings are not repeated: config.yaml has them.
    """

    def __init__(self, name: str, directory: Path) -> None:
        path = directory / _TRACKED
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+", newline="", encoding="utf-8", errors="replace")
        except OSError as error:
            raise unusable(path, error) from None
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._file.seek(0)
        first = self._file.readline(100).strip()
        if not first:
            self._writer.writerow(_HEADER)
        elif first != ",".join(_HEADER):
            self._file.close()
            raise InputError(str(path), "a file of something else", "a new directory")

    def settings(self, values: Mapping[str, Scalar]) -> None:
        pass

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        place = "" if round_index is None else round_index
        self._writer.writerows([place, figure, value] for figure, value in values.items())
        self._file.flush()

    def close(self, failure: str | None) -> None:
        self._file.close()


_DPREC = "dprec"
"""The experiment or project that runs belong to."""

_PARAMETERS_AT_ONCE = 100
"""MLflow refuses more in one request."""


class _MlflowTracker:
    """Keeps settings as parameters and figures as metrics, whose step is the round.

    Those of the whole run begin with ``final.`` and have no step.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self._mlflow = required("mlflow")
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            self._mlflow.set_experiment(_DPREC)
        self._mlflow.start_run(run_name=name)

    def settings(self, values: Mapping[str, Scalar]) -> None:
        pairs = list(values.items())
        for start in range(0, len(pairs), _PARAMETERS_AT_ONCE):
            self._mlflow.log_params(dict(pairs[start : start + _PARAMETERS_AT_ONCE]))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        if round_index is None:
            self._mlflow.log_metrics({f"final.{figure}": value for figure, value in values.items()})
        else:
            self._mlflow.log_metrics(dict(values), step=round_index)

    def close(self, failure: str | None) -> None:
        self._mlflow.end_run("FINISHED" if failure is None else "FAILED")


class _TensorboardTracker:
    """Writes figures as scalars, whose step is the round, and settings as a text."""

    def __init__(self, name: str, directory: Path) -> None:
        self._writer = required("tensorboard").SummaryWriter(str(directory / "tensorboard" / name))

    def settings(self, values: Mapping[str, Scalar]) -> None:
        self._writer.add_text("settings", "\n".join(f"    {key}: {value}" for key, value in values.items()))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        of = ("final",) if round_index is None else ("rounds", round_index)
        for figure, value in values.items():
            self._writer.add_scalar(f"{of[0]}/{figure}", value, *of[1:])
        self._writer.flush()

    def close(self, failure: str | None) -> None:
        self._writer.close()


class _WandbTracker:
    """Keeps settings as the run's configuration, rounds as its history, and figures as its summary."""

    def __init__(self, name: str, directory: Path) -> None:
        project = os.environ.get("WANDB_PROJECT", _DPREC)
        self._run = required("wandb").init(project=project, name=name, dir=str(directory))

    def settings(self, values: Mapping[str, Scalar]) -> None:
        self._run.config.update(dict(values))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        if round_index is None:
            self._run.summary.update(dict(values))
        else:
            self._run.log(dict(values), step=round_index)

    def close(self, failure: str | None) -> None:
        self._run.finish(exit_code=0 if failure is None else 1)


TRACKERS: dict[str, Callable[[str, Path], Tracker]] = {
    "csv": _CsvTracker,
    "mlflow": _MlflowTracker,
    "tensorboard": _TensorboardTracker,
    "wandb": _WandbTracker,
}
"""The trackers, by name: from the name of a run and its directory."""


_FINAL = ("accuracy", "privacy", "traffic", "time", "peak_memory_mb")
"""Parts of summary.json whose numbers are a run's figures."""


class Recording:
    """A run as its trackers see it.

    ``trackers``: by their names.
    """

    def __init__(self, trackers: Mapping[str, Tracker]) -> None:
        self._trackers, self._last = trackers, 0

    def tell(self, call: Callable[[Tracker], None]) -> None:
        """Call every tracker; raises RunError naming one that fails."""
        for name, tracker in self._trackers.items():
            try:
                call(tracker)
            except Exception as error:  # whatever the package of somebody else raises
                raise RunError(f"tracker {name}: {type(error).__name__}: {error}") from error

    def round(self, record: RoundRecord) -> None:
        """Pass on a round that has ended."""
        self._last = record.round
        figures = _numbers({key: value for key, value in line_of(record).items() if key != "round"})
        self.tell(lambda tracker: tracker.figures(figures, record.round))

    def finish(self, record: RunRecord) -> None:
        """Pass on the rounds that have not been, and the figures of the run."""
        for one in record.rounds:
            if one.round > self._last:
                self.round(one)
        summary = record.summary.as_json()
        figures = _numbers({key: summary[key] for key in _FINAL})
        self.tell(lambda tracker: tracker.figures(figures, None))


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that do not exist or are not installed, before a directory is claimed.

    Raises InputError.
    """
    for name in names:
        if name not in TRACKERS:
            raise InputError("track", repr(name), listed(list(TRACKERS), name))
        if name in PACKAGES:
            required(name)


@contextmanager
def recording(names: Sequence[str], config: RunConfig, directory: Path | None) -> Iterator[Recording]:
    """Open trackers for a run and close them at its end, however it ends.

    ``names``: keys of `TRACKERS`.
    Raises InputError when there is no directory. Raises RunError when a tracker fails.
    """
    if not names:
        yield Recording({})
        return
    if directory is None:
        raise InputError("track", f"{names[0]}, but no directory", "a directory for the run")
    trackers: dict[str, Tracker] = {}
    record, failure = Recording(trackers), "interrupted"
    try:
        for name in dict.fromkeys(names):
            try:
                trackers[name] = TRACKERS[name](config.name, directory)
            except InputError:
                raise
            except Exception as error:
                raise RunError(f"tracker {name}: {type(error).__name__}: {error}") from error
        values = flatten(config.plain_values())
        plain = {key: value if isinstance(value, Scalar) else str(value) for key, value in values.items()}
        record.tell(lambda tracker: tracker.settings(plain))
        yield record
        failure = ""
    except Exception as error:
        failure = str(error) or type(error).__name__
        raise
    finally:
        record.tell(lambda tracker: tracker.close(failure or None))


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers among nested values, by dotted key."""
    return {
        key: value
        for key, value in flatten(dict(values)).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
