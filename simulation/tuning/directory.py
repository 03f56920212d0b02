"""The directory of a tuning: what was asked for, every trial, and configurations with the chosen settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from dprec.errors import InputError
from simulation.storage.directories import COMPARISON, CONFIG, SUMMARY, TABLE, claim_directory
from simulation.storage.files import Document, parse_document, read_text, write_files
from simulation.storage.tables import csv_of_rows
from simulation.tuning.trials import Judgement, Trial

TUNING, TRIALS, TABLE_OF_TRIALS = "tuning.yaml", "trials.json", "trials.csv"

_OTHERS = (CONFIG, SUMMARY, COMPARISON, TABLE)


class _Judgement(Document):
    value: float | None
    reason: str
    epsilon_per_rating: float | None
    epsilon_per_user: float | None


class _Trial(Document):
    settings: dict[str, bool | int | float | str]
    judgement: _Judgement


class _Trials(Document):
    trials: dict[str, tuple[_Trial, ...]] = Field(description="The trials of every configuration, by name.")


class TuningDirectory:
    """A directory that a tuning writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def claim(cls, path: str | Path, request: str, names: Iterable[str], *, resume: bool) -> TuningDirectory:
        """Create the directory and write what is asked for, as YAML, or take over one with the same request.

        Parameters
        ----------
        names : iterable of str
            Those of the configurations, after which files are named.

        Raises
        ------
        InputError
            When the directory cannot be written to, or already holds something else; when a configuration has
            the name of another file.
        """
        folder = Path(path)
        written = [_file_of(name) for name in names]
        if TUNING in written:
            accepted = f"another name, as {TUNING} is what was asked for"
            raise InputError("name", repr(TUNING.removesuffix(".yaml")), accepted)
        others = [*_OTHERS, TRIALS, TABLE_OF_TRIALS, *written]
        claim_directory(folder, TUNING, request, resume=resume, held="a tuning already", others=others)
        return cls(folder)

    def read(self) -> dict[str, list[Trial]]:
        """Return the trials that were carried out, by the names of the configurations.

        Raises
        ------
        InputError
            When the file is damaged.
        """
        path = self.path / TRIALS
        if not path.is_file():
            return {}
        stored = parse_document(_Trials, read_text(path), str(path))
        return {
            name: [Trial(dict(one.settings), Judgement(**one.judgement.model_dump())) for one in trials]
            for name, trials in stored.trials.items()
        }

    def write(self, trials: Mapping[str, Sequence[Trial]]) -> None:
        """Write all trials, as JSON and as a table.

        Raises
        ------
        InputError, RunError
            When the directory cannot be written to.
        """
        stored = {name: [asdict(trial) for trial in own] for name, own in trials.items()}
        text = _Trials.model_validate_json(json.dumps({"trials": stored})).model_dump_json(indent=2) + "\n"
        table = "".join(csv_of_rows(list(_rows(trials))))
        write_files(self.path, {TRIALS: text, TABLE_OF_TRIALS: table})

    def write_configuration(self, name: str, text: str) -> Path:
        """Write a configuration that can be run; return its path."""
        write_files(self.path, {_file_of(name): text})
        return self.path / _file_of(name)


def _file_of(name: str) -> str:
    """Return the file of a configuration."""
    return f"{name}.yaml"


def _rows(trials: Mapping[str, Sequence[Trial]]) -> Iterable[dict[str, object]]:
    for name, own in trials.items():
        for place, trial in enumerate(own):
            yield {"name": name, "trial": place, **asdict(trial.judgement), **trial.settings}


def check_replayed(trial: Trial, stored: Trial, path: Path) -> None:
    """Refuse stored trials that this tuning would not have chosen.

    Raises
    ------
    InputError
    """
    if trial.settings != stored.settings:
        accepted = "trials of the same version of Optuna, or a new directory"
        raise InputError(str(path / TRIALS), "other settings than would be tried", accepted)
