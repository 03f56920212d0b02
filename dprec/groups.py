"""Who pays: groups of users by what is public about them, and the figures of each group.

A user is worse off than alone if the predictions of its test ratings have the larger squared error with the
protocol than on a device that sends and receives nothing. Few test ratings make many users worse off by luck,
so beside their share stands the one that luck alone would make of a gain that is the same for everybody.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy

from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Ints
from dprec.errors import SettingError
from dprec.metrics import popularity_lift

UNKNOWN = "unknown"
"""The group of users of whom a column says nothing."""

_MOST_TEXTS = 30
"""Groups that texts make; more would be identifiers."""

_MOST_NUMBERS = 8
"""Different numbers that are groups as they are; more are cut into quarters."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Users in groups that do not overlap."""

    names: tuple[str, ...]
    members: Ints
    """Each user's group, a place among the names; shape (users,)."""

    @classmethod
    def of(cls, values: AnyArray) -> Self:
        """Return the groups of a public column, shape (users,), of texts or numbers.

        Up to 30 texts, or 8 numbers, are a group each. Of more numbers there are four groups, cut where a
        quarter, a half and three quarters of the users are, equal numbers together, each named by its least
        and greatest number. Raises SettingError, under no key, for more texts.
        """
        if values.dtype.kind == "U":
            names, members = np.unique(values, return_inverse=True)
            if names.size > _MOST_TEXTS:
                raise SettingError("", f"{names.size:,} different texts", f"at most {_MOST_TEXTS}")
            return cls(tuple(name or UNKNOWN for name in names.tolist()), members)
        present = values[~np.isnan(values)]
        distinct = np.unique(present)
        if distinct.size <= _MOST_NUMBERS:
            return cls._named(np.searchsorted(distinct, values), [f"{value:g}" for value in distinct], values)
        cuts = np.unique(np.quantile(present, [0.25, 0.5, 0.75], method="inverted_cdf"))
        places = np.searchsorted(cuts, values)
        quarters = [present[np.searchsorted(cuts, present) == place] for place in range(cuts.size + 1)]
        # Each is named by its least and greatest number.
        ends = [
            [f"{end:.10g}" for end in (quarter.min(), quarter.max())] if quarter.size else [""]
            for quarter in quarters
        ]
        return cls._named(places, [" to ".join(dict.fromkeys(texts)) for texts in ends], values)

    @classmethod
    def of_all(cls, users: int) -> Self:
        """Return one group of all users."""
        return cls(("everybody",), np.zeros(users, dtype=np.int64))

    def of_users(self, users: Ints) -> Self:
        """Return the groups of some users, shape (users,)."""
        return replace(self, members=self.members[users])

    def masks(self) -> Iterator[tuple[str, Bools]]:
        """Yield every group that somebody is in: its name, and who, shape (users,)."""
        for place, name in enumerate(self.names):
            members: Bools = self.members == place
            if members.any():
                yield name, members

    @classmethod
    def _named(cls, places: Ints, names: Sequence[str], values: Floats) -> Self:
        unknown = np.isnan(values)
        all_names = [*names, UNKNOWN] if unknown.any() else [*names]
        return cls(tuple(all_names), np.where(unknown, len(names), places))


SUMS = ("test_ratings", "squared_errors", "absolute_errors", "squared_errors_alone", "squared_differences")
"""Columns about a user that add up over folds: its test ratings; its errors; those of its device alone; and
the squares of how the squared errors differ, rating by rating.
"""

MEANS = (
    *("ndcg_at_10", "recall_at_20", "list_popularity", "own_popularity"),
    *("message_bytes", "epsilon_per_rating", "epsilon_per_user"),
)
"""Columns about a user that are averaged over folds; NaN where they do not apply."""


def error_sums(test_users: AnyInts, truth: Floats, predictions: Floats, alone: Floats) -> dict[str, Floats]:
    """Return the `SUMS` of each user, shape (users with test ratings,), ascending.

    ``test_users``, ``truth``, ``predictions``, ``alone``: shape (test ratings,) each, the last from a device
    that sends and receives nothing.
    """
    _, rows = np.unique(test_users, return_inverse=True)
    squared, squared_alone = (predictions - truth) ** 2, (alone - truth) ** 2
    absolute, differences = np.abs(predictions - truth), squared_alone - squared
    parts = np.ones_like(squared), squared, absolute, squared_alone, differences**2
    return {name: np.bincount(rows, part).astype(np.float64) for name, part in zip(SUMS, parts, strict=True)}


def pooled(
    users: Sequence[AnyArray], columns: Sequence[Mapping[str, Floats]]
) -> tuple[Ints, dict[str, Floats]]:
    """Return the columns of several runs as of one, in which each of their ratings is predicted.

    ``users``, ``columns``: of every run. The first of the result says where, of all runs' users one after the
    other, each user is found first.
    """
    _, first, rows = np.unique(np.concatenate(users), return_index=True, return_inverse=True)
    pooled_columns: dict[str, Floats] = {}
    for name in columns[0]:
        values = np.concatenate([of_run[name] for of_run in columns])
        present = ~np.isnan(values)
        total = np.bincount(rows, np.where(present, values, 0.0))
        counts = np.bincount(rows, present)
        pooled_columns[name] = np.where(
            counts > 0, total / (1 if name in SUMS else np.maximum(counts, 1)), np.nan
        )
    return first, pooled_columns


def group_figures(columns: Mapping[str, Floats], members: Bools) -> dict[str, float | None]:
    """Return the figures of a group.

    Parameters
    ----------
    columns : mapping of str to ndarray of float64
        `SUMS` and `MEANS`, shape (users,) each.
    members : ndarray of bool, shape (users,)
        Who is in the group: somebody.

    Returns
    -------
    dict
        ``users``, ``test_ratings``. ``rmse``, ``mae``, ``rmse_alone`` over the group's test ratings.
        ``gain_p``: the probability that chance in who is in the group makes the squared errors differ from
        those alone by as much, either way: the difference over its standard error over users, paired, as
        standard normal. What `_worse` returns. ``ndcg_at_10``, ``recall_at_20``, ``message_bytes``,
        ``epsilon_per_rating`` and ``epsilon_per_user``: means over users. ``popularity_lift`` of the first
        ten of the lists; see `dprec.metrics.popularity_lift`. None where a figure does not apply.
    """
    of_members = {name: column[members] for name, column in columns.items()}
    counts = of_members["test_ratings"]
    total = float(counts.sum())
    figures: dict[str, float] = {"users": counts.size, "test_ratings": int(total)}
    of_errors = {name: float(of_members[name].sum() / total) for name in SUMS[1:4]}
    figures |= {
        "rmse": of_errors["squared_errors"] ** 0.5,
        "mae": of_errors["absolute_errors"],
        "rmse_alone": of_errors["squared_errors_alone"] ** 0.5,
    }
    differences = of_members["squared_errors_alone"] - of_members["squared_errors"]
    figures |= _worse(counts, differences, of_members["squared_differences"])
    for name in MEANS:
        values = of_members[name][~np.isnan(of_members[name])]
        if not name.endswith("_popularity"):
            figures[name] = float(values.mean()) if values.size else np.nan
    lift = popularity_lift(of_members["list_popularity"], of_members["own_popularity"])
    finite = {name: value if np.isfinite(value) else None for name, value in figures.items()}
    return {**finite, "popularity_lift": lift}


def _worse(counts: Floats, differences: Floats, squares: Floats) -> dict[str, float]:
    """Return whether a group is better off than alone, and the share of its users who are worse off.

    ``counts``, ``differences``, ``squares``, shape (users,): test ratings; the sum over these of how much
    larger the squared error is alone; and the sum of the squares of that.

    ``worse``: the share of users whose sum is negative. ``worse_by_chance``: the share to be expected if all
    users of the group gained the same, its mean gain per rating, and the gains of single ratings scattered
    around it as they do within users: a user of n ratings is then worse off with probability
    Phi(-gain sqrt(n) / scatter). ``worse_p``: the probability of at least as many worse off if so, by the
    normal approximation of the number (with its correction for continuity): where it is small, the gain is
    not the same for everybody, and some of the group pay.
    """
    if np.isnan(differences).any():
        return dict.fromkeys(("gain_p", "worse", "worse_by_chance", "worse_p"), np.nan)
    gain = differences.sum() / counts.sum()
    error = np.sqrt(((differences - counts * gain) ** 2).sum())
    within = (squares - differences**2 / counts).sum() / max((counts - 1).sum(), 1)
    scatter = np.sqrt(max(within, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without scatter all are worse off, or nobody is.
        chances = scipy.special.ndtr(np.nan_to_num(-gain * np.sqrt(counts) / scatter, nan=-np.inf))
        distance = np.nan_to_num(differences.sum() / error, nan=0.0)
    worse, expected = np.count_nonzero(differences < 0), chances.sum()
    spread = np.sqrt((chances * (1 - chances)).sum())
    deviations = (worse - 0.5 - expected) / spread if spread else np.inf * (worse - 0.5 - expected)
    return {
        "gain_p": float(2 * scipy.special.ndtr(-abs(distance))),
        "worse": worse / counts.size,
        "worse_by_chance": float(expected / counts.size),
        "worse_p": float(scipy.special.ndtr(-deviations)),
    }
