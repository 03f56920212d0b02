"""Runs a protocol on the people of an experiment and collects what their devices send."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dprec.accounting import COMPARABLE_UNITS, ComparableUnit
from dprec.auditing import Sent
from dprec.datasets import Synthetic
from dprec.ratings import Ratings
from simulation.auditing.byte_features import byte_features
from simulation.auditing.decoding import decoder_of
from simulation.configuration.models import RunConfig, SimulationOptions
from simulation.engine.session import open_overheard_session
from simulation.execution import run_in
from simulation.protocols.base import Protocol
from simulation.protocols.iterative import IterativeProtocol
from simulation.storage.run_files import RunRecord
from strategies.arrivals import arrivals_of

_MOST_FEATURES = 64


@dataclass(frozen=True, eq=False)
class Overheard:
    """What the people of a population sent, and what they were charged."""

    reports: list[list[bytes]]
    """By round, then by person."""
    symbols: list[NDArray[np.int64]]
    """The symbols in them, by round; empty if there are none; shape (people, items)."""
    charged: dict[ComparableUnit, float]
    """Largest loss in the ledger, by unit."""

    def symbols_of(self, item: int) -> list[NDArray[np.int64]]:
        """Return the symbols of one item, by round."""
        return [symbols[:, item] for symbols in self.symbols]

    def by_profile(self, profiles: int) -> list[Sent]:
        """Return what people of each profile sent, if the profiles take turns."""
        share = _MOST_FEATURES // max(1, len(self.reports))
        features = [byte_features(reports, share) for reports in self.reports]
        columns = [column for symbols in self.symbols for column in symbols.T]
        whole = np.column_stack([*features, *columns]).astype(np.float32)
        rounds = [numbered(reports, {}) for reports in self.reports]
        return [
            Sent(
                tuple(column[turn::profiles] for column in rounds),
                tuple(column[turn::profiles] for column in columns),
                whole[turn::profiles],
            )
            for turn in range(profiles)
        ]


def reduced(config: RunConfig) -> RunConfig:
    """Return a configuration with as little work as possible, but the same reports.

    Raises
    ------
    SettingError
        When the devices do not protect what they send.
    """
    place = config.simulation.population_dir
    alone = SimulationOptions(backend="local", workers=1, users_per_node="all", population_dir=place)
    small = {"protocol": config.protocol.audited(), "dataset": Synthetic(), "simulation": alone}
    return config.model_copy(update=small)


def fitting(config: RunConfig, people: Ratings) -> RunConfig:
    """Return a reduced configuration for a small catalogue: a factorisation has fewer factors than items."""
    protocol = config.protocol
    if not isinstance(protocol, IterativeProtocol):
        return config
    smaller = replace(protocol, rank=min(protocol.rank, people.n_items - 1))
    return config.model_copy(update={"protocol": smaller})


def overhear(config: RunConfig, people: Ratings) -> Overheard:
    """Run a reduced configuration on people and listen to their devices."""
    config = fitting(config, people)
    protocol = config.protocol
    with open_overheard_session(config.simulation.population_dir) as heard:
        # Devices send the same whatever is predicted, so a single prediction is enough.
        tested = people.select(np.arange(people.count) == 0)
        result = run_in(heard.session, config, people, tested)
    arrivals = (arrivals_of(reply, 0, np.arange(people.n_users)) for reply in heard.replies)
    rounds = [arrived.reports for arrived in arrivals if arrived is not None]
    return Overheard(
        rounds,
        _decoded(rounds, protocol, protocol.held_ratings(people, config.seed)),
        _charged(result),
    )


def _charged(record: RunRecord) -> dict[ComparableUnit, float]:
    """Return the largest loss that a run charges, or that a class from outside declares it to be."""
    privacy = record.summary.privacy
    if privacy.status == "declared":
        declared = {"rating": privacy.epsilon_claimed.per_rating, "user": privacy.epsilon_claimed.per_user}
        return {unit: math.inf if (loss := declared[unit]) is None else loss for unit in COMPARABLE_UNITS}
    return {unit: float(np.nanmax(record.traffic[f"epsilon_per_{unit}"])) for unit in COMPARABLE_UNITS}


def _decoded(rounds: list[list[bytes]], protocol: Protocol, people: Ratings) -> list[NDArray[np.int64]]:
    decode = decoder_of(protocol, people)
    return [] if decode is None else [decode(number, reports) for number, reports in enumerate(rounds)]


def numbered(reports: list[bytes], numbers: dict[bytes, int]) -> NDArray[np.int64]:
    """Return one number per report, equal for equal bytes.

    Parameters
    ----------
    numbers : dict
        The numbers that reports have already; new ones are added.
    """
    return np.array([numbers.setdefault(report, len(numbers)) for report in reports], dtype=np.int64)
