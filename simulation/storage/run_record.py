"""The record of a run: the summary and the columns that the run directory holds."""

from __future__ import annotations

import math
import platform
import resource
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.privacy.device_channel import DeviceChannel
from dprec.privacy.ledger import PrivacyLedger
from dprec.ratings import Ratings
from simulation.configuration.models import RunConfig
from simulation.protocols import Outcome

SCHEMA = 1

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run leaves behind.

    Parameters
    ----------
    config : RunConfig
    summary : dict
        As in summary.json.
    predictions, traffic : dict of ndarray
        The columns of predictions.csv and traffic.csv.
    rounds : list of dict
        The lines of rounds.jsonl.
    channel : DeviceChannel or None
        What the devices applied to their ratings, where that is a channel that adds noise.
    privacy : PrivacyLedger
        Every charge to a user's privacy, round by round.
    """

    config: RunConfig
    summary: dict[str, Any]
    predictions: Columns
    traffic: Columns
    rounds: list[dict[str, Any]]
    channel: DeviceChannel | None
    privacy: PrivacyLedger


def prediction_columns(test: Ratings, predictions: NDArray[np.float64]) -> Columns:
    """Return the columns of predictions.csv."""
    return {
        "user": test.user_ids[test.users],
        "item": test.item_ids[test.items],
        "rating": test.values,
        "prediction": predictions,
    }


def traffic_columns(train: Ratings, outcome: Outcome) -> Columns:
    """Return the columns of traffic.csv; NaN and infinities are numbers that do not apply."""
    traffic, privacy = outcome.traffic, outcome.privacy
    return {
        "user": train.user_ids,
        "ratings": train.counts,
        "uplink_payload_bytes": traffic.uplink_payload,
        "uplink_message_bytes": traffic.uplink_message,
        "downlink_payload_bytes": traffic.downlink_payload,
        "downlink_message_bytes": traffic.downlink_message,
        "messages": traffic.messages,
        "epsilon_per_rating": privacy.per_rating,
        "epsilon_per_user": privacy.per_user,
    }


def round_lines(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the lines of rounds.jsonl."""
    return [
        {
            "round": record.round,
            "replies": record.replies,
            "failures": record.failures,
            "accuracy": record.accuracy,
            "uplink": {
                "payload_bytes": record.uplink_payload_bytes,
                "message_bytes": record.uplink_message_bytes,
            },
            "downlink": {
                "payload_bytes": record.downlink_payload_bytes,
                "message_bytes": record.downlink_message_bytes,
            },
            "seconds": record.seconds,
        }
        for record in outcome.rounds
    ]


def summarise(
    config: RunConfig,
    train: Ratings,
    test: Ratings,
    outcome: Outcome,
    accuracy: dict[str, float | None],
    startup_seconds: float,
    total_seconds: float,
) -> dict[str, Any]:
    """Return the contents of summary.json; a number that does not apply is None."""
    guarantee, traffic = outcome.guarantee, outcome.traffic
    return {
        "schema": SCHEMA,
        "name": config.name,
        "protocol": config.protocol.kind,
        "mechanism": config.protocol.mechanism_name,
        "completion": config.protocol.completion_name,
        "dataset": {
            "kind": config.dataset.kind,
            "users": train.n_users,
            "items": train.n_items,
            "train_ratings": train.count,
            "test_ratings": test.count,
            "scale": [train.scale.low, train.scale.high],
            "levels": train.scale.values.tolist(),
            "binarized_above": train.scale.cut,
            "users_only_in_test": _only_in_test(train.users, test.users),
            "items_only_in_test": _only_in_test(train.items, test.items),
        },
        "accuracy": accuracy,
        "privacy": {
            "epsilon_per_rating": _finite(np.nanmax(outcome.privacy.per_rating, initial=-math.inf)),
            "epsilon_per_user": _spread(outcome.privacy.per_user),
            "trusts_server": guarantee.trusts_server,
            "hides_rated_items": guarantee.hides_rated_items,
            "notes": [*guarantee.notes, *_note_on_signs(config, train), *outcome.notes],
        },
        "traffic": {
            "rounds": len(outcome.rounds),
            "users": train.n_users,
            "uplink": _direction(traffic.uplink_payload, traffic.uplink_message),
            "downlink": _direction(traffic.downlink_payload, traffic.downlink_message),
            "deployed_factor": outcome.deployed_factor,
        },
        "distance": outcome.distance,
        "completion_diagnostics": outcome.diagnostics,
        "time": {
            "total_s": total_seconds,
            "startup_s": startup_seconds,
            "clients_s": outcome.clients_seconds,
            "server_s": outcome.server_seconds,
        },
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{package: version(package) for package in ("dprec", "flwr", "ray", "numpy", "scipy")},
            "simulation": asdict(config.simulation),
        },
    }


def _note_on_signs(config: RunConfig, train: Ratings) -> tuple[str, ...]:
    """Say where ratings were cut into signs, and that the cut itself is not protected."""
    if config.binarization is None:
        return ()
    origin = "the mean train rating" if config.binarization.kind == "mean" else "as configured"
    return (
        f"A rating above {train.scale.cut:.6g} ({origin}) counts as +1, any other as -1; everybody is taken "
        "to know where the cut is.",
    )


def _only_in_test(train: NDArray[np.integer], test: NDArray[np.integer]) -> int:
    return int(np.setdiff1d(test, train).size)


def _direction(payload: NDArray[np.int64], message: NDArray[np.int64]) -> dict[str, float]:
    return {
        "payload_bytes": int(payload.sum()),
        "message_bytes": int(message.sum()),
        "payload_mean_per_user": float(payload.mean()),
        "payload_max_per_user": int(payload.max()),
        "message_mean_per_user": float(message.mean()),
        "message_p95_per_user": float(np.percentile(message, 95)),
        "message_max_per_user": int(message.max()),
    }


def _spread(values: NDArray[np.float64]) -> dict[str, float | None]:
    return {
        "max": _finite(values.max()),
        "mean": _finite(values.mean()),
        "median": _finite(np.median(values)),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
