"""The channel that the devices of a run applied to their ratings, and how far it shrinks what is read."""

from dataclasses import dataclass

import numpy as np

from dprec.arrays import Floats
from dprec.channel import Channel


@dataclass(frozen=True, eq=False)
class DeviceChannel:
    """A mechanism at a budget, as applied on the devices."""

    channel: Channel
    """Everybody's; for a budget per user, that of a user with the median number of ratings."""
    cells: int
    """Cells that such a user reports."""
    per_user: bool
    """Whether the budget is per user, so that the channel depends on the number of cells."""

    @property
    def ratings(self) -> Floats:
        """The true ratings, the inputs without "not rated", shape (levels,)."""
        return self.channel.inputs[~np.isnan(self.channel.inputs)]

    @property
    def expected(self) -> Floats:
        """E[r* | r] of every true rating, given that the report shows a rating, shape (levels,)."""
        return (self.channel.inputs + self.channel.bias())[~np.isnan(self.channel.inputs)]

    @property
    def slope(self) -> float:
        """Least-squares slope of E[r* | r]: 1 without bias, 0 if a report's mean says nothing about r."""
        return float(np.polyfit(self.ratings, self.expected, 1)[0])
