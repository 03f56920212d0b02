"""What the server tells the devices of a completion."""

from __future__ import annotations

import numpy as np

from dprec.completion.calibrated.completion import CalibratedModel
from dprec.wire.item_table import ItemTable


def item_table(model: CalibratedModel) -> ItemTable:
    """Return what a device needs to know of the items."""
    deviations = np.sqrt(model.items.variances)
    return ItemTable(model.cuts, model.items.means, deviations, model.geometry.items)
