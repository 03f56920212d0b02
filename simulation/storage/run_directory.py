"""The run directory: the stable files that hold a run.

The directory is claimed before anything runs, files appear whole or not at all, and a run that the
directory already holds is never overwritten.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from dprec.errors import InputError, RunError
from dprec.randomness import ENTROPY_BYTES
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig, with_sources
from simulation.configuration.strict_yaml import flatten
from simulation.storage.directories import (
    AUDIT,
    CHANNEL,
    COMPARISON,
    CONFIG,
    ENTROPY,
    FIGURES,
    LEDGER,
    PREDICTIONS,
    REPORT,
    ROUNDS,
    SUMMARY,
    TABLE,
    TRAFFIC,
    claim_directory,
    fingerprint,
    matters,
)
from simulation.storage.files import write_atomically, write_recorded
from simulation.storage.run_directory import CHECKPOINT, Checkpoints
from simulation.storage.run_files import (
    RunFiles,
    RunRecord,
    checked,
    prediction_columns,
    read_ledger,
    read_run,
    write_channel,
    write_ledger,
    written_rounds,
)
from simulation.storage.summary import FileSummary, write_summary
from simulation.storage.tables import csv_of_columns

_OTHERS = (TRAFFIC, PREDICTIONS, ROUNDS, CHANNEL, LEDGER, REPORT, FIGURES, COMPARISON, TABLE, AUDIT)
"""Files that no interrupted run leaves in a directory without a configuration."""


class RunDirectory:
    """A directory that a run writes to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def claim(cls, path: str | Path, config: RunConfig, *, resume: bool = False) -> RunDirectory:
        """Create a run's directory and write its configuration to it.

        Parameters
        ----------
        resume : bool
            Take over a directory in which the same configuration was interrupted, or finished.

        Raises
        ------
        InputError
            When the directory cannot be written to, or already holds a run.
        """
        directory = cls(Path(path))
        claim_directory(
            directory.path,
            CONFIG,
            config.to_yaml(),
            resume=resume,
            held="an unfinished run",
            others=_OTHERS,
            final=SUMMARY,
        )
        directory._remove_leftovers()
        return directory

    def checkpoints(self, config: RunConfig, train: Ratings, test: Ratings) -> Checkpoints:
        """Return the checkpoints of a run on these ratings."""
        settings = flatten(with_sources(config.plain_values(), config.sources))
        depends = {key: value for key, value in settings.items() if matters(key)}
        depends["digest of the ratings"] = fingerprint(train, test)
        return Checkpoints(self.path / CHECKPOINT, depends)

    def entropy(self) -> bytes:
        """Return what an unfinished run draws from instead of its seed, kept until it is finished.

        If the run is interrupted and resumed, its devices repeat what they have sent. With fresh noise, the
        reports before and after the interruption would reveal more than is charged. Only the owner may
        read the file.

        Raises
        ------
        InputError
            When the file is damaged.
        """
        path = self.path / ENTROPY
        if not path.exists():
            write_atomically(path, os.urandom(ENTROPY_BYTES).hex(), mode=0o600)
        text = path.read_text(encoding="ascii", errors="replace")
        if not re.fullmatch(f"[0-9a-f]{{{2 * ENTROPY_BYTES}}}", text):
            raise InputError(str(path), "damaged", "the file that the run began with")
        return bytes.fromhex(text)

    @property
    def finished(self) -> bool:
        """Whether the directory holds a result."""
        return (self.path / SUMMARY).exists()

    def read(self, config: RunConfig, train: Ratings, test: Ratings) -> RunRecord:
        """Read the result, given the ratings that it was made from.

        Raises
        ------
        InputError
            When a file cannot be read or does not fit these ratings.
        """
        try:
            files = read_run(self.path)
            self._check_lengths(files, train, test)
            ledger = read_ledger(checked(self.path, files.summary, LEDGER).parent)
        except InputError as error:
            again = f"{error.accepted}; without {SUMMARY}, --resume runs it again"
            raise InputError(error.where, error.found, again) from None
        return RunRecord(
            config=config,
            summary=files.summary,
            predictions=prediction_columns(test, files.predictions["prediction"]),
            traffic={"user": train.user_ids, **files.traffic, "ratings": train.counts},
            rounds=files.rounds,
            channel=files.channel,
            privacy=ledger,
        )

    def _check_lengths(self, files: RunFiles, train: Ratings, test: Ratings) -> None:
        expected = (
            (TRAFFIC, files.traffic["ratings"].size, train.n_users, "users"),
            (PREDICTIONS, files.predictions["prediction"].size, test.count, "test ratings"),
            (ROUNDS, len(files.rounds), files.summary.traffic.rounds, "rounds"),
        )
        for name, rows, planned, what in expected:
            if rows != planned:
                raise InputError(
                    str(self.path / name), f"{rows} rows", f"{planned}, one for each of the {what}"
                )

    def write(self, record: RunRecord) -> RunRecord:
        """Write the result; the summary comes last, so that its presence means a finished run.

        Returns
        -------
        RunRecord
            With a summary that lists the files.

        Raises
        ------
        RunError
            When something cannot be written.
        """
        try:
            files = self._write_files(record)
            summary = record.summary.model_copy(update={"files": files})
            write_summary(self.path, summary)
            self._remove_state()
        except OSError as error:
            raise RunError(f"{self.path}: the result cannot be written ({error.strerror})") from None
        return replace(record, summary=summary)

    def _write_files(self, record: RunRecord) -> dict[str, FileSummary]:
        tables = ((TRAFFIC, record.traffic, "user"), (PREDICTIONS, record.predictions, "prediction"))
        files = {
            name: write_recorded(self.path / name, csv_of_columns(columns), len(columns[counted]))
            for name, columns, counted in tables
        }
        lines = written_rounds(record.rounds)
        files[ROUNDS] = write_recorded(self.path / ROUNDS, lines, len(record.rounds))
        if record.channel is not None:
            files[CHANNEL] = write_channel(self.path, record.channel)
        files[LEDGER] = write_ledger(self.path, record.privacy)
        return files

    def _remove_leftovers(self) -> None:
        """Remove what a run left behind if it was killed while it wrote a file, or at its very end."""
        if self.finished:
            self._remove_state()
        for name in (CONFIG, SUMMARY, ROUNDS, TRAFFIC, PREDICTIONS, CHANNEL, LEDGER, CHECKPOINT, ENTROPY):
            for temporary in self.path.glob(f".{name}-*"):
                temporary.unlink(missing_ok=True)

    def _remove_state(self) -> None:
        """Remove what only an unfinished run needs."""
        for name in (CHECKPOINT, ENTROPY):
            (self.path / name).unlink(missing_ok=True)


def timestamped(name: str) -> Path:
    """Return the default directory of a run: runs/NAME-TIMESTAMP."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder, again = Path("runs") / f"{name}-{stamp}", 1
    while folder.exists():
        again += 1
        folder = Path("runs") / f"{name}-{stamp}-{again}"
    return folder
