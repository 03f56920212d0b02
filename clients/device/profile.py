"""What the one user of a device gives and gets: profile.csv, the ratings, and predictions.csv."""

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np

from clients.device.durable import write_durably
from clients.population import Partition
from clients.shards import StoredProfiles
from dprec.arrays import AnyInts, Floats, Int32s
from dprec.errors import InputError
from dprec.ratings import RatingScale

_COLUMNS = ["item", "rating"]


@dataclass(frozen=True, eq=False)
class Profile:
    """The ratings of one user; `HeldRatings` of one."""

    items: Int32s
    """Ascending positions in the catalogue; shape (ratings,)."""
    values: Floats
    """Shape (ratings,)."""
    scale: RatingScale
    n_items: int

    @classmethod
    def of(cls, items: AnyInts, values: Floats, scale: RatingScale, n_items: int) -> Self:
        """Return a profile from ratings in any order."""
        order = np.argsort(items)
        ordered = np.asarray(values, dtype=np.float64)[order]
        return cls(items[order].astype(np.int32), ordered, scale, n_items)

    @classmethod
    def empty(cls, scale: RatingScale, n_items: int) -> Self:
        """Return the profile of a user who has rated nothing."""
        return cls(np.zeros(0, dtype=np.int32), np.zeros(0), scale, n_items)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return 1

    def profiles(self, start: int, stop: int) -> StoredProfiles:
        """Return the ratings of the user, whatever its number."""
        exact = self.values if self.scale.continuous else None
        return StoredProfiles(
            np.array([self.items.size], dtype=np.int64), self.items, self.scale.level_of(self.values), exact
        )

    @cached_property
    def digest(self) -> str:
        """What identifies the ratings, 64 hexadecimal digits."""
        cells = self.items.astype("<i4").tobytes() + self.values.astype("<f8").tobytes()
        return hashlib.sha256(cells).hexdigest()


def emptied(partition: Partition) -> Partition:
    """Return the partition of a user who has rated nothing, and is the same otherwise."""
    population = partition.population
    nothing = Profile.empty(population.scale, population.n_items)
    return Partition(replace(population, ratings=nothing), partition.start, partition.stop)


def profile_text(items: list[str], values: Floats) -> str:
    """Return profile.csv, from the ids of items and their ratings."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(zip(items, map(repr, values.tolist()), strict=True))
    return file.getvalue()


def read_profile(path: Path, positions: Mapping[str, int], scale: RatingScale) -> Profile:
    """Read profile.csv; raises InputError naming a line that is no rating of an item of the catalogue."""
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), str(error), "a file with the columns item and rating") from None
    if not rows or rows[0] != _COLUMNS:
        raise InputError(f"{path}:1", ",".join(rows[0]) if rows else "nothing", ",".join(_COLUMNS))
    ratings: dict[int, float] = {}
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}:{number}"
        if len(row) != len(_COLUMNS) or row[0] not in positions:
            raise InputError(where, ",".join(row), "an item of the catalogue, and its rating")
        position = positions[row[0]]
        if position in ratings:
            raise InputError(where, f"item {row[0]} again", "one rating of an item")
        ratings[position] = _rating(row[1], scale, where)
    items = np.array(list(ratings), dtype=np.int32)
    return Profile.of(items, np.array(list(ratings.values()), dtype=np.float64), scale, len(positions))


def _rating(text: str, scale: RatingScale, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not scale.accepts(np.array([value])).all():
        raise InputError(where, text, scale.describe())
    return value


def write_predictions(path: Path, item_ids: Sequence[str], predicted: Floats, rated: AnyInts) -> None:
    """Write predictions of unrated items, as a whole, but NaN; if it raises OSError, the old file remains."""
    shown = np.setdiff1d(np.flatnonzero(~np.isnan(predicted)), rated)
    best_first = shown[np.argsort(-predicted[shown], kind="stable")]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["item", "prediction"])
    ids = [item_ids[position] for position in best_first.tolist()]
    writer.writerows(zip(ids, map(repr, predicted[best_first].tolist()), strict=True))
    write_durably(path, file.getvalue().encode())
