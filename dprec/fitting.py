"""A completion of ratings that a notebook holds: without devices, a server or a configuration."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import AnyArray, Floats, Ints
from dprec.completion import Completed, Completion
from dprec.datasets import HeldRatings, RatingColumns, ratings_from
from dprec.errors import InputError, shown
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import Raw
from dprec.observations import Observations, SymbolReports
from dprec.randomness import words
from dprec.ratings import Ratings


@dataclass(frozen=True, eq=False)
class Fitted:
    """A completed matrix, whose users and items go by their own identifiers."""

    ratings: Ratings
    """The true ratings."""
    observations: Observations
    """What the completion was given."""
    completed: Completed
    """Predictions by position, diagnostics and notes."""

    def predict(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Predict ratings, not clipped to the scale.

        Parameters
        ----------
        users, items : array_like, shape (cells,)
            Identifiers, as in the data; a matrix's are its row and column numbers. One stands for all.

        Returns
        -------
        ndarray of float64, shape (cells,)

        Raises
        ------
        InputError
            When a user or an item is not in the data.
        """
        user_places = _places(users, self.ratings.user_ids, "users")
        item_places = _places(items, self.ratings.item_ids, "items")
        return self.completed.predict(*np.broadcast_arrays(user_places, item_places))


def fit(
    completion: Completion,
    ratings: HeldRatings,
    *,
    mechanism: Mechanism | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    **columns: Any,
) -> Fitted:
    """Complete a matrix of ratings, as they are or as a mechanism would send them.

    Parameters
    ----------
    ratings : DataFrame, sparse matrix, arrays or Ratings
        As for `dprec.datasets.InMemory.of`.
    mechanism : Mechanism, optional
        What perturbs every rating first; by default nothing does.
    epsilon : float, optional
        The mechanism's budget per rating: needed by a private mechanism, and refused where nothing spends it.
    seed : int
        Of the noise and of the completion, from 0 on.
    **columns
        Settings of `RatingColumns`: the columns of a frame, and the scale, such as ``low=1, high=5``.

    Raises
    ------
    InputError
        When the ratings, the mechanism, its budget, the seed or the completion cannot be used.
    RunError
        When the completion diverges.
    """
    (training,) = ratings_from(ratings, None, RatingColumns(**columns), "error")
    sender = Raw() if mechanism is None else mechanism
    _check_arguments(completion, sender, epsilon, seed)
    channel = sender.channel(training.scale, math.inf if epsilon is None else epsilon)
    shape = (training.n_users, training.n_items)
    completion.check_scale(training.scale)
    completion.check(shape)
    symbols = channel.sample(training.levels, words(seed, "fit", 0, training.count)).astype(np.int64)
    observations = Observations.of(
        training.users,
        training.items,
        channel.values[symbols],
        shape,
        training.scale,
        noise_variance=float(channel.variance().mean()) if sender.private else None,
        likelihood=channel.probabilities[:, symbols].T,
        evidence=SymbolReports((channel.probabilities,), symbols, np.zeros_like(symbols)),
    )
    return Fitted(training, observations, completion.fit(observations, seed))


def _check_instance(component: object, base: type[Any], name: str, example: str) -> None:
    """Refuse what is no component: a class is none, and neither is the name of one."""
    if isinstance(component, base):
        return
    found = repr(component) if isinstance(component, str) else f"a value of type {type(component).__name__}"
    if isinstance(component, type):
        found = f"the class {component.__name__}"
        example = f"{component.__name__}()" if issubclass(component, base) else example
    raise InputError(name, shown(found), f"an instance of {base.__name__}, such as {example}")


def _check_arguments(completion: Completion, sender: Mechanism, epsilon: float | None, seed: int) -> None:
    """Refuse other values, a mechanism of reports of several ratings, and a budget that it cannot have."""
    _check_instance(completion, Completion, "completion", "MatrixFactorization()")
    _check_instance(sender, Mechanism, "mechanism", "BoundedLaplace()")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError("seed", shown(repr(seed)), "an integer from 0 on")
    if not sender.report_family.of_single_ratings():
        accepted = "a mechanism that shows which items were rated and reports each rating alone"
        raise InputError("mechanism", sender.kind, accepted)
    sender.checked_budget(epsilon)


def _places(ids: ArrayLike, known_ids: AnyArray, what: str) -> Ints:
    """Return the positions of identifiers among those of the data, which ascend."""
    asked_ids = np.atleast_1d(np.asarray(ids))
    if (asked_ids.dtype.kind == "U") != (known_ids.dtype.kind == "U"):
        accepted = f"identifiers as in the data, such as {known_ids[0].item()!r}"
        raise InputError(what, f"identifiers of type {asked_ids.dtype}", accepted)
    places = np.minimum(np.searchsorted(known_ids, asked_ids), known_ids.size - 1)
    unknown = np.flatnonzero(known_ids[places] != asked_ids)
    if unknown.size:
        found = f"{asked_ids[unknown[0]].item()!r}, which has no rating"
        raise InputError(what, found, f"identifiers in the data, such as {known_ids[0].item()!r}")
    return places
