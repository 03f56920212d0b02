"""What the server tells the devices of a completion."""

from __future__ import annotations

import numpy as np

from dprec.completion.base import Completed, Completion, Observations
from dprec.completion.calibrated.completion import Calibrated, CalibratedModel
from dprec.personalization.derived_broadcast import Broadcast, TableOptions, derived_broadcast
from dprec.wire.item_table import ItemTable


def item_table(model: CalibratedModel) -> ItemTable:
    """Return what a device needs to know of the items."""
    deviations = np.sqrt(model.items.variances)
    return ItemTable(model.cuts, model.items.means, deviations, model.geometry.items)


def broadcast_of(
    completed: Completed, observations: Observations, options: TableOptions, seed: int
) -> Broadcast:
    """Return what devices are sent: a calibrated model's own effects, or what predictions say of them.

    Parameters
    ----------
    completed : Completed
    observations : Observations
        What it was completed from.
    options : TableOptions
        For a completion that is not calibrated.
    seed : int
    """
    if isinstance(completed, CalibratedModel):
        return Broadcast(item_table(completed), completed.users.regressed)
    return derived_broadcast(completed, observations, options, seed)


def table_dimensions(completion: Completion, options: TableOptions) -> int:
    """Return the dimensions of the table that is broadcast after a completion."""
    return completion.dimensions if isinstance(completion, Calibrated) else options.dimensions
