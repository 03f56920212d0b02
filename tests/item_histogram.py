"""How often each item has each rating, from one noisy sum: devices predict item means and a user's level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.arrays import Floats
from dprec.completion import Profiles
from dprec.components import option
from dprec.protocols.base import Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sums import SummedDevice, SummedServer, SumsProtocol
from dprec.ratings import RatingScale
from dprec.sums import Release, SecureAggregation


@dataclass(frozen=True, kw_only=True)
class ItemHistogram(SumsProtocol):
    """What is configured, and how devices and server begin."""

    learns = "item-histogram"
    signed = False
    shares = (1.0,)
    privacy: PrivacyBudget | None = option("What is promised, per user.", None)
    adjacency: Adjacency = option("What epsilon compares.", "add-or-remove-one")
    prior: float = option("Ratings of the mean that every item counts as having besides.", 1.0, ge=0)
    aggregation: AnyAggregation = option("Who adds up.", SecureAggregation())

    def begin(self, public: Public, catalogue: Any = None) -> HistogramDevice:
        middle = (public.scale.low + public.scale.high) / 2
        return HistogramDevice(public.scale, np.full(public.n_items, middle, dtype="<f4"))

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> HistogramDevice:
        if len(received) != 4 * n_items:
            raise ValueError(f"{len(received)} bytes that are no means of {n_items} items")
        means = np.frombuffer(received, dtype="<f4")
        if not ((means >= scale.low) & (means <= scale.high)).all():
            raise ValueError("means beyond the scale")
        return HistogramDevice(scale, means)

    def server(self, public: Public, catalogue: Any, seed: int) -> HistogramServer:
        return HistogramServer(self.begin(public), self.prior)


@dataclass(frozen=True, eq=False)
class HistogramDevice(SummedDevice):
    """What devices hold: the mean of every item."""

    scale: RatingScale
    means: Any

    def encode(self) -> bytes:  # what devices are sent
        return bytes(self.means.tobytes())

    def release(self, round_index: int) -> Release:
        """A number for each level of each item is summed."""
        return Release(self, round_index, self.means.size * self.scale.levels, self.means.size, self.scale)

    def cells(self, profiles: Profiles, release: Release, words: Any) -> tuple[Any, Any, Any]:
        """A user adds 1 / sqrt(n) at the level of each of its n ratings."""
        counts, levels = np.diff(profiles.indptr), self.scale.level_of(profiles.values)
        rows = profiles.items.astype(np.int64) * self.scale.levels + levels - 1
        return profiles.indptr, rows, np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)

    def predictions(self, profiles: Profiles) -> Floats:
        """An item's mean, and by how much the user's ratings are above theirs."""
        above, counts = profiles.values - self.means[profiles.items], np.diff(profiles.indptr)
        level = np.bincount(profiles.users, above, minlength=counts.size) / (counts + 3)
        return np.asarray(level[:, None] + self.means)


@dataclass(eq=False)
class HistogramServer(SummedServer):
    """Learns the means of items."""

    known: HistogramDevice
    prior: float

    @property
    def held(self) -> HistogramDevice:
        return self.known

    def learn(self, layout: Any, round_index: int, released: Floats, deviation: float, users: int) -> None:
        """The noisier a mean, the closer it is drawn to that of all."""
        scale = self.known.scale
        shares = released[:, 0].reshape(-1, scale.levels)
        mean = (shares.sum(axis=0) @ scale.values) / max(shares.sum(), 1e-9)
        extra = self.prior + 2 * deviation
        means = (shares @ scale.values + extra * mean) / (np.maximum(shares.sum(axis=1), 0) + extra)
        self.known = replace(self.known, means=np.clip(means, scale.low, scale.high).astype("<f4"))
