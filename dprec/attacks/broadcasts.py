"""What everybody was sent about the items, in a form in which runs with other noise can be compared."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from dprec.arrays import Floats
from dprec.wire import ItemTable


@dataclass(frozen=True, eq=False, kw_only=True)
class Broadcast:
    """Numbers about items that everybody was sent at the end."""

    columns: Floats
    """Those that mean the same in every run, such as biases; shape (items, columns)."""
    embeddings: tuple[Floats, ...] = ()
    """Those that say something by the inner products of items alone; shapes (items, dimensions)."""
    weights: tuple[Floats, ...] = ()
    """What one item says of another; shapes (items, items)."""

    @classmethod
    def of_products(cls, *embeddings: Floats) -> Self:
        """Return item factors of which inner products alone are the same in every run."""
        return cls(columns=np.zeros((len(embeddings[0]), 0)), embeddings=embeddings)

    @classmethod
    def of_weights(cls, weights: Floats) -> Self:
        """Return weights between items."""
        return cls(columns=np.zeros((len(weights), 0)), weights=(weights,))

    @classmethod
    def of_table(cls, table: ItemTable) -> Self:
        """Return what a table of items says, but for what is public of them before."""
        columns = np.column_stack([table.means, table.deviations, table.numbers])
        return cls(columns=columns, embeddings=(table.embeddings, table.item_factors))
