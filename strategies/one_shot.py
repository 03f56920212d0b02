"""The server's part of one-shot protocols: ask everybody once, decode, account, complete."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.completion import Completed, Completion, Observations
from dprec.errors import RunError
from dprec.messages import REPORT
from dprec.privacy.calibration import CalibratedMechanism
from dprec.progress import Progress, silent
from dprec.ragged import rows_of
from dprec.wire.traffic import TrafficLedger
from strategies.envelope import message_size, report_sizes, request_message
from strategies.roster import Roster, arrivals_of
from strategies.rounds import RoundRecord, traffic_totals


@dataclass(frozen=True, eq=False)
class Collected:
    """What one round of reports brought.

    Parameters
    ----------
    observations : Observations
        The cells that the accepted reports show as rated.
    sent, accepted : ndarray of bool, shape (users,)
        Whose report arrived, and whose was valid.
    traffic : TrafficLedger
    record : RoundRecord
    """

    observations: Observations
    sent: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    traffic: TrafficLedger
    record: RoundRecord

    @property
    def mean_payload(self) -> int:
        """Whole bytes of the average report that arrived."""
        return int(self.traffic.uplink_payload[self.sent].mean())


@dataclass(frozen=True, eq=False)
class OneShot:
    """Collect one report from every user and complete the matrix from them.

    Parameters
    ----------
    calibrated : CalibratedMechanism
        What the devices apply, which the server knows and cannot change.
    completion : Completion
    seed : int
        Seed of the completion.
    group : str
        Run key under which the devices find their setup.
    """

    calibrated: CalibratedMechanism
    completion: Completion
    seed: int
    group: str

    def collect(self, grid: Grid, roster: Roster) -> Collected:
        """Ask every user for its report; see `collect_reports`."""
        wanted = self.completion.needs_likelihood
        return collect_reports(grid, roster, self.calibrated, self.group, likelihood=wanted)

    def complete(self, observations: Observations, progress: Progress = silent) -> Completed:
        """Complete the matrix from what was collected."""
        return self.completion.fit(observations, self.seed, progress)


def collect_reports(
    grid: Grid, roster: Roster, calibrated: CalibratedMechanism, group: str, *, likelihood: bool = False
) -> Collected:
    """Ask every user for its report.

    Parameters
    ----------
    grid : Grid
    roster : Roster
    calibrated : CalibratedMechanism
    group : str
        Run key under which the devices find their setup.
    likelihood : bool
        Whether the observations carry the likelihood of what was received.

    Raises
    ------
    RunError
        When not a single report was accepted.
    """
    started = time.perf_counter()
    codec, n_users = calibrated.codec(), roster.n_users
    traffic = TrafficLedger(n_users)
    request = RecordDict()
    traffic.charge_downlink(slice(None), 0, message_size(request_message(REPORT, request, group)))
    sent, accepted = np.zeros(n_users, dtype=np.bool_), np.zeros(n_users, dtype=np.bool_)
    counts = np.zeros(n_users, dtype=np.int64)
    items: list[NDArray[np.int32]] = []
    symbols: list[NDArray[np.uint16]] = []
    requests = dict.fromkeys(range(len(roster.node_ids)), request)
    for partition, reply in roster.ask(grid, REPORT, requests, group).items():
        cohort = roster.cohort(partition)
        arrivals = arrivals_of(reply, cohort.start, len(cohort))
        if arrivals is None:
            continue
        users = cohort.start + np.flatnonzero(arrivals.arrived)
        payloads = arrivals.payloads[arrivals.arrived]
        traffic.charge_uplink(users, payloads, report_sizes(REPORT, group, users, payloads))
        sent[users] = True
        decoded = codec.decode(arrivals.in_time())
        punctual = cohort.start + np.flatnonzero(arrivals.punctual)
        accepted[punctual], counts[punctual] = decoded.valid, np.diff(decoded.indptr)
        items.append(decoded.items)
        symbols.append(decoded.symbols)
    if not accepted.any():
        raise RunError(f"none of the {n_users} users sent a report that could be used")
    received = np.concatenate(symbols)
    values = calibrated.read(counts, received)
    observations = Observations(
        rows_of(counts, np.int32),
        np.concatenate(items),
        values,
        (n_users, calibrated.n_items),
        calibrated.scale,
        calibrated.noise_variance(counts),
        calibrated.likelihood(counts, received) if likelihood else None,
    )
    record = RoundRecord(
        round=1,
        replies=int(accepted.sum()),
        failures=int(n_users - accepted.sum()),
        accuracy=None,
        seconds=time.perf_counter() - started,
        **traffic_totals(traffic),
    )
    return Collected(observations, sent, accepted, traffic, record)
