"""What users are sent at the end: the best items that the server has not seen, or a table of all items.

What a list costs is known without predicting anything. So a simulation of many users charges the lists, and
does not make them.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid

from dprec.arrays import AnyInts, Bools, Ints, offsets, rows_of, segments
from dprec.exchange import PERSONALIZE, RECOMMEND, Personalization, Recommendations
from dprec.predictions import NO_ITEM, Predict, PredictRows, scored_lists
from dprec.ratings import RatingScale
from dprec.wire import ItemListCodec, TrafficLedger
from strategies.roster import Roster
from strategies.rounds import RoundAccount, request_content

MOST_CELLS = 1 << 20
"""Users times items up to which a simulation makes and sends the lists."""


@dataclass(frozen=True, eq=False)
class SeenItems:
    """The items that the server has seen as rated, which are not recommended."""

    counts: Ints
    """Shape (users,)."""
    items: AnyInts
    """By user; shape (cells,)."""
    n_items: int
    """Items of the catalogue."""

    @classmethod
    def nothing(cls, shape: tuple[int, int]) -> Self:
        """Return that nothing is seen, where reports hide the rated items."""
        return cls(np.zeros(shape[0], dtype=np.int64), np.zeros(0, dtype=np.int64), shape[1])

    def __call__(self, users: AnyInts) -> Bools:
        """Return which items may be recommended to each of some users, shape (users, items)."""
        wanted = np.ones((users.size, self.n_items), dtype=np.bool_)
        counts = self.counts[users]
        wanted[rows_of(counts), self.items[segments(offsets(self.counts)[users], counts)]] = False
        return wanted


@dataclass(frozen=True, eq=False)
class ListsToSend:
    """The lists that users are to get."""

    longest: int
    """Items of a list, fewer only where there are no more."""
    seen: SeenItems
    scale: RatingScale
    """Predicted ratings are clipped to it."""
    predict: Predict
    predict_rows: PredictRows | None = None
    scores: PredictRows | None = None
    """What ranks the items, if not the predictions."""

    @property
    def codec(self) -> ItemListCodec:
        """The code of the lists."""
        return ItemListCodec(self.seen.n_items)

    @property
    def sizes(self) -> Ints:
        """Bytes of every user's list, shape (users,)."""
        return self.codec.sizes(np.minimum(self.longest, self.seen.n_items - self.seen.counts))

    def best(self, users: Ints) -> Ints:
        """Return the lists of some users, the best item first, `NO_ITEM` after the end of a short one."""
        n_items = self.seen.n_items
        ranked = self.scores or self.predict_rows
        lists = scored_lists(self.predict, self.seen, users, self.longest, n_items, predict_rows=ranked)
        return lists.items

    def encoded(self, users: Ints) -> list[bytes]:
        """Return the encoded lists of some users, the best item first."""
        best = self.best(users)
        ratings = np.zeros(best.shape)
        rows, places = np.nonzero(best != NO_ITEM)
        predicted = self.predict(users[rows], best[rows, places])
        ratings[rows, places] = np.clip(predicted, self.scale.low, self.scale.high)
        return self.codec.encode(best, ratings)


def deliver_lists(
    grid: Grid, roster: Roster, group: str, lists: ListsToSend, traffic: TrafficLedger
) -> dict[str, int]:
    """Send everybody a list; return the bytes charged, as `RoundAccount.spent` does.

    Users with a node of their own are always sent theirs; many users of a simulation are only charged.
    """
    account = RoundAccount(RECOMMEND, group, traffic)
    there = roster.everybody
    hosted = [partition_id for partition_id, node in enumerate(roster.node_ids) if node is not None]
    users = np.concatenate(
        [np.asarray(roster.partition(partition_id), dtype=np.int64) for partition_id in hosted]
    )
    users = users[there[users]]
    account.charge_requests(users, lists.sizes[users], lambda sent: request_content(Recommendations([sent])))
    if roster.users_per_node > 1 and lists.seen.counts.size * lists.seen.n_items > MOST_CELLS:
        account.charge_acknowledgements(users)
        return account.spent()
    contents: dict[int, RecordDict] = {}
    for partition_id in hosted:
        partition = np.asarray(roster.partition(partition_id), dtype=np.int64)
        contents[partition_id] = request_content(Recommendations(lists.encoded(partition)))
    account.deliver(grid, roster, contents)
    return account.spent()


def broadcast_table(
    grid: Grid, roster: Roster, group: str, table: bytes, traffic: TrafficLedger
) -> dict[str, int]:
    """Send the table to everybody who is there; return the bytes charged, as `RoundAccount.spent` does.

    It is charged in full to every user, although a partition shares it.
    """
    account, content = RoundAccount(PERSONALIZE, group, traffic), request_content(Personalization(table))
    account.charge_request(roster.everybody, content, len(table))
    account.deliver(grid, roster, roster.contents(roster.everybody, lambda partition_id, bitmap: content))
    return account.spent()
