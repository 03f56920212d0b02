"""Tunes configurations: as many trials for each, judged on a validation part of the training ratings."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dprec.binarization import is_binary
from dprec.components import is_ours
from dprec.errors import InputError, RunError, within
from dprec.exchange import is_integer
from dprec.progress import Progress, silent
from dprec.ratings import Ratings
from dprec.splits import Holdout, RandomSplit
from simulation.analysis.vocabulary import Metric, metrics_in
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import dump_yaml
from simulation.execution import load_ratings, run_prepared
from simulation.tuning.space import Scalar, Space, applicable, current, derived_space, read_space
from simulation.tuning.trials import (
    Judgement,
    Study,
    Trial,
    TuningDirectory,
    best_trial,
    check_installed,
    check_replayed,
)

_SHARE = 0.1
"""Share of the training ratings that are held back where the split chooses nothing at random."""


def validation_parts(config: RunConfig, seed: int) -> tuple[Ratings, Ratings]:
    """Return the training ratings that trials learn from, and those that judge them.

    The configuration's split is applied once more, to its training ratings; of a predefined split, a random
    tenth of these is held back. The test ratings are left out of both.
    """
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
        return _sum([run.epsilon_per_rating for run in runs]), _sum([run.epsilon_per_user for run in runs])

    @property
    def privacy_note(self) -> str:
        """What the trials cost in privacy, in words."""
        name = self.config.name
        if is_ours(type(self.config.dataset)) and "synthetic" in self.config.dataset.kind:
            return f"{name}: its trials ran on synthetic ratings, which cost no privacy."
        per_rating, per_user = ("unbounded" if loss is None else f"{loss:.6g}" for loss in self.spent)
        failed = self.failed
        rest = f", without {failed} that did not end, some of which may have spent as much" if failed else ""
        return (
            f"{name}: every trial spends its budget on the training ratings again. Together, its "
            f"{len(self.trials) - failed} trials spend ε = {per_rating} per rating and at most {per_user} "
            f"per user{rest}, beside any later run, and the validation ratings are read in clear to judge "
            "them. Trials on public or synthetic ratings (--set dataset=...) cost nothing."
        )


@dataclass(frozen=True)
class Tuning:
    """What is asked for; see `simulation.tune`."""

    trials: int
    space: str | Path | None
    metric: str | None
    seed: int

    def check(self) -> None:
        """Refuse what is no number of trials, or no seed."""
        for name, value, least in (("trials", self.trials, 1), ("seed", self.seed, 0)):
            if not is_integer(value) or value < least:
                raise InputError(name, repr(value), f"at least {least}, an integer")

    def spaces(self, configs: Mapping[str, RunConfig]) -> dict[str, Space]:
        """Return the space of every configuration, by name."""
        if self.space is None:
            return {name: derived_space(config) for name, config in configs.items()}
        return applicable(read_space(Path(self.space)), configs, str(self.space))


def tune_configurations(
    configs: Sequence[RunConfig],
    output: str | Path,
    tuning: Tuning,
    *,
    resume: bool = False,
    progress: Progress = silent,
) -> list[Tuned]:
    """Carry out the trials; see `simulation.tune`."""
    check_installed()
    tuning.check()
    if not configs:
        raise InputError("tune", "no configurations", "at least one")
    by_name = {config.name: config for config in configs}
    if len(by_name) < len(configs):
        raise InputError("tune", "configurations of the same name", "a name of its own for each")
    spaces = tuning.spaces(by_name)
    directory = TuningDirectory.claim(output, _request(by_name, spaces, tuning), by_name, resume=resume)
    known = directory.read()
    done: dict[str, list[Trial]] = {}
    results = []
    for name, config in by_name.items():
        chosen, carried_out = _trials(config, spaces[name], tuning)
        earlier = iter(known.get(name, [])[: tuning.trials])
        done[name] = []
        for _ in range(tuning.trials):
            done[name].append(carried_out(next(earlier, None), directory.path))
            directory.write(known | done)
            progress("tuning", sum(map(len, done.values())), tuning.trials * len(by_name))
        results.append(_tuned(config, spaces[name], chosen, done[name], directory))
    return results


def _trials(
    config: RunConfig, space: Space, tuning: Tuning
) -> tuple[Metric, Callable[[Trial | None, Path], Trial]]:
    """Return the metric of a configuration's trials, and what carries out the next one.

    The latter takes the trial if it was carried out earlier, and where that is stored.
    """
    fit, judging = validation_parts(config, tuning.seed)
    chosen = _metric(tuning.metric, judging)
    lower = chosen.lower_is_better
    study = Study(space, current(config, space), lower_is_better=lower, seed=tuning.seed)

    def carry_out(stored: Trial | None, path: Path) -> Trial:
        if stored is None:
            return study.trial(lambda settings: _judged(config, settings, fit, judging, chosen))
        trial = study.trial(lambda _: stored.judgement)
        check_replayed(trial, stored, path)
        return trial

    return chosen, carry_out


def _request(configs: Mapping[str, RunConfig], spaces: Mapping[str, Space], tuning: Tuning) -> str:
    """Return what decides every trial; how many there are does not."""
    plain = {name: {key: part.as_written() for key, part in space.items()} for name, space in spaces.items()}
    values = {name: config.written_values() for name, config in configs.items()}
    request = {"seed": tuning.seed, "space": plain, "configurations": values}
    return dump_yaml(request if tuning.metric is None else {"metric": tuning.metric, **request})


def _metric(column: str | None, ratings: Ratings) -> Metric:
    wanted = column or ("sign_accuracy" if is_binary(ratings.scale) else "rmse")
    found = [metric for metric in metrics_in([wanted]) if metric.column != "relative_error"]
    if not found:
        accepted = "a column of comparison.csv, such as rmse or ranking_ndcg_at_10"
        raise InputError("metric", repr(wanted), accepted)
    return found[0]


def _judged(
    config: RunConfig, settings: Mapping[str, Scalar], fit: Ratings, judging: Ratings, metric: Metric
) -> Judgement:
    """Run a configuration with some settings, and judge it."""
    overrides = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    try:
        trial = load(config, [*overrides, "simulation.backend=local"])
        summary = run_prepared(trial, fit, judging, None).summary
    except (InputError, RunError) as error:
        return Judgement(value=None, reason=str(error))
    measured = summary.accuracy.metrics()
    value = measured.get(metric.column)
    if value is None:
        known = ", ".join(each.column for each in metrics_in(measured))
        raise InputError("metric", f"{metric.column}, which {config.name} does not have", known)
    privacy = summary.privacy
    return Judgement(
        value=value,
        epsilon_per_rating=privacy.epsilon_per_rating,
        epsilon_per_user=privacy.epsilon_per_user.max,
    )


def _tuned(
    config: RunConfig, space: Space, metric: Metric, trials: Sequence[Trial], directory: TuningDirectory
) -> Tuned:
    start = trials[0] if trials[0].settings == current(config, space) else None
    best = best_trial(trials, lower_is_better=metric.lower_is_better)
    if best is None:
        return Tuned(config, metric, tuple(trials), start, None, None)
    chosen = load(config, [f"{key}={json.dumps(value)}" for key, value in best.settings.items()])
    comment = (
        f"# {config.name} with the best of {len(trials)} trials: {metric.label} "
        f"{best.judgement.value:.6g} on validation ratings.\n"
    )
    path = directory.write_configuration(config.name, comment + chosen.to_yaml())
    return Tuned(config, metric, tuple(trials), start, best, path)


def _sum(losses: Sequence[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None]
    return sum(known) if len(known) == len(losses) else None
