"""Builds what tests run on: scales, ratings, profiles, sets, observations, reports, channels and settings.

The same arguments always make the same. What needs Flower is built in `tests.builders`.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from dprec.accounting import PrivacyBudget
from dprec.completion import ItemAverage, Profiles
from dprec.datasets import Synthetic
from dprec.observations import Observations, SymbolReports
from dprec.protocols.one_shot import OneShotProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ProfileLevels
from dprec.schedules import Answers

if TYPE_CHECKING:
    from dprec.mechanisms import Mechanism

STARS = RatingScale.evenly(1, 5, 1)
SIGNS = RatingScale(np.array([-1.0, 1.0]))
SHARES = (0.05, 0.1, 0.25, 0.35, 0.25)
"""Of the levels of five stars."""

POSITIVE_DATA = {"kind": "synthetic", "users": 60, "items": 40, "ratings": 900, "positive": ">= 4"}
"""A data set of positive interactions, as a configuration names it."""

ON_THIS_MACHINE = {"backend": "local", "users_per_node": 20}
"""How a simulation runs without Ray, as a configuration names it."""


def one_shot(
    mechanism: "Mechanism",
    privacy: PrivacyBudget | None = None,
    *,
    predicts: bool = False,
    answers: Answers | None = None,
) -> OneShotProtocol:
    """Return what is installed on devices of a one-shot protocol, which may predict, or remember answers."""
    return OneShotProtocol(
        mechanism=mechanism,
        privacy=privacy,
        completion=ItemAverage(),
        personalization="on-device" if predicts else "none",
        answers=answers,
    ).installed


def user_budget(epsilon: float = 1.0, delta: float = 1e-6) -> PrivacyBudget:
    """Return a budget for all that a user has, by the composition of privacy-loss distributions."""
    return PrivacyBudget(epsilon=epsilon, per="user", composition="pld", delta=delta)


def ratings(
    *rows: tuple[Any, Any, float],
    scale: RatingScale = STARS,
    users: int | None = None,
    items: int | None = None,
) -> Ratings:
    """Return ratings that are written down.

    Parameters
    ----------
    rows : tuple of (user, item, rating)
        In any order, by any identifiers.
    users, items : int, optional
        How many there are, numbered from 0; by default, those that occur.
    """
    whose, what, values = zip(*rows, strict=True) if rows else ((), (), ())
    return Ratings.from_triples(
        np.array(whose) if rows else np.zeros(0, int),
        np.array(what) if rows else np.zeros(0, int),
        np.array(values, dtype=float),
        scale,
        user_ids=None if users is None else np.arange(users),
        item_ids=None if items is None else np.arange(items),
    )


def table(values: ArrayLike, scale: RatingScale = STARS) -> Ratings:
    """Return ratings of a table, users x items, in which NaN is what nobody rated."""
    dense = np.asarray(values, dtype=float)
    cells = ~np.isnan(dense)
    return rated(cells, dense[cells], scale)


def rated(cells: ArrayLike, values: ArrayLike = 3.0, scale: RatingScale = STARS) -> Ratings:
    """Return ratings of some cells.

    Parameters
    ----------
    cells : array_like of bool, shape (users, items)
        Which are rated.
    values : array_like of float
        By user, items ascending, shape (ratings,); or one of all.
    """
    users, items = np.nonzero(np.asarray(cells))
    spaces: dict[str, Any] = dict(zip(("user_ids", "item_ids"), map(np.arange, np.shape(cells)), strict=True))
    return Ratings.from_triples(users, items, np.broadcast_to(values, users.size), scale, **spaces)


def random_ratings(
    users: int = 7, items: int = 9, density: float = 0.4, seed: int = 3, scale: RatingScale = STARS
) -> Ratings:
    """Return ratings at random, each cell rated with the same probability, all levels alike."""
    random = np.random.default_rng(seed)
    cells = random.random((users, items)) < density
    return rated(cells, scale.values[random.integers(0, scale.levels, int(cells.sum()))], scale)


def synthetic(users: int, items: int, count: int, without: Collection[int] = (), **options: Any) -> Ratings:
    """Return so many ratings of the synthetic data set, less those of some users, who then have none."""
    whole = Synthetic(users=users, items=items, ratings=count, **options).load()
    return whole.select(~np.isin(whole.users, list(without))) if without else whole


def as_sets(cells: ArrayLike) -> Ratings:
    """Return the positive interactions of a table of bool, users x items."""
    users, items = np.nonzero(np.asarray(cells))
    shape = np.shape(cells)
    return Ratings.from_pairs(users, items, user_ids=np.arange(shape[0]), item_ids=np.arange(shape[1]))


def sparse_sets(*sets: Iterable[int], items: int) -> sp.csr_array:
    """Return sets of items, one for each user, as a users x items array of ones."""
    dense = np.zeros((len(sets), items))
    for user, chosen in enumerate(sets):
        dense[user, list(chosen)] = 1.0
    return sp.csr_array(dense)


def random_sets(users: int, items: int, density: float = 0.4, seed: int = 0) -> sp.csr_array:
    """Return sets at random, as a users x items array of ones."""
    return sp.csr_array((np.random.default_rng(seed).random((users, items)) < density).astype(np.float64))


def profiles(of: Ratings) -> Profiles:
    """Return what devices hold of ratings."""
    return Profiles(of.indptr, of.items, of.values, of.n_items)


def profiles_of_sets(sets: sp.csr_array) -> Profiles:
    """Return what devices hold of a users x items array of ones: no ratings, just the items."""
    values = np.full(sets.nnz, np.nan)
    return Profiles(sets.indptr.astype(np.int64), sets.indices.astype(np.int32), values, sets.shape[1])


def reported_profiles(of: Ratings, numbers: ArrayLike | None = None) -> ProfileLevels:
    """Return what reports are made of; ``numbers`` are those of users' own budgets."""
    own = None if numbers is None else np.asarray(numbers, dtype=np.uint8)
    return ProfileLevels(of.counts, of.items, of.levels, own)


def observations(
    users: ArrayLike,
    items: ArrayLike,
    values: ArrayLike,
    shape: tuple[int, int],
    scale: RatingScale = STARS,
    **more: Any,
) -> Observations:
    """Return cells, by user, that a server has observed; see `Observations` for the rest."""
    columns = np.asarray(users, dtype=np.int32), np.asarray(items, dtype=np.int32)
    seen = np.broadcast_to(np.asarray(values, dtype=float), columns[0].shape)
    return Observations.of(*columns, seen, shape, scale, **more)


def observed(of: Ratings, **more: Any) -> Observations:
    """Return ratings as a server observes them when nothing hides them."""
    return observations(of.users, of.items, of.values, (of.n_users, of.n_items), of.scale, **more)


def nothing_observed(users: int, items: int, scale: RatingScale = STARS) -> Observations:
    """Return that nobody reported anything."""
    return observations([], [], [], (users, items), scale)


def reported(of: Ratings, mechanism: "Mechanism", epsilon: float, seed: int = 0) -> Observations:
    """Return what a server reads of ratings through a mechanism of one-shot reports, with its evidence."""
    channel = mechanism.channel(of.scale, epsilon)
    words = np.random.default_rng(seed).integers(0, 2**64, of.count, dtype=np.uint64)
    symbols = channel.sample(of.levels, words).astype(np.int64)
    evidence = SymbolReports((channel.probabilities,), symbols, np.zeros_like(symbols))
    shape = of.n_users, of.n_items
    return observations(of.users, of.items, channel.values[symbols], shape, of.scale, evidence=evidence)


def small_run(
    protocol: dict[str, Any], users: int = 60, items: int = 30, count: int = 900, **parts: Any
) -> dict[str, Any]:
    """Return the configuration of a run without Ray on so few ratings; ``parts`` replace its own."""
    return {
        "name": "small",
        "seed": 1,
        "dataset": {"kind": "synthetic", "users": users, "items": items, "ratings": count},
        "split": {"kind": "holdout"},
        "protocol": protocol,
        "simulation": ON_THIS_MACHINE,
        **parts,
    }
