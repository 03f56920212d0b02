"""Tunes configurations: which settings trials may choose, what is tried next, and what each has shown.

Optuna chooses (Akiba et al. [akiba2019]): the first trial has the configured settings, nine follow at random,
and a tree-structured Parzen estimator chooses the others. The same seed and figures give the same trials, so
that an interrupted study is continued by telling a new one what the old one has seen.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field

from dprec import formats
from dprec.binarization import is_binary
from dprec.components import Options, is_ours, option
from dprec.errors import InputError, RunError, SettingError, listed, within
from dprec.exchange import is_integer
from dprec.progress import Progress, silent
from dprec.ratings import Ratings
from dprec.splits import Holdout, RandomSplit
from simulation.analysis.vocabulary import Metric, metrics_in
from simulation.configuration.loading import load
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import dump_yaml, flatten, read_yaml
from simulation.execution import load_ratings, run_prepared
from simulation.storage.directories import ClaimedDirectory
from simulation.storage.files import Document, Stamped, csv_of_rows, parse_document, read_text, write_files

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


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


TUNING, TRIALS, TABLE_OF_TRIALS = "tuning.yaml", "trials.json", "trials.csv"


class _StoredTrials(Stamped):
    trials: dict[str, tuple[Trial, ...]] = Field(description="Those of every configuration, by its name.")


class TuningDirectory(ClaimedDirectory):
    """A directory that a tuning writes to."""

    claimed_by, held = TUNING, "a tuning already"

    @classmethod
    def claim(cls, path: str | Path, request: str, names: Iterable[str], *, resume: bool) -> Self:
        """Claim a directory for a request, as YAML, and files of other names; see `claim_for`."""
        written = [_file_of(name) for name in names]
        if TUNING in written:
            accepted = f"another name, as {TUNING} is what was asked for"
            raise InputError("name", repr(TUNING.removesuffix(".yaml")), accepted)
        return cls.claim_for(path, request, resume=resume, others=(TRIALS, TABLE_OF_TRIALS, *written))

    def read(self) -> dict[str, list[Trial]]:
        """Return the trials that were carried out, by configuration; raises InputError for a damaged file."""
        path = self.path / TRIALS
        if not path.is_file():
            return {}
        stored = parse_document(_StoredTrials, read_text(path), str(path))
        return {name: list(trials) for name, trials in stored.trials.items()}

    def write(self, trials: Mapping[str, Sequence[Trial]]) -> None:
        """Write all trials, as JSON and as a table."""
        stored = _StoredTrials(trials={name: tuple(own) for name, own in trials.items()})
        contents = {**formats.STAMP, **stored.model_dump(mode="json", exclude_unset=True)}
        text = json.dumps(contents, indent=2) + "\n"
        table = csv_of_rows(list(_rows(trials)))
        write_files(self.path, {TRIALS: text, TABLE_OF_TRIALS: table})

    def write_configuration(self, name: str, text: str) -> Path:
        """Write a configuration that can be run; return its path."""
        write_files(self.path, {_file_of(name): text})
        return self.path / _file_of(name)


def _file_of(name: str) -> str:
    return f"{name}.yaml"


def _rows(trials: Mapping[str, Sequence[Trial]]) -> Iterable[dict[str, object]]:
    for name, own in trials.items():
        for place, trial in enumerate(own):
            yield {"name": name, "trial": place, **trial.judgement.model_dump(), **trial.settings}


Scalar = bool | int | float | str

_DERIVED = ("completion", "recommendation", "step")
"""Parts of a protocol whose numbers are tuned unless a file says otherwise."""

_DERIVED_NUMBERS = ("rank", "ridge", "step")
"""Numbers of a protocol itself that are."""

_EFFORT = frozenset({"iterations", "tolerance", "sweeps", "epochs", "max_rank", "epsilon", "failure"})
"""Numbers that say how long a computation goes on, or how private it is."""

_FACTOR = 4
"""How far a derived range reaches below and above the configured value."""


@dataclass(frozen=True, kw_only=True)
class Range(Options):
    """Numbers from low to high, both included; whole ones if both ends and the setting are whole."""

    low: int | float = option("Smallest value.")
    high: int | float = option("Largest value.")
    log: bool = option("Whether every ratio, instead of every difference, is as likely.", False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise SettingError("high", f"{self.high:g}", f"more than low, {self.low:g}")
        if self.log and self.low <= 0:
            raise SettingError("low", f"{self.low:g}", "more than 0, with log: true")

    def holds(self, value: object) -> bool:
        """Return whether a value may be chosen."""
        return isinstance(value, int | float) and self.low <= value <= self.high

    def as_written(self) -> dict[str, Any]:
        """Return the range as a file has it."""
        return {"low": self.low, "high": self.high, "log": self.log}

    def distribution(self) -> BaseDistribution:
        """Return what Optuna draws from."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choices:
    """Some values, each as likely."""

    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Return whether a value may be chosen."""
        return value in self.values

    def as_written(self) -> list[Scalar]:
        """Return the choices as a file has them."""
        return list(self.values)

    def distribution(self) -> BaseDistribution:
        """Return what Optuna draws from."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)


Space = dict[str, Range | Choices]
"""What may be chosen, by the dotted key of the setting."""


def read_space(path: Path) -> Space:
    """Read a search space: under every dotted key ``{low, high, log}`` or a list of values."""
    values = read_yaml(path)
    if not values:
        raise InputError(str(path), "no settings", "dotted keys with {low, high} or a list of values")
    return {key: _parsed(value, f"{path}: {key}", key) for key, value in values.items()}


def _parsed(value: Any, where: str, key: object) -> Range | Choices:
    named = isinstance(key, str) and key.startswith("protocol.") and not key.startswith("protocol.privacy")
    if not named:
        raise InputError(where, repr(key), "a setting of the protocol, such as protocol.completion.rank")
    if isinstance(value, list) and len(value) > 1 and all(map(_is_choice, value)):
        return Choices(tuple(value))
    if not isinstance(value, Mapping) or not value.keys() <= {"low", "high", "log"}:
        raise InputError(where, repr(value), "{low: ..., high: ..., log: true|false}, or a list of values")
    try:
        return Range(**value)
    except TypeError:
        raise InputError(where, repr(dict(value)), "low and high") from None
    except SettingError as error:
        raise InputError(f"{where}.{error.key}", error.found, error.accepted) from None


def _is_choice(value: object) -> bool:
    return isinstance(value, Scalar) and not (isinstance(value, float) and not math.isfinite(value))


def applicable(space: Space, configs: Mapping[str, RunConfig], source: str) -> dict[str, Space]:
    """Return the part of a space that each configuration has, or raise InputError for an unknown key."""
    known = {name: set(_settings(config)) for name, config in configs.items()}
    every = sorted(set().union(*known.values()))
    for key in space:
        if key not in every:
            raise InputError(f"{source}: {key}", "no such setting", listed(every, key))
    parts = {name: {key: space[key] for key in space if key in own} for name, own in known.items()}
    for name, part in parts.items():
        if not part:
            raise InputError(source, f"no setting of {name}", "at least one for every configuration")
    return parts


def _settings(config: RunConfig) -> dict[str, Any]:
    values = flatten(config.model_dump(mode="json")["protocol"], "protocol")
    return {key: value for key, value in values.items() if not key.startswith("protocol.privacy")}


def current(config: RunConfig, space: Space) -> dict[str, Scalar]:
    """Return the configured values of a space's settings, where the space has them."""
    values = _settings(config)
    return {key: values[key] for key in space if space[key].holds(values[key])}


def derived_space(config: RunConfig) -> Space:
    """Return ranges around the numbers of a protocol's completion, factors and steps.

    Each reaches from a quarter of the configured value to four times it, within the setting's bounds, every
    ratio as likely. A setting of 0 stays, as do those that bound the work.
    """
    space: Space = dict(_ranges(config.protocol, "protocol", _DERIVED_NUMBERS))
    for part in _DERIVED:
        options = getattr(config.protocol, part, None)
        if isinstance(options, Options):
            space |= _ranges(options, f"protocol.{part}")
    if not space:
        found = "no configured number of its completion or steps to tune"
        raise InputError(config.name, found, "a search space (--space), or a protocol with one")
    return space


def _ranges(options: Any, prefix: str, names: tuple[str, ...] | None = None) -> Iterator[tuple[str, Range]]:
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        wanted = field.name not in _EFFORT if names is None else field.name in names
        if not wanted or isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            continue
        low = max(value / _FACTOR, field.metadata.get("ge", 0))
        high = min(value * _FACTOR, field.metadata.get("le", float("inf")))
        if "lt" in field.metadata:
            # A share below 1 halves its distance from the bound at most.
            high = min(high, (value + field.metadata["lt"]) / 2)
        if isinstance(value, int):
            low, high = max(1, round(low)), int(high)
        if low < high:
            yield f"{prefix}.{field.name}", Range(low=low, high=high, log=True)


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
    """What is asked for; see `dprec.tune`."""

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
    """Carry out the trials; see `dprec.tune`."""
    if find_spec("optuna") is None:
        raise InputError("tune", "Optuna is not installed", "pip install 'dprec[tune]'")
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
        study = _Study(config, spaces[name], tuning)
        earlier = iter(known.get(name, [])[: tuning.trials])
        done[name] = []
        for _ in range(tuning.trials):
            done[name].append(study.trial(next(earlier, None), directory.path))
            directory.write(known | done)
            progress("tuning", sum(map(len, done.values())), tuning.trials * len(by_name))
        results.append(_tuned(config, spaces[name], study.metric, done[name], directory))
    return results


class _Study:
    """The trials of one configuration, one after the other; the first has the settings as they are."""

    def __init__(self, config: RunConfig, space: Space, tuning: Tuning) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._config = config
        self._fit, self._judging = validation_parts(config, tuning.seed)
        self.metric = _metric(tuning.metric, self._judging)
        self._failed = optuna.trial.TrialState.FAIL
        self._distributions = {key: part.distribution() for key, part in space.items()}
        self._study = optuna.create_study(
            direction="minimize" if self.metric.lower_is_better else "maximize",
            sampler=optuna.samplers.TPESampler(seed=tuning.seed % 2**32),
        )
        self._study.enqueue_trial(current(config, space))

    def trial(self, stored: Trial | None, path: Path) -> Trial:
        """Carry out the next trial, or take it from where it was stored in a directory."""
        asked = self._study.ask(self._distributions)
        settings = dict(asked.params)
        if stored is None:
            judgement = _judged(self._config, settings, self._fit, self._judging, self.metric)
        elif settings == stored.settings:
            judgement = stored.judgement
        else:
            accepted = "trials of the same version of Optuna, or a new directory"
            raise InputError(str(path / TRIALS), "other settings than would be tried", accepted)
        state = self._failed if judgement.value is None else None
        self._study.tell(asked, judgement.value, state=state)
        return Trial(settings=settings, judgement=judgement)


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
    judged = [trial for trial in trials if trial.judgement.value is not None]
    choose = min if metric.lower_is_better else max
    best = choose(judged, key=lambda trial: trial.judgement.value or 0.0, default=None)
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
