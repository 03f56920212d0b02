"""The server's part of gradient perturbation: rows down, noisy slopes up, a projected step.

The server never sees a sign. It learns which items a user rated from the first report that it can
use; from then on it sends the user the entries at these items and gets back one symbol for each.
This is a Flower `Strategy` that keeps its matrix to itself; see `strategies.rounds`.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid

from dprec.accounting import ChannelDraws, PrivacyAccountant
from dprec.arrays import Floats, Int32s, Ints, Pieces, offsets, segments
from dprec.channel import Channel
from dprec.completion import Biases, Domain, HiddenMatrix, OneBit
from dprec.exchange import ROW_ENTRY, SLOPES, SlopesRequest
from dprec.wire import ReportCodec, SymbolRows, TrafficLedger
from strategies.roster import Roster
from strategies.rounds import OwnModelRounds, RoundAccount, request_content


@dataclass(eq=False)
class GradientPerturbation(OwnModelRounds):
    """Projected steps along noisy gradients (Li et al. [li2021], Algorithm 3)."""

    completion: OneBit
    """The model and its constraints."""
    channel: Channel
    """The channel through which every entry of a gradient is sent."""
    step: float
    """Length of the projected step, as a multiple of one over the likelihood's curvature at 0."""
    counts: Ints
    """Ratings of each user, for the ledger; shape (users,)."""
    n_items: int
    seed: int
    group: str
    """Run key under which the devices find their setup."""
    roster: Roster

    def __post_init__(self) -> None:
        users = self.roster.n_users
        self.traffic, self.accountant = TrafficLedger(users), PrivacyAccountant(rated=self.counts > 0)
        self._slopes = ChannelDraws((self.channel,), draws=self.counts)
        self._records = []
        self._codec, self._rows = ReportCodec(self.channel, self.n_items), SymbolRows(self.channel)
        self._cells, self._counts = np.zeros(0, dtype=np.int64), np.zeros(users, dtype=np.int64)
        empty = np.zeros(0, dtype=np.int32)
        self.matrix = HiddenMatrix(
            self.completion.link_function, Biases.zero(self.shape), self._domain(empty, empty).zero()
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.roster.n_users, self.n_items

    @property
    def observed(self) -> tuple[Int32s, Int32s]:
        """Users and items of the cells that are known to be rated, by user."""
        return self._users_and_items(self._cells)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return one request per node, with the rows of its users; raises ValueError for arrays."""
        self.refuse_arrays(arrays)
        self._account = RoundAccount(SLOPES, self.group, self.traffic)
        rows = self._encoded_rows()
        everybody = np.arange(self.roster.n_users)
        self._account.charge_requests(
            everybody, rows.sizes, lambda row: request_content(SlopesRequest(server_round, [row]))
        )
        contents = {}
        for partition_id in range(len(self.roster.node_ids)):
            partition = self.roster.partition(partition_id)
            request = SlopesRequest(server_round, list(rows[partition.start : partition.stop]))
            contents[partition_id] = request_content(request)
        return self.roster.messages(SLOPES, contents, self.group)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Read the slopes and take a step; see Flower's `Strategy`."""
        n_users = self.roster.n_users
        cells, slopes, accepted = [], [], 0
        sent, everybody = np.zeros(n_users, dtype=np.bool_), np.ones(n_users, dtype=np.bool_)
        for arrivals in self.roster.arrivals(self.roster.by_partition(replies), everybody):
            self._account.charge_reports(arrivals)
            sent[arrivals.senders] = True
            valid, own, moves = self._read(arrivals.punctual_users, arrivals.in_time())
            accepted += valid
            cells.append(own)
            slopes.append(moves)
        loss = self.channel.epsilon
        per_user = self.counts.astype(np.float64) * loss
        self.accountant.step(server_round, sent, loss, per_user, self._slopes)
        if accepted:
            self._move(np.concatenate(cells), np.concatenate(slopes))
        self._records.append(self._account.record(server_round, asked=n_users, accepted=accepted))
        return None, MetricRecord({"replies": accepted, "asked": n_users})

    def summary(self) -> None:
        """Log what is run."""
        logging.getLogger("flwr").info("\t└──> gradient perturbation, shape %s", self.shape)

    def _encoded_rows(self) -> Pieces:
        users, items = self.observed
        data = self.matrix.hidden(users, items).astype(ROW_ENTRY).tobytes()
        return Pieces(data, offsets(self._counts) * ROW_ENTRY.itemsize)

    def _read(self, users: Ints, reports: Pieces) -> tuple[int, Ints, Floats]:
        """Decode the reports of some users: how many are valid, and their cells and slopes."""
        known = self._counts[users] > 0
        new, old = users[~known], users[known]
        first = self._codec.decode(reports.chosen(np.flatnonzero(~known)))
        new_cells = np.repeat(new, np.diff(first.indptr)) * self.n_items + first.items
        counts = self._counts[old]
        valid, symbols = self._rows.decode(reports.chosen(np.flatnonzero(known)), counts)
        starts = offsets(self._counts)[old]
        old_cells = self._cells[segments(starts[valid], counts[valid])]
        return (
            int(first.valid.sum() + valid.sum()),
            np.concatenate([new_cells, old_cells]),
            self.channel.values[np.concatenate([first.symbols, symbols])],
        )

    def _move(self, cells: Ints, slopes: Floats) -> None:
        order = np.argsort(cells)
        cells, slopes = cells[order], slopes[order]
        users, items = self._users_and_items(cells)
        link, biases = self.completion.link_function, self.matrix.biases
        if self.completion.biases:
            ridge = self.completion.absolute_ridge
            biases, slopes = biases.stepped(users, items, slopes, link.largest_curvature, ridge)
        length = self.step / float(link.curvature(np.zeros(1))[0])
        point = self._domain(users, items).step(self.matrix.point, slopes, length)
        self.matrix = HiddenMatrix(link, biases, point)
        self._cells = np.union1d(self._cells, cells)
        self._counts = np.bincount(self._cells // self.n_items, minlength=self.roster.n_users)

    def _domain(self, users: Int32s, items: Int32s) -> Domain[Any]:
        return self.completion.domain(users, items, self.shape, self.seed)

    def _users_and_items(self, cells: Ints) -> tuple[Int32s, Int32s]:
        users, items = np.divmod(cells, self.n_items)
        return users.astype(np.int32), items.astype(np.int32)
