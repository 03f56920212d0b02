"""Audits what devices send: how reliably it distinguishes two neighbouring profiles.

Two groups of people take part in the protocol in this process, as in a run: everybody in the first group
has the same profile of a single rating, everybody in the second a neighbouring profile, and what their
devices send is compared. Only the promise is taken from the mechanism's description, so that defects in
devices, noise or wire format can show. Two things are not audited: what the server does with the reports,
and how a budget per user is divided among many ratings.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprec.datasets.synthetic import Synthetic
from dprec.errors import InputError, within
from dprec.privacy.audit import loss_at_least
from dprec.privacy.units import COMPARABLE_UNITS, ComparableUnit, PrivacyUnit
from dprec.progress import Progress
from dprec.ragged import offsets
from dprec.ratings import Ratings, RatingScale
from simulation.configuration.models import RunConfig, SimulationOptions
from simulation.engine.overhearing import open_overheard_session
from simulation.execution import load_ratings, run_in
from simulation.storage.atomic import write_atomically
from simulation.storage.names import AUDIT
from simulation.storage.run_directory import RunDirectory
from strategies.arrivals import arrivals_of

SCHEMA = 1

_LEAST_TRIALS = 100


@dataclass(frozen=True)
class Finding:
    """How reliably an audit could distinguish two profiles.

    Parameters
    ----------
    difference : str
        How the profiles differ, in words.
    unit : {"rating", "cell", "user"}
        Unit of the promise.
    claimed : float
        Epsilon that the ledger charges.
    at_least : float
        Lower bound on the true epsilon, at the audit's confidence.
    """

    difference: str
    unit: PrivacyUnit
    claimed: float
    at_least: float

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against the promise."""
        return self.at_least <= self.claimed


@dataclass(frozen=True)
class Audit:
    """The result of an audit.

    Parameters
    ----------
    name, protocol, mechanism : str
    trials : int
        Number of people per profile.
    confidence : float
        Probability with which each lower bound holds.
    findings : tuple of Finding
    """

    name: str
    protocol: str
    mechanism: str
    trials: int
    confidence: float
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Whether there is no evidence against any of the promises."""
        return all(finding.holds for finding in self.findings)

    def to_json(self) -> str:
        """Return the contents of audit.json."""
        values = {"schema": SCHEMA, **asdict(self), "holds": self.holds}
        return json.dumps(values, indent=2) + "\n"


def audit_protocol(
    config: RunConfig, output: str | Path | None, *, trials: int, confidence: float, progress: Progress
) -> Audit:
    """Audit the promise of a configuration's protocol; see `simulation.audit`."""
    if trials < _LEAST_TRIALS:
        raise InputError("--trials", str(trials), f"at least {_LEAST_TRIALS}")
    if not 0 < confidence < 1:
        raise InputError("--confidence", f"{confidence:g}", "a number between 0 and 1")
    progress("auditing", 0, 2)
    experiment = _Experiment.of(config, trials, confidence)
    lowest, highest, unrated = 1, experiment.scale.levels, 0
    sent = experiment.sent_by((lowest, highest))
    findings = [experiment.finding("lowest or highest rating of an item", "rating", sent)]
    progress("auditing", 1, 2)
    if sent.hides_rated_items:
        sent = experiment.sent_by((highest, unrated))
        # The catalogue of a promise per cell has one item, so that the loss per cell is that per user.
        findings.append(experiment.finding("item rated or not", _unit(config), sent))
    progress("auditing", 2, 2)
    protocol = config.protocol
    result = Audit(config.name, protocol.kind, protocol.mechanism_name, trials, confidence, tuple(findings))
    if output is not None:
        directory = RunDirectory.claim(output, config)
        write_atomically(directory.path / AUDIT, result.to_json())
    return result


def _unit(config: RunConfig) -> PrivacyUnit:
    """Return the unit in which a protocol that hides the rated items promises epsilon."""
    budget = config.protocol.privacy
    return "user" if budget is not None and budget.per == "user" else "cell"


@dataclass(frozen=True, eq=False)
class _Sent:
    """What a population sent, and what it was promised.

    Parameters
    ----------
    reports : list of ndarray of int64, shape (people,)
        One array per round; equal reports have equal numbers.
    claimed : dict
        Largest loss in the ledger, by unit.
    hides_rated_items : bool
    """

    reports: list[NDArray[np.int64]]
    claimed: dict[ComparableUnit, float]
    hides_rated_items: bool


@dataclass(frozen=True)
class _Experiment:
    """A protocol, reduced for an audit.

    Parameters
    ----------
    config : RunConfig
        With as little work as possible, but the same reports.
    scale : RatingScale
        Rating scale of the configuration's data set.
    items : int
        Size of the catalogue.
    trials : int
        Number of people per profile.
    confidence : float
    """

    config: RunConfig
    scale: RatingScale
    items: int
    trials: int
    confidence: float

    @classmethod
    def of(cls, config: RunConfig, trials: int, confidence: float) -> _Experiment:
        """Check a configuration as a run would, and reduce it."""
        with within("protocol"):
            protocol, items = config.protocol.audited()
        train, _ = load_ratings(config)
        with within("protocol"):
            config.protocol.check(train)
        alone = SimulationOptions(backend="local", workers=1, users_per_node="all")
        small = {"protocol": protocol, "dataset": Synthetic(), "simulation": alone}
        return cls(config.model_copy(update=small), train.scale, items, trials, confidence)

    def sent_by(self, levels: tuple[int, int]) -> _Sent:
        """Run the protocol on people whose profiles have the first and the second level alternately."""
        people = self._population(levels)
        with open_overheard_session() as (session, replies):
            result = run_in(session, self.config, people, people)
        arrivals = (arrivals_of(reply, 0, np.arange(people.n_users)) for reply in replies)
        losses = {unit: result.traffic[f"epsilon_per_{unit}"] for unit in COMPARABLE_UNITS}
        return _Sent(
            [_numbered(arrived.reports) for arrived in arrivals if arrived is not None],
            {unit: float(np.nanmax(loss)) for unit, loss in losses.items()},
            result.summary.privacy.hides_rated_items,
        )

    def finding(self, difference: str, unit: PrivacyUnit, sent: _Sent) -> Finding:
        """Compare what people of the two profiles sent with what they were promised."""
        one, other = ([reports[side::2] for reports in sent.reports] for side in (0, 1))
        claimed = sent.claimed["rating" if unit == "rating" else "user"]
        return Finding(difference, unit, claimed, loss_at_least(one, other, self.confidence))

    def _population(self, levels: tuple[int, int]) -> Ratings:
        """Return people whose ratings of the first item alternate between two levels; 0 is no rating."""
        of_people = np.tile(np.array(levels, dtype=np.uint8), self.trials)
        rated = of_people > 0
        return Ratings(
            indptr=offsets(rated.astype(np.int64)),
            items=np.zeros(int(rated.sum()), dtype=np.int32),
            levels=of_people[rated],
            scale=replace(self.scale, continuous=False),
            user_ids=np.arange(of_people.size),
            item_ids=np.arange(self.items),
        )


def _numbered(reports: list[bytes]) -> NDArray[np.int64]:
    """Return one number per report, equal for equal bytes."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(report, len(numbers)) for report in reports], dtype=np.int64)
