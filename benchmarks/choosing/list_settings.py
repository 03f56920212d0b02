"""Judges what follows from the noise of a noisy table: `GramSettings` and `ridge_of` in dprec/lists/gram.py.

    python benchmarks/choosing/list_settings.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is a number of GramSettings, `ridge`, `variances` of `PublicKernels`, or one of `public-start` in
dprec/lists/products.py: `tastes`, the share of scores by features, `_RIDGE`, `_PARTS` and `COLUMNS`. Each is
multiplied by a few factors, with Gaussian noise of three taus, on validation items of two dense data sets,
MSWeb and MovieLens 100K (with its content and without), and of two sparse ones, CiteULike and Steam: of a
fifth of each user's train items those that are test items of none of the seeds that published comparisons
have. Figures are NDCG@10 of six draws. Prints what is best, and fails if that is better than the rule by more
than .002, and by more than chance explains. Takes about half an hour of processor time.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from unittest import mock

import numpy as np
from scipy import sparse
from validation import TESTED_SEEDS, arguments, best_of

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.datasets import Dataset, LightGCN, MovieLens100K, MsWeb, selected
from dprec.lists import products
from dprec.lists.gram import (
    DIAGONAL,
    GramSettings,
    denoised_table,
    joined_popularity,
    popular_items,
    popularity_estimate,
    ridge_of,
    scores,
)
from dprec.lists.model import ItemTable
from dprec.lists.public_kernels import CATEGORIES, NUMBERS, PublicKernels, popularity_bins
from dprec.metrics import Hits
from dprec.protocols import public_start
from dprec.protocols.base import Public
from dprec.protocols.gram import PairTableOptions
from dprec.ratings import POSITIVE
from dprec.splits import UserHoldout
from dprec.sums import UNIT, ProfileContributions, Release

TAUS = (4.8e-3, 1.3e-3, 3e-4)
SEEDS = (1, 2, 3, 4, 5, 6)
FACTORS = (0.4, 1.0, 2.5)
WHOLE = {"_PARTS": (0.5, 1.0, 2.0), "COLUMNS": (0.5, 1.0, 2.0)}
JUDGED_CELLS = 1 << 26
"""Cells of the users who judge a draw, which bounds the time: 2,623 users of CiteULike, all of other data."""
_CELLS_AT_ONCE = 1 << 22
RECALLED = 20
"""Length of the lists that are judged."""
LEAST = 0.002
"""A difference in NDCG@10 that is too small to matter."""
OF_TABLE = ("popularity_share", "table_items", "share_of_weights")
OF_TASTES = ("tastes", "_RIDGE", "_PARTS", "COLUMNS")
OF_CONTENT = ("variances", *OF_TASTES)
EVERY = (*OF_TABLE, "ridge", *OF_CONTENT)


Scorer = Callable[[sparse.csr_array], Floats]
"""From sets, shape (users, items), to scores of all items, of the same shape, which the caller may change."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Sets that are learned from, and the items that judge, of some users perhaps."""

    sets: sparse.csr_array
    judging: sparse.csr_array
    catalogue: Catalogue | None
    seed: int


def draws(dataset: Dataset, test_fraction: float, *, content: bool = False) -> list[Draw]:
    """Return the draws of validation items."""
    ratings, split = selected(dataset).load(), UserHoldout(test_fraction=test_fraction)
    tested = np.concatenate([split.test_rows(ratings, seed) for seed in TESTED_SEEDS])
    catalogue = dataset.catalogue(ratings.item_ids) if content else None
    found = []
    for seed in SEEDS:
        kept = np.ones(ratings.count, dtype=np.bool_)
        kept[split.test_rows(ratings, seed)] = False
        train = ratings.select(kept)
        judging = np.zeros(train.count, dtype=np.bool_)
        judging[UserHoldout().test_rows(train, 100 + seed)] = True
        judging &= ~np.isin(np.flatnonzero(kept), tested)
        sets, judges = (train.select(rows).to_sets() for rows in (~judging, judging))
        people = np.random.default_rng(seed).permutation(train.n_users)
        heard = np.zeros(train.n_users)
        heard[people[: JUDGED_CELLS // train.n_items]] = 1.0
        judges = sparse.csr_array(judges * heard[:, None])
        judges.eliminate_zeros()
        found.append(Draw(sets, judges, catalogue, seed))
    return found


def dense_draws(folder: str) -> dict[str, Callable[[], list[Draw]]]:
    """Return what loads the draws of each dense data set, given the folder of MovieLens 100K."""
    movies = MovieLens100K(path=folder, items=True, positive=">= 4", min_items=5)
    visits = MsWeb(path=str(Path(folder).with_name("msweb")), min_items=3)
    return {
        "MSWeb": cache(partial(draws, visits, 0.3)),
        "MovieLens": cache(partial(draws, movies, 0.2)),
        "MovieLens with content": cache(partial(draws, movies, 0.2, content=True)),
    }


def validation_draws(folder: str) -> dict[str, Callable[[], list[Draw]]]:
    """Return what loads the draws of each data set, dense or sparse, once; all folders are side by side."""
    sparse_ones = {"CiteULike": "citeulike", "Steam": "steam"}
    return dense_draws(folder) | {
        title: cache(partial(draws, LightGCN(path=str(Path(folder).with_name(name) / "users.dat")), 0.2))
        for title, name in sparse_ones.items()
    }


def pairs_sum(sets: sparse.csr_array) -> Floats:
    """Return the sum of all contributions of pairs, shape (cells,)."""
    sizes = np.diff(sets.indptr)
    weights = 1 / np.sqrt(np.maximum(DIAGONAL**2 * sizes + sizes * (sizes - 1) / 2, DIAGONAL**2))
    table = (sets.T @ (sets * weights[:, None])).toarray()
    table[np.diag_indices(len(table))] *= DIAGONAL
    upper: Floats = table[np.triu_indices(len(table))]
    return upper


def hits_of(draw: Draw, scores: Scorer) -> Hits:
    """Return where what is held out stands, ties against it, without the items that are learned from."""
    judging = np.flatnonzero(np.diff(draw.judging.indptr))
    ranks, users = [], []
    for part in np.array_split(judging, -(-judging.size * draw.sets.shape[1] // _CELLS_AT_ONCE)):
        own = draw.sets[part]
        ranked = scores(own)
        ranked[own.nonzero()] = -np.inf
        for user, row in zip(part, ranked, strict=True):
            wanted = row[draw.judging[[user]].indices]
            ranks.append((row >= wanted[:, None]).sum(axis=1))
            users.append(np.full(wanted.size, len(users)))
    return Hits.at(np.concatenate(ranks).astype(np.float64), np.concatenate(users), RECALLED)


def ndcg(draw: Draw, scores: Scorer) -> float:
    """Return the mean NDCG@10 of scores; see `hits_of`."""
    return float(hits_of(draw, scores).ndcg(10).mean())


def judged(draw: Draw, tau: float, factors: Mapping[str, float], *, table: bool = True) -> float:
    """Return the NDCG@10 with settings of the rule times some factors, or of popularity alone."""
    users, n_items = draw.sets.shape
    random = np.random.default_rng(draw.seed)
    rule = GramSettings.of(tau, n_items, content=draw.catalogue is not None)
    settings = changed(rule, factors, n_items)
    if not table:
        settings = replace(settings, popularity_share=1.0)
    items, known = np.arange(n_items), None
    if settings.popularity_share:
        deviation = tau * users / math.sqrt(settings.popularity_share)
        sizes = np.maximum(np.diff(draw.sets.indptr), 1)
        total = np.asarray((draw.sets * (1 / np.sqrt(sizes))[:, None]).sum(axis=0))
        popularity = popularity_estimate(total + deviation * random.standard_normal(n_items), deviation)
        items = popular_items(popularity, settings.table_items)
        known = popularity[items]
        noise = deviation
    found = None
    if table:
        deviation = tau * users / math.sqrt(1 - settings.popularity_share)
        total = pairs_sum(sparse.csr_array(draw.sets[:, items]))
        noisy = total + deviation * random.standard_normal(total.size)
        if known is not None:
            known = popularity[items] = joined_popularity(known, noise, noisy, deviation)
        found = denoised_table(noisy, deviation, known, settings.coherent_share)
        popularity = found.popularity if known is None else popularity
        ridge = factors.get("ridge", 1.0) * ridge_of(noisy, deviation, users)
    expected, kernels = np.log(popularity), None
    if draw.catalogue is not None:
        bins = popularity_bins(draw.catalogue.numbers, popularity)
        factor = factors.get("variances", 1.0)
        spread = (CATEGORIES * factor, NUMBERS * factor)
        kernels = PublicKernels.among(draw.catalogue.categories, bins, popularity, spread)
    sent = (
        None
        if found is None
        else ItemTable.of(items.astype(np.int32), found, ridge, settings.share_of_weights)
    )

    def ranked(own: sparse.csr_array) -> Floats:
        without = np.tile(expected, (own.shape[0], 1)) if kernels is None else expected + kernels.scores(own)
        return without if sent is None else scores(own, items, sent.weights, without, sent.share)

    return ndcg(draw, ranked)


def judged_tastes(draw: Draw, tau: float, name: str, factor: float) -> float:
    """Return the NDCG@10 of products with features, one number of theirs times a factor."""
    users, n_items = draw.sets.shape
    table = PairTableOptions().suited(PairTableOptions().items_at(tau, n_items, None), tau, n_items)
    protocol = public_start.PublicStartProtocol(table=table)
    multipliers = tuple(tau * users / math.sqrt(share) for share in protocol.shares)
    with ExitStack() as changes:
        for module in (products, public_start):
            if name != "tastes" and hasattr(module, name):
                value = getattr(products, name)
                changes.enter_context(mock.patch.object(module, name, type(value)(factor * value)))
        server = protocol.server(Public(users, n_items, POSITIVE), draw.catalogue, draw.seed)
        random = np.random.default_rng(draw.seed)
        own = ProfileContributions(profiles_of(draw.sets), np.zeros(draw.sets.nnz, dtype=np.uint64))
        for round_index, deviation in enumerate(multipliers, start=1):
            layout = protocol.device(server.held.encode(), n_items, POSITIVE).release(round_index)
            assert isinstance(layout, Release)
            vectors = own.vectors(layout)
            total = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, layout.n_rows)
            noisy = total + deviation * random.standard_normal(total.size)
            server.learn(layout, round_index, noisy[:, None], deviation, users)
        model = protocol.device(server.learned.encode(), n_items, POSITIVE)
        assert isinstance(model, public_start.TasteDevice)
        changed_model = replace(model, share=model.share * (factor if name == "tastes" else 1.0))
        return ndcg(draw, lambda sets: changed_model.predictions(profiles_of(sets)))


def profiles_of(sets: sparse.csr_array) -> Profiles:
    """Return sets as devices hold them."""
    indptr, items = sets.indptr.astype(np.int64), sets.indices.astype(np.int32)
    return Profiles(indptr, items, np.full(items.size, np.nan), sets.shape[1])


def judged_all(every: tuple[Draw, ...], tau: float, tried: Mapping[str, float]) -> list[float]:
    """Return the NDCG@10 of every draw, with one number times a factor."""
    ((name, factor),) = tried.items()
    # The rule itself is judged once, whatever is tried beside it.
    rule = "tastes" if name in OF_TASTES else "ridge"
    return _judged_all(every, tau, name if factor != 1 else rule, factor)


@cache
def _judged_all(every: tuple[Draw, ...], tau: float, name: str, factor: float) -> list[float]:
    if name in OF_TASTES:
        return [judged_tastes(draw, tau, name, factor) for draw in every]
    return [judged(draw, tau, {name: factor}) for draw in every]


def changed(settings: GramSettings, factors: Mapping[str, float], n_items: int) -> GramSettings:
    """Return the settings times some factors, as far as that is possible."""
    values = {name: getattr(settings, name) * factor for name, factor in factors.items() if name in OF_TABLE}
    if "table_items" in values:
        values["table_items"] = min(math.ceil(values["table_items"]), n_items)
    if "popularity_share" in values:
        values["popularity_share"] = min(values["popularity_share"], 0.9)
    if values.get("table_items", n_items) < n_items and not settings.popularity_share:
        values["popularity_share"] = 0.1
    return replace(settings, **values)


def main() -> int:
    """Print every figure; return 1 if the rule does not stand."""
    folder, names = arguments(__doc__, EVERY)
    agree = True
    for title, drawn in validation_draws(folder).items():
        every = tuple(drawn())
        for tau, name in itertools.product(TAUS, names):
            if name in OF_CONTENT and every[0].catalogue is None:
                continue

            about, figures = f"{title}, tau {tau:g},", partial(judged_all, every, tau)
            tried = {name: WHOLE.get(name, FACTORS)}
            agree &= best_of(about, tried, figures, {name: 1.0}, largest=True, least=LEAST)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
