"""The verb "run": one configuration, from its file to its run directory and page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dprec.progress import Progress, silent
from simulation.analysis.projection import check_population
from simulation.configuration.models import RunConfig, full_keys, load_config, parse_config
from simulation.execution import load_ratings, run_prepared
from simulation.result import RunResult
from simulation.storage.run_directory import RunDirectory


def run(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    population: float | None = None,
    progress: Progress = silent,
) -> RunResult:
    """Run a configuration.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A configuration, or the path of its file.
    output : str or Path, optional
        Directory to keep the run in; nothing is written by default.
    overrides : sequence of str
        ``dotted.key=value`` replacements, for a path.
    resume : bool
        Go on with what the same configuration began in the output directory; a result that is
        there already is returned as it is.
    population : float, optional
        Users of a deployment whose traffic the run's report projects.
    progress : callable, optional

    Returns
    -------
    RunResult

    Raises
    ------
    InputError
        When configuration, data or output cannot be used.
    RunError
        When the run could not be completed.
    """
    check_population(population)
    if isinstance(config, str | Path):
        config = load_config(config, overrides)
    elif not isinstance(config, RunConfig):
        config = parse_config(config)
    started = time.perf_counter()
    train, test = load_ratings(config)
    with full_keys(config):
        config.protocol.check(train)
    directory = RunDirectory.claim(output, config, resume=resume) if output is not None else None
    if directory is not None and directory.finished:
        record = directory.read(config, train, test)
    else:
        record = run_prepared(config, train, test, directory, progress=progress, started=started)
    if directory is not None:
        from simulation.pages import report  # matplotlib is loaded only where something is drawn

        report(directory.path, population)
    return RunResult(**vars(record))
