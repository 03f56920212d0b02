"""The collection of reports, of what follows them, and of AlterEgos, for which X-Map sends candidates.

What arrives is decoded and accounted for. Each is a single query, not a training round, so no Flower
`Strategy` is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid

from dprec.arrays import Bools, Floats, Ints, Pieces, find, offsets
from dprec.catalogue import Catalogue
from dprec.crossdomain import AlterEgoCodec, AlterEgos, Candidates, RowCodec, ValueCode
from dprec.exchange import (
    COUNT,
    COUNT_ROUND,
    REPLACE,
    REPLACEMENT_ROUND,
    REPORT,
    CountRequest,
    ReplacementRequest,
    ReportRequest,
    bitmap_of,
)
from dprec.observations import Observations
from dprec.reports import FollowUp, ReportFamily, Wanted
from dprec.wire import TrafficLedger
from strategies.participation import NoReportError, RoundRecord
from strategies.roster import Roster
from strategies.rounds import RoundAccount, request_content


@dataclass(frozen=True, eq=False)
class Collected:
    """Result of the collection."""

    observations: Observations
    """What the accepted reports say."""
    sent: Bools
    accepted: Bools
    """Whose report arrived, and whose was valid; shape (users,)."""
    traffic: TrafficLedger
    record: RoundRecord
    told: Ints | None = None
    """What reports say of each user beside the ratings, from which losses follow; shape (users,)."""


@dataclass(frozen=True, eq=False)
class ReportCollection:
    """One query to every user, which its device answers with its report."""

    family: ReportFamily
    """What the devices report; the server knows it but cannot change it."""
    group: str
    """Run key under which the devices find what is installed."""
    wanted: Wanted = Wanted()  # noqa: RUF009 (it is frozen)
    """What the observations hold beside values."""
    catalogue: Catalogue | None = None
    """Public data about the items, for the observations."""
    required: bool = True
    """Whether there has to be a report that can be used."""

    def collect(self, grid: Grid, roster: Roster) -> Collected:
        """Ask everybody who is there for a report; raises NoReportError when none was accepted."""
        traffic, n_users, everybody = TrafficLedger(roster.n_users), roster.n_users, roster.everybody
        account = RoundAccount(REPORT, self.group, traffic)
        account.charge_request(everybody, RecordDict(), 0)
        sent, accepted = np.zeros((2, n_users), dtype=np.bool_)
        reader = self.family.reader(n_users, self.wanted)
        requests = roster.contents(
            everybody,
            # Without a record where all of a partition are asked.
            lambda _, bitmap: RecordDict() if bitmap is None else request_content(ReportRequest(bitmap)),
        )
        for answers in roster.ask_in_turn(grid, REPORT, requests, self.group):
            for arrivals in roster.arrivals(answers, everybody):
                account.charge_reports(arrivals)
                sent[arrivals.senders] = True
                users = arrivals.punctual_users
                accepted[users] = reader.take(users, arrivals.in_time())
        record = account.record(1, asked=int(everybody.sum()), accepted=int(accepted.sum()))
        if self.required and not accepted.any():
            text = f"none of the {int(everybody.sum())} users sent a report that could be used"
            raise NoReportError(text, record)
        return Collected(reader.observations(self.catalogue), sent, accepted, traffic, record, reader.told)


@dataclass(frozen=True, eq=False)
class FurtherCollected:
    """Result of what follows the reports."""

    observations: Observations
    """What the reports and the further answers say."""
    asked: Ints
    """What was asked of each user; see `dprec.reports.Asking`; shape (users, ...)."""
    record: RoundRecord


@dataclass(frozen=True, eq=False)
class FollowUpCollection:
    """One query to every user whose report was accepted, for what follows it."""

    follow_up: FollowUp
    """What the devices answer; the server knows it but cannot change it."""
    group: str
    """Run key under which the devices find what is installed."""

    def collect(self, grid: Grid, roster: Roster, collected: Collected) -> FurtherCollected:
        """Ask for the answers; the traffic of the reports is charged in place."""
        asking = self.follow_up.asking(collected.observations)
        account = RoundAccount(COUNT, self.group, collected.traffic)
        asked, question = collected.accepted, asking.question
        account.charge_request(asked, request_content(CountRequest(question)), len(question))
        contents = roster.contents(asked, lambda _, bitmap: request_content(CountRequest(question, bitmap)))
        answers = roster.ask(grid, COUNT, contents, self.group)
        accepted = 0
        for arrivals in roster.arrivals(answers, asked):
            account.charge_reports(arrivals)
            accepted += int(asking.take(arrivals.punctual_users, arrivals.in_time()).sum())
        record = account.record(COUNT_ROUND, asked=int(asked.sum()), accepted=accepted)
        return FurtherCollected(asking.observations(), asking.asked, record)


_BYTES_AT_ONCE = 1 << 26
"""Size of the requests that are sent together: bounds the memory for messages to many small partitions."""


@dataclass(frozen=True, eq=False)
class ReplacementResult:
    """Result of the exchange."""

    egos: AlterEgos
    """Of all users; empty for a user whose AlterEgo did not arrive."""
    replaced: Ints
    """Number of items for which each user was sent candidates; users with any were asked; shape (users,)."""
    sent: Bools
    accepted: Bools
    """Whose AlterEgo arrived, and whose was valid; shape (users,)."""
    record: RoundRecord


@dataclass(frozen=True, eq=False)
class ReplacementExchange:
    """One query that sends candidates to the devices and collects their AlterEgos."""

    candidates: Candidates
    means: Floats
    """Mean rating of each item, for codecs that send those of the source items; shape (items,)."""
    rows: RowCodec
    ratings: ValueCode
    """Code of the means."""
    values: ValueCode
    """Code of an AlterEgo's values."""
    target: tuple[int, int]
    """First item of the target domain, and the item after its last one."""
    group: str
    """Run key under which the devices find what is installed."""

    def exchange(
        self, grid: Grid, roster: Roster, observed: Observations, traffic: TrafficLedger
    ) -> ReplacementResult:
        """Send the users the rows of the items they rated and receive the AlterEgos.

        The users asked are those whose ratings arrived and include an item with candidates.
        """
        account = RoundAccount(REPLACE, self.group, traffic)
        places, has_candidates = find(self.candidates.items, observed.items)
        counts = np.bincount(observed.users[has_candidates], minlength=roster.n_users)
        needs = _Needs(counts, offsets(counts), places[has_candidates], self.rows.rows(self.candidates))
        asked = counts > 0
        items, row_sizes = self.candidates.items[needs.places], needs.rows.sizes[needs.places]
        payloads = self.rows.packed_sizes(needs.indptr, items, row_sizes)
        account.charge_requests(np.flatnonzero(asked), payloads[asked], self._content)
        sent, accepted = np.zeros((2, roster.n_users), dtype=np.bool_)
        sizes = np.zeros(roster.n_users, dtype=np.int64)
        targets, values = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        codec = AlterEgoCodec(self.target[1] - self.target[0], self.values)
        for contents in self._contents(roster, needs):
            answers = roster.ask(grid, REPLACE, contents, self.group)
            for arrivals in roster.arrivals(answers, asked):
                account.charge_reports(arrivals)
                sent[arrivals.senders] = True
                valid, egos = codec.decode(arrivals.in_time())
                accepted[arrivals.punctual_users] = valid
                sizes[arrivals.punctual_users] = np.diff(egos.indptr)
                targets.append(egos.targets)
                values.append(egos.values)
        egos = AlterEgos(offsets(sizes), np.concatenate(targets), np.concatenate(values))
        record = account.record(REPLACEMENT_ROUND, asked=int(asked.sum()), accepted=int(accepted.sum()))
        return ReplacementResult(egos, needs.counts, sent, accepted, record)

    def _contents(self, roster: Roster, needs: "_Needs") -> Iterator[dict[int, RecordDict]]:
        """Yield the contents of the requests by partition, in batches, in the order of the partitions."""
        codes = self.ratings.encode(self.means)
        batch: dict[int, RecordDict] = {}
        waiting = 0
        for partition_id in range(len(roster.node_ids)):
            partition = roster.partition(partition_id)
            asked = needs.counts[partition.start : partition.stop] > 0
            if not asked.any():
                continue
            cells = slice(needs.indptr[partition.start], needs.indptr[partition.stop])
            needed = np.unique(needs.places[cells])
            items = self.candidates.items[needed]
            packed = self.rows.pack(items, needs.rows.chosen(needed), codes[items])
            if batch and waiting + len(packed) > _BYTES_AT_ONCE:
                yield batch
                batch, waiting = {}, 0
            batch[partition_id] = self._content(packed, asked)
            waiting += len(packed)
        yield batch

    def _content(self, rows: bytes, asked: Bools | None = None) -> RecordDict:
        """Return the content of a request; with a bitmap if only some of a partition are asked."""
        start, stop = self.target
        bitmap = None if asked is None else bitmap_of(asked)
        return request_content(ReplacementRequest(REPLACEMENT_ROUND, start, stop, rows, bitmap))


@dataclass(frozen=True, eq=False)
class _Needs:
    """Which candidates each user is to be sent."""

    counts: Ints
    """Shape (users,)."""
    indptr: Ints
    """Shape (users + 1,)."""
    places: Ints
    """Rows that the users need, by user; shape (needs,)."""
    rows: Pieces
    """Every row, encoded."""
