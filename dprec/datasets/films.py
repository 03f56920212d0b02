"""The films of the MovieLens data sets: their years, from title or date, and their genres."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dprec.catalogue import ItemRows
from dprec.datasets.table import categories_of
from dprec.errors import InputError

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


def film_rows(path: Path) -> ItemRows:
    """Return the films of u.item, movies.dat or movies.csv: the year as a number, the genres as categories.

    Raises
    ------
    InputError
        Naming the line of what is not a film.
    """
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
    """Return the titles of the films of u.item, movies.dat or movies.csv, by identifier.

    Raises
    ------
    InputError
        Naming the line of what is not a film.
    """
    return {film: title for film, title, _, _ in _read(path)}


def film_genres(path: Path) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the films of u.item, and which of all 19 genres each has.

    Returns
    -------
    films : ndarray of int64, shape (films,)
    genres : ndarray of bool, shape (films, 19)
    """
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
