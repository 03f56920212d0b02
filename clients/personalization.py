"""The device's part after a completion: take the table of items, and predict from its own clean ratings.

What a device guarantees against any server: nothing that it computes from the table is ever sent, so the
table may be any; one that is malformed is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clients.population import Cohort
from dprec.messages import PRIOR, Personalization
from dprec.refusals import Refusal, RefusalCode, refusing_malformed
from dprec.setups import OneShotSetup
from dprec.wire.item_table import ItemTable


def receive_table(cohort: Cohort, delivery: Personalization) -> tuple[ItemTable, NDArray[np.float64]]:
    """Return the table of items and the priors of the cohort's users, shape (users, 1 + factors).

    Raises
    ------
    Refusal
        When the devices are not set up to predict, or the table or the priors are malformed.
    """
    population = cohort.population
    if not population.installed(OneShotSetup).predicts:
        raise Refusal(RefusalCode.NOT_SET_UP, "a table of items for devices that predict nothing")
    levels, n_items = population.scale.levels, population.n_items
    with refusing_malformed():
        table = ItemTable.decode(delivery.table, n_levels=levels, n_items=n_items)
    shape = cohort.size, 1 + table.traits.shape[1]
    if len(delivery.priors) != shape[0] * shape[1] * PRIOR.itemsize:
        what = f"priors of {len(delivery.priors)} bytes for {shape[0]} users of {shape[1]} numbers"
        raise Refusal(RefusalCode.MALFORMED_REQUEST, what)
    priors = np.frombuffer(delivery.priors, dtype=PRIOR).astype(np.float64).reshape(shape)
    if not np.isfinite(priors).all():
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "priors that are not finite")
    return table, priors
