"""The collection of reports: everybody is asked once, and what arrives is decoded and accounted for.

This is a single query, not a training round, so no Flower `Strategy` is involved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.arrays import GrowingArray, rows_of
from dprec.catalogue import Catalogue
from dprec.completion import Observations
from dprec.errors import RunError
from dprec.exchange import REPORT
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.privacy.residual_calibration import CalibratedResiduals
from dprec.wire import TrafficLedger
from strategies.participation import RoundRecord
from strategies.roster import Arrivals, Roster
from strategies.rounds import RoundAccount


@dataclass(frozen=True, eq=False)
class Collected:
    """Result of the collection."""

    observations: Observations
    """The cells that the accepted reports show as rated."""
    sent: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    """Whose report arrived, and whose was valid; shape (users,)."""
    traffic: TrafficLedger
    record: RoundRecord


@dataclass(frozen=True, eq=False)
class ReportCollection:
    """One query to every user, which its device answers with its report."""

    calibrated: CalibratedMechanism
    """The mechanism that the devices apply; the server knows it but cannot change it."""
    group: str
    """Run key under which the devices find their setup."""
    likelihood: bool = False
    symbols: bool = False
    """Whether the observations carry the likelihood of what was received, and the symbols themselves."""
    catalogue: Catalogue | None = None
    """Public data about the items, for the observations."""

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
        everybody = np.ones(n_users, dtype=np.bool_)
        received = _Received(n_users, self.calibrated.n_items)
        for answers in roster.ask_in_turn(grid, REPORT, request, self.group):
            self._read(roster.arrivals(answers, everybody), account, received)
        accepted = int(received.accepted.sum())
        if not accepted:
            raise RunError(f"none of the {n_users} users sent a report that could be used")
        observations = self._observations(received)
        record = account.record(1, asked=n_users, accepted=accepted)
        return Collected(observations, received.sent, received.accepted, traffic, record)

    def _read(self, arriving: Iterable[Arrivals], account: RoundAccount, received: _Received) -> None:
        """Decode the reports, and charge those who sent one."""
        codec = self.calibrated.codec()
        for arrivals in arriving:
            account.charge_reports(arrivals)
            received.sent[arrivals.senders] = True
            if isinstance(self.calibrated, CalibratedProfiles):
                valid, answers = self.calibrated.numbers.decode(arrivals.in_time())
                received.accepted[arrivals.punctual_users] = valid
                received.named += self.calibrated.code.counted(answers[valid].ravel())
                continue
            decoded = codec.decode(arrivals.in_time())
            users, counts = arrivals.punctual_users, np.diff(decoded.indptr)
            received.accepted[users] = decoded.valid
            received.counts[users] = counts
            received.items.extend(decoded.items)
            received.values.extend(self.calibrated.read(counts, decoded.symbols))
            if self._keeps_symbols:
                received.symbols.extend(decoded.symbols)

    @property
    def _keeps_symbols(self) -> bool:
        """Whether more is made of the symbols than the values that they stand for."""
        return self.likelihood or self.symbols or isinstance(self.calibrated, CalibratedResiduals)

    def _observations(self, received: _Received) -> Observations:
        """Return what the server makes of the symbols."""
        counts, symbols = received.counts, received.symbols.take()
        observed = Observations(
            rows_of(counts, np.int32),
            received.items.take(),
            received.values.take(),
            (counts.size, self.calibrated.n_items),
            self.calibrated.scale,
            catalogue=self.catalogue,
        )
        if isinstance(self.calibrated, CalibratedProfiles):
            answers = int(received.accepted.sum()) * self.calibrated.answers
            return replace(observed, profiles=self.calibrated.profile_reports(received.named, answers))
        observed = replace(observed, noise_variance=self.calibrated.noise_variance(counts))
        if isinstance(self.calibrated, CalibratedResiduals):
            return replace(observed, residuals=self.calibrated.residual_reports(counts, symbols))
        if self.likelihood:
            observed = replace(observed, likelihood=self.calibrated.likelihood(counts, symbols))
        if self.symbols:
            reports = self.calibrated.symbol_reports(counts, symbols, received.accepted)
            observed = replace(observed, symbols=reports)
        return observed


class _Received:
    """Decoded reports, of the users in ascending order.

    Attributes
    ----------
    sent, accepted : ndarray of bool, shape (users,)
    counts : ndarray of int64, shape (users,)
        Cells that each accepted report shows.
    items, values, symbols : GrowingArray
        Of the cells: the item, the value that is read, and the symbol if it is kept.
    named : ndarray of int64, shape (2 n_items,)
        Answers about whole profiles, by the element that they name.
    """

    def __init__(self, n_users: int, n_items: int) -> None:
        self.sent, self.accepted = np.zeros((2, n_users), dtype=np.bool_)
        self.counts = np.zeros(n_users, dtype=np.int64)
        self.items, self.values = GrowingArray(np.int32), GrowingArray(np.float64)
        self.symbols = GrowingArray(np.uint16)
        self.named = np.zeros(2 * n_items, dtype=np.int64)
