"""What a device reports in a round about the gradient of its loss with respect to the item factors.

The loss of a user is the sum of (r_ui - u_u . v_i)^2 over the rated items; its gradient with respect to
item factor (i, f) is -2 u_uf (r_ui - u_u . v_i). A kind of report defines how a device encodes (or hides)
that gradient, how the server reads it, and what one report costs in privacy.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, Pieces, Uint64s, all_between, rows_of
from dprec.completion import Profiles, solve_user_factors
from dprec.components import Options
from dprec.randomness import Draws
from dprec.wire import decode_item_sets, encode_item_sets


@dataclass(frozen=True, eq=False)
class RoundDraws:
    """The random draws of a partition in a round."""

    devices: Draws
    """The devices' own draws, which nobody else knows."""
    round_index: int
    """From 1."""
    public_seed: int
    """Seed of what devices and server draw alike."""
    lasting: Uint64s | None = None
    """One secret word of each user, the same in all rounds, whatever it holds and is asked; shape (users,).
    None where no report depends on it.
    """

    def words(self, index: int) -> Uint64s:
        """Return one random word for each user, shape (users,); every index has words of its own."""
        return self.devices.per_user(index, self.round_index)


class FittedProfiles(NamedTuple):
    """Ratings of a partition, and what gradients are taken at."""

    profiles: Profiles
    user_factors: Floats
    """Shape (users, rank)."""
    item_factors: Floats
    """Shape (items, rank)."""


@dataclass(frozen=True, eq=False)
class Places:
    """Some places of a table."""

    flat: AnyInts
    """As they follow one another in the flattened table, ascending."""
    shape: tuple[int, ...]
    """That of the table."""

    def filled(self, numbers: Ints) -> Ints:
        """Return the table with numbers at the places, and 0 everywhere else."""
        table = np.zeros(math.prod(self.shape), dtype=np.int64)
        table[self.flat] = numbers
        return table.reshape(self.shape)


_FEW = 4
"""Numbers of a table for each one that is added at its place sooner than the whole table is."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """The sum of the accepted reports of one or more partitions."""

    numbers: Ints
    """Sum of the reports in integer units of the kind of report, so that it does not depend on how the users
    were divided into partitions.
    """
    raters: Ints | None
    """Number of users who reported on each item; None if reports do not reveal it; shape (items,)."""
    users: int
    """Number of accepted reports."""
    undrawn: int = 0
    """Of these, those whose share of the noise is not in the total: whoever releases it draws them as one."""
    places: Places | None = None
    """Where the numbers stand in the total, if all others of it are 0 and not held."""

    @cached_property
    def total(self) -> Ints:
        """All numbers of the sum."""
        return self.numbers if self.places is None else self.places.filled(self.numbers)

    def __add__(self, other: "Aggregate") -> "Aggregate":
        return self._with(self.total + other.total, other)

    def __iadd__(self, other: "Aggregate") -> "Aggregate":
        """Return the same sum as `+`, whose total is written over that of this one."""
        if other.places is None or other.numbers.size > self.total.size // _FEW:
            return self._with(np.add(self.total, other.total, out=self.total), other)
        self.total.reshape(-1)[other.places.flat] += other.numbers
        return self._with(self.total, other)

    def _with(self, total: Ints, other: "Aggregate") -> "Aggregate":
        raters = None if self.raters is None or other.raters is None else self.raters + other.raters
        return Aggregate(total, raters, self.users + other.users, self.undrawn + other.undrawn)


@dataclass(frozen=True, eq=False)
class GradientAnswers:
    """What reports say about coordinates of gradients, or of what gradients are mapped to."""

    reports: Ints
    """The place of the report that each answer is from, ascending; shape (answers,)."""
    coordinates: Ints
    answers: Floats
    """About which coordinate, and what."""
    scale: float | None = None
    """If answers are signs: the mean of the sign of a coordinate from -1 to 1, as a multiple of it."""


@dataclass(frozen=True, kw_only=True)
class GradientReport(Options):
    """Base of the kinds of gradient report.

    `private` states whether a report is protected, and `hides_rated_items` whether it reveals nothing
    about which items were rated.
    """

    kind: str = ""
    private: ClassVar[bool] = True
    hides_rated_items: ClassVar[bool] = True
    predicted: ClassVar[Literal["ratings", "lists"]] = "ratings"
    """What factors that are learned from it predict: ratings, or scores that order lists, from sets."""
    without_loss: ClassVar[frozenset[str] | None] = frozenset(
        {
            *("papers", "notes", "check", "noise_deviation", "report_bits"),
            *("decode", "sum_shape", "possible", "gradient"),  # what the server does
            *("linked", "answers", "numbers"),  # what it can infer from
        }
    )

    def user_factors(self, profiles: Profiles, item_factors: Floats, ridge: float) -> Floats:
        """Return the factors that a device fits to its user, of whose loss it reports the gradient."""
        return solve_user_factors(profiles, item_factors, ridge)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the guarantee must know about this kind of report beside its loss."""
        return ()

    @abstractmethod
    def encode(self, fitted: FittedProfiles, epsilon: float, draws: RoundDraws) -> Sequence[bytes]:
        """Return every user's report.

        ``epsilon``: its budget; infinite if nothing is protected.
        """

    def crafted(self, fitted: FittedProfiles, draws: RoundDraws, targets: Ints) -> Sequence[bytes]:
        """Return the reports that say most about some items that malicious users have rated; see `encode`.

        Nobody can tell by its form that one was not drawn. By default, there is no noise in them.
        """
        return self.encode(fitted, math.inf, draws)

    @abstractmethod
    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Validate and add up the reports of a partition.

        Parameters
        ----------
        shape : tuple of int
            Items and rank.

        Returns
        -------
        valid : ndarray of bool, shape (users,)
            Malformed reports are rejected without an exception and contribute nothing.
        aggregate : Aggregate
            Sum of the valid ones.
        """

    @abstractmethod
    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the shape of the sum of reports; ``shape`` holds items and rank."""

    @abstractmethod
    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether valid reports can have a sum, of the right shape, that was added up elsewhere."""

    @abstractmethod
    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Return the estimated mean gradient per user, shape (items, rank).

        Parameters
        ----------
        aggregate : Aggregate
            Of at least one report.
        shape : tuple of int
            Items and rank.
        epsilon : float
            Budget to which the reports were calibrated.
        public_seed : int
            Seed of what devices and server draw alike.
        """

    def check(self, shape: tuple[int, int]) -> None:
        """Refuse settings that do not suit ``shape``, the numbers of items and factors.

        Raises SettingError when there is one; it names the setting.
        """

    def noise_deviation(self, shape: tuple[int, int], epsilon: float) -> float:
        """Return the largest standard deviation of one user's estimate of a coordinate."""
        return 0.0

    @abstractmethod
    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the size in bits of the report of a user with that many ratings, evenly spread.

        Parameters
        ----------
        shape : tuple of int
            Items and rank.
        """

    @abstractmethod
    def exact_epsilon(self, epsilon: float) -> float:
        """Return the exact loss of one report calibrated to a budget."""

    def influence_of_one(self, shape: tuple[int, int], epsilon: float) -> float | None:
        """Return how large the gradient of one item can be made by a report, at most.

        It is in units of the mean gradient that is read from somebody of whose own every coordinate at the
        item is the largest that is not clipped. By default, None: nothing is known, or nothing bounds it.
        """
        return None

    @property
    def linked(self) -> bool:
        """Whether the server can tell whose a report is."""
        return True

    def answers(
        self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float
    ) -> GradientAnswers | None:
        """Return what valid reports say, answer by answer; by default, what nobody knows to read."""
        return None

    def numbers(self, fitted: FittedProfiles, public_seed: int) -> Floats:
        """Return what devices answer about, before any noise: by default, the gradient.

        Returns
        -------
        ndarray of float64, shape (users, coordinates)
            The coordinates of an item are in a row, unless they are of something else than items.
        """
        profiles, user_factors, item_factors = fitted
        errors = profiles.residuals(user_factors, item_factors)
        gradients = np.zeros((profiles.n_users, *item_factors.shape))
        gradients[profiles.users, profiles.items] = -2.0 * user_factors[profiles.users] * errors[:, None]
        return gradients.reshape(profiles.n_users, -1)


_FLOAT = np.dtype("<f4")

_UNIT = 2.0**-24
"""Gradients are added up as integer multiples of this, so the sum does not depend on their order."""

_LARGEST = 2.0**15
"""No gradient of ratings is this large; such a number would drown out everybody else's."""


@dataclass(frozen=True, kw_only=True)
class FullGradient(GradientReport):
    """The whole gradient at the rated items, as float32; nothing is protected."""

    kind: Literal["full"] = "full"
    private: ClassVar[bool] = False
    hides_rated_items: ClassVar[bool] = False

    def encode(self, fitted: FittedProfiles, epsilon: float, draws: RoundDraws) -> list[bytes]:
        """Send the set of rated items, padded to a byte, and one row of numbers for each of them."""
        profiles, user_factors, item_factors = fitted
        errors = profiles.residuals(user_factors, item_factors)
        rows = (-2.0 * user_factors[profiles.users] * errors[:, None]).astype(_FLOAT)
        sets = encode_item_sets(profiles.indptr, profiles.items, profiles.n_items)
        numbers = Pieces(rows.tobytes(), profiles.indptr * item_factors.shape[1] * _FLOAT.itemsize)
        return [own_set + own_numbers for own_set, own_numbers in zip(sets, numbers, strict=True)]

    def decode(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Aggregate]:
        """Reject reports that are cut short, too long, out of range or implausible; add up the rest."""
        import scipy.sparse as sp

        valid, counts, items, rows = self._read(reports, shape)
        n_items = shape[0]
        accepted = np.repeat(valid, counts)
        places = items[accepted]
        of_item = np.ones(places.size, dtype=np.int64), places, np.arange(places.size + 1)
        by_rating = sp.csr_array(of_item, shape=(places.size, n_items))
        total = by_rating.T @ np.rint(rows[accepted] / _UNIT).astype(np.int64)
        raters = np.bincount(places, minlength=n_items)
        return valid, Aggregate(total, raters, int(valid.sum()))

    def _read(self, reports: Sequence[bytes], shape: tuple[int, int]) -> tuple[Bools, Ints, AnyInts, Floats]:
        """Return which reports are valid, and of each how many items, which, and their rows of numbers."""
        n_items, rank = shape
        row_bytes = rank * _FLOAT.itemsize
        pieces = Pieces.of(reports)
        valid, counts, items, ends = decode_item_sets(pieces, n_items)
        valid &= pieces.bounds[1:] - ends == counts * row_bytes

        rows = np.full((items.size, rank), np.nan)
        read = zip(ends[valid].tolist(), pieces.bounds[1:][valid].tolist(), strict=True)
        numbers = b"".join(pieces.data[start:end] for start, end in read)
        rows[np.repeat(valid, counts)] = np.frombuffer(numbers, dtype=_FLOAT).reshape(-1, rank)
        with np.errstate(invalid="ignore"):
            plausible = (np.abs(rows) < _LARGEST).all(axis=1)
        valid &= np.bincount(rows_of(counts)[~plausible], minlength=valid.size) == 0
        return valid, counts, items, rows

    def sum_shape(self, shape: tuple[int, int]) -> tuple[int, ...]:
        """Return the shape of the gradient."""
        return shape

    def possible(self, aggregate: Aggregate, shape: tuple[int, int]) -> bool:
        """Return whether no item has more raters than users, and no number more than its raters can add."""
        raters = aggregate.raters
        if raters is None or not all_between(raters, 0, aggregate.users):
            return False
        bound = raters[:, None] * (_LARGEST / _UNIT)
        return bool(((aggregate.total >= -bound) & (aggregate.total <= bound)).all())

    def gradient(
        self, aggregate: Aggregate, shape: tuple[int, int], epsilon: float, public_seed: int
    ) -> Floats:
        """Return the mean gradient per user."""
        return aggregate.total.astype(np.float64) * (_UNIT / aggregate.users)

    def report_bits(self, shape: tuple[int, int], ratings: int) -> int:
        """Return the bits of the item set and of a row of numbers for each item in it."""
        items = np.linspace(0, shape[0] - 1, ratings).astype(np.int64)
        item_set = encode_item_sets(np.array([0, ratings]), items, shape[0])
        return 8 * (len(item_set.data) + ratings * shape[1] * _FLOAT.itemsize)

    def answers(self, reports: Sequence[bytes], shape: tuple[int, int], epsilon: float) -> GradientAnswers:
        """Return every number of the gradient at the items of each report."""
        valid, counts, items, rows = self._read(reports, shape)
        accepted, rank = np.repeat(valid, counts), shape[1]
        coordinates = items[accepted][:, None].astype(np.int64) * rank + np.arange(rank)
        places = np.repeat(rows_of(counts)[accepted], rank)
        return GradientAnswers(places, coordinates.ravel(), rows[accepted].ravel())

    def exact_epsilon(self, epsilon: float) -> float:
        """Return infinity: nothing is protected."""
        return float("inf")
