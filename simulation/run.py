"""The verb "run": one configuration, from its file to its run directory and page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dprec.errors import interrupts_noted, within
from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulation.configuration.loading import GivenParts
    from simulation.configuration.models import RunConfig
    from simulation.result import RunResult
    from simulation.storage.run_files import RunRecord


def run(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    population: float | None = None,
    page: bool = True,
    track: Sequence[str] = (),
    progress: Progress = silent,
    **parts: Unpack[GivenParts],
) -> RunResult:
    """Run a configuration.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A configuration, its values, its file, or the name of a preset.
    output : str or Path, optional
        Directory for the result; by default nothing is written.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    resume : bool
        Continue an interrupted run of the same configuration, or return the result of a finished one.
    population : float, optional
        Number of users in a deployment; the page projects their traffic.
    page : bool
        Whether to draw the page and its figures, which `report` can do later.
    track : sequence of str
        Trackers that are given the rounds as they come: csv, mlflow, tensorboard, wandb.
    **parts
        Ratings that you hold, or other parts to replace; see `simulation.configuration.loading.GivenParts`.

    Raises
    ------
    InputError, RunError, KeyboardInterrupt
        When the input or the directory cannot be used; when the run failed; with a note on how to go on.
    """
    from simulation.analysis.populations import check_population
    from simulation.configuration.loading import checked_parts, load
    from simulation.result import RunResult

    check_population(population)
    loaded = load(config, overrides, checked_parts(parts, "protocol.privacy.epsilon"))
    record = _record(loaded, output, resume, progress, track)
    if output is not None and page:
        _draw(Path(output), population, progress)
    return RunResult(record)


def _draw(directory: Path, population: float | None, progress: Progress) -> None:
    from simulation.pages import report

    with interrupts_noted(lambda: _how_to_go_on(directory)):
        report(directory, population, progress)


def _record(
    config: RunConfig, output: str | Path | None, resume: bool, progress: Progress, track: Sequence[str]
) -> RunRecord:
    """Return the record of a run: the one that the directory already holds, or a new one."""
    from simulation.execution import load_ratings, run_prepared
    from simulation.storage.run_directory import RunDirectory
    from simulation.tracking.recording import check_trackers, recording

    started = time.perf_counter()
    check_trackers(track)
    progress("loading the ratings", 0, 0)
    train, test = load_ratings(config)
    with within("protocol"):
        config.protocol.check(train)
    directory = RunDirectory.claim(output, config, resume=resume) if output is not None else None
    if directory is not None and directory.finished:
        return directory.read(config, train, test)
    place = None if directory is None else directory.path
    with interrupts_noted(lambda: _how_to_go_on(place)), recording(track, config, place) as recorded:
        record = run_prepared(
            config, train, test, directory, progress=progress, started=started, ended=recorded.round
        )
        recorded.finish(record)
    return record


def _how_to_go_on(directory: Path | None) -> str:
    """Say what a run's directory holds, and how to go on; nothing without one."""
    from simulation.storage.directories import SUMMARY
    from simulation.storage.run_directory import CHECKPOINT

    if directory is None:
        return ""
    if (directory / SUMMARY).exists():
        return f"{directory} holds the result; --resume -o {directory} draws its page"
    if (directory / CHECKPOINT).exists():
        return f"{directory} holds the rounds that are finished; --resume -o {directory} goes on"
    return f"nothing is finished; --resume -o {directory} begins again"
