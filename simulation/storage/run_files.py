"""The contents of a run directory, read from its files alone and checked against the summary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.errors import InputError
from dprec.reports import DeviceChannel
from simulation.configuration.strict_yaml import read_yaml
from simulation.storage.directories import (
    CHANNEL,
    COMPARISON,
    CONFIG,
    LEDGER,
    PREDICTIONS,
    ROUNDS,
    SUMMARY,
    TABLE,
    TRAFFIC,
)
from simulation.storage.files import FROM_RUN, check_recorded, read_text
from simulation.storage.run_files import ExampleUser, RunRecord, parse_rounds, read_channel, read_example
from simulation.storage.summary import Summary, read_summary
from simulation.storage.tables import Columns, read_columns
from strategies.round_record import RoundRecord

_TRAFFIC_TYPES: dict[str, type[np.number[Any]]] = {
    "ratings": np.float64,
    "uplink_payload_bytes": np.int64,
    "uplink_message_bytes": np.int64,
    "downlink_payload_bytes": np.int64,
    "downlink_message_bytes": np.int64,
    "uplink_network_bytes": np.int64,
    "downlink_network_bytes": np.int64,
    "messages": np.int64,
    "epsilon_per_rating": np.float64,
    "epsilon_per_user": np.float64,
    "epsilon_composed": np.float64,
}
_PREDICTION_TYPES: dict[str, type[np.number[Any]]] = {"rating": np.float64, "prediction": np.float64}


@dataclass(frozen=True, eq=False)
class RunFiles:
    """A run as stored in its directory."""

    config: dict[str, Any]
    """As in config.yaml."""
    summary: Summary
    rounds: tuple[RoundRecord, ...]
    traffic: Columns
    """The numeric columns of traffic.csv; a number that does not apply is NaN; shape (users,)."""
    predictions: Columns
    """The columns rating and prediction; shape (test ratings,)."""
    channel: DeviceChannel | None
    """The channel that the devices applied to their ratings; None if it adds no noise."""
    example: ExampleUser | None = None
    """Some of a user's predictions."""

    @classmethod
    def of(cls, record: RunRecord) -> RunFiles:
        """Return a run as its directory would store it."""
        return cls(
            config=record.config.model_dump(mode="json"),
            summary=record.summary,
            rounds=record.rounds,
            traffic={name: _finite(record.traffic[name]) for name in _TRAFFIC_TYPES},
            predictions={name: _finite(record.predictions[name]) for name in _PREDICTION_TYPES},
            channel=record.channel,
        )

    @property
    def bytes_per_user(self) -> NDArray[np.float64]:
        """Bytes of every user's messages, both directions together."""
        return bytes_per_user(self.traffic)


def bytes_per_user(traffic: Columns) -> NDArray[np.float64]:
    """Return the bytes of every user's messages, both directions together."""
    return (traffic["uplink_message_bytes"] + traffic["downlink_message_bytes"]).astype(np.float64)


def network_bytes_per_user(traffic: Columns) -> NDArray[np.float64]:
    """Return the bytes that a network would carry for every user, both directions together."""
    return (traffic["uplink_network_bytes"] + traffic["downlink_network_bytes"]).astype(np.float64)


def holds_comparison(directory: Path) -> bool:
    """Return whether a directory holds a comparison; False if it holds a run.

    Raises
    ------
    InputError
        When it holds neither, or an unfinished one.
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
        Naming the file that is damaged, or that is not the one written with the summary.
    """
    summary = read_summary(directory)
    # No page shows the history of charges, but a page should not look whole if it was changed.
    checked(directory, summary, LEDGER)
    predictions = checked(directory, summary, PREDICTIONS)
    return RunFiles(
        config=read_yaml(directory / CONFIG),
        summary=summary,
        rounds=read_rounds(directory, summary),
        traffic=read_traffic(directory, summary),
        predictions=read_columns(predictions, _PREDICTION_TYPES, FROM_RUN),
        channel=read_device_channel(directory, summary),
        example=read_example(predictions),
    )


def read_rounds(directory: Path, summary: Summary) -> tuple[RoundRecord, ...]:
    """Read rounds.jsonl."""
    path = checked(directory, summary, ROUNDS)
    return parse_rounds(read_text(path), str(path))


def read_traffic(directory: Path, summary: Summary) -> Columns:
    """Read the numeric columns of traffic.csv."""
    return read_columns(checked(directory, summary, TRAFFIC), _TRAFFIC_TYPES, FROM_RUN)


def read_predictions(directory: Path, summary: Summary) -> Columns:
    """Read the columns user, rating and prediction of predictions.csv."""
    types: dict[str, type[np.generic]] = {"user": np.str_, **_PREDICTION_TYPES}
    return read_columns(checked(directory, summary, PREDICTIONS), types, FROM_RUN)


def read_device_channel(directory: Path, summary: Summary) -> DeviceChannel | None:
    """Read channel.npz; None if the devices of the run had no channel."""
    return read_channel(checked(directory, summary, CHANNEL).parent) if CHANNEL in summary.files else None


def checked(directory: Path, summary: Summary, name: str) -> Path:
    """Return the path of a file of a run, after checking that it is the one written with the summary."""
    path = directory / name
    check_recorded(path, summary.files.get(name))
    return path


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isfinite(values), values, np.nan) if values.dtype.kind == "f" else values
