"""Judges rules of lists by sums: dprec/protocols/gram.py, and gram.py, departures.py and groups.py of lists.

NAME is one of RULES: numbers of GramSettings, the share of groups, the ridge, and constants; of what is
public about items `variances` of `PublicKernels`, and of `public-start`, in dprec/lists/products.py,
`tastes`, the share of scores by features, `_RIDGE`, `_PARTS` and `COLUMNS`. Each is multiplied by a few
factors, and the protocol played with Gaussian noise of six taus, on validation items of two dense data
sets, MSWeb and MovieLens 100K (with its content, without, and of all ratings), and two sparse ones, CiteULike
and Steam: of a fifth of each user's train items those that are test items of none of the seeds that published
comparisons have. Figures are NDCG@10 of six draws. Prints what is best, and fails if that is better than the
rule by more than .002, and by more than chance explains. Takes some 40 minutes of processor time.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse
from validation import asked, best_of, decide, fifth_of, movies, visits

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.datasets import Dataset, LightGCN
from dprec.lists import departures, groups, products, public_kernels
from dprec.lists import gram as rules
from dprec.lists.gram import GramSettings
from dprec.lists.popular import numbers_at, stages_of
from dprec.metrics import Hits
from dprec.predictions import scored_lists
from dprec.protocols import gram, public_start
from dprec.protocols.base import Public
from dprec.protocols.gram import GramProtocol, ListTableOptions, PairTableOptions, TableProtocol
from dprec.protocols.public_start import PublicStartProtocol
from dprec.protocols.searches import SearchOptions
from dprec.protocols.sums import SummedServer
from dprec.ratings import POSITIVE
from dprec.sums import UNIT, CentralAggregation, Release

TAUS = (4.8e-3, 1.3e-3, 5e-4, 3e-4, 1.4e-4, 2e-5)
SEEDS, FACTORS = (1, 2, 3, 4, 5, 6), (0.4, 1.0, 2.5)
WHOLE = dict.fromkeys(("_PARTS", "COLUMNS"), (0.5, 1.0, 2.0))
MOST_ITEMS = 420
"""Items of a table at most: their pairs are about what 300 kB hold."""
JUDGED_CELLS = 1 << 26
"""Cells of the users who judge a draw, which bounds the time: 2,623 users of CiteULike, all of other data."""
LEAST = 0.002
"""A difference in NDCG@10 that is too small to matter."""
Scorer = Callable[[sparse.csr_array], Floats]
"""From sets, shape (users, items), to scores of all items, of the same shape."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Sets that are learned from, and the items that judge, of some users perhaps."""

    sets: sparse.csr_array
    judging: sparse.csr_array
    catalogue: Catalogue | None
    seed: int


def draws(dataset: Dataset, test_fraction: float, *, content: bool = False) -> list[Draw]:
    """Return the draws of validation items."""
    found = []
    for seed in SEEDS:
        train, judging, fresh = fifth_of(dataset, test_fraction, seed)
        sets, judges = (train.select(rows).to_sets() for rows in (~(judging & fresh), judging & fresh))
        people = np.random.default_rng(seed).permutation(train.n_users)
        heard = np.isin(np.arange(train.n_users), people[: JUDGED_CELLS // train.n_items])
        judges = sparse.csr_array(judges * heard[:, None])
        judges.eliminate_zeros()
        found.append(Draw(sets, judges, dataset.catalogue(train.item_ids) if content else None, seed))
    return found


def dense_draws(folder: str) -> dict[str, Callable[[], list[Draw]]]:
    """Return what loads the draws of each dense data set, given the folder of MovieLens 100K."""
    return {
        "MSWeb": cache(partial(draws, visits(folder), 0.3)),
        "MovieLens": cache(partial(draws, movies(folder), 0.2)),
        "MovieLens, all ratings": cache(partial(draws, movies(folder, ">= 1"), 0.2)),
        "MovieLens with content": cache(partial(draws, movies(folder), 0.2, content=True)),
    }


def validation_draws(folder: str) -> dict[str, Callable[[], list[Draw]]]:
    """Return what loads the draws of each data set, dense or sparse, once; all folders are side by side."""
    sparse_ones = {"CiteULike": "citeulike", "Steam": "steam"}
    return dense_draws(folder) | {
        title: cache(partial(draws, LightGCN(path=str(Path(folder).with_name(name) / "users.dat")), 0.2))
        for title, name in sparse_ones.items()
    }


def ndcg(draw: Draw, scores: Scorer) -> float:
    """Return the mean NDCG@10, as runs have it, without the items that are learned from."""
    judging = np.flatnonzero(np.diff(draw.judging.indptr))
    lists = scored_lists(
        lambda users, items: np.zeros(0),
        lambda users: draw.sets[users].toarray() == 0,
        judging,
        10,
        draw.sets.shape[1],
        predict_rows=lambda users, n_items: scores(draw.sets[users]),
    )
    wanted = draw.judging[judging]
    hits = Hits(wanted[np.arange(judging.size)[:, None], lists.items].toarray() > 0, np.diff(wanted.indptr))
    return float(hits.ndcg(10).mean())


def pairs_at(tau: float, draw: Draw) -> GramProtocol:
    """Return the protocol that a rule plays at a noise."""
    users, n_items = draw.sets.shape
    public = Public(users, n_items, POSITIVE, content=draw.catalogue is not None)
    protocol = GramProtocol(aggregation=CentralAggregation(), table=PairTableOptions(content=public.content))
    size = rules.table_items(tau, n_items, content=public.content)
    return replace(protocol, table=protocol.table_of(protocol.table, min(size, MOST_ITEMS), tau, public))


def popularity_at(tau: float, draw: Draw, numbers: int = 0, stages: int = 0) -> GramProtocol:
    """Return popularity with the whole budget, in some numbers and stages, or by a rule where these are 0."""
    n_items = draw.sets.shape[1]
    numbers = numbers or numbers_at(tau, n_items)
    search = SearchOptions(numbers=numbers, rounds=stages or stages_of(n_items, numbers))
    return GramProtocol(aggregation=CentralAggregation(), table=PairTableOptions(items=0, search=search))


def tastes_at(tau: float, draw: Draw) -> PublicStartProtocol:
    """Return `public-start` at a noise."""
    n_items = draw.sets.shape[1]
    size = rules.table_items(tau, n_items, content=True)
    return PublicStartProtocol(table=ListTableOptions().suited(size, tau, n_items))


def reached(protocol: TableProtocol, tau: float, draw: Draw) -> float:
    """Return the NDCG@10 of devices that rank by what a protocol taught."""
    return with_sent(protocol, taught(protocol, draw, tau), draw)[0]


def with_sent(protocol: TableProtocol, server: SummedServer, draw: Draw) -> tuple[float, int]:
    """Return the NDCG@10 of devices that are sent what a server learned, and the bytes of it."""
    sent = server.learned.encode()
    device = protocol.device(sent, draw.sets.shape[1], POSITIVE)
    return ndcg(draw, lambda sets: device.predictions(profiles_of(sets))), len(sent)


def taught(protocol: TableProtocol, draw: Draw, tau: float) -> SummedServer:
    """Return the server of a protocol after sums of a draw's sets with Gaussian noise."""
    users, n_items = draw.sets.shape
    protocol = replace(protocol, noise=tuple(tau * users / math.sqrt(share) for share in protocol.shares))
    server = protocol.server(Public(users, n_items, POSITIVE), draw.catalogue, draw.seed)
    random = np.random.default_rng(draw.seed)
    own, words = profiles_of(draw.sets), np.zeros(draw.sets.nnz, dtype=np.uint64)
    for round_index, deviation in enumerate(protocol.multipliers, start=1):
        device = protocol.device(server.held.encode(), n_items, POSITIVE)
        layout = device.release(round_index)
        assert isinstance(layout, Release)
        vectors = device.contributions(own, layout, words).vectors(layout)
        total = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, layout.n_rows)
        noisy = total + deviation * random.standard_normal(total.size)
        server.learn(layout, round_index, noisy[:, None], deviation, users)
    return server


def profiles_of(sets: sparse.csr_array) -> Profiles:
    """Return sets as devices hold them."""
    indptr, items = sets.indptr.astype(np.int64), sets.indices.astype(np.int32)
    return Profiles(indptr, items, np.full(items.size, np.nan), sets.shape[1])


def returning(where: Any, name: str, change: Callable[[Any], Any]) -> AbstractContextManager[object]:
    """Change what a function returns."""
    rule = getattr(where, name)
    return mock.patch.object(where, name, lambda *own, **named: change(rule(*own, **named)))


def scaled(factor: float, *places: tuple[Any, str]) -> AbstractContextManager[object]:
    """Multiply constants of modules."""
    changes = ExitStack()
    for module, name in places:
        value = getattr(module, name)
        changes.enter_context(mock.patch.object(module, name, type(value)(factor * value)))
    return changes


def setting(name: str, factor: float) -> AbstractContextManager[object]:
    """Multiply a number of `GramSettings`."""
    return returning(GramSettings, "of", lambda own: replace(own, **{name: factor * getattr(own, name)}))


CONSTANTS: tuple[tuple[Any, str], ...] = (
    *((rules, name) for name in ("_PER_DEPARTURE", "_LEAST_ABOVE_NOISE")),
    *((departures, name) for name in ("_UNEVEN", "_ERRORS", "_UNSURE", "_MOST_RIDGE")),
    *((gram, "MOST_BESIDE_GROUPS"), (groups, "_PER_GROUP"), (products, "_RIDGE"), (products, "_PARTS")),
)
RULES: Mapping[str, Callable[[float], AbstractContextManager[object]]] = {
    **{own[1]: partial(lambda own, by: scaled(by, own), own) for own in CONSTANTS},
    "popularity_share": lambda by: returning(gram, "popularity_share", lambda share: min(by * share, 0.9)),
    "table_items": lambda by: returning(rules, "table_items", lambda items: math.ceil(by * items)),
    "share_of_weights": lambda by: setting("share_of_weights", by),
    "coherent_share": lambda by: setting("coherent_share", by),
    "ridge": lambda by: returning(gram, "ridge_of", lambda ridge: by * ridge),
    "groups_share": lambda by: returning(
        PairTableOptions, "grouped", lambda table: replace(table, groups_share=by * table.groups_share)
    ),
    "variances": lambda by: scaled(by, (public_kernels, "CATEGORIES"), (public_kernels, "NUMBERS")),
    "tastes": lambda by: returning(public_start, "share_of_tastes", lambda share: by * share),
    "COLUMNS": lambda by: scaled(by, (products, "COLUMNS"), (public_start, "COLUMNS")),
}
"""What multiplies a number by a factor, while a protocol is played."""
OF_TASTES = ("tastes", "_RIDGE", "_PARTS", "COLUMNS")
OF_CONTENT = ("variances", *OF_TASTES)
OF_GROUPS = ("groups_share", "MOST_BESIDE_GROUPS", "_PER_GROUP")


def matters(name: str, tau: float, draw: Draw) -> bool:
    """Return whether a protocol depends on a number at a noise."""
    if name in OF_CONTENT:
        return draw.catalogue is not None
    if name in OF_GROUPS:
        return bool(pairs_at(tau, draw).table.groups)
    settings = GramSettings.of(tau, draw.sets.shape[1], content=draw.catalogue is not None)
    return name != "coherent_share" or settings.coherent_share > 0


def judged_all(every: tuple[Draw, ...], tau: float, tried: Mapping[str, float]) -> list[float]:
    """Return the NDCG@10 of every draw, with one number times a factor."""
    ((name, factor),) = tried.items()
    # The rule itself is judged once, whatever is tried beside it.
    rule = "tastes" if name in OF_TASTES else "ridge"
    return _judged_all(every, tau, name if factor != 1 else rule, factor)


@cache
def _judged_all(every: tuple[Draw, ...], tau: float, name: str, factor: float) -> list[float]:
    at = tastes_at if name in OF_TASTES else pairs_at
    with RULES[name](factor):
        return [reached(at(tau, draw), tau, draw) for draw in every]


def judged(given: argparse.Namespace) -> Iterator[bool]:
    for title, drawn in validation_draws(given.path).items():
        every = tuple(drawn())
        for tau, name in itertools.product(TAUS, given.names):
            if matters(name, tau, every[0]):
                about, figures = f"{title}, tau {tau:g},", partial(judged_all, every, tau)
                tried = {name: WHOLE.get(name, FACTORS)}
                yield best_of(about, tried, figures, {name: 1.0}, largest=True, least=LEAST)


if __name__ == "__main__":
    decide(judged(asked(__doc__, list(RULES))))
