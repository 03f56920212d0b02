"""The MovieLens data sets of GroupLens (Harper and Konstan [harper2015])."""

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from dprec.arrays import AnyArray, Bools, Ints
from dprec.catalogue import Catalogue, ItemRows
from dprec.components import option
from dprec.datasets.base import Layout, Source, locate, read_fold
from dprec.datasets.delimited import DelimitedDataset, read_rows
from dprec.datasets.table import categories_of
from dprec.errors import InputError
from dprec.ratings import Ratings, RatingScale

GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War"),
    "Western",
)
"""The genres of MovieLens 100K, in the order of the columns of u.item."""

_FIRST_GENRE = 5
"""Number of columns of u.item before the genres."""

_NO_GENRES = ("unknown", "(no genres listed)")

Film = tuple[int, str, str, list[str]]
"""Identifier, title, the text that holds the year, and genres."""


def _film_rows(path: Path) -> ItemRows:
    """Return the films of u.item, movies.dat or movies.csv: years as numbers, genres as categories."""
    films = _read(path)
    stated = ([genre for genre in genres if genre not in _NO_GENRES] for *_, genres in films)
    categories, names = categories_of(stated, "genre", str(path))
    return ItemRows(
        np.array([film for film, *_ in films]),
        np.array([[_year(text)] for _, _, text, _ in films]),
        categories,
        ("year",),
        names,
        str(path),
        _FORMATS[path.name].header + 1,
    )


def film_titles(path: Path) -> dict[int, str]:
    """Return the titles of the films of u.item, movies.dat or movies.csv, by identifier."""
    return {film: title for film, title, _, _ in _read(path)}


def film_genres(path: Path) -> tuple[Ints, Bools]:
    """Return the films of u.item, and which of all 19 genres each has, shape (films, 19)."""
    films = _read(path)
    flags = [[genre in genres for genre in GENRES] for *_, genres in films]
    return np.array([film for film, *_ in films]), np.array(flags)


@dataclass(frozen=True)
class _Format:
    """How a file of films is laid out."""

    header: int
    """Lines before the first film."""
    film: Callable[[list[str]], Film | None]
    """From the cells of a line to a film; None if it is not one."""
    separator: str
    accepted: str
    """What a line should be."""


def _read(path: Path) -> list[Film]:
    form, films = _FORMATS[path.name], []
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:  # the older files
        text = data.decode("latin-1")
    lines = text.replace("\r\n", "\n").rstrip().split("\n")[form.header :]
    for place, line in enumerate(lines, start=form.header + 1):
        cells = next(csv.reader([line])) if form.separator == "," else line.split(form.separator)
        film = form.film(cells)
        if film is None:
            raise InputError(f"{path}, line {place}", repr(line[:40]), form.accepted)
        films.append(film)
    if not films:
        raise InputError(str(path), "no films", f"on each line {form.accepted}")
    return films


def _flagged(cells: list[str]) -> Film | None:
    """Return a film of u.item: identifier, title, date of release, ..., a flag for each genre."""
    flags = [cell.strip() for cell in cells[_FIRST_GENRE:]]
    if len(flags) != len(GENRES) or not cells[0].isdigit() or not set(flags) <= {"0", "1"}:
        return None
    genres = [genre for genre, flag in zip(GENRES, flags, strict=True) if flag == "1"]
    return int(cells[0]), cells[1], f"{cells[2]} {cells[1]}", genres


def _listed(cells: list[str]) -> Film | None:
    """Return a film of the other files: identifier, title, genres with '|' between them."""
    if len(cells) != 3 or not cells[0].isdigit():
        return None
    return int(cells[0]), cells[1], cells[1], cells[2].strip().split("|")


def _year(text: str) -> float:
    """Return the last year in brackets, as in "Taxi Driver (1976)", or that of a date; NaN without either."""
    years = re.findall(r"\((\d{4})\b", text) or re.findall(r"\b\d{2}-\w{3}-(\d{4})\b", text)
    return float(years[-1]) if years else np.nan


_FORMATS = {
    "u.item": _Format(0, _flagged, "|", f"a film with {len(GENRES)} genres, 0 or 1"),
    "movies.dat": _Format(0, _listed, "::", "film::title::genres"),
    "movies.csv": _Format(1, _listed, ",", "film,title,genres"),
}


_WHOLE_STARS = RatingScale.evenly(1, 5, 1)
_HALF_STARS = RatingScale.evenly(0.5, 5, 0.5)
_COLONS = Layout(separator="::", width=4, timestamp=4)
_CSV = Layout(header=True, user="userId", item="movieId", rating="rating", timestamp="timestamp")
_URL = "https://files.grouplens.org/datasets/movielens/"


@dataclass(frozen=True, kw_only=True)
class MovieLens(DelimitedDataset):
    """Base of the MovieLens data sets, which all come with a file of films."""

    films: ClassVar[str]
    items: bool = option("Whether years and genres of the films are read, as public data about them.", False)

    def catalogue(self, item_ids: AnyArray) -> Catalogue | None:
        """Return year and genres if they are asked for; see `Dataset.catalogue`."""
        if not self.items:
            return None
        folder = locate(self.path, self.file).parent
        return _film_rows(locate(str(folder), self.films)).catalogue(item_ids)

    def item_names(self) -> dict[str, str]:
        """Return the titles of the films; empty if their file is not there or is damaged."""
        try:
            films = film_titles(locate(self.path, self.file).with_name(self.films))
        except (InputError, OSError):
            return {}
        return {str(film): title for film, title in films.items()}


@dataclass(frozen=True, kw_only=True)
class MovieLens100K(MovieLens):
    """MovieLens 100K: 943 users, 1,682 films, 1 to 5 stars, with folds u1 to u5, ua and ub."""

    kind: Literal["movielens-100k"] = "movielens-100k"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-100k.zip", "u.data", md5="0e33842e24a9c977be4e0107933c0723"
    )
    file: ClassVar[str] = "u.data"
    films: ClassVar[str] = "u.item"
    layout: ClassVar[Layout] = Layout(separator="\t", width=4, timestamp=4)
    scale: ClassVar[RatingScale] = _WHOLE_STARS
    folds: ClassVar[tuple[str, ...]] = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")

    def _loaded(self, *, timed: bool) -> Ratings:
        """Return all ratings, as many as u.info states if it is present."""
        ratings, source = super()._loaded(timed=timed), locate(self.path, self.file)
        counted = _counted_in_info(source.with_name("u.info")) if source.name == self.file else None
        if counted not in (None, ratings.count):
            raise InputError(str(source), f"{ratings.count} ratings", f"the {counted} that u.info counts")
        return ratings

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the ratings of ``fold.base`` and ``fold.test``; see `Dataset.load_fold`."""
        self.check_fold(fold)
        folder = locate(self.path, self.file).parent
        train, test = (
            read_rows(locate(str(folder), f"{fold}.{part}"), self.layout) for part in ("base", "test")
        )
        parts = read_fold(train, test, self.scale, self.duplicates)
        if (folder / self.file).is_file():
            self._check_fold(parts, folder / fold)
        return parts

    def _check_fold(self, parts: tuple[Ratings, Ratings], fold: Path) -> None:
        ratings = self.load()
        same_names = np.array_equal(parts[0].user_ids, ratings.user_ids) and np.array_equal(
            parts[0].item_ids, ratings.item_ids
        )
        codes = np.concatenate([_codes(part) for part in parts])
        if same_names and np.array_equal(np.sort(codes), _codes(ratings)):
            return
        whole, divided = _rows(ratings), np.concatenate([_rows(part) for part in parts])
        for odd, where in (
            (np.setdiff1d(whole, divided), "in u.data alone"),
            (np.setdiff1d(divided, whole), "not in u.data"),
        ):
            if odd.size:
                user, item, rating = odd[0].tolist()
                raise InputError(
                    f"{fold}.base and .test",
                    f"ratings {where}: {odd.size}, such as user {user}, item {item}: {rating:g}",
                    "two files that together are u.data",
                )


def _counted_in_info(info: Path) -> int | None:
    """Return the number of ratings that u.info states, if it does."""
    counts = re.search(rb"(\d+) ratings", info.read_bytes()) if info.is_file() else None
    return int(counts[1]) if counts else None


def _codes(ratings: Ratings) -> Ints:
    """Return a number for each rating that identifies user, item and level, ascending."""
    return ratings.cells * (ratings.scale.levels + 1) + ratings.levels


def _rows(ratings: Ratings) -> AnyArray:
    columns = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items], ratings.values
    return np.rec.fromarrays(columns)


@dataclass(frozen=True, kw_only=True)
class MovieLens1M(MovieLens):
    """MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users, 1 to 5 stars."""

    kind: Literal["movielens-1m"] = "movielens-1m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-1m.zip", "ratings.dat", md5="c4d9eecfca2ab87c1945afe126590906"
    )
    file: ClassVar[str] = "ratings.dat"
    films: ClassVar[str] = "movies.dat"
    layout: ClassVar[Layout] = _COLONS
    scale: ClassVar[RatingScale] = _WHOLE_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens10M(MovieLens):
    """MovieLens 10M: 10,000,054 ratings of 10,677 films by 69,878 users, half stars."""

    kind: Literal["movielens-10m"] = "movielens-10m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-10m.zip", "ratings.dat", md5="ce571fd55effeba0271552578f2648bd"
    )
    file: ClassVar[str] = "ratings.dat"
    films: ClassVar[str] = "movies.dat"
    layout: ClassVar[Layout] = _COLONS
    scale: ClassVar[RatingScale] = _HALF_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens20M(MovieLens):
    """MovieLens 20M: 20,000,263 ratings of 26,744 films by 138,493 users, half stars."""

    kind: Literal["movielens-20m"] = "movielens-20m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-20m.zip", "ratings.csv", md5="cd245b17a1ae2cc31bb14903e1204af3"
    )
    file: ClassVar[str] = "ratings.csv"
    films: ClassVar[str] = "movies.csv"
    layout: ClassVar[Layout] = _CSV
    scale: ClassVar[RatingScale] = _HALF_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens25M(MovieLens):
    """MovieLens 25M: 25,000,095 ratings of 59,047 films by 162,541 users, half stars."""

    kind: Literal["movielens-25m"] = "movielens-25m"
    distribution: ClassVar[Source | None] = Source(
        _URL + "ml-25m.zip", "ratings.csv", md5="6b51fb2759a8657d3bfcbfc42b592ada"
    )
    file: ClassVar[str] = "ratings.csv"
    films: ClassVar[str] = "movies.csv"
    layout: ClassVar[Layout] = _CSV
    scale: ClassVar[RatingScale] = _HALF_STARS
