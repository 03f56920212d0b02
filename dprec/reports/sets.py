"""Reports on whole item sets: a randomised answer about every item, whether the user has it.

The server keeps an answer in a bit, and reads sets as a whole: how often items, and pairs of them, are had.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dprec.arrays import Bools, Ints, blocks, rows_of
from dprec.catalogue import Catalogue
from dprec.observations import Evidence, Observations, SetReports
from dprec.ratings import Ratings
from dprec.reports.base import Reader, Wanted
from dprec.reports.cells import HiddenRowFamily

_CELLS_AT_ONCE = 1 << 24
"""Bounds the memory of answers before they are packed."""


@dataclass(frozen=True, eq=False)
class SetFamily(HiddenRowFamily):
    """An answer about every item of the catalogue, all drawn from one channel; see `ReportFamily`."""

    evidence: ClassVar[type[Evidence]] = SetReports
    on_items: ClassVar[str] = (
        "Which items a user has is hidden, item by item: epsilon holds for every cell. A set of n items and "
        "an empty one differ in n cells, and any two sets in all cells at most; the losses of cells add up."
    )

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float]:
        """Return what a yes adds to the estimated number of those who have an item; a mean of one each."""
        not_had, had = self.reference_channel.probabilities[[0, -1], 1].tolist()
        return (1 - not_had) / (had - not_had), 1.0

    def reader(self, n_users: int, wanted: Wanted) -> "SetReader":
        """Return what reads the reports of so many users."""
        return SetReader(self, n_users)

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Say nothing: there are no cells."""
        return (), {}


class SetReader(Reader):
    """Randomised sets as they arrive, eight answers in a byte; see `Reader`."""

    def __init__(self, family: SetFamily, n_users: int) -> None:
        self._family = family
        self._accepted = np.zeros(n_users, dtype=np.bool_)
        self._bits = np.zeros((n_users, -(-family.n_items // 8)), dtype=np.uint8)

    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode sets, and keep which items they have."""
        n_items = self._family.n_items
        decoded = self._family.codec.decode(reports)
        counts = np.diff(decoded.indptr)
        for part in blocks(np.full(len(reports), n_items), _CELLS_AT_ONCE):
            had = np.zeros((part.stop - part.start, n_items), dtype=np.bool_)
            own = slice(decoded.indptr[part.start], decoded.indptr[part.stop])
            had[rows_of(counts[part]), decoded.items[own]] = True
            self._bits[users[part]] = np.packbits(had, axis=1)
        self._accepted[users] = decoded.valid
        return decoded.valid

    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return no cells, and the sets as evidence."""
        family, nobody = self._family, np.zeros(0, dtype=np.int32)
        not_had, *had = family.reference_channel.probabilities[:, 1].tolist()
        return Observations.of(
            nobody,
            nobody,
            np.zeros(0),
            (self._accepted.size, family.n_items),
            family.scale,
            evidence=SetReports(self._bits[self._accepted], family.n_items, had[0], not_had, self._accepted),
            catalogue=catalogue,
        )
