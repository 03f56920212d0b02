"""The server's part of X-Map's second round: send candidates to the devices, receive AlterEgos."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.completion import Observations
from dprec.crossdomain.alter_ego import AlterEgos
from dprec.crossdomain.alter_ego_codec import AlterEgoCodec, RowCodec, ValueCode
from dprec.crossdomain.replacement import Candidates
from dprec.messages import REPLACE, ReplacementRequest, bitmap_of
from dprec.ragged import offsets, sizes_of
from dprec.sorted_keys import find
from dprec.wire.traffic import TrafficLedger
from strategies.envelope import message_size, report_sizes, request_content, request_message
from strategies.roster import Roster, arrivals_of
from strategies.rounds import RoundRecord, traffic_totals

ROUND = 2

_BYTES_AT_ONCE = 1 << 26
"""Requests that are under way together: bounds what the messages of many small cohorts take."""


@dataclass(frozen=True, eq=False)
class Exchanged:
    """What the round of AlterEgos brought.

    Parameters
    ----------
    egos : AlterEgos
        Of all users; empty for one whose AlterEgo did not arrive.
    replaced : ndarray of int64, shape (users,)
        Replacements that each user was sent the candidates for; those with any were asked.
    sent, accepted : ndarray of bool, shape (users,)
        Whose AlterEgo arrived, and whose was valid.
    record : RoundRecord
    """

    egos: AlterEgos
    replaced: NDArray[np.int64]
    sent: NDArray[np.bool_]
    accepted: NDArray[np.bool_]
    record: RoundRecord


@dataclass(frozen=True, eq=False)
class ReplacementRound:
    """One round in which every device replaces its source items.

    Parameters
    ----------
    candidates : Candidates
    means : ndarray of float64, shape (items,)
        Mean ratings of the source items, for codecs that send them.
    rows : RowCodec
    ratings : ValueCode
        Code of the means.
    values : ValueCode
        Code of an AlterEgo's values.
    target : tuple of int
        First item of the target domain, and the one behind its last.
    group : str
        Run key under which the devices find their setup.
    """

    candidates: Candidates
    means: NDArray[np.float64]
    rows: RowCodec
    ratings: ValueCode
    values: ValueCode
    target: tuple[int, int]
    group: str

    def exchange(
        self, grid: Grid, roster: Roster, observed: Observations, traffic: TrafficLedger
    ) -> Exchanged:
        """Send the users the rows of the items they rated and receive the AlterEgos.

        A user is asked whose ratings arrived and hold an item with candidates.

        Parameters
        ----------
        grid : Grid
        roster : Roster
        observed : Observations
            What the devices sent before: whose items are known.
        traffic : TrafficLedger
            Charged in place, each user in full although a cohort receives one copy.
        """
        started, before = time.perf_counter(), traffic_totals(traffic)
        places, known = find(self.candidates.items, observed.items)
        users, places = observed.users[known], places[known]
        counts = np.bincount(users, minlength=roster.n_users)
        indptr = offsets(counts)
        rows = self.rows.rows(self.candidates)
        self._charge_requests(traffic, indptr, places, rows)

        sent, accepted = np.zeros(roster.n_users, dtype=np.bool_), np.zeros(roster.n_users, dtype=np.bool_)
        sizes = np.zeros(roster.n_users, dtype=np.int64)
        targets: list[NDArray[np.int64]] = []
        values: list[NDArray[np.float64]] = []
        codec = AlterEgoCodec(self.target[1] - self.target[0], self.values)
        for requests in self._requests(roster, indptr, places, rows):
            for partition, reply in roster.ask(grid, REPLACE, requests, self.group).items():
                cohort = roster.cohort(partition)
                asked = cohort.start + np.flatnonzero(counts[cohort.start : cohort.stop])
                arrivals = arrivals_of(reply, cohort.start, asked.size)
                if arrivals is None:
                    continue
                senders = asked[arrivals.arrived]
                payloads = arrivals.payloads[arrivals.arrived]
                traffic.charge_uplink(senders, payloads, report_sizes(REPLACE, self.group, senders, payloads))
                sent[senders] = True
                valid, egos = codec.decode(arrivals.in_time())
                punctual = asked[arrivals.punctual]
                accepted[punctual], sizes[punctual] = valid, np.diff(egos.indptr)
                targets.append(egos.targets)
                values.append(egos.values)
        after = traffic_totals(traffic)
        return Exchanged(
            AlterEgos(
                offsets(sizes),
                np.concatenate([np.zeros(0, dtype=np.int64), *targets]),
                np.concatenate([np.zeros(0), *values]),
            ),
            counts,
            sent,
            accepted,
            RoundRecord(
                round=ROUND,
                replies=int(accepted.sum()),
                failures=int((counts > 0).sum() - accepted.sum()),
                accuracy=None,
                seconds=time.perf_counter() - started,
                **{name: after[name] - before[name] for name in after},
            ),
        )

    def _charge_requests(
        self,
        traffic: TrafficLedger,
        indptr: NDArray[np.int64],
        places: NDArray[np.int64],
        rows: list[bytes],
    ) -> None:
        row_sizes = sizes_of(rows)
        payloads = self.rows.packed_sizes(indptr, self.candidates.items[places], row_sizes[places])
        asked = np.flatnonzero(np.diff(indptr))
        distinct, of_user = np.unique(payloads[asked], return_inverse=True)
        sizes = [
            message_size(request_message(REPLACE, self._content(bytes(payload)), self.group))
            for payload in distinct.tolist()
        ]
        traffic.charge_downlink(asked, payloads[asked], np.array(sizes, dtype=np.int64)[of_user])

    def _requests(
        self,
        roster: Roster,
        indptr: NDArray[np.int64],
        places: NDArray[np.int64],
        rows: list[bytes],
    ) -> Iterator[dict[int, RecordDict]]:
        """Yield the requests to the nodes, in the order of the partitions."""
        codes = self.ratings.encode(self.means)
        batch: dict[int, RecordDict] = {}
        waiting = 0
        for partition in range(len(roster.node_ids)):
            cohort = roster.cohort(partition)
            asked = np.diff(indptr[cohort.start : cohort.stop + 1]) > 0
            if not asked.any():
                continue
            needed = np.unique(places[indptr[cohort.start] : indptr[cohort.stop]])
            items = self.candidates.items[needed]
            packed = self.rows.pack(items, [rows[place] for place in needed.tolist()], codes[items])
            if batch and waiting + len(packed) > _BYTES_AT_ONCE:
                yield batch
                batch, waiting = {}, 0
            batch[partition] = self._content(packed, asked)
            waiting += len(packed)
        yield batch

    def _content(self, rows: bytes, asked: NDArray[np.bool_] | None = None) -> RecordDict:
        """Return a request; with a bitmap where only some of a cohort are asked."""
        start, stop = self.target
        bitmap = None if asked is None else bitmap_of(asked)
        return request_content(ReplacementRequest(ROUND, start, stop, rows, bitmap))
