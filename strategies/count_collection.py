"""The collection of counts, after that of the reports that left ratings out for them.

This is a single query, not a training round, so no Flower `Strategy` is involved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from flwr.app import Message
from flwr.serverapp import Grid
from numpy.typing import NDArray

from dprec.arrays import popularity_groups
from dprec.completion import Observations
from dprec.exchange import COUNT, COUNT_ROUND, CountRequest, bitmap_of
from dprec.privacy.calibrated_counts import CalibratedCounts
from strategies.participation import RoundRecord
from strategies.report_collection import Collected
from strategies.roster import Roster
from strategies.rounds import RoundAccount, request_content


@dataclass(frozen=True, eq=False)
class Counted:
    """Result of the collection."""

    observations: Observations
    """Those of the reports, with the counts."""
    sizes: NDArray[np.int64]
    """Ratings in each count that was asked for; shape (users, groups)."""
    record: RoundRecord


@dataclass(frozen=True, eq=False)
class CountCollection:
    """One query to every user whose report was accepted, which its device answers with its counts.

    Items are grouped by how often the reports show them as rated.
    """

    counting: CalibratedCounts
    """What the devices apply; the server knows it but cannot change it."""
    group: str
    """Run key under which the devices find their setup."""

    def collect(self, grid: Grid, roster: Roster, collected: Collected) -> Counted:
        """Ask for the counts; the traffic of the reports is charged in place.

        Parameters
        ----------
        collected : Collected
            The reports, with their symbols.
        """
        observed, counting = collected.observations, self.counting
        assert observed.symbols is not None, "reports without their symbols"
        n_users, n_items = observed.shape
        popularity = np.bincount(observed.items, minlength=n_items)
        groups = popularity_groups(popularity, counting.mechanism.groups)
        cells = np.bincount(observed.users, minlength=n_users)
        left = counting.left(observed.symbols.symbols)
        sizes = counting.grouped(cells, groups[observed.items], left)
        account = RoundAccount(COUNT, self.group, collected.traffic)
        answers = self._ask(grid, roster, counting.group_codec.encode(groups[None])[0], collected, account)
        values = np.zeros_like(sizes)
        accepted = np.zeros(n_users, dtype=np.bool_)
        for arrivals in roster.arrivals(answers, collected.accepted):
            account.charge_reports(arrivals)
            users = arrivals.punctual_users
            valid, read = counting.codec.decode(arrivals.in_time())
            accepted[users] = valid & (read <= sizes[users]).all(axis=1)
            values[users] = read
        counted = left & accepted[observed.users]
        noisy = counting.received(observed.users, groups[observed.items], counted, cells, values)
        asked = int(collected.accepted.sum())
        record = account.record(COUNT_ROUND, asked=asked, accepted=int(accepted.sum()))
        return Counted(replace(observed, counts=noisy), sizes, record)

    def _ask(
        self, grid: Grid, roster: Roster, groups: bytes, collected: Collected, account: RoundAccount
    ) -> dict[int, Message]:
        """Ask everybody whose report was accepted, and charge the requests."""
        asked = collected.accepted
        account.charge_request(asked, request_content(CountRequest(groups)), len(groups))
        contents = {}
        for partition_id in range(len(roster.node_ids)):
            partition = roster.partition(partition_id)
            own = asked[partition.start : partition.stop]
            if own.any():
                contents[partition_id] = request_content(CountRequest(groups, bitmap_of(own)))
        return roster.ask(grid, COUNT, contents, self.group)
