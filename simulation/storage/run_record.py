"""The record of a run: the contents of its directory, with the data set's own ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dprec.privacy.ledger import PrivacyLedger
from dprec.ratings import Ratings
from dprec.reports import DeviceChannel
from dprec.wire import NetworkOptions, network_bytes
from simulation.configuration.models import RunConfig
from simulation.protocols.outcome import ServerOutcome
from simulation.storage.summary import Summary
from simulation.storage.tables import Columns
from strategies.round_record import RoundRecord


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a run produces."""

    config: RunConfig
    summary: Summary
    predictions: Columns
    traffic: Columns
    """The columns of predictions.csv and traffic.csv."""
    rounds: tuple[RoundRecord, ...]
    channel: DeviceChannel | None
    """The channel that the devices applied to their ratings; None if it adds no noise."""
    privacy: PrivacyLedger
    """Every charge to a user's privacy, round by round."""


def prediction_columns(test: Ratings, predictions: NDArray[np.float64]) -> Columns:
    """Return the columns of predictions.csv."""
    return {
        "user": test.user_ids[test.users],
        "item": test.item_ids[test.items],
        "rating": test.values,
        "prediction": predictions,
    }


def traffic_columns(
    users: NDArray[Any],
    counts: NDArray[Any],
    outcome: ServerOutcome,
    composed: NDArray[np.float64],
    network: NetworkOptions,
) -> Columns:
    """Return the columns of traffic.csv; a number that does not apply is NaN or infinite.

    Parameters
    ----------
    users, counts : ndarray, shape (users,)
        The data set's own ids, and the ratings of each user; NaN where nobody knows them.
    composed : ndarray of float64, shape (users,)
        The users' losses by composition.
    """
    traffic, privacy = outcome.traffic, outcome.privacy
    up, down = network_bytes(traffic, network.contacts(traffic.requests))
    return {
        "user": users,
        "ratings": counts,
        "uplink_payload_bytes": traffic.uplink_payload,
        "uplink_message_bytes": traffic.uplink_message,
        "downlink_payload_bytes": traffic.downlink_payload,
        "downlink_message_bytes": traffic.downlink_message,
        "uplink_network_bytes": up,
        "downlink_network_bytes": down,
        "messages": traffic.messages,
        "epsilon_per_rating": privacy.per_rating,
        "epsilon_per_user": privacy.per_user,
        "epsilon_composed": composed,
    }
