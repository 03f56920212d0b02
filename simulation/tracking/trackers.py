"""What is told of a run as it goes on: callbacks, and those for a file, MLflow, TensorBoard and W&B."""

import csv
import importlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dprec.components import imported, reference_of
from dprec.errors import InputError, RunError, SettingError, listed, one_line, with_kind
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten
from simulation.storage.files import unusable
from simulation.storage.run_files import RunRecord, line_of
from strategies.participation import RoundRecord

Scalar = bool | int | float | str


@dataclass(frozen=True)
class Started:
    """A run that begins."""

    name: str
    """Its own, or that of its cell in a comparison."""
    settings: Mapping[str, Scalar]
    """By dotted key."""
    directory: Path | None
    group: str | None = None
    """Name of the comparison that it is of."""


class Callback:
    """Is told of runs, one after the other; by default, does nothing.

    A class of your own is named ``--track module:Class`` and made without arguments; in Python, instances are
    taken too. What it raises ends the run.
    """

    def started(self, run: Started) -> None:
        """Hear that a run begins, or goes on."""

    def round(self, record: RoundRecord) -> None:
        """Hear of a round that has ended."""

    def finished(self, summary: Mapping[str, Any]) -> None:
        """Hear what is in summary.json; the last that is heard of a run."""

    def failed(self, reason: str) -> None:
        """Hear why a run ends that has begun and is not finished."""


_FINAL = ("accuracy", "privacy", "traffic", "time", "peak_memory_mb")
"""Parts of summary.json whose numbers are a run's figures."""


class _Tracker(Callback):
    """Keeps the figures of runs."""

    def round(self, record: RoundRecord) -> None:
        self.figures(_numbers({**line_of(record), "round": None}), record.round)

    def finished(self, summary: Mapping[str, Any]) -> None:
        self.figures(_numbers({key: summary[key] for key in _FINAL}), None)
        self.close(failed=False)

    def failed(self, reason: str) -> None:
        self.close(failed=True)

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        """Keep figures of a round, counted from 1, or with None those of the whole run, at its end."""
        raise NotImplementedError

    def close(self, *, failed: bool) -> None:
        """End the record."""
        raise NotImplementedError


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


class _CsvTracker(_Tracker):
    """Appends lines ``round,figure,value`` to tracked.csv in the run directory; the run's own have no round.

    A run that is resumed goes on at the end of the file. Settings are not repeated: config.yaml has them.
    """

    def started(self, run: Started) -> None:
        directory = _directory(run, "csv")
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

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        place = "" if round_index is None else round_index
        self._writer.writerows([place, figure, value] for figure, value in values.items())
        self._file.flush()

    def close(self, *, failed: bool) -> None:
        self._file.close()


_DPREC = "dprec"
"""The experiment or project that runs belong to."""

_PARAMETERS_AT_ONCE = 100
"""MLflow refuses more in one request."""


class _MlflowTracker(_Tracker):
    """Keeps settings as parameters and figures as metrics, whose step is the round; a comparison is a tag.

    Those of the whole run begin with ``final.`` and have no step.
    """

    def started(self, run: Started) -> None:
        self._mlflow = required("mlflow")
        if not os.environ.get("MLFLOW_EXPERIMENT_NAME"):
            self._mlflow.set_experiment(_DPREC)
        tags = None if run.group is None else {"comparison": run.group}
        self._mlflow.start_run(run_name=run.name, tags=tags)
        pairs = list(run.settings.items())
        for start in range(0, len(pairs), _PARAMETERS_AT_ONCE):
            self._mlflow.log_params(dict(pairs[start : start + _PARAMETERS_AT_ONCE]))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        if round_index is None:
            self._mlflow.log_metrics({f"final.{figure}": value for figure, value in values.items()})
        else:
            self._mlflow.log_metrics(dict(values), step=round_index)

    def close(self, *, failed: bool) -> None:
        self._mlflow.end_run("FAILED" if failed else "FINISHED")


class _TensorboardTracker(_Tracker):
    """Writes figures as scalars, whose step is the round, and settings as a text."""

    def started(self, run: Started) -> None:
        folder = _directory(run, "tensorboard") / "tensorboard" / run.name
        self._writer = required("tensorboard").SummaryWriter(str(folder))
        settings = "\n".join(f"    {key}: {value}" for key, value in run.settings.items())
        self._writer.add_text("settings", settings)

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        of = ("final",) if round_index is None else ("rounds", round_index)
        for figure, value in values.items():
            self._writer.add_scalar(f"{of[0]}/{figure}", value, *of[1:])
        self._writer.flush()

    def close(self, *, failed: bool) -> None:
        self._writer.close()


class _WandbTracker(_Tracker):
    """Keeps settings as the run's configuration, rounds as its history, and figures as its summary."""

    def started(self, run: Started) -> None:
        wandb, project = required("wandb"), os.environ.get("WANDB_PROJECT", _DPREC)
        folder = str(_directory(run, "wandb"))
        self._run = wandb.init(project=project, name=run.name, group=run.group, dir=folder)
        self._run.config.update(dict(run.settings))

    def figures(self, values: Mapping[str, float], round_index: int | None) -> None:
        if round_index is None:
            self._run.summary.update(dict(values))
        else:
            self._run.log(dict(values), step=round_index)

    def close(self, *, failed: bool) -> None:
        self._run.finish(exit_code=int(failed))


TRACKERS: dict[str, type[Callback]] = {
    "csv": _CsvTracker,
    "mlflow": _MlflowTracker,
    "tensorboard": _TensorboardTracker,
    "wandb": _WandbTracker,
}
"""The trackers, by name."""


class Recording:
    """A run as its callbacks hear of it."""

    def __init__(self) -> None:
        self._hear: list[tuple[str, Callback]] = []
        self._last = 0

    def start(self, tracker: str | Callback, run: Started) -> None:
        """Tell a callback that the run begins; it hears of the run until that ends."""
        tracker_class = _class_of(tracker)
        name = tracker if isinstance(tracker, str) else reference_of(tracker_class)
        with _naming(name):
            callback = tracker_class() if isinstance(tracker, str) else tracker
            callback.started(run)
        self._hear.append((name, callback))

    def round(self, record: RoundRecord) -> None:
        """Pass on a round that has ended."""
        self._last = record.round
        for name, callback in self._hear:
            with _naming(name):
                callback.round(record)

    def finish(self, record: RunRecord) -> None:
        """Pass on the rounds that have not been, and the summary."""
        for round_record in record.rounds:
            if round_record.round > self._last:
                self.round(round_record)
        summary = record.summary.as_json()
        while self._hear:
            name, callback = self._hear.pop()
            with _naming(name):
                callback.finished(summary)

    def fail(self, error: BaseException) -> None:
        """Pass on why the run ends; what callbacks raise then is added as notes."""
        for name, callback in self._hear:
            try:
                callback.failed(one_line(error) if isinstance(error, Exception) else "interrupted")
            except Exception as another:  # whatever the package of somebody else raises
                error.add_note(f"tracker {name}: {with_kind(another)}")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # whatever the package of somebody else raises
        raise RunError(f"tracker {name}: {with_kind(error)}") from error


def check_trackers(track: Sequence[str | Callback]) -> None:
    """Refuse trackers that do not exist or are not installed, before a directory is claimed.

    Raises InputError.
    """
    for tracker in track:
        _class_of(tracker)


def _class_of(tracker: str | Callback) -> type[Callback]:
    if isinstance(tracker, Callback):
        return type(tracker)
    if tracker in PACKAGES:
        required(tracker)
    if tracker in TRACKERS:
        return TRACKERS[tracker]
    if not (isinstance(tracker, str) and ":" in tracker):
        accepted = (
            f"{listed(list(TRACKERS), str(tracker))}, module:Class of your own, or in Python a Callback"
        )
        raise InputError("track", repr(tracker), accepted)
    try:
        return imported(tracker, Callback)
    except SettingError as error:
        raise InputError("track", error.found, error.accepted) from None


@contextmanager
def recording(
    track: Sequence[str | Callback],
    config: RunConfig,
    directory: Path | None,
    *,
    name: str | None = None,
    group: str | None = None,
) -> Iterator[Recording]:
    """Tell callbacks of a run until its end, however it ends.

    ``track``: as `check_trackers` takes it; ``name``: of the run, by default that of its configuration;
    ``group``: of the comparison that it is of.
    Raises InputError when a tracker needs a directory. Raises RunError when a callback fails.
    """
    values, record = flatten(config.plain_values()), Recording()
    plain = {key: value if isinstance(value, Scalar) else str(value) for key, value in values.items()}
    run = Started(name or config.name, plain, directory, group)
    try:
        for place, tracker in enumerate(track):
            if tracker not in track[:place]:
                record.start(tracker, run)
        yield record
    except BaseException as error:
        record.fail(error)
        raise


def _directory(run: Started, name: str) -> Path:
    if run.directory is None:
        raise InputError("track", f"{name}, but no directory", "a directory for the run, which its node sees")
    return run.directory


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers among nested values, by dotted key."""
    return {
        key: value
        for key, value in flatten(dict(values)).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
