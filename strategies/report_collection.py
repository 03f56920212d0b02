"""The collection of reports: everybody is asked once, and what arrives is decoded and accounted for.

This is a single query, not a training round, so no Flower `Strategy` is involved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.catalogue import Catalogue
from dprec.completion import Observations
from dprec.errors import RunError
from dprec.messages import REPORT
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.residual_calibration import CalibratedResiduals
from dprec.ragged import rows_of
from dprec.wire.traffic import TrafficLedger
from strategies.arrivals import Arrivals
from strategies.roster import Roster
from strategies.round_record import RoundRecord
from strategies.rounds import RoundAccount


@dataclass(frozen=True, eq=False)
class Collected:
    """Result of the collection.

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
        """Mean bytes of the reports that arrived, rounded down."""
        return int(self.traffic.uplink_payload[self.sent].mean())


@dataclass(frozen=True, eq=False)
class ReportCollection:
    """One query to every user, which its device answers with its report.

    Parameters
    ----------
    calibrated : CalibratedMechanism
        The mechanism that the devices apply; the server knows it but cannot change it.
    group : str
        Run key under which the devices find their setup.
    likelihood, symbols : bool
        Whether the observations carry the likelihood of what was received, and the symbols themselves.
    catalogue : Catalogue or None
        Public data about the items, for the observations.
    """

    calibrated: CalibratedMechanism
    group: str
    likelihood: bool = False
    symbols: bool = False
    catalogue: Catalogue | None = None

    def collect(self, grid: Grid, roster: Roster) -> Collected:
        """Ask every user for its report.

        Raises
        ------
        RunError
            When not a single report was accepted.
        """
        traffic, n_users = TrafficLedger(roster.n_users), roster.n_users
        account = RoundAccount(REPORT, self.group, traffic)
        request = RecordDict()
        account.charge_request(slice(None), request, 0)
        contents = dict.fromkeys(range(len(roster.node_ids)), request)
        answers = roster.ask(grid, REPORT, contents, self.group)
        received = self._read(roster.arrivals(answers, np.ones(n_users, dtype=np.bool_)), account, n_users)
        accepted = int(received.accepted.sum())
        if not accepted:
            raise RunError(f"none of the {n_users} users sent a report that could be used")
        observations = self._observations(received)
        record = account.record(1, asked=n_users, accepted=accepted)
        return Collected(observations, received.sent, received.accepted, traffic, record)

    def _read(self, arriving: Iterable[Arrivals], account: RoundAccount, n_users: int) -> _Received:
        """Decode the reports, and charge those who sent one."""
        codec = self.calibrated.codec()
        sent, accepted = np.zeros((2, n_users), dtype=np.bool_)
        counts = np.zeros(n_users, dtype=np.int64)
        items = [np.zeros(0, dtype=np.int32)]
        symbols = [np.zeros(0, dtype=np.uint16)]
        for arrivals in arriving:
            account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            decoded = codec.decode(arrivals.in_time())
            accepted[arrivals.punctual_users] = decoded.valid
            counts[arrivals.punctual_users] = np.diff(decoded.indptr)
            items.append(decoded.items)
            symbols.append(decoded.symbols)
        return _Received(sent, accepted, counts, np.concatenate(items), np.concatenate(symbols))

    def _observations(self, received: _Received) -> Observations:
        """Return what the server makes of the symbols."""
        counts, symbols = received.counts, received.symbols
        residuals = None
        if isinstance(self.calibrated, CalibratedResiduals):
            residuals = self.calibrated.residual_reports(counts, symbols)
        by_itself = residuals is None
        return Observations(
            rows_of(counts, np.int32),
            received.items,
            self.calibrated.read(counts, symbols),
            (counts.size, self.calibrated.n_items),
            self.calibrated.scale,
            self.calibrated.noise_variance(counts),
            self.calibrated.likelihood(counts, symbols) if self.likelihood and by_itself else None,
            self.calibrated.symbol_reports(counts, symbols, received.accepted)
            if self.symbols and by_itself
            else None,
            residuals,
            catalogue=self.catalogue,
        )


@dataclass(frozen=True, eq=False)
class _Received:
    """Decoded reports.

    Parameters
    ----------
    sent, accepted : ndarray of bool, shape (users,)
    counts : ndarray of int64, shape (users,)
        Cells that each accepted report shows.
    items : ndarray of int32, shape (cells,)
    symbols : ndarray of uint16, shape (cells,)
    """

    sent: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    counts: NDArray[np.int64]
    items: NDArray[np.int32]
    symbols: NDArray[np.uint16]
