"""Chooses what follows from the noise of a noisy table: see `GramSettings.of` in `dprec/lists/gram.py`.

    python benchmarks/list_settings.py [--path ../shared/data/ml-100k] [NAME ...]

NAME is a number of GramSettings, `variances` of `PublicKernels`, or `tastes`, the share of scores by features
in `dprec/lists/products.py`. Each is multiplied by a few factors, with Gaussian noise of three taus, on
validation items of MSWeb, and of MovieLens 100K with its content and without: a fifth of each user's train
items, where the test items of some seeds are left out. Figures are NDCG@10 of three draws. Prints what is
best, and fails if that is better than the rule by more than chance explains. Takes about five
minutes of processor time.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import sparse
from validation import arguments, best_of

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.datasets import Dataset, MovieLens100K, MsWeb, selected
from dprec.lists import ListMethod, TableOptions
from dprec.lists.contributions import DIAGONAL, SetContributions
from dprec.lists.gram import (
    GramSettings,
    denoised_table,
    joined_popularity,
    popular_items,
    popularity_estimate,
    scores,
)
from dprec.lists.model import ItemTable
from dprec.lists.products import TasteModel
from dprec.lists.public_kernels import CATEGORIES, NUMBERS, PublicKernels, popularity_bins
from dprec.metrics import Hits
from dprec.ratings import POSITIVE
from dprec.splits import UserHoldout
from dprec.sums import UNIT, Releases

TAUS = (4.8e-3, 1.3e-3, 3e-4)
SEEDS = (1, 2, 3)
FACTORS = (0.4, 1.0, 2.5)
OF_TABLE = ("popularity_share", "table_items", "ridge", "share_of_weights")
OF_CONTENT = ("variances", "tastes")


@dataclass(frozen=True, eq=False)
class Draw:
    """Sets that are learned from, and the items that judge."""

    sets: sparse.csr_array
    judging: sparse.csr_array
    catalogue: Catalogue | None
    seed: int


def draws(dataset: Dataset, test_fraction: float, *, content: bool) -> list[Draw]:
    """Return the draws of validation items."""
    found = []
    for seed in SEEDS:
        train, _ = UserHoldout(test_fraction=test_fraction).split(selected(dataset), seed)
        judging = np.zeros(train.count, dtype=np.bool_)
        judging[UserHoldout().test_rows(train, 100 + seed)] = True
        ones, places = np.ones(train.count), (train.users, train.items)
        sets, judges = (
            sparse.csr_array(
                (ones[rows], (places[0][rows], places[1][rows])), shape=(train.n_users, train.n_items)
            )
            for rows in (~judging, judging)
        )
        catalogue = dataset.catalogue(train.item_ids) if content else None
        found.append(Draw(sets, judges, catalogue, seed))
    return found


def validation_draws(folder: str) -> dict[str, Callable[[], list[Draw]]]:
    """Return what loads the draws of each data set, given the folder of MovieLens 100K."""
    movies = MovieLens100K(path=folder, items=True, positive=">= 4", min_items=5)
    visits = MsWeb(path=str(Path(folder).with_name("msweb")), min_items=3)
    return {
        "MSWeb": partial(draws, visits, 0.3, content=False),
        "MovieLens": partial(draws, movies, 0.2, content=False),
        "MovieLens with content": partial(draws, movies, 0.2, content=True),
    }


def pairs_sum(sets: sparse.csr_array) -> Floats:
    """Return the sum of all contributions of pairs, shape (cells,)."""
    sizes = np.diff(sets.indptr)
    weights = 1 / np.sqrt(np.maximum(DIAGONAL**2 * sizes + sizes * (sizes - 1) / 2, DIAGONAL**2))
    table = (sets.T @ (sets * weights[:, None])).toarray()
    table[np.diag_indices(len(table))] *= DIAGONAL
    upper: Floats = table[np.triu_indices(len(table))]
    return upper


def ndcg(draw: Draw, ranked: Floats) -> float:
    """Return NDCG@10 of scores, without the items that are learned from."""
    ranked[draw.sets.nonzero()] = -np.inf
    users, items = draw.judging.nonzero()
    wanted = ranked[users, items]
    ranks = np.concatenate(
        [
            1 + (ranked[part] > score[:, None]).sum(axis=1)
            for part, score in zip(np.array_split(users, 50), np.array_split(wanted, 50), strict=True)
        ]
    ).astype(np.float64)
    _, own = np.unique(users, return_inverse=True)
    return float(Hits.at(ranks, own, 10).ndcg(10).mean())


def judged(draw: Draw, tau: float, factors: Mapping[str, float], *, table: bool = True) -> float:
    """Return the NDCG@10 with settings of the rule times some factors, or of popularity alone."""
    users, n_items = draw.sets.shape
    random = np.random.default_rng(draw.seed)
    settings = changed(
        GramSettings.of(tau, users, n_items, content=draw.catalogue is not None), factors, n_items
    )
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
    expected = np.log(popularity)
    if draw.catalogue is not None:
        bins = popularity_bins(draw.catalogue.numbers, popularity)
        factor = factors.get("variances", 1.0)
        spread = (CATEGORIES * factor, NUMBERS * factor)
        kernels = PublicKernels.among(draw.catalogue.categories, bins, popularity, spread)
        expected = expected + kernels.scores(draw.sets)
    if found is None:
        return ndcg(draw, np.broadcast_to(expected, draw.sets.shape).copy())
    sent = ItemTable.of(items.astype(np.int32), found, settings.ridge, settings.share_of_weights)
    return ndcg(draw, scores(draw.sets, items, sent.weights, expected, sent.share))


def judged_tastes(draw: Draw, tau: float, factor: float) -> float:
    """Return the NDCG@10 of products with features, their share of scores times a factor."""
    users, n_items = draw.sets.shape
    method = ListMethod(options=TableOptions().suited(tau, n_items), of_features=True)
    multipliers = tuple(tau * users / math.sqrt(share) for share in method.shares)
    learner = method.learner(Releases(users, n_items, POSITIVE, multipliers), draw.catalogue, draw.seed)
    random = np.random.default_rng(draw.seed)
    own = SetContributions(draw.sets.indptr.astype(np.int64), draw.sets.indices.astype(np.int32))
    for round_index, deviation in enumerate(multipliers, start=1):
        layout = method.device(learner.model_bytes(), n_items, POSITIVE).layout(round_index)
        vectors = own.vectors(layout)
        total = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, layout.n_rows)
        noisy = total + deviation * random.standard_normal(total.size)
        learner.learn(round_index, noisy[:, None], layout, deviation, users)
    model = method.device(learner.learned_bytes(), n_items, POSITIVE).model
    assert isinstance(model, TasteModel)
    return ndcg(draw, replace(model, share=factor * model.share).scores(draw.sets))


def judged_all(every: tuple[Draw, ...], tau: float, tried: Mapping[str, float]) -> list[float]:
    """Return the NDCG@10 of every draw, with one number times a factor."""
    ((name, factor),) = tried.items()
    if name == "tastes":
        return [judged_tastes(draw, tau, factor) for draw in every]
    # The rule itself is judged once, whatever is tried beside it.
    return _judged_all(every, tau, name if factor != 1 else "ridge", factor)


@cache
def _judged_all(every: tuple[Draw, ...], tau: float, name: str, factor: float) -> list[float]:
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
    folder, names = arguments(__doc__, [*OF_TABLE, *OF_CONTENT])
    agree = True
    for title, drawn in validation_draws(folder).items():
        every = tuple(drawn())
        for tau, name in itertools.product(TAUS, names):
            if name in OF_CONTENT and every[0].catalogue is None:
                continue

            about, figures = f"{title}, tau {tau:g},", partial(judged_all, every, tau)
            agree &= best_of(about, {name: FACTORS}, figures, {name: 1.0}, largest=True)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
