"""Judges best-secret-set and gram on users who are all distinct, beside copies of some of them.

    python benchmarks/distinct_users.py [--path ../shared/data/ml-100k] [--seeds 1 2 3] [--copies] [USERS ...]

A population is drawn from a model that is fitted to all of MovieLens 100K: item sets from a mixture of kinds
of taste (Hofmann's aspect model, by EM), and ratings from biases and factors. A drawn user resembles one of
the 943, but its shares of the kinds are drawn around theirs, its bias and factors follow these with a
deviation of their own, and its items and ratings are drawn by themselves. Films keep their years and genres.
A fifth of the ratings, or positives, of the first thousand users is held out; only they are judged. With
--copies the population is copies of the first 943, which are all judged.

Noise is that of secure aggregation, tolerating a tenth of dropouts, drawn by a trusted server.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from choose_secret_sets import DELTA
from validation import Parts, measured

from dprec.arrays import AnyArray, Floats, Ints, blocks, offsets, rows_of
from dprec.completion import Profiles, solve_user_factors
from dprec.datasets import MovieLens100K
from dprec.datasets.selection import copied, positives
from dprec.randomness import generator
from dprec.ratings import Ratings
from dprec.splits import UserHoldout
from dprec.sums import SecureAggregation, TrustedAggregation

KINDS, RANK, RIDGE, STEPS = 80, 8, 8.0, 60
MORE = 1.13
"""By how much ratings differ from the fitted ones, which are near those that they were fitted to."""
SHARPER = 2.0
"""Exponent of what a user takes, as nothing is taken twice: popular films are about as popular as the real
ones, and EASE gains as much over them.
"""
NEAR = 300.0
"""Concentration of a drawn user's shares around those of the user that it resembles."""
JUDGED, COPIED = 1000, 943
EPSILONS = (0.5, 1.0, 2.0)
REFERENCES = {
    "ratings": ("nothing-sent", "user-level-on-device", "best-on-device"),
    "lists": ("popularity", "popularity-by-content", "ease"),
}
JUDGED_BY = {"ratings": "rmse", "lists": "ndcg_at_10"}
_CELLS_AT_ONCE = 1 << 23


@dataclass(frozen=True, eq=False)
class Model:
    """What users are drawn from."""

    real: Ratings
    shares: Floats
    """Kinds of taste of the real users, shape (users, kinds)."""
    items: Floats
    """What each kind takes, shape (kinds, items)."""
    biases: Floats
    factors: Floats
    """Of the items, shapes (items,) and (items, rank)."""
    regression: AnyArray
    """From a 1 and a user's shares to its bias and factors, shape (1 + kinds, 1 + rank)."""
    spread: AnyArray
    """A root of the covariance of what is left, shape (1 + rank, 1 + rank)."""
    noise: float
    """Deviation of a rating."""

    @classmethod
    def of(cls, real: Ratings) -> Self:
        """Fit the model."""
        shares, items = _kinds(real)
        biases, factors, own, noise = _rated(real)
        design: Floats = np.hstack([np.ones((real.n_users, 1)), shares])
        ridge = np.diag(np.full(design.shape[1], 0.5))
        regression = np.linalg.solve(design.T @ design + ridge, design.T @ own)
        left = own - design @ regression
        spread = np.linalg.cholesky(left.T @ left / real.n_users)
        return cls(real, shares, items, biases, factors, regression, spread, noise)

    def drawn(self, users: int, seed: int) -> Ratings:
        """Draw users."""
        random = generator(seed, "distinct users")
        like = random.integers(0, self.real.n_users, users)
        varied = np.rint(self.real.counts[like] * np.exp(0.1 * random.standard_normal(users)))
        counts = np.clip(varied, 20, self.real.n_items // 2).astype(np.int64)
        some_users = blocks(np.full(users, self.real.n_items), _CELLS_AT_ONCE)
        parts = [self._rows(like[some], counts[some], random) for some in some_users]
        items, levels = (np.concatenate(part) for part in zip(*parts, strict=True))
        ids = np.arange(1, users + 1), self.real.item_ids
        return Ratings(offsets(counts), items.astype(np.int32), levels, self.real.scale, *ids)

    def _rows(self, like: Ints, counts: Ints, random: np.random.Generator) -> tuple[Ints, Any]:
        shares = random.standard_gamma(NEAR * self.shares[like] + 1e-3)
        shares /= shares.sum(axis=1, keepdims=True)
        keys = SHARPER * np.log(shares @ self.items) + random.gumbel(size=(like.size, self.real.n_items))
        first = np.argsort(-keys, axis=1)[:, : counts.max()]
        first[np.arange(first.shape[1]) >= counts[:, None]] = self.real.n_items
        items = np.sort(first, axis=1)
        items = items[items < self.real.n_items]
        own = np.hstack([np.ones((like.size, 1)), shares]) @ self.regression
        own += random.standard_normal(own.shape) @ self.spread.T
        of = rows_of(counts)
        opinions = self.biases[items] + own[of, 0] + (own[of, 1:] * self.factors[items]).sum(axis=1)
        return items, self.real.scale.level_of(opinions + self.noise * random.standard_normal(items.size))


def _kinds(real: Ratings) -> tuple[Floats, Floats]:
    """Return the shares of users and what kinds take, of the aspect model."""
    random, sets = generator(0, "kinds of taste"), real.to_sets()
    shares = random.dirichlet(np.ones(KINDS), real.n_users)
    items = random.dirichlet(np.ones(real.n_items), KINDS)
    common = np.asarray(sets.sum(axis=0)) + 0.5
    for _ in range(STEPS):
        likely = (shares[real.users] * items.T[real.items]).sum(axis=1)
        told = sets.copy()
        told.data = 1 / likely
        shares, items = shares * (told @ items.T), items * (told.T @ shares).T
        shares /= shares.sum(axis=1, keepdims=True)
        items += 20 * common / common.sum()
        items /= items.sum(axis=1, keepdims=True)
    return shares, items


def _rated(real: Ratings) -> tuple[Floats, Floats, Floats, float]:
    """Return item biases and factors, biases and factors of users, and the deviation of what is left."""
    users, items, values = real.users, real.items, real.values - real.values.mean()
    biases, own = np.zeros(real.n_items), np.zeros(real.n_users)
    popularity = np.bincount(items, minlength=real.n_items)
    for _ in range(10):
        biases = np.bincount(items, values - own[users], real.n_items) / (popularity + 5)
        own = np.bincount(users, values - biases[items], real.n_users) / (real.counts + 5)
    left = values - biases[items] - own[users]
    by_item = np.argsort(items, kind="stable")
    rows = Profiles(real.indptr, items, left, real.n_items)
    columns = Profiles(offsets(popularity), users[by_item], left[by_item], real.n_users)
    factors = 0.3 * generator(0, "first factors").standard_normal((real.n_items, RANK))
    for _ in range(15):
        tastes = solve_user_factors(rows, factors, RIDGE)
        factors = solve_user_factors(columns, tastes, RIDGE)
    residuals = rows.residuals(tastes, factors)
    return biases + real.values.mean(), factors, np.column_stack([own, tastes]), MORE * float(residuals.std())


def parted(population: Ratings, seed: int) -> Parts:
    """Return the ratings that are learned from, and those of the first users that are held out."""
    held_out = np.zeros(population.count, dtype=np.bool_)
    rows = UserHoldout().test_rows(population, seed)
    held_out[rows[rows < population.indptr[min(JUDGED, population.n_users)]]] = True
    return population.select(~held_out), population.select(held_out)


def populations(model: Model, users: int, seed: int, *, copies: bool) -> Iterator[tuple[str, Parts]]:
    """Yield ratings, and positive pairs of those who have five."""
    drawn = model.drawn(COPIED if copies else users, seed)
    sets = positives(drawn, ">= 4")
    kept = np.flatnonzero(sets.counts >= 5)
    for what, population in (("ratings", drawn), ("lists", sets.of_users(kept, sets.user_ids[kept]))):
        parts = parted(population, seed)
        yield what, copied(*parts, users, seed) if copies else parts


def epsilon_of_devices(epsilon: float) -> float:
    """Return the epsilon at which a trusted server adds the noise that devices add."""
    secure, central = SecureAggregation(), TrustedAggregation()
    multiplier = secure.multiplier(epsilon, DELTA) / np.sqrt(1 - secure.dropouts)
    return float(central.epsilon(multiplier, DELTA))


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", default="../shared/data/ml-100k", help="folder of MovieLens 100K")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--copies", action="store_true", help="a population of copies")
    parser.add_argument("--of", nargs="*", default=list(JUDGED_BY), help="ratings, lists or both")
    parser.add_argument("users", type=int, nargs="*", default=[10_000, 100_000])
    given = parser.parse_args()
    model = Model.of(MovieLens100K(path=given.path).load())
    data = {"dataset": f"{{kind: movielens-100k, path: {given.path}, items: true}}"}
    for users, seed in itertools.product(given.users, given.seeds):
        for what, parts in populations(model, users, seed, copies=given.copies):
            if what not in given.of:
                continue
            preset = "best-secret-set" if what == "ratings" else "gram-central"
            # Copies of users change nothing where the ridge grows with them.
            own = {"ease": {"protocol.ridge_users": COPIED}} if given.copies else {}
            runs: list[tuple[str, str, dict[str, Any]]] = [
                (name, "", own.get(name, {})) for name in REFERENCES[what]
            ]
            for epsilon in EPSILONS:
                noisy = {
                    "protocol.aggregation": "{kind: trusted}",
                    "protocol.privacy.epsilon": epsilon_of_devices(epsilon),
                }
                runs.append((preset, f" at {epsilon:g}", noisy))
            for name, at, settings in runs:
                figure = measured(name, {**data, **settings}, parts, seed, JUDGED_BY[what])
                kind = "copies" if given.copies else "distinct"
                print(f"{users} {kind}, seed {seed}: {name}{at} {figure:.4f}", flush=True)


if __name__ == "__main__":
    main()
