"""What a device is sent at the end: a list of recommended items, or a table from which it predicts itself.

What a device guarantees against any server: nothing that it makes of either is ever sent, nor whether it
fails. A list may be any, and a table is checked on what is public of it; one that is malformed is refused.
Only once the reply has left is anything computed from the table and the user's clean ratings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clients.population import Partition
from dprec import exchange
from dprec.arrays import Floats, Ints, offsets
from dprec.personalization import Devices, OrdinalProcess
from dprec.predictions import NO_ITEM
from dprec.ratings import Ratings
from dprec.wire import ItemListCodec, ItemTable


def receive_lists(partition: Partition, delivery: exchange.Recommendations) -> ReceivedLists:
    """Return the lists of a partition's users; raises Refusal for malformed ones, or those of another."""
    if len(delivery.lists) != partition.size:
        raise exchange.Refusal(exchange.RefusalCode.MALFORMED_REQUEST, "lists of another partition")
    n_items = partition.population.n_items
    with exchange.refusing_malformed():
        items, ratings = ItemListCodec(n_items).decode(delivery.lists)
    received = ReceivedLists(items, ratings, n_items)
    partition.population.show(received)
    return received


@dataclass(frozen=True, eq=False)
class ReceivedLists:
    """Lists of items with predicted ratings; see `Received`."""

    items: Ints
    """`NO_ITEM` after the last item of a short list; shape (users, longest)."""
    ratings: Floats
    """Shape (users, longest)."""
    n_items: int
    """Items of the catalogue."""

    def predictions(self, process: OrdinalProcess) -> Floats:
        """Return the ratings in the lists, shape (users, items); NaN for items that are in none."""
        predicted = np.full((len(self.items), self.n_items), np.nan)
        rows, places = np.nonzero(self.items != NO_ITEM)
        predicted[rows, self.items[rows, places]] = self.ratings[rows, places]
        return predicted


def receive_table(partition: Partition, known: exchange.Personalization) -> tuple[ItemTable, Floats]:
    """Return the table and the priors of the users, shape (users, 1 + factors), or raise Refusal."""
    population = partition.population
    if not population.installed(exchange.OneShotSetup).predicts:
        raise exchange.Refusal(
            exchange.RefusalCode.NOT_SET_UP, "a table of items for devices that predict nothing"
        )
    levels, n_items = population.scale.levels, population.n_items
    with exchange.refusing_malformed():
        table = ItemTable.decode(known.table, n_levels=levels, n_items=n_items)
    shape = partition.size, 1 + table.item_factors.shape[1]
    if len(known.priors) != shape[0] * shape[1] * exchange.PRIOR.itemsize:
        what = f"priors of {len(known.priors)} bytes for {shape[0]} users of {shape[1]} numbers"
        raise exchange.Refusal(exchange.RefusalCode.MALFORMED_REQUEST, what)
    priors = np.frombuffer(known.priors, dtype=exchange.PRIOR).astype(np.float64).reshape(shape)
    if not np.isfinite(priors).all():
        raise exchange.Refusal(exchange.RefusalCode.MALFORMED_REQUEST, "priors that are not finite")
    population.show(ReceivedTable(partition, table, priors))
    return table, priors


@dataclass(frozen=True, eq=False)
class ReceivedTable:
    """A table of items, from which each device predicts with its clean ratings; see `Received`."""

    partition: Partition
    table: ItemTable
    priors: Floats
    """Shape (users, 1 + factors)."""

    def predictions(self, process: OrdinalProcess) -> Floats:
        """Predict every item, shape (users, items)."""
        partition, population = self.partition, self.partition.population
        shape = partition.size, population.n_items
        ratings = Ratings(
            offsets(partition.counts),
            partition.items,
            partition.levels,
            population.scale,
            user_ids=np.arange(shape[0]),
            item_ids=np.arange(shape[1]),
        )
        users, items = np.indices(shape)
        devices = Devices(process, self.table, self.priors, ratings)
        return devices.predict(users.ravel(), items.ravel()).reshape(shape)
