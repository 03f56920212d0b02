"""The collection of reports, and of what follows them: what arrives is decoded and accounted for.

Each is a single query, not a training round, so no Flower `Strategy` is involved.
"""

from dataclasses import dataclass

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from dprec.arrays import Bools, Ints
from dprec.catalogue import Catalogue
from dprec.errors import RunError
from dprec.exchange import COUNT, COUNT_ROUND, REPORT, CountRequest, bitmap_of
from dprec.observations import Observations
from dprec.reports import FollowUp, ReportFamily, Wanted
from dprec.wire import TrafficLedger
from strategies.participation import RoundRecord
from strategies.roster import Roster
from strategies.rounds import RoundAccount, request_content

_VALUES = Wanted()


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


@dataclass(frozen=True, eq=False)
class ReportCollection:
    """One query to every user, which its device answers with its report."""

    family: ReportFamily
    """What the devices report; the server knows it but cannot change it."""
    group: str
    """Run key under which the devices find their setup."""
    wanted: Wanted = _VALUES
    """What the observations hold beside values."""
    catalogue: Catalogue | None = None
    """Public data about the items, for the observations."""

    def collect(self, grid: Grid, roster: Roster) -> Collected:
        """Ask every user for its report; raises RunError when not a single one was accepted."""
        traffic, n_users = TrafficLedger(roster.n_users), roster.n_users
        account = RoundAccount(REPORT, self.group, traffic)
        request = RecordDict()
        account.charge_request(slice(None), request, 0)
        everybody = np.ones(n_users, dtype=np.bool_)
        sent, accepted = np.zeros((2, n_users), dtype=np.bool_)
        reader = self.family.reader(n_users, self.wanted)
        for answers in roster.ask_in_turn(grid, REPORT, request, self.group):
            for arrivals in roster.arrivals(answers, everybody):
                account.charge_reports(arrivals)
                sent[arrivals.senders] = True
                users = arrivals.punctual_users
                accepted[users] = reader.take(users, arrivals.in_time())
        if not accepted.any():
            raise RunError(f"none of the {n_users} users sent a report that could be used")
        record = account.record(1, asked=n_users, accepted=int(accepted.sum()))
        return Collected(reader.observations(self.catalogue), sent, accepted, traffic, record)


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
    """Run key under which the devices find their setup."""

    def collect(self, grid: Grid, roster: Roster, collected: Collected) -> FurtherCollected:
        """Ask for the answers; the traffic of the reports is charged in place."""
        asking = self.follow_up.asking(collected.observations)
        account = RoundAccount(COUNT, self.group, collected.traffic)
        answers = self._ask(grid, roster, asking.question, collected, account)
        accepted = 0
        for arrivals in roster.arrivals(answers, collected.accepted):
            account.charge_reports(arrivals)
            accepted += int(asking.take(arrivals.punctual_users, arrivals.in_time()).sum())
        record = account.record(COUNT_ROUND, asked=int(collected.accepted.sum()), accepted=accepted)
        return FurtherCollected(asking.observations(), asking.asked, record)

    def _ask(
        self, grid: Grid, roster: Roster, question: bytes, collected: Collected, account: RoundAccount
    ) -> dict[int, Message]:
        """Ask everybody whose report was accepted, and charge the requests."""
        asked = collected.accepted
        account.charge_request(asked, request_content(CountRequest(question)), len(question))
        contents = {}
        for partition_id in range(len(roster.node_ids)):
            partition = roster.partition(partition_id)
            own = asked[partition.start : partition.stop]
            if own.any():
                contents[partition_id] = request_content(CountRequest(question, bitmap_of(own)))
        return roster.ask(grid, COUNT, contents, self.group)
