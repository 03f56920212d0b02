"""Public data about the items: numbers such as a year, and categories such as genres."""

from dataclasses import dataclass

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats, find
from dprec.errors import InputError


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What everybody may know of the items, in the order of a rating matrix's columns.

    Raises ValueError when the shapes do not agree, or a number is not finite.
    """

    numbers: Floats
    """Every column has mean 0 and standard deviation 1 over the items whose number is known, and 0 for the
    others; shape (items, numbers).
    """
    categories: Bools
    """An item may be in several, or in none; shape (items, categories)."""
    number_names: tuple[str, ...]
    category_names: tuple[str, ...]
    """The names of the columns."""

    def __post_init__(self) -> None:
        shapes = self.numbers.shape, self.categories.shape
        names = len(self.number_names), len(self.category_names)
        if shapes != tuple((len(self.numbers), columns) for columns in names):
            raise ValueError(f"a catalogue of shapes {shapes} with {names} names")
        if not np.isfinite(self.numbers).all():
            raise ValueError("a catalogue with a number that is not finite")

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Data about items as they come from a file, in any order."""

    item_ids: AnyArray
    """The data set's identifiers, numbers or strings; shape (rows,)."""
    numbers: Floats
    """NaN where unknown; shape (rows, numbers)."""
    categories: Bools
    """Shape (rows, categories)."""
    number_names: tuple[str, ...]
    category_names: tuple[str, ...]
    """The names of the columns."""
    source: str
    """The file's name."""
    first_line: int = 1
    """Line number of the first row, for error messages."""

    def catalogue(self, item_ids: AnyArray) -> Catalogue:
        """Return the data of the items with the given identifiers, in their order.

        An item without a row has no known number and no category; rows of other items are ignored. Columns
        that say the same of all items carry nothing and are dropped: numbers with one known value, and
        categories of all items or of none.

        ``item_ids``, shape (items,): those of the ratings. Raises InputError when an item has two rows, or no
        item has one.
        """
        wanted, own = item_ids, self.item_ids
        if wanted.dtype.kind != own.dtype.kind:
            wanted, own = wanted.astype(np.str_), own.astype(np.str_)
        order = np.argsort(own, kind="stable")
        repeated = np.flatnonzero(own[order][1:] == own[order][:-1])
        if repeated.size:
            row = int(np.min(order[repeated + 1]))
            where = f"{self.source}, line {row + self.first_line}"
            raise InputError(where, f"item {own[row]} a second time", "each item once")
        places, present = find(own[order], wanted)
        if not present.any():
            raise InputError(self.source, "none of the rated items", "a line for each item")
        rows = order[places]
        numbers = np.where(present[:, None], self.numbers[rows], np.nan)
        categories = self.categories[rows] & present[:, None]
        numbers, varying = _standardised(numbers)
        shared = categories.all(axis=0) | ~categories.any(axis=0)
        return Catalogue(
            numbers,
            categories[:, ~shared],
            tuple(np.array(self.number_names, dtype=object)[varying]),
            tuple(np.array(self.category_names, dtype=object)[~shared]),
        )


def _standardised(numbers: Floats) -> tuple[Floats, Bools]:
    """Return the columns that vary, standardised over what is known, and which of all columns they are."""
    known = np.isfinite(numbers)
    # By a power of two, which rounds nothing, so that no square overflows.
    exponents = np.frexp(np.where(known, np.abs(numbers), 0.0).max(axis=0, initial=0.0))[1]
    numbers = np.ldexp(numbers, -exponents)
    counts = np.maximum(1, known.sum(axis=0))
    means = np.where(known, numbers, 0.0).sum(axis=0) / counts
    deviations = np.where(known, numbers - means, 0.0)
    spreads = np.sqrt((deviations**2).sum(axis=0) / counts)
    # Numbers that differ by rounding alone do not vary.
    varying = spreads > 1e-9 * np.maximum(np.abs(means), np.finfo(float).tiny)
    return deviations[:, varying] / spreads[varying], varying
