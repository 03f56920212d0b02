"""What the user of a device gives and gets, and the memory of the device.

The memory is one file, replaced as a whole. It is written before a charge is appended to the ledger and
before a reply leaves, so it knows at least as much as the ledger and the server do: what was answered, the
item factors of the last round, the last line that the ledger must have, and a reply that may not have
arrived.
"""

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self, cast

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict

from clients.population import Partition
from clients.shards import StoredProfiles
from dprec import formats
from dprec.arrays import AnyInts, Floats, Int32s, Ints, Uint8s
from dprec.errors import InputError
from dprec.predictions import words_of_ties
from dprec.ratings import RatingScale
from dprec_pilot.files import read_bytes, read_text, write_durably
from dprec_pilot.records import DecodeError, kept, message_of, records_of

_DEVICE = "device"
"""Name of the device's own record, beside those of the handlers."""

_DIGEST_BYTES = 32


@dataclass(frozen=True, eq=False)
class State:
    """The memory of a device."""

    answers: bytes = b""
    """What the handlers keep, as Flower serialises it."""
    charges: int = 0
    """Lines that the ledger has, or must be given."""
    last_charge: bytes = b""
    """The last of them."""
    reply: bytes = b""
    """A reply that is not known to have arrived, as Flower serialises it; empty if there is none."""
    node_id: int = 0
    """Under which the server knows the device; 0 before it does."""

    @property
    def records(self) -> RecordDict:
        """A copy of what the handlers keep."""
        return records_of(self.answers)

    @property
    def pending(self) -> Message | None:
        """The reply that is not known to have arrived."""
        return message_of(self.reply) if self.reply else None


def write_state(path: Path, state: State) -> None:
    """Write the memory of a device; raises OSError when it cannot be, and the old one remains."""
    own = ConfigRecord(
        {
            "answers": state.answers,
            "charges": state.charges,
            "last-charge": state.last_charge,
            "reply": state.reply,
            # The ids of Flower's nodes are wider than the numbers of its records.
            "node": str(state.node_id),
            **formats.STAMP,
        }
    )
    contents = kept(RecordDict({_DEVICE: own}))
    write_durably(path, hashlib.sha256(contents).digest() + contents)


def read_state(path: Path) -> State:
    """Read the memory of a device; raises InputError when it is missing, damaged or of another format."""
    accepted = "the file as the device wrote it; a device that has lost its memory has to be enrolled anew"
    data = read_bytes(path, accepted)
    digest, contents = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if hashlib.sha256(contents).digest() != digest:
        raise InputError(str(path), "damaged", accepted)
    try:
        own = records_of(contents).config_records[_DEVICE]
        formats.check(own, str(path))
        return State(
            answers=cast(bytes, own["answers"]),
            charges=int(str(own["charges"])),
            last_charge=cast(bytes, own["last-charge"]),
            reply=cast(bytes, own["reply"]),
            node_id=int(str(own["node"])),
        )
    except InputError:
        raise
    except (DecodeError, KeyError, ValueError):
        raise InputError(str(path), "no memory of a device", accepted) from None


_COLUMNS = ["item", "rating"]


@dataclass(frozen=True, eq=False)
class Profile:
    """The ratings of one user; `HeldRatings` of one."""

    items: Int32s
    """Ascending positions in the catalogue; shape (ratings,)."""
    values: Floats
    """NaN of implicit data, and of ratings that are shown without an answer; shape (ratings,)."""
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

    @property
    def levels(self) -> Uint8s:
        """The ratings as levels of the scale, 0 without an answer, shape (ratings,)."""
        levels = self.scale.level_of(self.values)
        return levels if self.scale.implicit else np.where(np.isnan(self.values), 0, levels).astype(np.uint8)

    def with_levels(self, levels: Uint8s) -> Self:
        """Return the same items at other levels; at 0, without an answer."""
        values = self.values if self.scale.implicit else np.append(np.nan, self.scale.values)[levels]
        return replace(self, values=values)

    def part(self, places: Ints) -> Self:
        """Return the ratings in some places, ascending."""
        return replace(self, items=self.items[places], values=self.values[places])

    def profiles(self, start: int, stop: int) -> StoredProfiles:
        """Return the ratings of the user, whatever its number."""
        exact = self.values if self.scale.continuous else None
        return StoredProfiles(np.array([self.items.size], dtype=np.int64), self.items, self.levels, exact)

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


def _columns(scale: RatingScale) -> list[str]:
    """Return the header of profile.csv: a set of items has no ratings."""
    return _COLUMNS[:1] if scale.implicit else _COLUMNS


def profile_text(items: list[str], values: Floats, scale: RatingScale) -> str:
    """Return profile.csv, from the ids of items and their ratings, where there are any."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_columns(scale))
    cells = [items] if scale.implicit else [items, map(repr, values.tolist())]
    writer.writerows(zip(*cells, strict=True))
    return file.getvalue()


def read_profile(path: Path, positions: Mapping[str, int], scale: RatingScale) -> Profile:
    """Read profile.csv; raises InputError naming a line that is no rating of an item of the catalogue."""
    columns = _columns(scale)
    accepted = f"a file with the columns {','.join(columns)}"
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, accepted))))
    except csv.Error as error:
        raise InputError(str(path), str(error), accepted) from None
    if not rows or rows[0] != columns:
        raise InputError(f"{path}:1", ",".join(rows[0]) if rows else "nothing", ",".join(columns))
    ratings: dict[int, float] = {}
    for number, row in enumerate(rows[1:], start=2):
        where = f"{path}:{number}"
        if len(row) != len(columns) or row[0] not in positions:
            accepted = "an item of the catalogue" + ("" if scale.implicit else ", and its rating")
            raise InputError(where, ",".join(row), accepted)
        position = positions[row[0]]
        if position in ratings:
            raise InputError(where, f"item {row[0]} again", "one rating of an item")
        ratings[position] = np.nan if scale.implicit else rating_of(row[1], scale, where)
    items = np.array(list(ratings), dtype=np.int32)
    return Profile.of(items, np.array(list(ratings.values()), dtype=np.float64), scale, len(positions))


def rating_of(text: str, scale: RatingScale, where: str) -> float:
    """Read a rating; raises InputError naming where one stands that is none on the scale."""
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
    best_first = shown[np.lexsort((words_of_ties(predicted.size)[shown], -predicted[shown]))]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["item", "prediction"])
    ids = [item_ids[position] for position in best_first.tolist()]
    writer.writerows(zip(ids, map(repr, predicted[best_first].tolist()), strict=True))
    write_durably(path, file.getvalue().encode())
