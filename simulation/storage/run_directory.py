"""The run directory while a run writes to it: its configuration first, then checkpoints, at last the result.

Files appear whole or not at all, and a run that the directory already holds is never overwritten.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec import formats
from dprec.errors import InputError, RunError
from dprec.randomness import ENTROPY_BYTES
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig
from simulation.storage import directories, run_files
from simulation.storage.files import (
    read_archive,
    table_in,
    table_name,
    whole,
    write_atomically,
    write_table,
)
from simulation.storage.summary import attack_file, write_summary

if TYPE_CHECKING:
    from strategies.training import TrainingRounds

CHECKPOINT, LESSON = "checkpoint.npz", "checkpoint-{}.npy"
"""What an interrupted run goes on from: its state, and what each round taught that is taught again."""

_VALUES = "values"
"""Name of the array that holds, as JSON, whatever is not an array."""


@dataclass(frozen=True)
class Checkpoints:
    """Where the state of a run is kept between rounds."""

    path: Path
    """The file: a NumPy archive."""
    depends: Callable[[], dict[str, Any]]
    """Returns what the run depends on, by dotted key; a checkpoint is refused if any of it differs."""
    digests: dict[str, str] = field(default_factory=dict, init=False)
    """SHA-256 of the file of what each round taught, by the round."""

    def keep(self, number: int, lesson: NDArray[Any]) -> None:
        """Write what a round taught, once for all further rounds."""
        header, array = io.BytesIO(), np.ascontiguousarray(lesson)
        np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
        # The numbers themselves are not copied: they may be most of the memory.
        content = header.getvalue(), array.reshape(-1).view(np.uint8).data
        write_atomically(self._lesson(number), content)
        digest = hashlib.sha256(content[0])
        digest.update(content[1])
        self.digests[str(number)] = digest.hexdigest()

    def save(self, state: TrainingRounds) -> None:
        """Write the state after a round."""
        arrays, values = state.stored()
        values = {**formats.STAMP, "depends": self.depends(), "digests": self.digests, **values}
        arrays = {**arrays, _VALUES: np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_atomically(self.path, buffer.getvalue())

    def load(self, fresh: TrainingRounds) -> None:
        """Fill rounds that have not begun with the state to continue from, if a round has ended.

        Parameters
        ----------
        fresh : TrainingRounds
            The state before the first round; the checkpoint must have the same shapes.

        Raises
        ------
        InputError
            When a file is truncated, damaged, from another run, or of another format; the error names what
            differs.
        """

        def fill(arrays: dict[str, NDArray[Any]]) -> None:
            values = json.loads(arrays.pop(_VALUES).tobytes())
            formats.check(values, str(self.path))
            began_with = "the configuration and data it began with"
            directories.check_same(self.path, values["depends"], self.depends(), began_with)
            self.digests.update(values["digests"])
            fresh.resume(arrays, values, self._kept)

        if self.path.exists():
            read_archive(self.path, fill, "a whole checkpoint of this version; delete it to start over")

    def _lesson(self, number: int) -> Path:
        return self.path.with_name(LESSON.format(number))

    def _kept(self, number: int) -> NDArray[Any]:
        path, accepted = self._lesson(number), f"the file of the run; delete {self.path.name} to start over"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(str(path), f"cannot be read ({error.strerror})", accepted) from None
        if hashlib.sha256(content).hexdigest() != self.digests[str(number)]:
            raise InputError(str(path), "truncated, damaged or of another run", accepted)
        lesson: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
        return lesson


@dataclass(frozen=True)
class RunDirectory:
    """A directory that a run writes to."""

    path: Path

    @classmethod
    def claim(cls, path: str | Path, config: RunConfig, *, resume: bool = False) -> RunDirectory:
        """Begin a directory of a run, or take over one that has the same configuration.

        ``resume``: whether one in which the same was interrupted, or finished, may be taken over.
        Raises InputError when the directory cannot be written to, or holds something else.
        """
        directory = cls(directories.claim(path, directories.CONFIG, config.to_yaml(), resume=resume))
        if directory.finished:
            directory._remove_state()
        return directory

    def checkpoints(self, config: RunConfig, train: Ratings, test: Ratings) -> Checkpoints:
        """Return the checkpoints of a run on these ratings."""

        @cache
        def depends() -> dict[str, Any]:
            digest = {"digest of the ratings": directories.fingerprint(train, test)}
            return directories.mattering(config.written_values()) | digest

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
        path = self.path / directories.ENTROPY
        if not path.exists():
            write_atomically(path, os.urandom(ENTROPY_BYTES).hex(), mode=0o600)
        text = path.read_text(encoding="ascii", errors="replace")
        if not re.fullmatch(f"[0-9a-f]{{{2 * ENTROPY_BYTES}}}", text):
            raise InputError(str(path), "damaged", "the file that the run began with")
        return bytes.fromhex(text)

    @property
    def finished(self) -> bool:
        """Whether the directory holds a result."""
        return (self.path / directories.SUMMARY).exists()

    def read(self, train: Ratings, test: Ratings) -> run_files.RunRecord:
        """Read the result, given the ratings that it was made from.

        Raises
        ------
        InputError
            When a file cannot be read or does not fit these ratings.
        """
        try:
            record = run_files.read_run(self.path)
            for name, rows, planned, what in (
                (directories.TRAFFIC, record.traffic["ratings"].size, train.n_users, "users"),
                (directories.PREDICTIONS, len(record.predictions["prediction"]), test.count, "test ratings"),
            ):
                if rows != planned:
                    accepted = f"{planned}, one for each of the {what}"
                    raise InputError(str(table_in(self.path, name)), f"{rows} rows", accepted)
        except InputError as error:
            again = f"{error.accepted}; without {directories.SUMMARY}, --resume runs it again"
            raise InputError(error.where, error.found, again) from None
        read = whole(record.predictions)
        further = (read.get(name) for name in (run_files.RANK, run_files.RELEVANT))
        lists = record.lists and {
            **record.lists,
            "user": record.lists["user"].astype(test.user_ids.dtype),
            "item": record.lists["item"].astype(test.item_ids.dtype),
        }
        return replace(
            record,
            predictions=run_files.prediction_columns(test, read["prediction"], *further),
            traffic={"user": train.user_ids, **record.traffic, "ratings": train.counts},
            lists=lists,
        )

    def write(self, record: run_files.RunRecord) -> run_files.RunRecord:
        """Write the result; the summary comes last, so that its presence means a finished run.

        Returns
        -------
        RunRecord
            The same.

        Raises
        ------
        RunError
            When something cannot be written.
        """
        try:
            for name, columns in (
                (directories.TRAFFIC, record.traffic),
                (directories.PREDICTIONS, record.predictions),
                (directories.LISTS, record.lists or {}),
            ):
                rows = len(next(iter(columns.values()), ()))
                if columns:
                    write_table(self.path / table_name(name, rows), columns)
            write_atomically(self.path / directories.ROUNDS, run_files.written_rounds(record.rounds))
            if record.channel is not None:
                run_files.write_channel(self.path, record.channel)
            run_files.write_ledger(self.path, record.privacy)
            if record.users is not None:
                write_table(self.path / directories.USERS, record.users)
            if record.messages is not None:
                messages = record.messages.model_dump_json(indent=2) + "\n"
                write_atomically(self.path / directories.MESSAGES, messages)
            if record.summary.attacks is not None:
                attacks = json.dumps(attack_file(record.summary), indent=2, allow_nan=False) + "\n"
                write_atomically(self.path / directories.ATTACK, attacks)
            write_summary(self.path, record.summary)
            self._remove_state()
        except OSError as error:
            raise RunError(f"{self.path}: the result cannot be written ({error.strerror})") from error
        return record

    def _remove_state(self) -> None:
        """Remove what only an unfinished run needs."""
        lessons = self.path.glob(LESSON.format("*"))
        for path in (self.path / CHECKPOINT, self.path / directories.ENTROPY, *lessons):
            path.unlink(missing_ok=True)
