"""Published data sets of few files, with ratings or of pairs without.

MovieLens (Harper and Konstan [harper2015]), Jester (Goldberg et al. [goldberg2001]), libimseti.cz (Brozovsky
and Petricek [brozovsky2007]), the restaurants and consumers of UCI (Vargas-Govea et al. [vargas2011]), books
and music on douban.com, visits to microsoft.com (Breese, Heckerman and Kadie [breese1998]), and the files in
which those who compare models of implicit data pass them on (He et al. [he2020]).
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from dprec.arrays import AnyArray, Bools, Floats, offsets
from dprec.catalogue import Catalogue, UsersTable
from dprec.components import option
from dprec.crossdomain import CrossDomainRatings, joined
from dprec.datasets.base import GIVEN, Dataset, Source, locate, read_fold, united, without_times
from dprec.datasets.delimited import TextLayout, first_cells, lines_of, read_columns, read_rows
from dprec.datasets.held import digest_of
from dprec.datasets.lines import WHITESPACE, split_line
from dprec.datasets.side_tables import categories_of, users_of
from dprec.datasets.table import DelimitedDataset, FileDataset
from dprec.errors import InputError, SettingError
from dprec.rating_rows import RatingRows, Reading
from dprec.ratings import POSITIVE, Ratings, RatingScale

GENRES = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War"),
    "Western",
)
"""The genres of MovieLens 100K, in the order of the columns of u.item."""

_FLAGS = f"a film with {len(GENRES)} genres, 0 or 1"
_FORMATS = {
    "u.item": ("|", 0, _FLAGS),
    "movies.dat": ("::", 0, "film::title::genres"),
    "movies.csv": (",", 1, "film,title,genres"),
}
"""Of a file of films: the separator, the lines before the first film, and what a line should be."""


def _films(path: Path) -> list[tuple[int, str, float, list[str]]]:
    """Return number, title, year and genres of the films of u.item, movies.dat or movies.csv.

    The year is the last one in brackets, as in "Taxi Driver (1976)", or that of a date; NaN without either.
    """
    (separator, header, accepted), films = _FORMATS[path.name], []
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as the older files are
    for place, line in enumerate(text.replace("\r\n", "\n").rstrip().split("\n")[header:], start=header + 1):
        cells = split_line(line, separator)
        flags = [cell.strip() for cell in cells[5:]]
        dated, genres, complete = "", list[str](), False
        if accepted == _FLAGS and len(flags) == len(GENRES):
            complete = {"0", "1"}.issuperset(flags)
            dated, genres = (
                f"{cells[2]} {cells[1]}",
                [GENRES[n] for n, flag in enumerate(flags) if flag == "1"],
            )
        elif accepted != _FLAGS and len(cells) == 3:
            dated, genres, complete = cells[1], cells[2].strip().split("|"), True
        if not (complete and cells[0].isdigit()):
            raise InputError(f"{path}, line {place}", repr(line[:40]), accepted)
        years = re.findall(r"\((\d{4})\b", dated) or re.findall(r"\b\d{2}-\w{3}-(\d{4})\b", dated)
        films.append((int(cells[0]), cells[1], float(years[-1]) if years else np.nan, genres))
    if not films:
        raise InputError(str(path), "no films", f"on each line {accepted}")
    return films


_WHOLE_STARS = RatingScale.evenly(1, 5, 1)
_HALF_STARS = RatingScale.evenly(0.5, 5, 0.5)
_COLONS = TextLayout(separator="::", width=4, timestamp=4)
_CSV = TextLayout(header=True, user="userId", item="movieId", rating="rating", timestamp="timestamp")


def _at_grouplens(name: str, holds: str, md5: str) -> Source:
    return Source(f"https://files.grouplens.org/datasets/movielens/{name}.zip", holds, md5)


@dataclass(frozen=True, kw_only=True)
class MovieLens(DelimitedDataset):
    """Base of the MovieLens data sets, which all come with a file of films."""

    papers: ClassVar[tuple[str, ...]] = ("harper2015",)
    films: ClassVar[str] = "movies.csv"
    file: ClassVar[str] = "ratings.csv"
    layout: ClassVar[TextLayout] = _CSV
    documented: ClassVar[RatingScale] = _HALF_STARS
    people: ClassVar[tuple[str, TextLayout, tuple[str, ...]] | None] = None
    """The file of users, its layout, and what its columns are after the first, that of identifiers."""
    items: bool = option("Whether years and genres of the films are read, as public data about them.", False)

    def distributed_users(self, user_ids: AnyArray) -> UsersTable | None:
        """Return the users of the file beside the ratings, if there is one."""
        if self.people is None:
            return None
        name, layout, columns = self.people
        path = locate(self.path, self.file).with_name(name)
        places = {column: place for place, column in enumerate(columns, start=2)}
        return users_of(user_ids, path, layout, 1, places) if path.exists() else None

    def catalogue(self, item_ids: AnyArray) -> Catalogue | None:
        """Return year and genres if they are asked for; see `Dataset.catalogue`."""
        if not self.items:
            return None
        path = locate(str(locate(self.path, self.file).parent), self.films)
        numbers, _, years, genres = zip(*_films(path), strict=True)
        stated = (
            [genre for genre in film_genres if genre not in ("unknown", "(no genres listed)")]
            for film_genres in genres
        )
        categories, names = categories_of(stated, "genre", str(path))
        columns, first_line = (np.array(years)[:, None], categories), _FORMATS[path.name][1] + 1
        return Catalogue.of_rows(
            item_ids, np.array(numbers), columns, (("year",), names), str(path), first_line
        )

    @property
    def public_items(self) -> str:
        """Years and genres, if they are asked for; see `Dataset.public_items`."""
        return "items" if self.items else ""

    def item_names(self) -> dict[str, str]:
        """Return the titles of the films; empty if their file is not there or is damaged."""
        try:
            films = _films(locate(self.path, self.file).with_name(self.films))
        except (InputError, OSError):
            return {}
        return {str(number): title for number, title, *_ in films}


@dataclass(frozen=True, kw_only=True)
class MovieLens100K(MovieLens):
    """MovieLens 100K: 943 users, 1,682 films, 1 to 5 stars, with folds u1 to u5, ua and ub."""

    kind: Literal["movielens-100k"] = "movielens-100k"
    distribution = _at_grouplens("ml-100k", "u.data", "0e33842e24a9c977be4e0107933c0723")
    file = "u.data"
    films = "u.item"
    layout = TextLayout(separator="\t", width=4, timestamp=4)
    people = ("u.user", TextLayout(separator="|", width=5), ("age", "gender", "occupation", "zip code"))
    documented = _WHOLE_STARS
    folds = ("u1", "u2", "u3", "u4", "u5", "ua", "ub")

    def _loaded(self, *, timed: bool) -> Ratings:
        """Return all ratings, as many as u.info states if it is present."""
        ratings, source = super()._loaded(timed=timed), locate(self.path, self.file)
        info = source.with_name("u.info")
        counts = re.search(rb"(\d+) ratings", info.read_bytes()) if info.is_file() else None
        if source.name == self.file and counts and int(counts[1]) != ratings.count:
            accepted = f"the {int(counts[1])} that u.info counts"
            raise InputError(str(source), f"{ratings.count} ratings", accepted)
        return ratings

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        """Return the ratings of ``fold.base`` and ``fold.test``; see `Dataset.load_fold`."""
        self.check_fold(fold)
        folder = locate(self.path, self.file).parent
        base_rows, test_rows = (
            self.agreeing(read_rows(locate(str(folder), f"{fold}.{part}"), self.layout, timed=self.by_time))
            for part in ("base", "test")
        )
        train, test = map(without_times, read_fold(base_rows, test_rows, self.documented))
        all_ratings = self.load() if (folder / self.file).is_file() else None
        if all_ratings is not None and digest_of([united(train, test)]) != digest_of([all_ratings]):
            found = f"{train.count + test.count} ratings that are not the {all_ratings.count} of u.data"
            raise InputError(f"{folder / fold}.base and .test", found, "two files that together are u.data")
        return train, test


@dataclass(frozen=True, kw_only=True)
class MovieLens1M(MovieLens):
    """MovieLens 1M: 1,000,209 ratings of 3,706 films by 6,040 users, 1 to 5 stars."""

    kind: Literal["movielens-1m"] = "movielens-1m"
    distribution = _at_grouplens("ml-1m", "ratings.dat", "c4d9eecfca2ab87c1945afe126590906")
    file = "ratings.dat"
    films = "movies.dat"
    layout = _COLONS
    people = ("users.dat", TextLayout(separator="::", width=5), ("gender", "age", "occupation", "zip code"))
    documented = _WHOLE_STARS


@dataclass(frozen=True, kw_only=True)
class MovieLens10M(MovieLens):
    """MovieLens 10M: 10,000,054 ratings of 10,677 films by 69,878 users, half stars."""

    kind: Literal["movielens-10m"] = "movielens-10m"
    distribution = _at_grouplens("ml-10m", "ratings.dat", "ce571fd55effeba0271552578f2648bd")
    file = "ratings.dat"
    films = "movies.dat"
    layout = _COLONS


@dataclass(frozen=True, kw_only=True)
class MovieLens20M(MovieLens):
    """MovieLens 20M: 20,000,263 ratings of 26,744 films by 138,493 users, half stars."""

    kind: Literal["movielens-20m"] = "movielens-20m"
    distribution = _at_grouplens("ml-20m", "ratings.csv", "cd245b17a1ae2cc31bb14903e1204af3")


@dataclass(frozen=True, kw_only=True)
class MovieLens25M(MovieLens):
    """MovieLens 25M: 25,000,095 ratings of 59,047 films by 162,541 users, half stars."""

    kind: Literal["movielens-25m"] = "movielens-25m"
    distribution = _at_grouplens("ml-25m", "ratings.csv", "6b51fb2759a8657d3bfcbfc42b592ada")


@dataclass(frozen=True, kw_only=True)
class MovieLensGenres(FileDataset):
    """MovieLens 100K as two domains: the genres, by number of films, go to A and B in turn.

    A film goes to the domain that has more of its genres; ties go to A and B in turn
    (Guerraoui et al. [guerraoui2017], section 6).
    """

    kind: Literal["movielens-genres"] = "movielens-genres"
    papers = ("harper2015", "guerraoui2017")
    documented = MovieLens100K.documented
    target: Literal["A", "B"] = option("The target domain; the other one is the source.", "B")

    def load(self) -> CrossDomainRatings:
        """Return the ratings of both domains; InputError names the file and line at fault."""
        ratings = MovieLens100K(path=self.path, duplicates=self.duplicates).load()
        path = locate(str(locate(self.path, MovieLens100K.file).parent), MovieLens100K.films)
        films = _films(path)
        in_b = genres_in_b(np.array([[genre in genres for genre in GENRES] for *_, genres in films]))
        is_in_b = dict(zip((film[0] for film in films), in_b.tolist(), strict=True))
        missing = [item for item in ratings.item_ids.tolist() if item not in is_in_b]
        if missing:
            raise InputError(str(path), f"no film {missing[0]}", "a line for every rated film")
        second = np.array([is_in_b[item] for item in ratings.item_ids.tolist()])
        parts = ratings.select(~second[ratings.items]), ratings.select(second[ratings.items])
        return joined(*parts, ("A", "B")) if self.target == "B" else joined(*parts[::-1], ("B", "A"))

    def item_names(self) -> dict[str, str]:
        """Return the titles of the films in either domain."""
        titles = MovieLens100K(path=self.path).item_names()
        return {f"{domain}:{film}": title for domain in ("A", "B") for film, title in titles.items()}


def genres_in_b(genres: Bools) -> Bools:
    """Return which films go to domain B."""
    by_size = np.argsort(-genres.sum(axis=0), kind="stable")
    first, second = genres[:, by_size[::2]].sum(axis=1), genres[:, by_size[1::2]].sum(axis=1)
    in_b: Bools = second > first
    in_b[np.flatnonzero(first == second)[1::2]] = True
    return in_b


Domain = Literal["book", "music"]


@dataclass(frozen=True, kw_only=True)
class Douban(FileDataset):
    """Douban: ratings of books, of music or of both, 1 to 5, by users who rate in both domains."""

    kind: Literal["douban"] = "douban"
    documented = _WHOLE_STARS
    domain: Domain = option("What is rated, if the path is the folder: 'book' or 'music'.", "book")
    source: Domain | None = option("The source domain, for recommendation across domains.", None)
    target: Domain | None = option("The target domain; with a source domain, both are loaded.", None)

    def load(self) -> Ratings:
        """Return all ratings, of both domains if a source and a target are named."""
        if self.source is None and self.target is None:
            return self._read(self.domain)
        if self.source is None or self.target is None:
            missing = "source" if self.source is None else "target"
            raise SettingError(missing, "none", "a source and a target: book, music")
        return joined(self._read(self.source), self._read(self.target), (self.source, self.target))

    def _read(self, domain: Domain) -> Ratings:
        rows = read_rows(locate(self.path, f"{domain}.dat"), TextLayout(separator="\t", width=3))
        return Ratings.from_rows(rows, _WHOLE_STARS, duplicates=self.duplicates)


@dataclass(frozen=True, kw_only=True)
class Libimseti(DelimitedDataset):
    """Libimseti: 17,359,346 ratings of 168,791 profiles by 135,359 users, 1 to 10."""

    kind: Literal["libimseti"] = "libimseti"
    papers = ("brozovsky2007",)
    distribution = Source("http://www.occamslab.com/petricek/data/libimseti-complete.zip", "ratings.dat")
    file = "ratings.dat"
    layout = TextLayout(width=3)
    documented = RatingScale.evenly(1, 10, 1)


@dataclass(frozen=True, kw_only=True)
class RestaurantConsumer(DelimitedDataset):
    """Restaurant & consumer: 1,161 ratings of 130 restaurants by 138 guests, 0 to 2."""

    kind: Literal["rc"] = "rc"
    papers = ("vargas2011",)
    distribution = Source(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00232/RCdata.zip", "rating_final.csv"
    )
    file = "rating_final.csv"
    layout = TextLayout(header=True, user="userID", item="placeID", rating="rating")
    documented = RatingScale.evenly(0, 2, 1)


_NOT_RATED = 99.0


@dataclass(frozen=True, kw_only=True)
class Jester(FileDataset):
    """Jester: ratings of 100 jokes from -10 to 10 on a slider.

    Two layouts are read: one row per user, with the number of ratings and then one column per joke, 99
    meaning "not rated" (.csv, .xls, .xlsx); or one line per rating (user, joke, rating).
    """

    kind: Literal["jester"] = "jester"
    papers = ("goldberg2001",)
    distribution = Source("https://goldberg.berkeley.edu/jester-data/jester-data-1.zip", "jester-data-1.xls")
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
        sheets = ("jester-data-1.xls", "jester-data-1.xlsx", "jester-data-1.csv")
        path = locate(self.path, *sheets, "jester_ratings.dat")
        if path.suffix.lower() in (".xls", ".xlsx"):
            return _from_wide(_sheet(path), scale, str(path))
        start = "".join(first_cells(path, WHITESPACE))
        separator = next((mark for mark in ",;" if mark in start), WHITESPACE)
        width = len(first_cells(path, separator))
        if width == 3:
            rows = read_rows(path, TextLayout(separator=separator, width=3))
            return Ratings.from_rows(rows, scale, duplicates=self.duplicates)
        columns = read_columns(
            path, TextLayout(separator=separator), [(place, "number") for place in range(1, width + 1)]
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
        found = f"rating {jokes[row, column]:g} of joke {column + 1}"
        accepted = f"{scale.describe()}, or {_NOT_RATED:g} for not rated"
        raise InputError(f"{source}, line {row + 1}", found, accepted)
    users, items = np.nonzero(rated)
    rows = RatingRows.of(users + 1, items + 1, jokes[users, items], source)
    user_ids, item_ids = (np.arange(1, size + 1) for size in jokes.shape)
    return Ratings.from_rows(rows, scale, user_ids=user_ids, item_ids=item_ids)


def _sheet(path: Path) -> Floats:
    """Return the first sheet of a workbook as numbers, read with a package that nothing else needs.

    A text or an empty cell is not a number here, even if it could be read as one.
    """
    rows: Sequence[Sequence[Any]]
    try:
        if path.suffix.lower() == ".xls":
            import xlrd

            # Without a log file, remarks on the file's structure would be printed in the middle of a run.
            sheet = xlrd.open_workbook(path, logfile=io.StringIO()).sheet_by_index(0)
            rows = [sheet.row_values(row) for row in range(sheet.nrows)]
        else:
            import openpyxl

            with path.open("rb") as file:
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
                rows = list(book.worksheets[0].iter_rows(values_only=True))
    except ImportError as error:
        accepted = "pip install dprec[spreadsheets], or the sheet as .csv"
        raise InputError(str(path), f"a spreadsheet, but no {error.name}", accepted) from error
    except Exception as error:  # A damaged file can make these packages raise anything.
        raise InputError(str(path), f"not a spreadsheet ({error})", f"a {path.suffix} workbook") from error
    if not rows:
        raise InputError(str(path), "an empty sheet", "one row per user")
    for line, row in enumerate(rows, start=1):
        wrong = [cell for cell in row if not (isinstance(cell, int | float) and np.isfinite(cell))]
        if len(row) != len(rows[0]) or wrong:
            defect = f"{wrong[0]!r}" if wrong else f"{len(row)} columns"
            raise InputError(f"{path}, line {line}", defect, f"{len(rows[0])} numbers")
    return np.array(rows, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class SetsDataset(Dataset):
    """Base of the data sets that are read from files without ratings."""

    path: str = option("The folder of the data set, or its file.")
    documented = POSITIVE


@dataclass(frozen=True, kw_only=True)
class MsWeb(SetsDataset):
    """Anonymous visits: 98,654 pairs of 32,711 users and 285 areas of microsoft.com, in a week of 1998."""

    kind: Literal["msweb"] = "msweb"
    papers = ("breese1998",)
    distribution = Source(
        "https://archive.ics.uci.edu/static/public/4/anonymous+microsoft+web+data.zip", "anonymous-msweb.data"
    )

    def load(self) -> Ratings:
        """Return who visited what; InputError names the file and line of what cannot be read."""
        file, users, items = self._file(), list[int](), list[int]()
        user: int | None = None
        for place, line in enumerate(lines_of(file), start=1):
            cells = split_line(line, ",")
            if not cells or cells[0] not in ("C", "V"):
                continue
            where, number = f"{file}, line {place}", (cells[2:] if cells[0] == "C" else cells[1:])[:1]
            if not (number and _is_identifier(number[0].strip())):
                raise InputError(where, repr(",".join(number)[:40]), "an integer")
            if cells[0] == "C":
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
            rows = [split_line(line, ",") for line in lines_of(self._file())]
        except (InputError, OSError):
            return {}
        return {cells[1]: cells[3] for cells in rows if len(cells) > 3 and cells[0] == "A"}

    def _file(self) -> Path:
        return locate(self.path, "anonymous-msweb.data")


def _is_identifier(cell: str) -> bool:
    return cell.isascii() and cell.isdigit() and len(cell) < 19


@dataclass(frozen=True, kw_only=True)
class LightGCN(SetsDataset):
    """Lines of a user and its items, blanks between them: train.txt and test.txt, or one such file.

    Where the first number of every line is how many follow, as in users.dat of CiteULike, a line is a user.
    """

    kind: Literal["lightgcn"] = "lightgcn"
    papers = ("he2020",)
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
        return read_fold(train, test, POSITIVE)

    def _parts(self) -> tuple[Path, ...]:
        folder = Path(self.path).expanduser()
        parts = folder / "train.txt", folder / "test.txt"
        return parts if all(part.is_file() for part in parts) else ()


def _listed_rows(file: Path) -> RatingRows:
    """Return a row for each user and item of a file; a user without items has none."""
    import polars as pl

    cells = pl.Series(lines_of(file), dtype=pl.String).str.extract_all(r"\S+")
    counts, texts = cells.list.len().to_numpy(), cells.explode().drop_nulls()
    odd = (~texts.str.contains(r"^[0-9]{1,18}$")).arg_true()
    if odd.len():
        line = int(np.searchsorted(np.cumsum(counts), odd[0], side="right")) + 1
        raise InputError(f"{file}, line {line}", repr(texts[odd[0]][:40]), "a user and its items, integers")
    numbers, filled = texts.cast(pl.Int64).to_numpy(), counts[counts > 0].astype(np.int64)
    leading, sizes = offsets(filled)[:-1], filled - 1
    items, users = np.delete(numbers, leading), numbers[leading]
    if not items.size:
        raise InputError(str(file), "no pairs", "lines of a user and its items")
    counted = np.array_equal(users, sizes)
    reading = Reading(file.name, "lines" if counted else "first numbers", "further numbers")
    users = np.repeat(np.flatnonzero(counts) + 1 if counted else users, sizes)
    rows = RatingRows.of(users, items, np.full(items.size, np.nan), str(file))
    return replace(rows, reading=reading).collapsed("last")
