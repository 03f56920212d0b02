"""The device's part after a completion: take the table of items, and predict from the own clean ratings.

What a device guarantees against any server: nothing that it computes from the table is ever sent, so the
table may be any; one that is malformed is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clients.population import Cohort
from dprec.messages import LEVEL, Personalization
from dprec.setups import OneShotSetup
from dprec.wire.item_table import ItemTable


def receive_table(cohort: Cohort, delivery: Personalization) -> tuple[ItemTable, NDArray[np.float64]]:
    """Return the table of items and the levels of the cohort's users.

    Raises
    ------
    ValueError
        When the devices are not set up to predict, or the table or the levels are malformed.
    """
    population = cohort.population
    dimensions = population.installed(OneShotSetup).table_dimensions
    if dimensions is None:
        raise ValueError("a table of items for devices that predict nothing")
    if len(delivery.levels) != cohort.size * LEVEL.itemsize:
        raise ValueError(f"levels of {len(delivery.levels)} bytes for {cohort.size} users")
    levels = np.frombuffer(delivery.levels, dtype=LEVEL).astype(np.float64)
    if not np.isfinite(levels).all():
        raise ValueError("levels that are not finite")
    table = ItemTable.decode(
        delivery.table,
        n_levels=population.scale.levels,
        n_items=population.n_items,
        dimensions=dimensions,
    )
    return table, levels
