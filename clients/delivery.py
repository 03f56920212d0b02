"""The device's part where the server predicts: take the list of recommended items.

What a device guarantees against any server: nothing that it makes of the list is ever sent, nor whether it
fails, so the list may be any; one that is malformed is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clients.population import Partition
from dprec.exchange import Recommendations, Refusal, RefusalCode, refusing_malformed
from dprec.personalization import OrdinalProcess
from dprec.predictions import NO_ITEM
from dprec.wire import ItemListCodec


def receive_lists(partition: Partition, delivery: Recommendations) -> ReceivedLists:
    """Return the lists of a partition's users.

    Raises
    ------
    Refusal
        When they are malformed, or those of another partition.
    """
    if len(delivery.lists) != partition.size:
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "lists of another partition")
    n_items = partition.population.n_items
    with refusing_malformed():
        items, ratings = ItemListCodec(n_items).decode(delivery.lists)
    received = ReceivedLists(items, ratings, n_items)
    partition.population.show(received)
    return received


@dataclass(frozen=True, eq=False)
class ReceivedLists:
    """Lists of items with predicted ratings; see `Received`."""

    items: NDArray[np.int64]
    """`NO_ITEM` after the last item of a short list; shape (users, longest)."""
    ratings: NDArray[np.float64]
    """Shape (users, longest)."""
    n_items: int
    """Items of the catalogue."""

    def predictions(self, process: OrdinalProcess) -> NDArray[np.float64]:
        """Return the ratings in the lists, shape (users, items); NaN for items that are in none."""
        predicted = np.full((len(self.items), self.n_items), np.nan)
        rows, places = np.nonzero(self.items != NO_ITEM)
        predicted[rows, self.items[rows, places]] = self.ratings[rows, places]
        return predicted
