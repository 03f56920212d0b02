"""The device's part after a completion: take the table of items, and predict from its own clean ratings.

What a device guarantees against any server: a table is checked on what is public of it, and only once the
reply has left is anything computed from the table and the ratings. Nothing of that is sent, nor if it fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clients.population import Partition
from dprec.arrays import offsets
from dprec.exchange import PRIOR, OneShotSetup, Personalization, Refusal, RefusalCode, refusing_malformed
from dprec.personalization import Devices, OrdinalProcess
from dprec.ratings import Ratings
from dprec.wire import ItemTable


def receive_table(partition: Partition, known: Personalization) -> tuple[ItemTable, NDArray[np.float64]]:
    """Return the table of items and the priors of the partition's users, shape (users, 1 + factors).

    Raises
    ------
    Refusal
        When the devices are not set up to predict, or the table or the priors are malformed.
    """
    population = partition.population
    if not population.installed(OneShotSetup).predicts:
        raise Refusal(RefusalCode.NOT_SET_UP, "a table of items for devices that predict nothing")
    levels, n_items = population.scale.levels, population.n_items
    with refusing_malformed():
        table = ItemTable.decode(known.table, n_levels=levels, n_items=n_items)
    shape = partition.size, 1 + table.item_factors.shape[1]
    if len(known.priors) != shape[0] * shape[1] * PRIOR.itemsize:
        what = f"priors of {len(known.priors)} bytes for {shape[0]} users of {shape[1]} numbers"
        raise Refusal(RefusalCode.MALFORMED_REQUEST, what)
    priors = np.frombuffer(known.priors, dtype=PRIOR).astype(np.float64).reshape(shape)
    if not np.isfinite(priors).all():
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "priors that are not finite")
    population.show(ReceivedTable(partition, table, priors))
    return table, priors


@dataclass(frozen=True, eq=False)
class ReceivedTable:
    """A table of items, from which each device predicts with its clean ratings; see `Received`."""

    partition: Partition
    table: ItemTable
    priors: NDArray[np.float64]
    """Shape (users, 1 + factors)."""

    def predictions(self, process: OrdinalProcess) -> NDArray[np.float64]:
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
