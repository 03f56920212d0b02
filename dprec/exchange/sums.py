"""The reply of a partition whose node adds up its users' reports: sums, and who sent how many bytes.

All that it holds follows from the reports, which a server would receive one by one: it saves carrying them
through the simulation. As in `dprec.exchange.messages`, this class ensures the right types and sizes, and the
reader checks whether the values fit its own state.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dprec.arrays import AnyArray, Bools, Ints
from dprec.exchange.messages import Entries, Record, is_integer

_PLACE = np.dtype("<u4")
_NUMBER = np.dtype("<i8")
_LARGEST_REPORT = 1 << 31
"""Bytes that no message can hold."""


@dataclass(frozen=True, eq=False)
class SummedReports:
    """What a partition's reports add up to."""

    first: int
    """The first user of the partition."""
    absent: Bools
    late: Bools
    """Users who did not answer, or who answered after the round had ended; shape (asked,)."""
    sizes: Ints
    """Bytes of the report of each user; of no meaning for one who did not answer; shape (asked,)."""
    accepted: int
    """Number of reports in the sums: valid ones that arrived in time."""
    total: Ints
    """Sum of these reports; shape (numbers,)."""
    raters: Ints | None = None
    """Number of users who reported on each item, if reports reveal it; shape (items,)."""

    @classmethod
    def of(cls, record: Record, asked: int, numbers: int, items: int | None) -> Self:
        """Read a reply of so many numbers about those who were asked; raises ValueError for any other."""
        if _count(record, "asked") != asked:
            raise ValueError("a reply for another number of users")
        return cls(
            _count(record, "first"),
            _bits(record, "absent", asked),
            _bits(record, "late", asked),
            _sizes(record, asked),
            _count(record, "accepted"),
            _sparse(record, "total", numbers),
            None if items is None else _sparse(record, "raters", items),
        )

    def entries(self) -> Entries:
        """Return the entries of the reply's record; sums are sent without their zeros."""
        sizes, place_of = np.unique(self.sizes, return_inverse=True)
        marks = {"absent": self.absent, "late": self.late}
        places = {"size_of": place_of.astype(_place_type(sizes.size)).tobytes()} if sizes.size > 1 else {}
        raters = {} if self.raters is None else _without_zeros("raters", self.raters)
        return {
            "first": self.first,
            "asked": self.sizes.size,
            "accepted": self.accepted,
            "sizes": sizes.tolist(),
            **places,
            **{name: np.packbits(mark).tobytes() for name, mark in marks.items() if mark.any()},
            **_without_zeros("total", self.total),
            **raters,
        }


def _without_zeros(name: str, numbers: Ints) -> Entries:
    places = np.flatnonzero(numbers)
    return {
        name: numbers[places].astype(_NUMBER).tobytes(),
        f"{name}_at": places.astype(_PLACE).tobytes(),
    }


def _sparse(record: Record, name: str, size: int) -> Ints:
    values, places = _array(record, name, _NUMBER), _array(record, f"{name}_at", _PLACE)
    ascending = bool((places[1:] > places[:-1]).all())
    if values.size != places.size or not ascending or (places.size and places[-1] >= size):
        raise ValueError(f"{name} with {values.size} numbers at {places.size} of {size} places")
    numbers = np.zeros(size, dtype=np.int64)
    numbers[places] = values
    return numbers


def _sizes(record: Record, asked: int) -> Ints:
    """Read the sizes that occur, and which of them is each user's."""
    sizes = record.get("sizes")
    if not isinstance(sizes, list) or not all(
        is_integer(size) and 0 <= size < _LARGEST_REPORT for size in sizes
    ):
        raise ValueError("reports without sizes")
    if len(sizes) == 1:
        return np.full(asked, sizes[0], dtype=np.int64)
    places = _array(record, "size_of", _place_type(len(sizes)))
    if places.size != asked or (places >= len(sizes)).any():
        raise ValueError(f"sizes of {places.size} reports, of {asked} users")
    of_user: Ints = np.array(sizes, dtype=np.int64)[places]
    return of_user


def _place_type(places: int) -> np.dtype[Any]:
    return np.dtype("u1") if places <= 1 << 8 else _PLACE


def _bits(record: Record, name: str, users: int) -> Bools:
    if record.get(name) is None:
        return np.zeros(users, dtype=np.bool_)
    packed = _array(record, name, np.dtype("u1"))
    if packed.size != -(-users // 8):
        raise ValueError(f"marks of {name} users of another partition")
    return np.unpackbits(packed, count=users).view(np.bool_)


def _array(record: Record, name: str, dtype: np.dtype[Any]) -> AnyArray:
    data = record.get(name)
    if not isinstance(data, bytes) or len(data) % dtype.itemsize:
        raise ValueError(f"a reply without {name}")
    return np.frombuffer(data, dtype=dtype)


def _count(record: Record, name: str) -> int:
    value = record.get(name)
    if not is_integer(value) or value < 0:
        raise ValueError(f"a reply without {name}")
    return value
