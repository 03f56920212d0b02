"""What users contribute to a sum, and how the numbers of one release lie in it.

Contributions are vectors of an L2 norm of at most 1, as integer multiples of a unit, so that sums depend
neither on partitions nor on their order.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import numpy as np

from dprec.arrays import Bools, Floats, Int32s, Ints, offsets, segments
from dprec.gradients import Places

UNIT = 2.0**-36
"""Contributions are integer multiples of this."""

TYPICAL_ITEMS = 100
"""Items of a user for whom public rules make the grid of contributions; who has more may say less of each."""


class Layout(ABC):
    """The numbers of one release: rows, which are items or pairs of items, of the same width."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def limit(self) -> int | None:
        """Most rows in which a user has a part if all its parts are equally long; None if they differ."""
        return None

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers of a row."""

    @property
    def largest(self) -> float:
        """Largest absolute value that a number of a contribution can have; its norm is 1 at most."""
        return 1.0

    @property
    def typical_numbers(self) -> int:
        """How many numbers are not 0 in the contribution of a user of `TYPICAL_ITEMS` items."""
        return self.width * min(self.n_rows, TYPICAL_ITEMS)

    def honest(self, counts: Ints) -> Floats:
        """Return how long the part of an item is, on average, in contributions of users with so many ratings.

        Shape (users,); by default, of contributions of norm 1 that are spread over the items alike. In any
        others it is shorter on average.
        """
        return 1 / np.sqrt(np.maximum(counts, 1))

    @property
    def signed(self) -> bool:
        """Whether any number of a contribution can be negative."""
        return True

    @property
    @abstractmethod
    def scales(self) -> Floats:
        """What each number of a row is divided by before it is summed, shape (width,)."""

    @abstractmethod
    def added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints]:
        """Return which reports are valid, and the sum of those, in units of `UNIT`, shape (rows, width).

        They are what `Contributions.encode` returns, or what somebody else has made of it.
        """

    def sparsely_added_up(self, reports: Sequence[bytes]) -> tuple[Bools, Ints, Places | None]:
        """Return `added_up`, or in place of the sum its numbers at some places, where all others are 0."""
        return *self.added_up(reports), None

    @abstractmethod
    def report_bits(self, ratings: int) -> int:
        """Return the bits of what `Contributions.encode` makes of so many ratings, evenly spread."""


LayoutT = TypeVar("LayoutT", bound=Layout)


@dataclass(frozen=True, eq=False)
class Vectors:
    """What some users add to a sum, as sparse vectors in the rows of a layout."""

    indptr: Ints
    """Shape (users + 1,)."""
    rows: Int32s
    """Rows in which a user has a part, ascending within a user; shape (cells,)."""
    numbers: Ints
    """In units of `UNIT`, with an L2 norm of at most ``1 / UNIT`` over the cells of a user;
    shape (cells, width).
    """

    @property
    def cells(self) -> Ints:
        """Where each of the numbers is in a sum, row by row; shape (cells * width,)."""
        width = self.numbers.shape[1]
        return (self.rows.astype(np.int64)[:, None] * width + np.arange(width)).ravel()

    def of_users(self, users: Ints) -> Self:
        """Return the vectors of some users, in the order given."""
        counts = np.diff(self.indptr)[users]
        places = segments(self.indptr[users], counts)
        return type(self)(offsets(counts), self.rows[places], self.numbers[places])


class Contributions(ABC, Generic[LayoutT]):
    """What the users of a partition contribute to a release, before it is a vector."""

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @abstractmethod
    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""

    @abstractmethod
    def work(self, layout: LayoutT) -> Ints:
        """Return in how many rows each user has a part at most, which bounds memory; shape (users,)."""

    @abstractmethod
    def vectors(self, layout: LayoutT) -> Vectors:
        """Return what every user adds to the sum: far more than it is made of, so for a few users at once."""

    @abstractmethod
    def encode(self, layout: LayoutT) -> Sequence[bytes]:
        """Return what each user's contribution is computed from, for an aggregator that is trusted."""


@dataclass(frozen=True, eq=False)
class PartOfContributions(Contributions[LayoutT]):
    """What is left of contributions in some rows: all that a malicious user cares for."""

    whole: Contributions[LayoutT]
    kept: Bools
    """Shape (rows,)."""

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.whole.n_users

    def of_users(self, users: slice) -> Self:
        """Return the contributions of consecutive users."""
        return type(self)(self.whole.of_users(users), self.kept)

    def work(self, layout: LayoutT) -> Ints:
        """Return the rows of the whole."""
        return self.whole.work(layout)

    def vectors(self, layout: LayoutT) -> Vectors:
        """Return the vectors with the rows that are left."""
        vectors = self.whole.vectors(layout)
        in_part = self.kept[vectors.rows]
        indptr = offsets(in_part.astype(np.int64))[vectors.indptr]
        return Vectors(indptr, vectors.rows[in_part], vectors.numbers[in_part])

    def encode(self, layout: LayoutT) -> Sequence[bytes]:
        """Return what all of them are computed from: whoever computes them leaves out no row."""
        return self.whole.encode(layout)
