"""Published data sets of pairs without ratings, in layouts of their own.

Visits to microsoft.com (Breese, Heckerman and Kadie [breese1998]), and the files in which those who compare
models of implicit data pass them on (He et al. [he2020]).
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from dprec.components import option
from dprec.datasets.base import GIVEN, Dataset, Source, locate, read_fold, united
from dprec.datasets.delimited import opened_lines
from dprec.errors import InputError
from dprec.ratings import POSITIVE, RatingRows, Ratings


@dataclass(frozen=True, kw_only=True)
class SetsDataset(Dataset):
    """Base of the data sets that are read from files without ratings."""

    path: str = option("The folder of the data set, or its file.")
    documented = POSITIVE


@dataclass(frozen=True, kw_only=True)
class MsWeb(SetsDataset):
    """Anonymous visits: 98,654 pairs of 32,711 users and 285 areas of microsoft.com, in a week of 1998."""

    kind: Literal["msweb"] = "msweb"
    distribution: ClassVar[Source | None] = Source(
        "https://archive.ics.uci.edu/static/public/4/anonymous+microsoft+web+data.zip", "anonymous-msweb.data"
    )

    def load(self) -> Ratings:
        """Return who visited what; InputError names the file and line of what cannot be read."""
        file, users, items = self._file(), list[int](), list[int]()
        user: int | None = None
        for place, (kind, *cells) in _msweb_lines(file):
            if kind not in ("C", "V"):
                continue
            where, number = f"{file}, line {place}", cells[1 if kind == "C" else 0 :][:1]
            if not (number and _is_identifier(number[0].strip())):
                raise InputError(where, repr(",".join(number)[:40]), "an integer")
            if kind == "C":
                user = int(number[0])
            elif user is None:
                raise InputError(where, "a visit of nobody", "a line C before it")
            else:
                users.append(user)
                items.append(int(number[0]))
        if not users:
            raise InputError(str(file), "no visits", "lines such as V,1000,1")
        return Ratings.from_pairs(users, items, source=str(file))

    def item_names(self) -> dict[str, str]:
        """Return the titles of the areas; empty if the file is not there or is damaged."""
        try:
            lines = [cells for _, cells in _msweb_lines(self._file()) if cells[0] == "A"]
        except (InputError, OSError):
            return {}
        return {cells[1]: cells[3] for cells in lines if len(cells) > 3}

    def _file(self) -> Path:
        return locate(self.path, "anonymous-msweb.data")


def _msweb_lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the numbers of lines, and their cells."""
    for place, line in enumerate(opened_lines(file), start=1):
        if line.strip():
            yield place, next(csv.reader([line]))


def _is_identifier(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) < 19


@dataclass(frozen=True, kw_only=True)
class LightGCN(SetsDataset):
    """Lines of a user and its items, blanks between them: train.txt and test.txt, or one such file."""

    kind: Literal["lightgcn"] = "lightgcn"
    own: ClassVar[bool] = True

    def fold_names(self) -> tuple[str, ...]:
        """Return the one division that is given, if both parts are there."""
        return (GIVEN,) if self._parts() else ()

    def load(self) -> Ratings:
        """Return all pairs, of both parts; InputError names the file and line of what cannot be read."""
        if self._parts():
            return united(*self.load_fold(GIVEN))
        rows = _listed_rows(locate(self.path, "train.txt"))
        return Ratings.from_rows(rows, POSITIVE, duplicates="last")

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the pairs of train.txt and of test.txt; see `Dataset.load_fold`."""
        self.check_fold(fold)
        train, test = map(_listed_rows, self._parts())
        return read_fold(train, test, POSITIVE, "last")

    def _parts(self) -> tuple[Path, ...]:
        folder = Path(self.path).expanduser()
        parts = folder / "train.txt", folder / "test.txt"
        return parts if all(part.is_file() for part in parts) else ()


def _listed_rows(file: Path) -> RatingRows:
    """Return a row for each user and item of a file; a user without items has none."""
    users, items = list[str](), list[str]()
    for place, line in enumerate(opened_lines(file), start=1):
        cells = line.split()
        odd = [cell for cell in cells if not _is_identifier(cell)]
        if odd:
            raise InputError(f"{file}, line {place}", repr(odd[0][:40]), "a user and its items, integers")
        users += cells[:1] * (len(cells) - 1)
        items += cells[1:]
    if not items:
        raise InputError(str(file), "no pairs", "lines of a user and its items")
    of_users, of_items = (np.array(column).astype(np.int64) for column in (users, items))
    return RatingRows(of_users, of_items, np.full(len(items), np.nan), str(file))
