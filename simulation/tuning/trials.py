"""Trials of one configuration: what is tried next, what each has shown, and the directory that keeps them.

Optuna chooses (Akiba et al. [akiba2019]): the first trial has the configured settings, nine follow at random,
and a tree-structured Parzen estimator chooses the others. The same seed and figures give the same trials, so
that an interrupted study is continued by telling a new one what the old one has seen.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field

from dprec.errors import InputError
from simulation.storage.directories import COMPARISON, CONFIG, SUMMARY, TABLE, ClaimedDirectory
from simulation.storage.files import Document, parse_document, read_text, write_files
from simulation.storage.tables import csv_of_rows
from simulation.tuning.space import Scalar, Space

if TYPE_CHECKING:
    pass


_Judge = Callable[[dict[str, Scalar]], "Judgement"]
"""Runs a configuration with some settings."""


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


def check_installed() -> None:
    """Refuse to tune without Optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise InputError("tune", "Optuna is not installed", "pip install 'dprec[tune]'") from None


class Study:
    """Chooses the settings of one configuration's trials; the first has those that it starts from."""

    def __init__(self, space: Space, start: dict[str, Scalar], *, lower_is_better: bool, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._failed = optuna.trial.TrialState.FAIL
        self._distributions = {key: part.distribution() for key, part in space.items()}
        self._study = optuna.create_study(
            direction="minimize" if lower_is_better else "maximize",
            sampler=optuna.samplers.TPESampler(seed=seed % 2**32),
        )
        self._study.enqueue_trial(start)

    def trial(self, judge: _Judge) -> Trial:
        """Carry out the next trial."""
        asked = self._study.ask(self._distributions)
        settings = dict(asked.params)
        judgement = judge(settings)
        state = self._failed if judgement.value is None else None
        self._study.tell(asked, judgement.value, state=state)
        return Trial(settings=settings, judgement=judgement)


def best_trial(trials: Sequence[Trial], *, lower_is_better: bool) -> Trial | None:
    """Return the best trial, of equal ones the first; None if none could be run."""
    judged: list[tuple[float, Trial]] = [
        (trial.judgement.value, trial) for trial in trials if trial.judgement.value is not None
    ]
    sign = 1 if lower_is_better else -1
    return min(judged, key=lambda pair: sign * pair[0])[1] if judged else None


TUNING, TRIALS, TABLE_OF_TRIALS = "tuning.yaml", "trials.json", "trials.csv"


class _StoredTrials(Document):
    trials: dict[str, tuple[Trial, ...]] = Field(description="Those of every configuration, by its name.")


class TuningDirectory(ClaimedDirectory):
    """A directory that a tuning writes to."""

    claimed_by, held = TUNING, "a tuning already"
    others = (CONFIG, SUMMARY, COMPARISON, TABLE, TRIALS, TABLE_OF_TRIALS)

    @classmethod
    def claim(cls, path: str | Path, request: str, names: Iterable[str], *, resume: bool) -> Self:
        """Claim a directory for a request, as YAML, and files of other names; see `claim_for`."""
        written = [_file_of(name) for name in names]
        if TUNING in written:
            accepted = f"another name, as {TUNING} is what was asked for"
            raise InputError("name", repr(TUNING.removesuffix(".yaml")), accepted)
        return cls.claim_for(path, request, resume=resume, others=written)

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
        text = stored.model_dump_json(indent=2) + "\n"
        table = "".join(csv_of_rows(list(_rows(trials))))
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


def check_replayed(trial: Trial, stored: Trial, path: Path) -> None:
    """Refuse stored trials that this tuning would not have chosen."""
    if trial.settings != stored.settings:
        accepted = "trials of the same version of Optuna, or a new directory"
        raise InputError(str(path / TRIALS), "other settings than would be tried", accepted)
