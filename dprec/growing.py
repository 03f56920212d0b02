"""An array that grows at its end, for results of a size that is known only when the last part has arrived."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_SPARE = 16
"""What share of its values, one in so many, an array has room for beyond them."""

ScalarT = TypeVar("ScalarT", bound=np.generic)


class GrowingArray(Generic[ScalarT]):
    """A flat array to which parts are added.

    Large arrays grow where they are: the system moves their pages and copies nothing. So the whole is never
    in memory twice, as it is when parts are kept and joined at the end.
    """

    def __init__(self, dtype: type[ScalarT]) -> None:
        self._room: NDArray[ScalarT] = np.empty(0, dtype=dtype)
        self._size = 0

    def extend(self, part: NDArray[ScalarT]) -> None:
        """Add some values at the end."""
        size = self._size + part.size
        if size > self._room.size:
            # Some room to spare, so that many small parts are not copied over and over.
            self._resize(size + size // _SPARE)
        self._room[self._size : size] = part
        self._size = size

    def take(self) -> NDArray[ScalarT]:
        """Return all values, shape (values,), and begin anew."""
        self._resize(self._size)
        values, self._room, self._size = self._room, np.empty(0, dtype=self._room.dtype), 0
        return values

    def _resize(self, size: int) -> None:
        # No view of the array is ever kept; NumPy would count a debugger's reference as one.
        self._room.resize(size, refcheck=False)
