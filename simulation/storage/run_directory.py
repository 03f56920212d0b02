"""The run directory: the stable files in which a run is kept.

The directory is claimed before anything runs, files appear whole or not at all, and a directory that
already holds a run is never written to.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError, RunError
from dprec.ratings import Ratings
from simulation.configuration.dotted_keys import flatten
from simulation.configuration.models import RunConfig
from simulation.configuration.strict_yaml import parse_yaml, read_yaml
from simulation.storage.atomic import write_atomically
from simulation.storage.channel_file import read_channel, write_channel
from simulation.storage.checkpoints import CHECKPOINT, Checkpoints
from simulation.storage.ledger_file import read_ledger, write_ledger
from simulation.storage.names import (
    AUDIT,
    CHANNEL,
    COMPARISON,
    CONFIG,
    FIGURES,
    LEDGER,
    PREDICTIONS,
    REPORT,
    ROUNDS,
    SUMMARY,
    TABLE,
    TRAFFIC,
)
from simulation.storage.run_record import Columns, RunRecord, prediction_columns

_ROWS_AT_ONCE = 1 << 16
_IDENTIFIERS = ("user", "item")
_FRACTIONS = ("rating", "prediction", "epsilon_per_rating", "epsilon_per_user")


_OTHERS = (TRAFFIC, PREDICTIONS, ROUNDS, CHANNEL, LEDGER, REPORT, FIGURES, COMPARISON, TABLE, AUDIT)
"""Files that a directory without a configuration cannot owe to an interrupted run."""


class RunDirectory:
    """A directory that a run writes to.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def claim(cls, path: str | Path, config: RunConfig, *, resume: bool = False) -> RunDirectory:
        """Create a run's directory and write its configuration there.

        Parameters
        ----------
        path : str or Path
        config : RunConfig
        resume : bool
            Take over a directory in which the same configuration was interrupted, or finished.

        Raises
        ------
        InputError
            When it cannot be written, or already holds a run.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if (folder / SUMMARY).exists() and not resume:
                raise InputError(str(folder), "it holds a finished run", "a new directory")
            if (folder / CONFIG).exists():
                if not resume:
                    raise InputError(
                        str(folder), "it holds an unfinished run", "a new directory, or --resume"
                    )
                check_same_config(folder / CONFIG, config.to_yaml())
                _remove_leftovers(folder)
            elif held := [name for name in _OTHERS if (folder / name).exists()]:
                raise InputError(str(folder), f"it holds {held[0]} of something else", "a new directory")
            if not (folder / SUMMARY).exists():
                write_atomically(folder / CONFIG, config.to_yaml())
        except OSError as error:
            raise InputError(
                str(folder), f"cannot be written ({error.strerror})", "a writable directory"
            ) from None
        return cls(folder)

    def checkpoints(self, config: RunConfig, train: Ratings, test: Ratings) -> Checkpoints:
        """Return where the state of a run on these ratings is kept between rounds."""
        settings = flatten(parse_yaml(config.to_yaml(), "configuration"))
        depends = {key: value for key, value in settings.items() if _matters(key)}
        depends["digest of the ratings"] = fingerprint(train, test)
        return Checkpoints(self.path / CHECKPOINT, depends)

    @property
    def finished(self) -> bool:
        """Whether the directory holds a result."""
        return (self.path / SUMMARY).exists()

    def read(self, config: RunConfig, train: Ratings, test: Ratings) -> RunRecord:
        """Return the result that is kept here, of the ratings that it was made from.

        Raises
        ------
        InputError
            When a file cannot be read or is not about these ratings.
        """
        try:
            summary = json.loads((self.path / SUMMARY).read_text(encoding="utf-8"))
            rounds = [json.loads(line) for line in (self.path / ROUNDS).read_text("utf-8").splitlines()]
            if len(rounds) != summary["traffic"]["rounds"]:
                raise ValueError(f"{ROUNDS}: {len(rounds)} lines for {summary['traffic']['rounds']} rounds")
            traffic = _read_numbers(self.path / TRAFFIC, train.n_users)
            predictions = _read_numbers(self.path / PREDICTIONS, test.count)["prediction"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            accepted = f"the files of a run; without {SUMMARY}, --resume runs it again"
            raise InputError(str(self.path), f"a damaged result ({error})", accepted) from None
        return RunRecord(
            config=config,
            summary=summary,
            predictions=prediction_columns(test, predictions),
            traffic={"user": train.user_ids, **traffic},
            rounds=rounds,
            channel=read_channel(self.path),
            privacy=read_ledger(self.path),
        )

    def write(self, result: RunRecord) -> None:
        """Write the result; the summary comes last, so that its presence means a finished run."""
        try:
            write_atomically(self.path / TRAFFIC, _csv(result.traffic))
            write_atomically(self.path / PREDICTIONS, _csv(result.predictions))
            write_atomically(self.path / ROUNDS, (json.dumps(line) + "\n" for line in result.rounds))
            write_ledger(self.path, result.privacy)
            if result.channel is not None:
                write_channel(self.path, result.channel)
            summary = json.dumps(result.summary, indent=2, allow_nan=False) + "\n"
            write_atomically(self.path / SUMMARY, summary)
            (self.path / CHECKPOINT).unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"{self.path}: the result cannot be written ({error.strerror})") from None


_COSMETIC = re.compile(r"(cells\..+-seed\d+\.)?simulation\.(?!faults\b)|(title|published|noise_samples)\b")
"""Keys that change no figure: how a run is simulated, but for the faults, and what a page shows."""


def check_same_config(path: Path, text: str) -> None:
    """Refuse to go on with what another configuration began.

    Raises
    ------
    InputError
        Naming the first key that differs.
    """
    before, now = flatten(read_yaml(path)), flatten(parse_yaml(text, "configuration"))
    for key in {**now, **before}:
        if before.get(key) != now.get(key) and _matters(key):
            found = f"{before.get(key)!r} there and {now.get(key)!r} now"
            raise InputError(f"{path}: {key}", found, "the configuration it began with, or a new directory")


def _matters(key: str) -> bool:
    """Tell whether a figure depends on a key."""
    return _COSMETIC.match(key) is None


def fingerprint(*parts: Ratings) -> str:
    """Return what tells ratings, such as train and test, from others, whatever file they are from."""
    digest = hashlib.sha256()
    for ratings in parts:
        exact = ratings.scale.values if ratings.exact is None else ratings.exact
        columns = ratings.user_ids, ratings.item_ids, ratings.indptr, ratings.items, ratings.levels, exact
        for column in columns:
            digest.update(str((column.dtype, column.shape)).encode())
            digest.update(column.tobytes())
    return digest.hexdigest()[:16]


def _remove_leftovers(folder: Path) -> None:
    """Remove what a run left behind that was killed while it wrote a file, or at its very end."""
    if (folder / SUMMARY).exists():
        (folder / CHECKPOINT).unlink(missing_ok=True)
    for name in (CONFIG, SUMMARY, ROUNDS, TRAFFIC, PREDICTIONS, CHANNEL, LEDGER, CHECKPOINT):
        for temporary in folder.glob(f".{name}-*"):
            temporary.unlink(missing_ok=True)


def timestamped(name: str) -> Path:
    """Return the directory of a run that was given none: runs/NAME-TIMESTAMP."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder, again = Path("runs") / f"{name}-{stamp}", 1
    while folder.exists():
        again += 1
        folder = Path("runs") / f"{name}-{stamp}-{again}"
    return folder


def _csv(columns: Columns) -> Iterable[str]:
    """Yield the lines of a table; numbers that do not apply are left empty."""
    yield ",".join(columns) + "\n"
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, _ROWS_AT_ONCE):
        text = io.StringIO()
        cells = [_cells(column[start : start + _ROWS_AT_ONCE]) for column in columns.values()]
        csv.writer(text, lineterminator="\n").writerows(zip(*cells, strict=True))
        yield text.getvalue()


def _read_numbers(path: Path, rows: int) -> Columns:
    """Return the columns of a table that hold numbers; NaN where a cell is empty."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    if len(lines) != rows or any(len(line) != len(header) for line in lines):
        raise ValueError(f"{path.name}: {len(lines)} lines, or some of them cut short, for {rows} rows")
    texts = dict(zip(header, zip(*lines, strict=True), strict=True))
    return {
        name: np.array([float(text or "nan") for text in column])
        if name in _FRACTIONS
        else np.array([int(text) for text in column], dtype=np.int64)
        for name, column in texts.items()
        if name not in _IDENTIFIERS
    }


def _cells(column: NDArray[Any]) -> list[Any]:
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [value if known else "" for value, known in zip(values, np.isfinite(column), strict=True)]
    return values
