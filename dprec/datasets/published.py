"""Published data sets of few files.

Jester (Goldberg et al. [goldberg2001]), libimseti.cz (Brozovsky and Petricek [brozovsky2007]), the
restaurants and consumers of UCI (Vargas-Govea et al. [vargas2011]), and books and music on douban.com.
"""

import importlib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from dprec.arrays import Floats
from dprec.components import option
from dprec.crossdomain import joined
from dprec.datasets.base import WHITESPACE, FileDataset, Layout, Source, locate
from dprec.datasets.delimited import DelimitedDataset, first_cells, read_columns, read_rows
from dprec.errors import InputError, SettingError
from dprec.ratings import Ratings, RatingScale

Domain = Literal["book", "music"]

_DOMAINS: tuple[Domain, ...] = ("book", "music")
_LAYOUT = Layout(separator="\t", width=3)
_SCALE = RatingScale.evenly(1, 5, 1)


@dataclass(frozen=True, kw_only=True)
class Douban(FileDataset):
    """Douban: ratings of books, of music or of both, 1 to 5, by users who rate in both domains."""

    kind: Literal["douban"] = "douban"
    domain: Domain = option("What is rated, if the path is the folder: 'book' or 'music'.", "book")
    source: Domain | None = option("The source domain, for recommendation across domains.", None)
    target: Domain | None = option("The target domain; with a source domain, both are loaded.", None)

    def known_scale(self) -> RatingScale:
        """Return 1 to 5 stars."""
        return _SCALE

    def load(self) -> Ratings:
        """Return all ratings, of both domains if a source and a target are named."""
        if self.source is None and self.target is None:
            return self._read(self.domain, "domain")
        if self.source is None or self.target is None:
            missing = "source" if self.source is None else "target"
            raise SettingError(missing, "none", "a source and a target: " + ", ".join(_DOMAINS))
        domains = self._read(self.source, "source"), self._read(self.target, "target")
        return joined(*domains, (self.source, self.target))

    def _read(self, domain: Domain, setting: str) -> Ratings:
        if domain not in _DOMAINS:
            raise SettingError(setting, repr(domain), ", ".join(_DOMAINS))
        rows = read_rows(locate(self.path, f"{domain}.dat"), _LAYOUT)
        return Ratings.from_rows(rows, _SCALE, duplicates=self.duplicates)


@dataclass(frozen=True, kw_only=True)
class Libimseti(DelimitedDataset):
    """Libimseti: 17,359,346 ratings of 168,791 profiles by 135,359 users, 1 to 10."""

    kind: Literal["libimseti"] = "libimseti"
    distribution: ClassVar[Source | None] = Source(
        "http://www.occamslab.com/petricek/data/libimseti-complete.zip", "ratings.dat"
    )
    file: ClassVar[str] = "ratings.dat"
    layout: ClassVar[Layout] = Layout(width=3)
    scale: ClassVar[RatingScale] = RatingScale.evenly(1, 10, 1)


@dataclass(frozen=True, kw_only=True)
class RestaurantConsumer(DelimitedDataset):
    """Restaurant & consumer: 1,161 ratings of 130 restaurants by 138 guests, 0 to 2."""

    kind: Literal["rc"] = "rc"
    distribution: ClassVar[Source | None] = Source(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00232/RCdata.zip", "rating_final.csv"
    )
    file: ClassVar[str] = "rating_final.csv"
    layout: ClassVar[Layout] = Layout(header=True, user="userID", item="placeID", rating="rating")
    scale: ClassVar[RatingScale] = RatingScale.evenly(0, 2, 1)


_NOT_RATED = 99.0
_FILES = ("jester-data-1.xls", "jester-data-1.xlsx", "jester-data-1.csv", "jester_ratings.dat")


@dataclass(frozen=True, kw_only=True)
class Jester(FileDataset):
    """Jester: ratings of 100 jokes from -10 to 10 on a slider.

    Two layouts are read: one row per user, with the number of ratings and then one column per joke, 99
    meaning "not rated" (.csv, .xls, .xlsx); or one line per rating (user, joke, rating).
    """

    kind: Literal["jester"] = "jester"
    distribution: ClassVar[Source | None] = Source(
        "https://goldberg.berkeley.edu/jester-data/jester-data-1.zip", "jester-data-1.xls"
    )
    step: float = option(
        "Distance between the levels to which a device rounds a rating before sending it; divides 20.",
        0.5,
        gt=0,
    )

    def known_scale(self) -> RatingScale:
        """Return -10 to 10, continuous, with a level at every step."""
        return RatingScale.evenly(-10, 10, self.step, continuous=True)

    def load(self) -> Ratings:
        """Return all ratings; InputError names the file and line of what cannot be read."""
        scale = self.known_scale()
        path = locate(self.path, *_FILES)
        if path.suffix.lower() in _SHEETS:
            return _from_wide(_sheet(path), scale, str(path))
        start = "".join(first_cells(path, WHITESPACE))
        separator = next((mark for mark in ",;" if mark in start), WHITESPACE)
        width = len(first_cells(path, separator))
        if width == 3:
            rows = read_rows(path, Layout(separator=separator, width=3))
            return Ratings.from_rows(rows, scale, duplicates=self.duplicates)
        columns = read_columns(
            path, Layout(separator=separator), [(position + 1, "number") for position in range(width)]
        )
        return _from_wide(np.column_stack(columns), scale, str(path))


def _from_wide(table: Floats, scale: RatingScale, source: str) -> Ratings:
    """Return the ratings of a table with one row per user, users and jokes counted from 1."""
    if table.shape[1] < 2:
        raise InputError(f"{source}, line 1", "one column", "user, joke and rating; or a column per joke")
    jokes = table[:, 1:]
    rated = jokes != _NOT_RATED
    wrong = np.argwhere(rated & ~scale.accepts(jokes))
    if wrong.size:
        row, column = wrong[0]
        raise InputError(
            f"{source}, line {row + 1}",
            f"rating {jokes[row, column]:g} of joke {column + 1}",
            f"{scale.describe()}, or {_NOT_RATED:g} for not rated",
        )
    users, items = np.nonzero(rated)
    return Ratings.from_triples(
        users + 1,
        items + 1,
        jokes[users, items],
        scale,
        user_ids=np.arange(1, len(jokes) + 1),
        item_ids=np.arange(1, jokes.shape[1] + 1),
        source=source,
    )


def _xls_rows(xlrd: Any, path: Path) -> list[Sequence[Any]]:
    # Without a log file, remarks on the file's structure would be printed in the middle of a run.
    sheet = xlrd.open_workbook(path, logfile=io.StringIO()).sheet_by_index(0)
    return [sheet.row_values(row) for row in range(sheet.nrows)]


def _xlsx_rows(openpyxl: Any, path: Path) -> list[Sequence[Any]]:
    with path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        return list(book.worksheets[0].iter_rows(values_only=True))


_SHEETS: dict[str, tuple[str, Callable[[Any, Path], list[Sequence[Any]]]]] = {
    ".xls": ("xlrd", _xls_rows),
    ".xlsx": ("openpyxl", _xlsx_rows),
}


def _sheet(path: Path) -> Floats:
    """Return the first sheet of a workbook, read with a package that dprec does not otherwise need."""
    package, rows_of = _SHEETS[path.suffix.lower()]
    try:
        reader = importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            str(path), f"a spreadsheet, but no {package}", f"pip install {package}, or the sheet as .csv"
        ) from error
    try:
        rows = rows_of(reader, path)
    except Exception as error:  # A damaged file can make these packages raise anything.
        raise InputError(str(path), f"not a spreadsheet ({error})", f"a {path.suffix} workbook") from error
    return _numbers(rows, path)


def _numbers(rows: Iterable[Sequence[Any]], path: Path) -> Floats:
    """Return a sheet as numbers, shape (rows, columns)."""
    numbers: list[Floats] = []
    for line, row in enumerate(rows, start=1):
        width = numbers[0].size if numbers else len(row)
        # A text or an empty cell is not a number here, even if it could be read as one.
        wrong = [cell for cell in row if not (isinstance(cell, int | float) and np.isfinite(cell))]
        if len(row) != width or wrong:
            defect = f"{len(row)} columns" if len(row) != width else f"{wrong[0]!r}"
            raise InputError(f"{path}, line {line}", defect, f"{width} numbers")
        numbers.append(np.array(row, dtype=np.float64))
    if not numbers:
        raise InputError(str(path), "an empty sheet", "one row per user")
    return np.array(numbers)
