"""The run directory while a run writes to it: claimed first, then checkpoints, at last the stable files.

Files appear whole or not at all, and a run that the directory already holds is never overwritten.
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dprec import formats
from dprec.accounting import PrivacyAccountant
from dprec.errors import InputError, RunError, one_line
from dprec.randomness import ENTROPY_BYTES
from dprec.ratings import Ratings
from dprec.wire import Exchanged
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import flatten
from simulation.storage import directories, run_files
from simulation.storage.files import read_archive, write_atomically, write_table
from simulation.storage.summary import attack_file, write_summary
from strategies.participation import RoundRecord

if TYPE_CHECKING:
    from strategies.training import BroadcastRounds


CHECKPOINT = "checkpoint.npz"

_LEDGER = "privacy_"
"""Prefix of the names of the privacy ledger's arrays."""

_DEVICES = ("broadcast", "best")
"""Names of what devices hold or are to hold, kept as it is sent."""

_VALUES = "values"
"""Name of the array that holds, as JSON, whatever is not an array."""


_ACCEPTED = "a whole checkpoint of this version; delete it to start over"


@dataclass(frozen=True)
class Checkpoints:
    """Where the state of a run is kept between rounds."""

    path: Path
    """The file: a NumPy archive."""
    depends: dict[str, Any]
    """What the run depends on, by dotted key; a checkpoint is refused if any of it differs."""

    def save(self, state: BroadcastRounds) -> None:
        """Write the state after a round."""
        ledger = {f"{_LEDGER}{name}": array for name, array in state.accountant.to_arrays().items()}
        arrays = {**self._places(state), **ledger}
        for name in _DEVICES:
            if (device := getattr(state, name)) is not None:
                arrays[name] = np.frombuffer(device.encode(), dtype=np.uint8)
        values = {
            **formats.STAMP,
            "depends": self.depends,
            "records": [vars(record) for record in state.records],
            "first_user": [
                [kind, up, own.messages, own.payload_bytes, own.message_bytes, own.example.hex()]
                for (kind, up), own in state.traffic.first_user.items()
            ],
            "best_error": state.best_error,
            "best_round": state.best_round,
        }
        arrays[_VALUES] = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        write_atomically(self.path, buffer.getvalue())

    def load(self, fresh: BroadcastRounds) -> None:
        """Fill rounds that have not begun with the state to continue from, if a round has ended.

        Parameters
        ----------
        fresh : BroadcastRounds
            The state before the first round; the checkpoint must have the same shapes.

        Raises
        ------
        InputError
            When the file is truncated, damaged, from another run, or of another format; the error names what
            differs.
        """
        if not self.path.exists():
            return
        arrays = read_archive(self.path, _ACCEPTED)
        try:
            values = json.loads(arrays.pop(_VALUES).tobytes())
            self._check(values)
            self._fill(fresh, arrays, values)
        except InputError:
            raise
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(str(self.path), one_line(error), _ACCEPTED) from None

    def _check(self, values: dict[str, Any]) -> None:
        formats.check(values, str(self.path))
        for key in sorted({**values["depends"], **self.depends}):
            before, now = values["depends"].get(key), self.depends.get(key)
            if before != now:
                differing = f"{before!r} there and {now!r} now"
                raise InputError(f"{self.path}: {key}", differing, "the configuration and data it began with")

    def _fill(self, fresh: BroadcastRounds, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        fresh.accountant = PrivacyAccountant.from_arrays(
            {key.removeprefix(_LEDGER): array for key, array in arrays.items() if key.startswith(_LEDGER)}
        )
        for name, place in self._places(fresh).items():
            place[...] = arrays[name]
        for name in _DEVICES:
            if name in arrays:
                setattr(fresh, name, fresh.decoded(arrays[name].tobytes()))
        fresh.records = [RoundRecord(**record) for record in values["records"]]
        for kind, up, messages, payload, message, example in values["first_user"]:
            own = Exchanged(messages, payload, message, bytes.fromhex(example))
            fresh.traffic.first_user[kind, up] = own
        fresh.best_error, fresh.best_round = values["best_error"], values["best_round"]

    def _places(self, state: BroadcastRounds) -> dict[str, NDArray[Any]]:
        return {
            **(state.server.arrays or {}),
            "holders": state.holders,
            **{f"traffic_{name}": column for name, column in state.traffic.columns.items()},
        }


class RunDirectory(directories.ClaimedDirectory):
    """A directory that a run writes to."""

    claimed_by, final, held = directories.CONFIG, directories.SUMMARY, "an unfinished run"

    @classmethod
    def claim(cls, path: str | Path, config: RunConfig, *, resume: bool = False) -> RunDirectory:
        """Claim a directory for a run; see `claim_for`."""
        directory = cls.claim_for(path, config.to_yaml(), resume=resume)
        if directory.finished:
            directory._remove_state()
        return directory

    def checkpoints(self, config: RunConfig, train: Ratings, test: Ratings) -> Checkpoints:
        """Return the checkpoints of a run on these ratings."""
        settings = flatten(config.written_values())
        depends = {key: value for key, value in settings.items() if directories.matters(key)}
        depends["digest of the ratings"] = directories.fingerprint(train, test)
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

    def read(self, config: RunConfig, train: Ratings, test: Ratings) -> run_files.RunRecord:
        """Read the result, given the ratings that it was made from.

        Raises
        ------
        InputError
            When a file cannot be read or does not fit these ratings.
        """
        try:
            files = run_files.read_run(self.path)
            self._check_lengths(files, train, test)
            ledger = run_files.read_ledger(self.path)
        except InputError as error:
            again = f"{error.accepted}; without {directories.SUMMARY}, --resume runs it again"
            raise InputError(error.where, error.found, again) from None
        return run_files.RunRecord(
            config=config,
            summary=files.summary,
            predictions=run_files.prediction_columns(
                test, files.predictions["prediction"], files.predictions.get(run_files.RANK)
            ),
            traffic={"user": train.user_ids, **files.traffic, "ratings": train.counts},
            rounds=files.rounds,
            channel=files.channel,
            privacy=ledger,
            messages=files.messages,
            users=run_files.read_users(self.path, files.summary) if files.summary.groups else None,
        )

    def _check_lengths(self, files: run_files.RunFiles, train: Ratings, test: Ratings) -> None:
        expected = (
            (directories.TRAFFIC, files.traffic["ratings"].size, train.n_users, "users"),
            (directories.PREDICTIONS, files.predictions["prediction"].size, test.count, "test ratings"),
        )
        for name, rows, planned, what in expected:
            if rows != planned:
                raise InputError(
                    str(self.path / name), f"{rows} rows", f"{planned}, one for each of the {what}"
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
            self._write_files(record)
            write_summary(self.path, record.summary)
            self._remove_state()
        except OSError as error:
            raise RunError(f"{self.path}: the result cannot be written ({error.strerror})") from None
        return record

    def _write_files(self, record: run_files.RunRecord) -> None:
        write_table(self.path / directories.TRAFFIC, record.traffic)
        write_table(self.path / directories.PREDICTIONS, record.predictions)
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

    def _remove_state(self) -> None:
        """Remove what only an unfinished run needs."""
        for name in (CHECKPOINT, directories.ENTROPY):
            (self.path / name).unlink(missing_ok=True)


def timestamped(name: str) -> Path:
    """Return the default directory of a run: runs/NAME-TIMESTAMP."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder, again = Path("runs") / f"{name}-{stamp}", 1
    while folder.exists():
        again += 1
        folder = Path("runs") / f"{name}-{stamp}-{again}"
    return folder
