"""Ratings in shards: files of consecutive users, and an index with the size of each.

Where the shards are cut depends on the ratings alone, so any run with the same ratings can use them, however
it divides the users into partitions. A worker holds the few shards that it reads at the moment.
"""

import hashlib
import platform
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, Protocol

import numpy as np
from pydantic import Field

from clients.places import READABLE_BY_ALL, place_of, write_whole
from dprec import formats
from dprec.arrays import Floats, Int32s, Ints, Uint8s, blocks, offsets
from dprec.components import Options, from_json, option, to_json
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale

INDEX = "ratings.json"
"""Name of the index; it is written last, so a folder with an index is complete."""

_RATINGS_PER_SHARD = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ShardIndex(Options):
    """The contents of ratings.json: what ratings these are, and the shards in the order of the users."""

    scale: tuple[float, ...] = option("Levels of the rating scale, ascending.")
    continuous: bool = option("Whether true ratings lie between the levels.")
    n_items: int = option("Items of the catalogue.", ge=1)
    digest: str = option("SHA-256 of all shards, one after the other, in hexadecimal digits.")
    users: tuple[Annotated[int, Field(ge=1)], ...] = option("Users in each file.")
    sizes: tuple[int, ...] = option("Bytes of each file.")

    @property
    def fingerprint(self) -> str:
        """Identifies the ratings, 16 hexadecimal digits."""
        return hashlib.sha256(to_json(self).encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class StoredProfiles:
    """The ratings of consecutive users."""

    counts: Ints
    """Shape (users,)."""
    items: Int32s
    """Shape (ratings,)."""
    levels: Uint8s
    """Shape (ratings,)."""
    exact: Floats | None
    """The unrounded ratings of a continuous scale; shape (ratings,)."""

    @cached_property
    def _indptr(self) -> Ints:
        return offsets(self.counts)

    def part(self, start: int, stop: int) -> "StoredProfiles":
        """Return some of the users."""
        rows = slice(int(self._indptr[start]), int(self._indptr[stop]))
        exact = None if self.exact is None else self.exact[rows]
        return StoredProfiles(self.counts[start:stop], self.items[rows], self.levels[rows], exact)


class HeldRatings(Protocol):
    """The ratings that devices hold: in shards, or those of the one user of a device."""

    @property
    def n_users(self) -> int:
        """Number of users."""

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""

    @property
    def scale(self) -> RatingScale:
        """The rating scale."""

    def profiles(self, start: int, stop: int) -> StoredProfiles:
        """Return the ratings of the users from ``start`` to ``stop`` - 1."""


@dataclass(frozen=True, eq=False)
class ShardedRatings:
    """The ratings in a folder of shards."""

    folder: Path
    """From `place_of`."""
    index: ShardIndex

    @classmethod
    def open(cls, folder: Path) -> "ShardedRatings":
        """Read the index of a folder; raises InputError when it is missing, damaged or of another format."""
        path = folder / INDEX
        text = formats.body(contents_of(path).decode(errors="replace"), str(path))
        return cls(folder, from_json(ShardIndex, text, str(path)))

    @cached_property
    def scale(self) -> RatingScale:
        """The rating scale."""
        return RatingScale(np.array(self.index.scale), self.index.continuous)

    @cached_property
    def _starts(self) -> Ints:
        """First user of each shard, and the number of users."""
        return offsets(np.array(self.index.users, dtype=np.int64))

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self._starts[-1])

    @property
    def n_items(self) -> int:
        """Items of the catalogue."""
        return self.index.n_items

    def profiles(self, start: int, stop: int) -> StoredProfiles:
        """Return the ratings of users ``start`` to ``stop`` - 1; raises InputError naming a damaged shard."""
        if start == stop:
            exact = np.zeros(0) if self.index.continuous else None
            empty = np.zeros(0, dtype=np.int64)
            return StoredProfiles(empty, empty.astype(np.int32), empty.astype(np.uint8), exact)
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        parts = []
        for number in range(first, last + 1):
            begin, end = self._starts[number], self._starts[number + 1]
            shard = _opened(str(self.folder), number, self.index.sizes[number])
            parts.append(shard.part(max(start, begin) - begin, min(stop, end) - begin))
        return parts[0] if len(parts) == 1 else _joined(parts)


def contents_of(path: Path) -> bytes:
    """Return what a file of a population holds; raises InputError when this node cannot read it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(str(path), f"not on {platform.node()}", READABLE_BY_ALL) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(str(path), f"cannot be read ({reason})", READABLE_BY_ALL) from None


def write_shards(folder: Path, ratings: Ratings) -> ShardIndex:
    """Write ratings to a folder, unless they are there already; return their index.

    Raises InputError when the folder holds other ratings, or nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = (folder / INDEX).exists()
        digest, user_counts, sizes = hashlib.sha256(), [], []
        for number, users in enumerate(blocks(ratings.counts, _RATINGS_PER_SHARD)):
            contents = _encoded(ratings, users)
            digest.update(contents)
            user_counts.append(users.stop - users.start)
            sizes.append(len(contents))
            if not present:
                write_whole(_shard(folder, number), contents)
        index = ShardIndex(
            scale=tuple(ratings.scale.values.tolist()),
            continuous=ratings.scale.continuous,
            n_items=ratings.n_items,
            digest=digest.hexdigest(),
            users=tuple(user_counts),
            sizes=tuple(sizes),
        )
        if present:
            _check_present(folder, index)
        else:
            write_whole(folder / INDEX, formats.stamped(to_json(index)).encode())
    except OSError as error:
        raise InputError(str(folder), f"cannot be written ({error.strerror})", READABLE_BY_ALL) from None
    return index


def _check_present(folder: Path, index: ShardIndex) -> None:
    """Refuse the shards of other ratings, and shards that are not whole."""
    there = ShardedRatings.open(folder).index
    if there != index:
        found = f"the devices of another run ({there.fingerprint}, not {index.fingerprint})"
        raise InputError(str(folder), found, "a new directory, or one that was written from these ratings")
    for number, size in enumerate(index.sizes):
        path = _shard(folder, number)
        if not path.exists():
            raise InputError(str(path), "missing", f"the {size} bytes that {INDEX} lists")
        _check_size(path, path.stat().st_size, size)


def _shard(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:05d}.npy"


def _encoded(ratings: Ratings, users: slice) -> bytes:
    """Return some users' ratings as arrays in NumPy's format, one after the other."""
    rows = slice(int(ratings.indptr[users.start]), int(ratings.indptr[users.stop]))
    file = BytesIO()
    np.save(file, np.diff(ratings.indptr[users.start : users.stop + 1]).astype(np.int32))
    np.save(file, ratings.items[rows])
    np.save(file, ratings.levels[rows])
    if ratings.exact is not None:
        np.save(file, ratings.exact[rows])
    return file.getvalue()


@lru_cache(maxsize=4)  # a worker holds about 6 MB of each, 14 MB with unrounded ratings
def _opened(folder: str, number: int, size: int) -> StoredProfiles:
    """Return the users of a shard, which has so many bytes."""
    path = _shard(place_of(folder), number)
    contents = contents_of(path)
    _check_size(path, len(contents), size)
    file = BytesIO(contents)
    try:
        counts, items, levels = np.load(file).astype(np.int64), np.load(file), np.load(file)
        exact = np.load(file) if file.tell() < len(contents) else None
    except (ValueError, EOFError, MemoryError) as error:
        raise InputError(str(path), f"no arrays ({error})", "a file that dprec has written") from None
    return StoredProfiles(counts, items, levels, exact)


def _check_size(path: Path, size: int, expected: int) -> None:
    if size != expected:
        raise InputError(str(path), f"{size} bytes", f"the {expected} bytes that {INDEX} lists")


def _joined(parts: list[StoredProfiles]) -> StoredProfiles:
    exact = [part.exact for part in parts if part.exact is not None]
    return StoredProfiles(
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate(exact) if exact else None,
    )
