"""A protocol of sums as somebody outside would write it: how often each item has each rating.

Devices contribute to one noisy histogram of ratings by item. They predict the item's mean, and by how much
their user rates above it.
"""

from dataclasses import dataclass, replace

import numpy as np

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import Floats
from dprec.components import option
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sums import SummedDevice, SummedServer, SumsProtocol
from dprec.ratings import RatingScale
from dprec.sums import Release, SecureAggregation


@dataclass(frozen=True, kw_only=True)
class ItemHistogram(SumsProtocol):
    """What is configured, and what devices and server start from."""

    learns = "item-histogram"
    signed = False
    shares = (1.0,)
    privacy: PrivacyBudget | None = option("What is promised, per user.", None)
    adjacency: Adjacency = option("What epsilon compares.", "add-or-remove-one")
    prior: float = option("Ratings of the mean that every item counts as having besides.", 1.0, ge=0)
    aggregation: AnyAggregation = option("Who adds up.", SecureAggregation())

    def begin(self, public, catalogue=None):
        middle = (public.scale.low + public.scale.high) / 2
        return HistogramDevice(public.scale, np.full(public.n_items, middle, dtype="<f4"))

    def device(self, received, n_items, scale):
        if len(received) != 4 * n_items:
            raise ValueError(f"{len(received)} bytes that are no means of {n_items} items")
        means = np.frombuffer(received, dtype="<f4")
        if not ((means >= scale.low) & (means <= scale.high)).all():
            raise ValueError("means beyond the scale")
        return HistogramDevice(scale, means)

    def server(self, public, catalogue, seed):
        return HistogramServer(self.begin(public), self.prior)


@dataclass(frozen=True, eq=False)
class HistogramDevice(SummedDevice):
    """What devices hold: the mean of every item."""

    scale: RatingScale
    means: Floats

    def encode(self):
        return self.means.tobytes()

    def release(self, round_index):
        """A number for each level of each item."""
        return Release(self, round_index, self.means.size * self.scale.levels, self.means.size, self.scale)

    def cells(self, profiles, release, words):
        """1 / sqrt(n) at the level of each of n ratings."""
        counts, levels = np.diff(profiles.indptr), self.scale.level_of(profiles.values)
        rows = profiles.items.astype(np.int64) * self.scale.levels + levels - 1
        return profiles.indptr, rows, np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)

    def predictions(self, profiles):
        """The item's mean, and by how much the user's ratings are above theirs."""
        above, counts = profiles.values - self.means[profiles.items], np.diff(profiles.indptr)
        shifts = np.bincount(profiles.users, above, minlength=counts.size) / (counts + 3)
        return shifts[:, None] + self.means


@dataclass(eq=False)
class HistogramServer(SummedServer):
    """Learns the means of items, shrunk towards that of all by the noise."""

    known: HistogramDevice
    prior: float

    @property
    def held(self):
        return self.known

    def learn(self, layout, round_index, released, deviation, users):
        scale = self.known.scale
        shares = released[:, 0].reshape(-1, scale.levels)
        mean = (shares.sum(axis=0) @ scale.values) / max(shares.sum(), 1e-9)
        extra = self.prior + 2 * deviation
        means = (shares @ scale.values + extra * mean) / (np.maximum(shares.sum(axis=1), 0) + extra)
        self.known = replace(self.known, means=np.clip(means, scale.low, scale.high).astype("<f4"))
