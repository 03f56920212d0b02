"""The verbs as Python functions: run, compare, attack, ls, diff, export, tune, audit, plot.

Each imports what it needs when it is called, so that starting is cheap.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Unpack
from weakref import finalize

from dprec.errors import InputError, interrupts_noted, within
from dprec.progress import Progress, silent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from dprec.channel import Channel
    from dprec.reports import DeviceChannel
    from simulation.auditing import Audit
    from simulation.comparison.differences import Difference
    from simulation.comparison.planning import Comparison
    from simulation.comparison.running import ComparisonResult
    from simulation.configuration.loading import GivenParts
    from simulation.configuration.models import RunConfig
    from simulation.listing import Found
    from simulation.result import RunResult
    from simulation.storage.run_files import RunRecord
    from simulation.tracking import Callback
    from simulation.tuning.running import Tuned


def run(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    users_a_day: float | None = None,
    page: bool = True,
    png: bool = False,
    track: Sequence[str | Callback] = (),
    save_split: str | Path | None = None,
    progress: Progress = silent,
    **parts: Unpack[GivenParts],
) -> RunResult:
    """Run a configuration: an object, its values, its file, or the name of a preset.

    Parameters
    ----------
    output, save_split : str or Path, optional
        Folders for the result, and for train and test ratings to read again; by default, none is written.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    track : sequence of str or Callback
        Who is told as it goes on: csv, mlflow, tensorboard, wandb, ``module:Class``, or an instance.
    resume : bool
        Continue an interrupted run of the same configuration, or return the result of a finished one.
    users_a_day : float, optional
        Number of users in a deployment; the page projects their traffic.
    page, png : bool
        Whether to draw the page and its figures, which `report` can do later; and these as PNG too.
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

    _check_output(output)
    check_population(users_a_day)
    loaded = load(config, overrides, checked_parts(parts, "protocol.privacy.epsilon", overrides))
    record = _record(loaded, output, resume, progress, track, save_split)
    if output is not None and page:
        with interrupts_noted(lambda: _how_to_go_on(Path(output))):
            _draw(Path(output), users_a_day, progress, png=png)
    return RunResult(record, loaded)


def _check_output(output: object, *, resumed: bool = False) -> None:
    """Refuse what names no folder, and no folder of what is resumed, before anything is computed."""
    if output is None and resumed:
        raise InputError("resume", "no directory", "output=DIR, the one that was interrupted")
    if not isinstance(output, str | Path | None):
        raise InputError("output", f"a value of type {type(output).__name__}", "a folder, or none")


def _record(
    config: RunConfig,
    output: str | Path | None,
    resume: bool,
    progress: Progress,
    track: Sequence[str | Callback],
    save_split: str | Path | None,
) -> RunRecord:
    """Return the record of a run: the one that the directory already holds, or a new one."""
    from dprec.protocols.base import check_suits
    from simulation.engine.choosing import chosen
    from simulation.engine.ray_cluster import check_way_to_ray
    from simulation.evaluation import Evaluator
    from simulation.execution import load_ratings, prepared_ratings, run_prepared
    from simulation.storage import saved_split
    from simulation.storage.directories import alone
    from simulation.storage.run_directory import RunDirectory
    from simulation.tracking.trackers import check_trackers, recording

    started = time.perf_counter()
    check_trackers(track)
    progress("loading the ratings", 0, 0)
    divided = None
    if save_split is not None:
        if config.schedule is not None:
            raise InputError("save_split", "a schedule, which divides the ratings by time", "none")
        divided = partial(saved_split.save_split, config.with_absolute_paths().dataset, save_split)
    train, test = load_ratings(config, partial(prepared_ratings, divided=divided))
    with within("protocol"):
        check_suits(config.protocol, train, test)
    if save_split is not None:
        sample = Evaluator(train, test, config.evaluation, None).lines_of_sample()
        if sample is not None:
            saved_split.save_negatives(save_split, sample)
    if chosen(config.simulation, train.n_users).backend == "ray":
        check_way_to_ray()
    with alone(output):
        directory = RunDirectory.claim(output, config, resume=resume) if output is not None else None
        if directory is not None and directory.finished:
            return directory.read(train, test)
        place = None if directory is None else directory.path
        with interrupts_noted(lambda: _how_to_go_on(place)), recording(track, config, place) as recorded:
            prepared = partial(run_prepared, config, train, test, directory, checked=True)
            record = prepared(progress=progress, started=started, ended=recorded.round)
            recorded.finish(record)
        return record


def _how_to_go_on(directory: Path | None) -> str:
    """Say what a run's directory holds, and how to go on; nothing without one."""
    from simulation.storage.directories import SUMMARY
    from simulation.storage.run_directory import CHECKPOINT

    if directory is None:
        return ""
    again = f"the same command with --resume -o {directory}"
    if (directory / SUMMARY).exists():
        return f"{directory} holds the result; {again} draws its page"
    if (directory / CHECKPOINT).exists():
        return f"{directory} holds the rounds that are finished; {again} goes on"
    return f"nothing is finished; {again} begins again"


def compare(
    config: str | Path | Mapping[str, Any],
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    users_a_day: float | None = None,
    page: bool = True,
    png: bool = False,
    track: Sequence[str | Callback] = (),
    progress: Progress = silent,
    **parts: Unpack[GivenParts],
) -> ComparisonResult:
    """Run the unfinished cells of a comparison, and write its table and page.

    Parameters
    ----------
    config : str, Path or mapping
        A comparison's file, its values, the name of a preset; or a file of ratings to compare all systems on.
    output : str or Path, optional
        The comparison's directory; by default a temporary one, without a page, as long as the result lives.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    jobs : int, optional
        Number of cells to run at a time; one per core by default.
    resume, users_a_day, page, png, track, progress
        As for `dprec.run`; finished cells are kept, and told to nobody again. Each has a copy of a callback.
    **parts
        Ratings that you hold, or other parts to replace; see `simulation.configuration.loading.GivenParts`.

    Raises
    ------
    InputError, KeyboardInterrupt
        Before any cell runs, when the input or the directory cannot be used; with what is finished on disk.
    """
    from simulation.analysis.populations import check_population
    from simulation.comparison.planning import load_comparison
    from simulation.configuration.loading import checked_parts

    _check_output(output, resumed=resume)
    check_population(users_a_day)
    comparison = load_comparison(config, overrides, checked_parts(parts, "epsilons", overrides))
    page = page and output is not None
    result = _compared(comparison, output, jobs, resume, progress, page, track)
    if result.rows and page:
        with interrupts_noted(lambda: result.how_far):
            _draw(result.directory, users_a_day, progress, png=png, runs=True)
    return result


def _compared(
    comparison: Comparison,
    output: str | Path | None,
    jobs: int | None,
    resume: bool,
    progress: Progress,
    page: bool,
    track: Sequence[str | Callback] = (),
) -> ComparisonResult:
    """Run a comparison; without a directory, in a temporary one that lives as long as the result."""
    from simulation.comparison.running import run_comparison

    folder, tabulated = Path(mkdtemp(prefix="dprec-") if output is None else output), _draw if page else None
    try:
        result = run_comparison(
            comparison, folder, jobs=jobs, resume=resume, progress=progress, tabulated=tabulated, track=track
        )
    except Exception as error:
        # What names the directory as the place to go on from, such as an interrupt, leaves it.
        if output is None and not hasattr(error, "__notes__"):
            rmtree(folder, ignore_errors=True)
        raise
    if output is None:
        finalize(result, rmtree, folder, ignore_errors=True)
    return result


def _draw(
    directory: Path,
    users_a_day: float | None = None,
    progress: Progress = silent,
    *,
    png: bool = False,
    runs: bool = False,
) -> None:
    """Draw the page of a run or a comparison; of a comparison, those of its runs too if asked."""
    from simulation.pages import report, report_runs

    if runs:
        report_runs(directory, progress, png=png)
    report(directory, users_a_day, progress, png=png)


def attack(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    kinds: Sequence[str] = (),
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    resume: bool = False,
    page: bool = True,
    progress: Progress = silent,
    **parts: Unpack[GivenParts],
) -> RunResult | ComparisonResult:
    """Run a configuration, or a comparison, and attack it: what is recovered, and what malicious users move.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        As `dprec.run` or `dprec.compare` takes it.
    output : str or Path, optional
        Directory for the result.
    kinds : sequence of str
        Attacks, with their defaults; left out, those of the configuration, or all if it has none.
    overrides, jobs, resume, page, progress, **parts
        As for `dprec.compare`.

    Raises
    ------
    InputError, RunError, KeyboardInterrupt
        As `dprec.run` and `dprec.compare` do.
    """
    from simulation.attacking import asking_for
    from simulation.comparison.planning import compares, load_comparison
    from simulation.configuration.loading import checked_parts, load

    override = asking_for(kinds)
    shared: dict[str, Any] = {"resume": resume, "page": page, "progress": progress}
    if compares(config):
        checked = checked_parts(parts, "epsilons", overrides)
        cells = () if kinds else load_comparison(config, overrides, checked).cells
        if not any(cell.config.attacks for cell in cells):
            overrides = [*overrides, override]
        return compare(config, output, jobs=jobs, overrides=overrides, **shared, **parts)
    loaded = load(config, overrides, checked_parts(parts, "protocol.privacy.epsilon", overrides))
    if kinds or not loaded.attacks:
        loaded = load(loaded, [override])
    return run(loaded, output, **shared)


def ls(folder: str | Path = ".") -> list[Found]:
    """List the runs, comparisons, audits and tunings in a folder, those that were changed last first.

    Parameters
    ----------
    folder : str or Path
        A folder of results, up to three levels deep, or a result itself. Links to folders are not followed.

    Raises
    ------
    InputError
        When there is no such folder. A result that is damaged is listed as such.
    """
    from simulation.listing import results_in

    return results_in(folder)


def diff(first: str | Path, second: str | Path) -> Difference:
    """Return the settings and the figures in which two runs, or two comparisons, differ.

    Parameters
    ----------
    first, second : str or Path
        Their directories.

    Returns
    -------
    Difference
        Of two runs on the same test ratings, also by how much the second predicts better than the first, with
        95 % intervals over users.

    Raises
    ------
    InputError
        When a directory is not that of a finished run or comparison, is damaged, or holds another kind.
    """
    from simulation.comparison.differences import differences

    return differences(Path(first), Path(second))


def export(directory: str | Path, format: str, output: str | Path | None = None) -> list[Path]:
    """Write a run or a comparison as other programs read it.

    Parameters
    ----------
    directory : str or Path
        Of a finished run, or of a comparison.
    format : {"trec", "csv", "parquet", "latex", "bibtex"}
        Of a run: its lists and test ratings as trec_eval and ranx read them (with `evaluation.lists`), all
        tables as CSV or Parquet, or the papers of its parts. Of a comparison: its table as CSV or Parquet,
        the main figures in LaTeX, or the papers of all that is compared.
    output : str or Path, optional
        The folder to write to; by default `export` in the directory.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    InputError
        When the directory holds no such result, or not what the format needs; when a file is damaged, or
        cannot be written, or one is there that was not exported.
    """
    from simulation.exporting.exporting import export as export_result

    return export_result(Path(directory), format, None if output is None else Path(output))


def tune(
    configs: Sequence[RunConfig | Mapping[str, Any] | str | Path],
    output: str | Path,
    trials: int,
    *,
    overrides: Sequence[str] = (),
    space: str | Path | None = None,
    metric: str | None = None,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = silent,
) -> list[Tuned]:
    """Choose settings of configurations, each by the same number of trials; the test ratings are not used.

    Parameters
    ----------
    configs : sequence of RunConfig, mapping, str or Path
        Configurations of runs, as `dprec.load` takes them, with different names.
    output : str or Path
        Directory for the trials and for the configurations with the chosen settings.
    trials : int
        Trials of each configuration; the first has the settings as they are, where the space has them.
    overrides : sequence of str
        ``dotted.key=value`` replacements in all of them.
    space : str or Path, optional
        YAML file of what may be chosen; by default, ranges around the numbers of the components.
    metric : str, optional
        Column of comparison.csv to choose by; by default RMSE, or the sign accuracy.
    seed : int
        Of the choice, and of the validation part.
    resume : bool
        Continue an interrupted tuning, or one with fewer trials.

    Raises
    ------
    InputError
        When something that is asked for cannot be used, or Optuna is not installed.
    KeyboardInterrupt
        When interrupted; its note says how to go on.
    """
    from simulation.configuration.loading import load
    from simulation.storage.directories import TUNING
    from simulation.tuning.running import tune_configurations

    loaded = [load(config, overrides) for config in configs]
    held = f"{output} holds the trials that are finished; the same command with --resume -o {output} goes on"
    with interrupts_noted(lambda: held if (Path(output) / TUNING).exists() else ""):
        return tune_configurations(
            loaded, output, trials, space=space, metric=metric, seed=seed, resume=resume, progress=progress
        )


def audit(
    config: RunConfig | Mapping[str, Any] | str | Path,
    output: str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    trials: int = 100_000,
    seed: int | None = None,
    confidence: float = 0.99,
    progress: Progress = silent,
) -> Audit:
    """Audit the promise of a configuration's protocol.

    Parameters
    ----------
    config : RunConfig, mapping, str or Path
        A configuration, the values of one, the path of its file, or the name of a preset. Its data set
        determines the rating scale; the profiles are as small as possible.
    output : str or Path, optional
        Directory for config.yaml, audit.json and report.html.
    overrides : sequence of str
        ``dotted.key=value`` replacements.
    trials : int
        Number of people per profile, at least 100.
    seed : int, optional
        Seed of the audit's runs; by default, that of the configuration.
    confidence : float
        Probability with which all lower bounds hold together; a promise that is kept fails by chance with
        at most the remaining probability.

    Raises
    ------
    InputError
        When the protocol's devices promise nothing, or an argument is out of range.
    """
    from simulation import auditing
    from simulation.configuration.loading import load

    loaded = load(config, overrides)
    return auditing.audit(loaded, output, trials=trials, seed=seed, confidence=confidence, progress=progress)


def plot(what: Channel | DeviceChannel | RunResult | ComparisonResult) -> Figure:
    """Draw a channel, or the result of a run or of a comparison.

    Parameters
    ----------
    what : Channel, DeviceChannel, RunResult or ComparisonResult
        Of a channel, what it sends for every true rating is drawn, and the mean of that. The mathematics
        itself draws nothing, so a channel has no method for it.

    Returns
    -------
    matplotlib.figure.Figure
        Independent of pyplot; a notebook shows it, and `savefig` writes it.

    Raises
    ------
    InputError
        When it is nothing that has a figure.
    """
    from dprec.channel import Channel
    from dprec.reports import DeviceChannel
    from simulation.comparison.running import ComparisonResult
    from simulation.pages import plot_channel
    from simulation.result import RunResult

    if isinstance(what, RunResult | ComparisonResult):
        return what.plot()
    if isinstance(what, Channel | DeviceChannel):
        return plot_channel(what)
    accepted = "a channel, or the result of run or compare; simulation.pages.report(DIR) draws a directory"
    raise InputError("plot", f"a value of type {type(what).__name__}", accepted)
