"""The server's part of gradient perturbation: rows down, noisy slopes up, a projected step.

The server never sees a sign. It learns which items a user rated from the first report that it can
use, and from then on sends the user the entries at these items, and gets back one symbol for each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.completion.one_bit.completion import HiddenMatrix, OneBit
from dprec.completion.one_bit.effects import Effects
from dprec.completion.one_bit.projections import Domain
from dprec.mechanisms.channel import Channel
from dprec.messages import ROW_ENTRY, SLOPES, SlopesRequest
from dprec.privacy.ledger import PrivacyLedger
from dprec.ragged import cut, offsets, segments, sizes_of
from dprec.wire import ReportCodec
from dprec.wire.symbol_rows import SymbolRows
from dprec.wire.traffic import TrafficLedger
from strategies.envelope import message_size, report_sizes, request_content, request_message
from strategies.roster import Arrivals, Roster, arrivals_of
from strategies.rounds import RoundRecord, traffic_totals


@dataclass(eq=False)
class SlopeRounds:
    """Rounds of gradient perturbation (Li et al., Algorithm 3).

    Parameters
    ----------
    completion : OneBit
        The model and the set in which it is looked for.
    channel : Channel
        Through which every entry of a gradient is sent.
    step : float
        Length of the projected step, over one over the likelihood's curvature at 0.
    counts : ndarray of int64, shape (users,)
        Ratings of each user, for the ledger.
    n_items : int
    seed : int
    group : str
        Run key under which the devices find their setup.
    roster : Roster

    Attributes
    ----------
    matrix : HiddenMatrix
        What the rounds have led to.
    traffic : TrafficLedger
    privacy : PrivacyLedger
    records : list of RoundRecord
    """

    completion: OneBit
    channel: Channel
    step: float
    counts: NDArray[np.int64]
    n_items: int
    seed: int
    group: str
    roster: Roster
    records: list[RoundRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        users = self.roster.n_users
        self.traffic, self.privacy = TrafficLedger(users), PrivacyLedger(rated=self.counts > 0)
        self._codec, self._rows = ReportCodec(self.channel, self.n_items), SymbolRows(self.channel)
        self._cells, self._counts = np.zeros(0, dtype=np.int64), np.zeros(users, dtype=np.int64)
        empty = np.zeros(0, dtype=np.int32)
        self.matrix = HiddenMatrix(
            self.completion.link_function, Effects.zero(self.shape), self._domain(empty, empty).zero()
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.roster.n_users, self.n_items

    @property
    def observed(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Users and items of the cells that are known to be rated, by user."""
        return self._users_and_items(self._cells)

    def run_round(self, grid: Grid) -> RoundRecord:
        """Run the next round: send the rows, read the slopes, account, step."""
        started, before = time.perf_counter(), traffic_totals(self.traffic)
        round_index = len(self.records) + 1
        rows = self._encoded_rows()
        self._charge_requests(round_index, rows)
        requests = {}
        for partition in range(len(self.roster.node_ids)):
            cohort = self.roster.cohort(partition)
            requests[partition] = _request(round_index, rows[cohort.start : cohort.stop])
        cells, slopes, accepted = [], [], 0
        sent = np.zeros(self.roster.n_users, dtype=np.bool_)
        for partition, reply in self.roster.ask(grid, SLOPES, requests, self.group).items():
            cohort = self.roster.cohort(partition)
            arrivals = arrivals_of(reply, cohort.start, len(cohort))
            if arrivals is None:
                continue
            sent[cohort.start : cohort.stop] = arrivals.arrived
            self._charge_uplink(cohort.start, arrivals)
            punctual = cohort.start + np.flatnonzero(arrivals.punctual)
            valid, own, moves = self._read(punctual, arrivals.in_time())
            accepted += valid
            cells.append(own)
            slopes.append(moves)
        loss = self.channel.epsilon
        self.privacy.charge(round_index, sent, loss, self.counts.astype(np.float64) * loss)
        if accepted:
            self._move(np.concatenate(cells), np.concatenate(slopes))
        after = traffic_totals(self.traffic)
        self.records.append(
            RoundRecord(
                round=round_index,
                replies=accepted,
                failures=self.roster.n_users - accepted,
                accuracy=None,
                seconds=time.perf_counter() - started,
                **{key: after[key] - before[key] for key in after},
            )
        )
        return self.records[-1]

    def _encoded_rows(self) -> list[bytes]:
        """Return what each user is sent: the entries at its items, nothing where they are not known."""
        users, items = self.observed
        data = self.matrix.hidden(users, items).astype(ROW_ENTRY).tobytes()
        return cut(data, self._counts * ROW_ENTRY.itemsize)

    def _charge_requests(self, round_index: int, rows: list[bytes]) -> None:
        payloads = sizes_of(rows)
        lengths, of_user = np.unique(payloads, return_inverse=True)
        sizes = [
            message_size(request_message(SLOPES, _request(round_index, [bytes(length)]), self.group))
            for length in lengths.tolist()
        ]
        self.traffic.charge_downlink(slice(None), payloads, np.array(sizes, dtype=np.int64)[of_user])

    def _charge_uplink(self, first_user: int, arrivals: Arrivals) -> None:
        """Charge everybody who sent a report for its bytes, whether or not it is used."""
        senders = first_user + np.flatnonzero(arrivals.arrived)
        payloads = arrivals.payloads[arrivals.arrived]
        self.traffic.charge_uplink(senders, payloads, report_sizes(SLOPES, self.group, senders, payloads))

    def _read(
        self, users: NDArray[np.int64], reports: list[bytes]
    ) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
        """Decode the reports of some users: how many are valid, and their cells and slopes."""
        known = self._counts[users] > 0
        new, old = users[~known], users[known]
        first = self._codec.decode([reports[place] for place in np.flatnonzero(~known)])
        told = np.repeat(new, np.diff(first.indptr)) * self.n_items + first.items
        counts = self._counts[old]
        valid, symbols = self._rows.decode([reports[place] for place in np.flatnonzero(known)], counts)
        starts = offsets(self._counts)[old]
        held = self._cells[segments(starts[valid], counts[valid])]
        return (
            int(first.valid.sum() + valid.sum()),
            np.concatenate([told, held]),
            self.channel.values[np.concatenate([first.symbols, symbols])],
        )

    def _move(self, cells: NDArray[np.int64], slopes: NDArray[np.float64]) -> None:
        """Take the projected step, and remember which items are rated."""
        order = np.argsort(cells)
        cells, slopes = cells[order], slopes[order]
        users, items = self._users_and_items(cells)
        link, effects = self.completion.link_function, self.matrix.effects
        if self.completion.effects:
            ridge = self.completion.absolute_ridge
            effects, slopes = effects.stepped(users, items, slopes, link.largest_curvature, ridge)
        length = self.step / float(link.curvature(np.zeros(1))[0])
        point = self._domain(users, items).step(self.matrix.point, slopes, length)
        self.matrix = HiddenMatrix(link, effects, point)
        self._cells = np.union1d(self._cells, cells)
        self._counts = np.bincount(self._cells // self.n_items, minlength=self.roster.n_users)

    def _domain(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> Domain[Any]:
        return self.completion.domain(users, items, self.shape, self.seed)

    def _users_and_items(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        users, items = np.divmod(cells, self.n_items)
        return users.astype(np.int32), items.astype(np.int32)


def _request(round_index: int, rows: list[bytes]) -> RecordDict:
    return request_content(SlopesRequest(round_index, rows))
