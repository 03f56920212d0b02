"""Tunes configurations: which settings trials may choose, what is tried next, and what each has shown.

Optuna chooses (Akiba et al. [akiba2019]): the first trial has the configured settings, nine follow at random,
and a tree-structured Parzen estimator chooses the others. The same seed and figures give the same trials, so
that an interrupted study is continued by telling a new one what the old one has seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from pydantic import Field

from dprec import formats
from dprec.binarization import is_binary
from dprec.components import is_ours
from dprec.errors import InputError, RunError, within
from dprec.exchange import is_integer
from dprec.progress import Progress, silent
from dprec.ratings import Ratings
from dprec.splits import Holdout, RandomSplit, validation_split
from simulation.analysis.vocabulary import Metric, metrics_in
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import dump_yaml
from simulation.execution import load_ratings, run_prepared
from simulation.storage.directories import TUNING, alone, claim
from simulation.storage.files import Document, Stamped, csv_of_rows, parse_document, read_text, write_files
from simulation.tuning.space import Scalar, Space, as_written, current, derived_space, read_space

TRIALS, TABLE_OF_TRIALS = "trials.json", "trials.csv"


class Judgement(Document):
    """What a trial has shown."""

    value: float | None = Field(description="Accuracy on the validation ratings; None if it could not run.")
    reason: str = Field(default="", description="Why it could not be run; empty otherwise.")
    epsilon_per_rating: float | None = Field(default=None, description="Largest proved loss of a rating.")
    epsilon_per_user: float | None = Field(default=None, description="Largest proved loss of a user.")


class Trial(Document):
    """One trial."""

    settings: dict[str, Scalar] = Field(description="Settings by dotted key.")
    judgement: Judgement


class _StoredTrials(Stamped):
    trials: dict[str, tuple[Trial, ...]] = Field(description="Those of every configuration, by its name.")


def read_trials(directory: Path) -> dict[str, tuple[Trial, ...]]:
    """Return the trials that were carried out, by configuration; raises InputError for a damaged file."""
    path = directory / TRIALS
    return parse_document(_StoredTrials, read_text(path), str(path)).trials if path.is_file() else {}


def _write_trials(directory: Path, trials: Mapping[str, Sequence[Trial]]) -> None:
    """Write all trials, as JSON and as a table."""
    stored = _StoredTrials(trials={name: tuple(done) for name, done in trials.items()})
    contents = {**formats.STAMP, **stored.model_dump(mode="json", exclude_unset=True)}
    rows = [
        {"name": name, "trial": place, **trial.judgement.model_dump(), **trial.settings}
        for name, done in trials.items()
        for place, trial in enumerate(done)
    ]
    text = json.dumps(contents, indent=2) + "\n"
    write_files(directory, {TRIALS: text, TABLE_OF_TRIALS: csv_of_rows(rows)})


_SHARE = 0.1
"""Share of the training ratings that are held back where the split chooses nothing at random."""


def validation_parts(config: RunConfig, seed: int) -> tuple[Ratings, Ratings]:
    """Return the training ratings that trials learn from, and those that judge them.

    A validation part that comes with the data judges. Otherwise the configuration's split is applied once
    more, to its training ratings; of a predefined split, a random tenth of these is held back. The test
    ratings are left out of both.
    """
    if (validation := validation_split(config.dataset, config.split)) is not None:
        return load_ratings(config.model_copy(update={"split": validation}))
    train, _ = load_ratings(config)
    again = config.split if isinstance(config.split, RandomSplit) else Holdout(test_fraction=_SHARE)
    judging = np.zeros(train.count, dtype=np.bool_)
    with within("split"):
        judging[again.test_rows(train, seed)] = True
    return train.select(~judging), train.select(judging)


@dataclass(frozen=True)
class Tuned:
    """What the trials of one configuration have shown."""

    config: RunConfig
    """As it was given."""
    metric: Metric
    trials: tuple[Trial, ...]
    start: Trial | None
    """The one with the settings as they were; None where the space lacks these."""
    best: Trial | None
    """None if no trial could be run."""
    path: Path | None
    """The configuration with the best settings; None without one."""

    @property
    def failed(self) -> int:
        """Number of trials that did not end."""
        return sum(trial.judgement.value is None for trial in self.trials)

    @property
    def spent(self) -> tuple[float | None, float | None]:
        """What the losses of the trials that ran add up to, per rating and per user; None without a bound."""
        runs = [trial.judgement for trial in self.trials if trial.judgement.value is not None]
        losses = [run.epsilon_per_rating for run in runs], [run.epsilon_per_user for run in runs]
        per_rating, per_user = (
            None if None in run_losses else sum(loss or 0.0 for loss in run_losses) for run_losses in losses
        )
        return per_rating, per_user

    @property
    def privacy_note(self) -> str:
        """What the trials cost in privacy, in words."""
        name, failed = self.config.name, self.failed
        if is_ours(type(self.config.dataset)) and "synthetic" in self.config.dataset.kind:
            return f"{name}: its trials ran on synthetic ratings, which cost no privacy."
        per_rating, per_user = ("unbounded" if loss is None else f"{loss:.6g}" for loss in self.spent)
        without = (
            f", without {failed} that did not end, some of which may have spent as much" if failed else ""
        )
        return (
            f"{name}: every trial spends its budget on the training ratings again. Together, its "
            f"{len(self.trials) - failed} trials spend ε = {per_rating} per rating and at most {per_user} "
            f"per user{without}, beside any later run, and the validation ratings are read in clear to judge "
            "them. Trials on public or synthetic ratings (--set dataset=...) cost nothing."
        )


def tune_configurations(
    configs: Sequence[RunConfig],
    output: str | Path,
    trials: int,
    *,
    space: str | Path | None = None,
    metric: str | None = None,
    seed: int = 0,
    resume: bool = False,
    progress: Progress = silent,
) -> list[Tuned]:
    """Carry out the trials; see `dprec.tune`."""
    if find_spec("optuna") is None:
        raise InputError("tune", "Optuna is not installed", "pip install 'dprec[tune]'")
    for name, value, least in (("trials", trials, 1), ("seed", seed, 0)):
        if not is_integer(value) or value < least:
            raise InputError(name, repr(value), f"at least {least}, an integer")
    by_name = {config.name: config for config in configs}
    if not configs or len(by_name) < len(configs):
        found = "configurations of the same name" if configs else "no configurations"
        raise InputError("tune", found, "at least one, each with a name of its own")
    if "tuning" in by_name:
        raise InputError("name", repr("tuning"), f"another name, as {TUNING} is what was asked for")
    if space is None:
        spaces = {name: derived_space(config) for name, config in by_name.items()}
    else:
        spaces = read_space(Path(space), by_name)
    # What decides every trial; how many there are does not.
    request = {
        **({} if metric is None else {"metric": metric}),
        "seed": seed,
        "space": {name: as_written(dimensions) for name, dimensions in spaces.items()},
        "configurations": {name: config.written_values() for name, config in by_name.items()},
    }
    others = (TRIALS, TABLE_OF_TRIALS, *(f"{name}.yaml" for name in by_name))
    with alone(output):
        folder = claim(output, TUNING, dump_yaml(request), resume=resume, others=others)
        stored, tuned = read_trials(folder), list[Tuned]()
        for place, (name, config) in enumerate(by_name.items()):
            study = _Study(config, spaces[name], metric, seed)
            earlier, done = iter(stored.get(name, ())), list[Trial]()
            for _ in range(trials):
                done.append(study.trial(next(earlier, None), folder))
                stored[name] = tuple(done)
                _write_trials(folder, stored)
                progress("tuning", place * trials + len(done), trials * len(by_name))
            tuned.append(study.tuned(done, folder))
        return tuned


class _Study:
    """The trials of one configuration, one after the other; the first has the settings as they are."""

    def __init__(self, config: RunConfig, space: Space, metric: str | None, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._config, self._space = config, space
        self._fit, self._judging = validation_parts(config, seed)
        wanted = metric or ("sign_accuracy" if is_binary(self._judging.scale) else "rmse")
        metrics = [
            named_metric for named_metric in metrics_in([wanted]) if named_metric.column != "relative_error"
        ]
        if not metrics:
            accepted = "a column of comparison.csv, such as rmse or ranking_ndcg_at_10"
            raise InputError("metric", repr(wanted), accepted)
        self._metric, self._start = metrics[0], current(config, space)
        self._study = optuna.create_study(
            direction="minimize" if self._metric.lower_is_better else "maximize",
            sampler=optuna.samplers.TPESampler(seed=seed % 2**32),
        )
        self._study.enqueue_trial(self._start)

    def trial(self, stored: Trial | None, folder: Path) -> Trial:
        """Carry out the next trial, or take it from where it was stored in a directory."""
        from optuna.trial import TrialState

        proposal = self._study.ask(self._space)
        settings = dict(proposal.params)
        if stored is not None and settings != stored.settings:
            accepted = "trials of the same version of Optuna, or a new directory"
            raise InputError(str(folder / TRIALS), "other settings than would be tried", accepted)
        trial = stored or Trial(settings=settings, judgement=self._judged(settings))
        value = trial.judgement.value
        self._study.tell(proposal, value, state=TrialState.FAIL if value is None else None)
        return trial

    def _judged(self, settings: Mapping[str, Scalar]) -> Judgement:
        """Run the configuration with some settings, and judge it."""
        overrides = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
        try:
            trial = load(self._config, [*overrides, "simulation.backend=local"])
            summary = run_prepared(trial, self._fit, self._judging, None).summary
        except (InputError, RunError) as error:
            return Judgement(value=None, reason=str(error))
        measured, column = summary.accuracy.metrics(), self._metric.column
        if measured.get(column) is None:
            accepted = ", ".join(metric.column for metric in metrics_in(measured))
            raise InputError("metric", f"{column}, which {self._config.name} does not have", accepted)
        losses = summary.privacy.epsilon_per_rating, summary.privacy.epsilon_per_user.max
        return Judgement(value=measured[column], epsilon_per_rating=losses[0], epsilon_per_user=losses[1])

    def tuned(self, trials: Sequence[Trial], folder: Path) -> Tuned:
        """Return what trials have shown, and write the configuration with the best of their settings."""
        config, metric = self._config, self._metric
        judged = [trial for trial in trials if trial.judgement.value is not None]
        choose = min if metric.lower_is_better else max
        best = choose(judged, key=lambda trial: trial.judgement.value or 0.0, default=None)
        path = None if best is None else folder / f"{config.name}.yaml"
        if best is not None:
            chosen = load(config, [f"{key}={json.dumps(value)}" for key, value in best.settings.items()])
            comment = (
                f"# {config.name} with the best of {len(trials)} trials: {metric.label} "
                f"{best.judgement.value:.6g} on validation ratings.\n"
            )
            write_files(folder, {f"{config.name}.yaml": comment + chosen.to_yaml()})
        start = trials[0] if trials[0].settings == self._start else None
        return Tuned(config, metric, tuple(trials), start, best, path)
