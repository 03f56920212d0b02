"""What a page is made of, read from the files of a run directory or of a comparison directory alone."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.privacy.device_channel import DeviceChannel
from dprec.privacy.units import ComparableUnit, unit_from_text
from simulation.analysis.settings import Setting, read_rows, read_settings
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.channel_file import read_channel
from simulation.storage.names import (
    CELLS,
    COMPARISON,
    CONFIG,
    PREDICTIONS,
    ROUNDS,
    SUMMARY,
    TABLE,
    TIMINGS,
    TRAFFIC,
    cell_key,
)
from simulation.storage.run_record import RunRecord
from simulation.storage.tables import Row

TRAFFIC_COLUMNS = (
    "ratings",
    "uplink_payload_bytes",
    "uplink_message_bytes",
    "downlink_payload_bytes",
    "downlink_message_bytes",
    "messages",
    "epsilon_per_rating",
    "epsilon_per_user",
)

Numbers = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class RunFiles:
    """A run.

    Parameters
    ----------
    config : dict
        As in config.yaml.
    summary : dict
        As in summary.json.
    rounds : list of dict
        The lines of rounds.jsonl.
    traffic : dict of ndarray of float64, shape (users,)
        The numeric columns of traffic.csv; NaN does not apply.
    predictions : dict of ndarray of float64, shape (test ratings,)
        rating and prediction.
    channel : DeviceChannel or None
        What the devices applied to their ratings, where that is a channel that adds noise.
    """

    config: dict[str, Any]
    summary: dict[str, Any]
    rounds: list[dict[str, Any]]
    traffic: Numbers
    predictions: Numbers
    channel: DeviceChannel | None

    @classmethod
    def of(cls, result: RunRecord) -> RunFiles:
        """Return what the run directory of a result would hold."""
        return cls(
            config=result.config.model_dump(mode="json"),
            summary=result.summary,
            rounds=result.rounds,
            traffic={name: _finite(result.traffic[name]) for name in TRAFFIC_COLUMNS},
            predictions={name: _finite(result.predictions[name]) for name in ("rating", "prediction")},
            channel=result.channel,
        )

    @property
    def bytes_per_user(self) -> NDArray[np.float64]:
        """Bytes of every user's messages, both directions together."""
        return self.traffic["uplink_message_bytes"] + self.traffic["downlink_message_bytes"]


@dataclass(frozen=True, eq=False)
class ComparisonFiles:
    """A comparison.

    Parameters
    ----------
    directory : Path
    config : dict
        As in comparison.yaml.
    settings : list of Setting
        From comparison.csv.
    timings : list of Setting
        From timing.csv; empty where there is none.
    """

    directory: Path
    config: dict[str, Any]
    settings: list[Setting]
    timings: list[Setting]

    def cells(self, setting: Setting) -> list[Path]:
        """Return the run directories of a setting that are there, in the order of its lines."""
        folders = [
            self.directory / CELLS / cell_key(setting.name, setting.budget, row["fold"], row["seed"])
            for row in setting.rows
        ]
        # A table may come from anywhere; its names must not lead out of its directory.
        inside = [folder for folder in folders if folder.parent == self.directory / CELLS]
        return [folder for folder in inside if (folder / SUMMARY).is_file()]

    @cached_property
    def summaries(self) -> dict[str, list[dict[str, Any]]]:
        """The summaries of every protocol's cells, by the protocol's name."""
        found: dict[str, list[dict[str, Any]]] = {}
        for setting in self.settings:
            read = [read_summary(folder) for folder in self.cells(setting)]
            found.setdefault(setting.name, []).extend(read)
        return found

    @property
    def matched_unit(self) -> ComparableUnit:
        """The unit in which every protocol was given the same epsilon."""
        return "user" if unit_from_text(at(self.config, "match", "epsilon")) == "user" else "rating"

    @property
    def unfinished(self) -> list[str]:
        """Keys of the cells that the configuration asks for and the table does not hold."""
        held = {
            cell_key(setting.name, setting.budget, row["fold"], row["seed"])
            for setting in self.settings
            for row in setting.rows
        }
        planned = self.config.get("cells")
        return [str(key) for key in planned if key not in held] if isinstance(planned, dict) else []


def holds_comparison(directory: Path) -> bool:
    """Return whether a directory is a comparison's; False for a run's.

    Raises
    ------
    InputError
        When it is neither, or unfinished.
    """
    accepted = "the directory of a finished run or comparison"
    if not directory.is_dir():
        raise InputError(str(directory), "no such directory", accepted)
    if (directory / TABLE).is_file():
        return True
    if (directory / SUMMARY).is_file():
        return False
    if (directory / COMPARISON).is_file():
        raise InputError(str(directory), "a comparison without a finished cell", accepted)
    if (directory / CONFIG).is_file():
        raise InputError(str(directory), "an unfinished run", accepted)
    raise InputError(str(directory), f"neither {SUMMARY} nor {TABLE}", accepted)


def read_run(directory: Path) -> RunFiles:
    """Read a run directory.

    Raises
    ------
    InputError
        Naming the file, and the line where there are lines.
    """
    return RunFiles(
        config=read_yaml(directory / CONFIG),
        summary=read_summary(directory),
        rounds=read_rounds(directory),
        traffic=read_traffic(directory),
        predictions=_read_numbers(directory / PREDICTIONS, ("rating", "prediction")),
        channel=read_channel(directory),
    )


def read_comparison(directory: Path) -> ComparisonFiles:
    """Read a comparison directory; its cells are read when they are asked for.

    Raises
    ------
    InputError
    """
    timings = directory / TIMINGS
    rows: Sequence[Row] = read_rows(timings, ("name", "epsilon")) if timings.is_file() else ()
    grouped: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["name"], row["epsilon"]), []).append(row)
    config = directory / COMPARISON
    return ComparisonFiles(
        directory=directory,
        config=read_yaml(config) if config.is_file() else {},
        settings=read_settings(directory / TABLE),
        timings=[Setting(name, budget, tuple(lines)) for (name, budget), lines in grouped.items()],
    )


def read_summary(directory: Path) -> dict[str, Any]:
    """Read summary.json and check that it holds what pages are made of."""
    path = directory / SUMMARY
    summary = read_json(path)
    for keys, accepted, words in _SUMMARY:
        value = at(summary, *keys)
        if not isinstance(value, accepted) or isinstance(value, bool) is not (accepted is bool):
            raise InputError(f"{path}: {'.'.join(keys)}", repr(value), words)
    return summary


_NUMBER, _COUNT = (int, float), int
_SPENT = ("message_mean_per_user", "message_p95_per_user", "message_max_per_user")
_SUMMARY: list[tuple[tuple[str, ...], Any, str]] = [
    (("name",), str, "text"),
    (("protocol",), str, "text"),
    *((("dataset", key), _COUNT, "a count") for key in ("users", "items", "train_ratings", "test_ratings")),
    (("dataset", "kind"), str, "text"),
    (("dataset", "scale"), list, "[low, high]"),
    (("accuracy",), dict, "a mapping"),
    *((("privacy", key), bool, "true or false") for key in ("trusts_server", "hides_rated_items")),
    (("privacy", "epsilon_per_rating"), (*_NUMBER, type(None)), "a number or null"),
    (("privacy", "epsilon_per_user"), dict, "a mapping"),
    (("privacy", "notes"), list, "a list of notes"),
    (("traffic", "rounds"), _COUNT, "a count"),
    (("traffic", "users"), _COUNT, "a count"),
    *((("traffic", way, key), _NUMBER, "a number") for way in ("uplink", "downlink") for key in _SPENT),
    *((("time", key), _NUMBER, "seconds") for key in ("total_s", "startup_s", "clients_s", "server_s")),
    (("peak_memory_mb",), _NUMBER, "a number"),
    (("environment",), dict, "a mapping"),
]
"""Where summary.json holds what, its type and that type in words."""


def read_rounds(directory: Path) -> list[dict[str, Any]]:
    """Read rounds.jsonl."""
    path = directory / ROUNDS
    return [
        _parsed(line, f"{path}, line {position}")
        for position, line in enumerate(_text(path).splitlines(), start=1)
        if line.strip()
    ]


def read_traffic(directory: Path) -> Numbers:
    """Read the numeric columns of traffic.csv."""
    return _read_numbers(directory / TRAFFIC, TRAFFIC_COLUMNS)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one object."""
    return _parsed(_text(path), str(path))


def at(values: Any, *keys: str) -> Any:
    """Return what nested mappings hold under keys; None where there is nothing."""
    for key in keys:
        if not isinstance(values, Mapping):
            return None
        values = values.get(key)
    return values


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(where, str(error), "a JSON object") from None
    if not isinstance(value, dict):
        raise InputError(where, "a list" if isinstance(value, list) else "a single value", "a JSON object")
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError(str(path), str(reason), "a file that `dprec run` wrote") from None


def _read_numbers(path: Path, columns: Sequence[str]) -> Numbers:
    """Read columns of a CSV file as numbers; an empty cell is NaN."""
    values: list[list[str]] = [[] for _ in columns]
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            missing = [column for column in columns if column not in header]
            if missing:
                raise InputError(str(path), f"no column {missing[0]}", "a file that `dprec run` wrote")
            places = [header.index(column) for column in columns]
            for line in reader:
                if len(line) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}", f"{len(line)} cells", f"{len(header)}"
                    )
                for place, column in zip(places, values, strict=True):
                    column.append(line[place] or "nan")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(str(path), str(reason), "a file that `dprec run` wrote") from None
    if not values[0]:
        raise InputError(str(path), "no lines", "at least one")
    try:
        return {
            name: np.array(column, dtype=np.float64) for name, column in zip(columns, values, strict=True)
        }
    except ValueError as error:
        raise InputError(str(path), str(error), "numbers") from None


def _finite(values: NDArray[Any]) -> NDArray[np.float64]:
    numbers = values.astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
