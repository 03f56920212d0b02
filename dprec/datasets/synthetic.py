"""Ratings made from a seed, with the shape of MovieLens 100K and any size.

The activity of users and the popularity of items follow gamma distributions fitted to MovieLens 100K. A
rating is a latent opinion (the sum of a user bias, an item bias, an inner product of factors, and
noise) cut into stars so that the histogram matches that of MovieLens 100K. Populations may move: users join
and leave, items appear, and ratings have times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dprec.arrays import Floats, Int32s, Ints, Uint8s, blocks, offsets, order_statistics, rows_of, segments
from dprec.binarization import binary_scale
from dprec.completion import LinkKind, link_of
from dprec.components import Options, option
from dprec.crossdomain import CrossDomainRatings, joined
from dprec.datasets.base import Dataset
from dprec.errors import SettingError
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale

_STARS = np.array([6110, 11370, 27145, 34174, 21201])  # Ratings of 1 to 5 stars in MovieLens 100K.
_SCALE = RatingScale.evenly(1, 5, 1)
# Quartiles of MovieLens 100K: 33, 65, 148 ratings per user; 6, 27, 80 ratings per item.
_ACTIVITY_SHAPE, _POPULARITY_SHAPE = 0.7, 0.5
# Standard deviations of the parts of an opinion, in stars.
_USER_BIAS, _ITEM_BIAS, _FACTORS = 0.45, 0.5, 0.4
_CHUNK = 1 << 20
_DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Arrivals(Options):
    """Users who join at a rate and stay for a time, and items that appear; by default as in MovieLens 100K.

    There, 68 % of the users rate on a single day, the others stay for 72 days on average, and a fifth of the
    items have no rating in the first 60 of 215 days.
    """

    days: float = option("Days that the ratings span.", 215.0, gt=0, le=36_500)
    returning: float = option("Share of the users who stay; the others rate within a day.", 0.32, ge=0, le=1)
    stay: float = option("Mean of the days for which these stay, exponential.", 72.0, gt=0, le=36_500)
    new_items: float = option("Share of the items that are not there from the first day on.", 0.2, ge=0, lt=1)
    rated_again: float = option(
        "Probability that a user rates an item once more, of the same opinion and with other noise.",
        0.0,
        ge=0,
        le=1,
    )

    def drawn(self, users: int, items: int, seed: int) -> Presence:
        """Return who and what is there when."""
        random, span = generator(seed, "synthetic arrivals"), self.days * _DAY
        # The arrivals of a Poisson process, given how many there are, are independent and uniform.
        joined = span * random.random(users)
        stays = random.random(users) < self.returning
        left = joined + _DAY * np.where(stays, random.exponential(self.stay, users), 1.0)
        new = int(self.new_items * items)
        appeared = np.zeros(items)
        appeared[items - new :] = np.sort(span * random.random(new))
        return Presence(joined, np.minimum(left, span), appeared)


@dataclass(frozen=True, eq=False)
class Presence:
    """When users and items are there, in seconds since the first day."""

    joined: Floats
    left: Floats
    """Shape (users,)."""
    appeared: Floats
    """Ascending; shape (items,)."""

    @property
    def available(self) -> Ints:
        """How many items, the first of all, appear before a user leaves; shape (users,)."""
        return np.searchsorted(self.appeared, self.left)

    def until_left(self, users: Int32s, since: Floats, random: np.random.Generator) -> Floats:
        """Return a time for each rating, between another one and that at which its user leaves."""
        times: Floats = np.floor(since + random.random(since.size) * (self.left[users] - since))
        return times


@dataclass(frozen=True, kw_only=True)
class Synthetic(Dataset):
    """Made from a seed, low-rank: by default with the size, stars and skew of MovieLens 100K."""

    kind: Literal["synthetic"] = "synthetic"
    documented = _SCALE
    users: int = option("Number of users.", 943, ge=1, le=2**31 - 1)
    items: int = option("Number of items.", 1682, ge=1, le=2**31 - 1)
    ratings: int = option("Number of ratings, at most users x items.", 100_000, ge=1)
    rank: int = option("Number of factors of the opinions.", 5, ge=1)
    noise: float = option("Standard deviation, in stars, of what no model can predict.", 0.85, ge=0)
    seed: int = option("Seed of the data; a run's own seed does not change them.", 0, ge=0)
    arrivals: Arrivals | None = option(
        "When users join and leave, and items appear; left out, ratings have no times.", None
    )

    def known_size(self) -> tuple[int, int, int]:
        """Return what is configured; SettingError when there are more ratings than users x items."""
        n_cells = self.users * self.items
        if self.ratings > n_cells:
            raise SettingError("ratings", str(self.ratings), f"at most users x items = {n_cells}")
        return self.users, self.items, self.ratings

    def load(self) -> Ratings:
        """Return the ratings; see `known_size`."""
        self.known_size()
        # How many items, the first of all, each user can rate.
        available = np.broadcast_to(np.int64(self.items), self.users)
        if self.arrivals is not None:
            available = self.arrivals.drawn(self.users, self.items, self.seed).available
            if self.ratings > available.sum():
                accepted = f"at most {available.sum()}: those of items that appear before their users leave"
                raise SettingError("ratings", str(self.ratings), accepted)
        # Everybody has a minimum of ratings, and a skewed share of the others.
        weights = generator(self.seed, "synthetic activity").standard_gamma(_ACTIVITY_SHAPE, self.users)
        least = min(20, self.ratings // self.users, int(available.min()))
        counts = least + _apportioned(self.ratings - least * self.users, weights, available - least)
        indptr = offsets(counts)
        items = self._profiles(indptr, available)
        opinions = self._opinions(indptr, items)
        levels = _levels(opinions, _cuts(opinions))
        ids = np.arange(1, self.users + 1), np.arange(1, self.items + 1)
        return Ratings(indptr, items, levels, _SCALE, *ids)

    def load_timed(self) -> Ratings:
        """Return the ratings with times in seconds, if there are `arrivals`; see `Dataset.load_timed`."""
        if self.arrivals is None:
            accepted = "arrivals: {}, or a split that needs no times"
            raise SettingError("arrivals", "none, without which ratings have no times", accepted)
        ratings = self.load()
        presence = self.arrivals.drawn(self.users, self.items, self.seed)
        since = np.maximum(presence.joined[ratings.users], presence.appeared[ratings.items])
        random = generator(self.seed, "synthetic times")
        return replace(ratings, times=presence.until_left(ratings.users, since, random))

    def load_changes(self) -> Ratings | None:
        """Return what is rated once more, if anything is; see `Dataset.load_changes`."""
        if self.arrivals is None or not self.arrivals.rated_again:
            return None
        first_ratings, random = self.load_timed(), generator(self.seed, "synthetic second ratings")
        second_ratings = first_ratings.select(random.random(first_ratings.count) < self.arrivals.rated_again)
        cuts = _cuts(self._opinions(first_ratings.indptr, first_ratings.items))
        levels = _levels(self._opinions(second_ratings.indptr, second_ratings.items, random), cuts)
        presence = self.arrivals.drawn(self.users, self.items, self.seed)
        times = np.zeros(0) if second_ratings.times is None else second_ratings.times
        return replace(
            second_ratings, levels=levels, times=presence.until_left(second_ratings.users, times, random)
        )

    def _opinions(self, indptr: Ints, items: Int32s, noise: np.random.Generator | None = None) -> Floats:
        """Return the opinion behind each rating; by default with the noise of first ratings."""
        from dprec.kernels.profiles import add_opinions

        random = generator(self.seed, "synthetic opinions")
        # The variance of an inner product is that of one term times the rank.
        spread = np.sqrt(_FACTORS) / self.rank**0.25
        user_biases = random.normal(0, _USER_BIAS, self.users)
        item_biases = random.normal(0, _ITEM_BIAS, self.items)
        user_factors = random.normal(0, spread, (self.users, self.rank))
        item_factors = random.normal(0, spread, (self.items, self.rank))
        opinions = (noise or random).standard_normal(items.size)
        parts = user_biases, item_biases, user_factors, item_factors
        add_opinions(opinions, indptr, items, *parts, self.noise)
        return opinions

    def _profiles(self, indptr: Ints, available: Ints) -> Int32s:
        """Return the item of every rating, ascending within a user.

        A user's items are drawn one after the other in proportion to their popularity, without
        replacement. Light users draw with replacement and redraw duplicates; heavy users, who would
        draw too many duplicates, take the items with the greatest keys log(weight) + Gumbel noise,
        which gives the same distribution (Efraimidis and Spirakis [efraimidis2006]).
        """
        from dprec.kernels.profiles import draw_distinct

        random = generator(self.seed, "synthetic profiles")
        weights = random.standard_gamma(_POPULARITY_SHAPE, self.items) + 1e-9
        thresholds = np.minimum(np.cumsum(weights) / weights.sum(), 1.0)
        thresholds[-1] = 1.0
        steps = 1 << self.items.bit_length()
        guide = np.searchsorted(thresholds, np.arange(steps) / steps, side="right").astype(np.int32)
        items, counts, missing = np.empty(indptr[-1], dtype=np.int32), np.diff(indptr), np.diff(indptr)
        heavy, last_user = counts > available // 16, np.full(self.items, -1, dtype=np.int32)
        light, many = np.flatnonzero(~heavy), np.flatnonzero(heavy)
        while light.size:
            for rows in blocks(missing[light], _CHUNK):
                users = light[rows]
                draws = random.random(missing[users].sum())
                draw_distinct(
                    items, missing, last_user, indptr, users, available[users], thresholds, guide, draws
                )
            light = light[missing[light] > 0]
        length = max(1, _CHUNK // self.items)
        for start in range(0, many.size, length):
            users = many[start : start + length]
            keys = np.log(weights) + random.gumbel(size=(users.size, self.items))
            keys[np.arange(self.items) >= available[users, None]] = -np.inf
            chosen = np.arange(self.items) < counts[users, None]
            items[segments(indptr[users], counts[users])] = np.argsort(-keys, axis=1)[chosen]
        for rows in blocks(counts, _CHUNK):
            block = slice(indptr[rows.start], indptr[rows.stop])
            cells = rows_of(counts[rows]) * self.items + items[block]
            cells.sort()
            items[block] = cells % self.items
        return items


def _levels(opinions: Floats, cuts: Floats) -> Uint8s:
    """Return the level of each opinion; each cut is the least opinion of a level."""
    levels = np.ones(opinions.size, dtype=np.uint8)
    for cut in cuts:
        levels += opinions >= cut
    return levels


def _cuts(opinions: Floats) -> Floats:
    """Return the least opinion of each level but the first, or infinity if there is none."""
    begins = np.cumsum(_per_level(opinions.size))[:-1]
    there = begins < opinions.size
    return np.append(order_statistics(opinions, begins[there]), np.full(np.count_nonzero(~there), np.inf))


def _per_level(ratings: int) -> Ints:
    """Return how many of so many ratings have each level."""
    return _apportioned(ratings, _STARS, np.full(_STARS.size, ratings))


def _apportioned(total: int, weights: Floats, limits: Ints) -> Ints:
    """Divide an integer in proportion to weights by largest remainders, no share above its limit."""
    full = np.zeros(weights.size, dtype=np.bool_)
    while True:
        remaining = total - int(limits[full].sum())
        quotas = np.where(full, limits, remaining * weights / max(weights[~full].sum(), np.finfo(float).tiny))
        if not np.any(overfull := (quotas > limits) & ~full):
            break
        full |= overfull
    shares = np.floor(quotas).astype(np.int64)
    remainders = np.where(shares < limits, quotas - shares, -1.0)
    shares[np.argsort(-remainders, kind="stable")[: total - int(shares.sum())]] += 1
    return shares


_MOST_CELLS = 50_000_000


@dataclass(frozen=True, kw_only=True)
class OneBitSynthetic(Dataset):
    """Signs of a noisy low-rank matrix, with a rating in every cell (Li et al. [li2021], section 5.1)."""

    kind: Literal["one-bit-synthetic"] = "one-bit-synthetic"
    documented = binary_scale()
    users: int = option("Number of users.", 100, ge=1)
    items: int = option("Number of items.", 100, ge=1)
    rank: int = option("Rank of the hidden matrix.", 1, ge=1)
    alpha: float = option("Its largest entry, in absolute value.", 1.0, gt=0)
    link: LinkKind = option("How an entry makes a +1 likely: logistic, or gaussian.", "logistic")
    sigma: float = option("Standard deviation of the Gaussian link's noise.", 1.0, gt=0)
    seed: int = option("Seed of the data; a run's own seed does not change them.", 0, ge=0)

    def load(self) -> Ratings:
        """Return the sign of every cell, of which a split observes some; raises SettingError for too many."""
        matrix = self.hidden()
        chances = link_of(self.link, self.sigma).probability(matrix)
        plus = generator(self.seed, "one-bit signs").random(matrix.shape) < chances
        indptr = np.arange(self.users + 1, dtype=np.int64) * self.items
        items = np.tile(np.arange(self.items, dtype=np.int32), self.users)
        ids = np.arange(1, self.users + 1), np.arange(1, self.items + 1)
        return Ratings(indptr, items, plus.ravel().astype(np.uint8) + np.uint8(1), binary_scale(), *ids)

    def hidden(self) -> Floats:
        """Return the hidden matrix M, shape (users, items).

        M = M1 M2^T, M1 and M2 with entries uniform on [-1/2, 1/2], scaled to a largest entry of alpha in
        absolute value.
        """
        if self.users * self.items > _MOST_CELLS:
            raise SettingError("users", f"{self.users} x {self.items} items", f"at most {_MOST_CELLS} cells")
        random = generator(self.seed, "one-bit matrix")
        left = random.random((self.users, self.rank)) - 0.5
        right = random.random((self.items, self.rank)) - 0.5
        matrix = left @ right.T
        scaled: Floats = self.alpha * matrix / np.abs(matrix).max()
        return scaled


@dataclass(frozen=True, kw_only=True)
class SyntheticDomains(Dataset):
    """Made from a seed: synthetic ratings of items in two domains, some users rating in both."""

    kind: Literal["synthetic-domains"] = "synthetic-domains"
    documented = _SCALE
    users: int = option("Number of users.", 943, ge=1, le=2**31 - 1)
    items: int = option("Number of items; every second one is in the target domain.", 1682, ge=2)
    ratings: int = option("Number of ratings before users are limited to one domain.", 100_000, ge=1)
    straddling: float = option("Share of the users who rate in both domains.", 0.5, gt=0, le=1)
    seed: int = option("Seed of the data; a run's own seed does not change them.", 0, ge=0)

    def load(self) -> CrossDomainRatings:
        """Return the ratings; InputError when there are more than users x items."""
        ratings = Synthetic(users=self.users, items=self.items, ratings=self.ratings, seed=self.seed).load()
        random = generator(self.seed, "synthetic domains")
        straddles = random.random(self.users) < self.straddling
        second_only = random.random(self.users) < 0.5
        second = (ratings.items % 2).astype(np.bool_)
        allowed = straddles[ratings.users] | (second == second_only[ratings.users])
        return joined(
            ratings.select(allowed & ~second), ratings.select(allowed & second), ("source", "target")
        )
