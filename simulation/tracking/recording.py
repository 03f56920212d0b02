"""Passes what a run produces to its trackers: the settings, the rounds as they come, and the figures."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dprec.errors import InputError, RunError, listed
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten
from simulation.storage.run_files import RunRecord, line_of
from simulation.tracking.trackers import PACKAGES, TRACKERS, Scalar, Tracker, required
from strategies.participation import RoundRecord

_FINAL = ("accuracy", "privacy", "traffic", "time", "peak_memory_mb")
"""Parts of summary.json whose numbers are a run's figures."""


class Recording:
    """A run as its trackers see it.

    Parameters
    ----------
    trackers : mapping from str to Tracker
        By their names.
    """

    def __init__(self, trackers: Mapping[str, Tracker]) -> None:
        self._trackers = trackers
        self._last = 0

    def begin(self, config: RunConfig) -> None:
        """Pass on the settings."""
        values = flatten(config.plain_values())
        plain = {key: value if isinstance(value, Scalar) else str(value) for key, value in values.items()}
        self._each(lambda tracker: tracker.settings(plain))

    def round(self, record: RoundRecord) -> None:
        """Pass on a round that has ended."""
        self._last = record.round
        line = line_of(record)
        figures = _numbers({key: value for key, value in line.items() if key != "round"})
        self._each(lambda tracker: tracker.figures(figures, record.round))

    def finish(self, record: RunRecord) -> None:
        """Pass on the rounds that have not been, and the figures of the run."""
        for one in record.rounds:
            if one.round > self._last:
                self.round(one)
        summary = record.summary.as_json()
        figures = _numbers({key: summary[key] for key in _FINAL})
        self._each(lambda tracker: tracker.figures(figures, None))

    def close(self, failure: str | None) -> None:
        """End the records."""
        self._each(lambda tracker: tracker.close(failure))

    def _each(self, call: Callable[[Tracker], None]) -> None:
        for name, tracker in self._trackers.items():
            with _reported(name):
                call(tracker)


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that do not exist or are not installed, before a directory is claimed.

    Raises
    ------
    InputError
    """
    for name in names:
        if name not in TRACKERS:
            raise InputError("track", repr(name), listed(list(TRACKERS), name))
        if name in PACKAGES:
            required(name)


@contextmanager
def recording(names: Sequence[str], config: RunConfig, directory: Path | None) -> Iterator[Recording]:
    """Open trackers for a run and close them at its end, however it ends.

    Parameters
    ----------
    names : sequence of str
        Keys of `TRACKERS`.
    directory : Path or None
        The run directory.

    Raises
    ------
    InputError
        When a tracker is not installed, or there is no directory.
    RunError
        When a tracker fails.
    """
    if not names:
        yield Recording({})
        return
    if directory is None:
        raise InputError("track", f"{names[0]}, but no directory", "a directory for the run")
    trackers: dict[str, Tracker] = {}
    for name in dict.fromkeys(names):
        with _reported(name):
            trackers[name] = TRACKERS[name](config.name, directory)
    record, failure = Recording(trackers), "interrupted"
    try:
        record.begin(config)
        yield record
        failure = ""
    except Exception as error:
        failure = str(error) or type(error).__name__
        raise
    finally:
        record.close(failure or None)


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """Say which tracker failed."""
    try:
        yield
    except (InputError, RunError):
        raise
    except Exception as error:
        raise RunError(f"tracker {name}: {type(error).__name__}: {error}") from error


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers among nested values, by dotted key."""
    return {
        key: value
        for key, value in flatten(dict(values)).items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
