"""Malicious users, who are added to a population, and take part to move what the others are shown.

Whatever malicious users send, it obeys the wire format. A profile is made up, and either goes through the
code of an honest device, with its noise, or is told by the symbols that the server reads as most for it,
since nobody makes a device draw them (maximal gain; Cao, Jia and Gong [cao2021]). The profile holds the
targets, and fillers that make it look like one or that make the most of the targets.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec.arrays import Bools, Floats, Ints, Uint8s, offsets
from dprec.attacks.seen import ItemShares
from dprec.ratings import Ratings

Fillers = Literal["random", "popular", "favourites", "profile-aware", "active", "contrast", "none"]
"""Which other items are in a fake profile, and how they are rated.

``random``: any items, by the shares of the levels among all ratings (Lam and Riedl [lam2004]). ``popular``:
the most rated items, each by the shares of its levels. ``favourites``: the best liked items, rated as the
targets are, which places these among them (a segment, Mobasher et al. [mobasher2007]). ``profile-aware``:
items drawn by popularity, as many as an honest user has rated. ``active``: as many as the most active users
have rated, since some servers believe them more. ``contrast``: as few as make the targets stand out, at the
other end of the scale. ``none``: the targets alone, as the smallest profiles weigh most where all have the
same norm.
"""

Lies = Literal[Fillers, "reversed"]
"""As well ``reversed``: as many as the most active users have rated, each as its raters do not, lowest where
its mean is above that of all items; of sets, any items.
"""


@dataclass(frozen=True, eq=False)
class MaliciousUsers:
    """Users who choose what they claim, or what they report."""

    profiles: Ratings
    """What they claim to have rated, of the items of the honest users."""
    crafted: bool = False
    """Whether they choose what they report, as far as a protocol can tell no difference by its form."""
    targets: tuple[int, ...] = ()
    """The items that they care for: who chooses what it adds to a sum says nothing of others. None: all."""

    @property
    def users(self) -> int:
        """How many they are."""
        return self.profiles.n_users

    def joining(self, honest: Ratings) -> Ratings:
        """Return ratings of honest users, with those of the malicious users after them all."""
        malicious, exact, times = self.profiles, honest.exact, honest.times
        if exact is not None:
            exact = np.append(exact, malicious.values)
        if times is not None:
            times = np.append(times, np.full(malicious.count, times.max(initial=0.0)))
        return replace(
            honest,
            indptr=np.append(honest.indptr, honest.indptr[-1] + malicious.indptr[1:]),
            items=np.append(honest.items, malicious.items),
            levels=np.append(honest.levels, malicious.levels),
            user_ids=np.arange(honest.n_users + malicious.n_users),
            exact=exact,
            times=times,
        )


def number_of_malicious_users(honest: int, share: float) -> int:
    """Return how many malicious users make a share of all users, at least one."""
    return max(1, round(honest * share / (1 - share)))


def targets_among(honest: Ratings, number: int, generator: np.random.Generator) -> Ints:
    """Draw items that about as many honest users have rated as the median item that anybody has."""
    raters = np.bincount(honest.items, minlength=honest.n_items)
    rated = np.flatnonzero(raters)
    distance = np.abs(raters[rated] - np.median(raters[rated]))
    candidates = rated[distance <= np.sort(distance)[min(_CANDIDATES, rated.size) - 1]]
    return np.sort(generator.choice(candidates, min(number, candidates.size), replace=False)).astype(np.int64)


_CANDIDATES = 20
"""Items that targets are drawn from; more where several are as far from the median."""


@dataclass(frozen=True, eq=False)
class FakeProfiles:
    """How fake profiles are made up."""

    honest: Ratings
    """Of whom malicious users know what is public: who rates how often, and how items are rated."""
    targets: Ints
    level: int
    """That at which malicious users rate the targets."""
    fillers: Lies

    def made(self, malicious: int, generator: np.random.Generator) -> Ratings:
        """Make up the profiles of so many malicious users."""
        weights, n_items = self._weights(), self.honest.n_items
        sizes = np.minimum(self._sizes(malicious, generator), np.count_nonzero(weights))
        with np.errstate(divide="ignore"):
            keys = np.log(weights) + generator.gumbel(size=(malicious, n_items))
        order = np.argsort(-keys, axis=1)
        chosen = np.zeros((malicious, n_items), dtype=np.bool_)
        np.put_along_axis(chosen, order, np.arange(n_items) < sizes[:, None], axis=1)
        levels = self._levels(chosen, generator)
        levels[:, self.targets] = self.level
        users, items = np.nonzero(levels)
        return Ratings(
            offsets(np.bincount(users, minlength=malicious)),
            items.astype(np.int32),
            levels[users, items],
            self.honest.scale,
            np.arange(malicious),
            self.honest.item_ids,
        )

    def _sizes(self, malicious: int, generator: np.random.Generator) -> Ints:
        """Return how many fillers each has, shape (users,)."""
        if self.fillers == "none":
            return np.zeros(malicious, dtype=np.int64)
        counts = self.honest.counts[self.honest.counts > 0]
        if self.fillers == "profile-aware":
            sizes = counts[generator.integers(counts.size, size=malicious)]
        elif self.fillers in ("active", "reversed"):
            sizes = np.full(malicious, round(float(np.quantile(counts, 0.95))))
        elif self.fillers == "contrast":
            # One more at the other end than targets, which are then the farthest from the mean of all.
            return np.full(malicious, 1 + self.targets.size)
        else:
            sizes = np.full(malicious, self._usual)
        return np.maximum(1, sizes - self.targets.size)

    @property
    def _raters(self) -> Ints:
        """How many users have rated each item, shape (items,)."""
        return np.bincount(self.honest.items, minlength=self.honest.n_items)

    @property
    def _shares(self) -> Floats:
        """Of the levels among the ratings of each item, shape (items, levels)."""
        return ItemShares.of(self.honest).shares

    @property
    def _usual(self) -> int:
        """How many ratings the median user has."""
        return round(float(np.median(self.honest.counts[self.honest.counts > 0])))

    def _weights(self) -> Floats:
        """Return how likely each item is a filler; 0 for the targets; shape (items,)."""
        raters, levels = self._raters, np.arange(self.honest.scale.levels)
        any_items = self.fillers == "random" or (self.fillers == "reversed" and levels.size == 1)
        weights = np.ones(raters.size) if any_items else raters.astype(np.float64)
        if self.fillers in ("popular", "favourites"):
            appeal: Floats = raters.astype(np.float64)
            if self.fillers == "favourites" and levels.size > 1:
                # How high each item is rated, less twice its standard error.
                shares = self._shares
                means = shares @ levels
                variances = shares @ levels**2 - means**2
                appeal = means - 2 * np.sqrt(variances / np.maximum(raters, 1))
            first = np.argsort(-appeal, kind="stable")[: self._usual + self.targets.size]
            weights = np.isin(np.arange(raters.size), first).astype(np.float64)
        weights[self.targets] = 0.0
        return weights

    def _levels(self, chosen: Bools, generator: np.random.Generator) -> Uint8s:
        """Return levels of the fillers, and 0 elsewhere, shape (users, items)."""
        levels = np.zeros(chosen.shape, dtype=np.uint8)
        users, items = np.nonzero(chosen)
        if self.fillers == "favourites":
            levels[chosen] = self.level
            return levels
        if self.fillers == "contrast":
            levels[chosen] = self.honest.scale.levels + 1 - self.level
            return levels
        shares = self._shares
        if self.fillers == "reversed":
            means = shares @ np.arange(self.honest.scale.levels)
            above = means > np.average(means, weights=self._raters)
            levels[users, items] = np.where(above, 1, self.honest.scale.levels)[items]
            return levels
        if self.fillers == "random":
            shares = np.tile(shares.mean(axis=0), (shares.shape[0], 1))
        cumulative = np.cumsum(shares, axis=1)
        draws = generator.random(items.size) * cumulative[items, -1]
        levels[users, items] = 1 + (draws[:, None] >= cumulative[items, :-1]).sum(axis=1)
        return levels
