"""Text with a row per line and columns between separators, read through Polars.

Rules that Polars leaves open are checked on the lines themselves: every line has as many cells as the first,
and a quoted cell ends on its line. So a row of the table is a line of the file, and what is refused is named
by its line. Separators of several characters, and blanks, divide lines that are read whole.
"""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dprec.arrays import AnyArray
from dprec.datasets.base import typed_condition
from dprec.datasets.columns import column_place
from dprec.datasets.conditions import rows_that_meet
from dprec.datasets.foreign import GZIP, PARQUET, ZSTD, is_json_lines, refuse_binary
from dprec.datasets.held import as_texts, times_of
from dprec.datasets.lines import WHITESPACE, split_line
from dprec.errors import InputError, shown
from dprec.rating_rows import Identifiers, RatingRows, Reading

if TYPE_CHECKING:
    import polars as pl

Cells = Literal["identifier", "number", "number or nothing", "text or nothing", "time"]
"""What the cells of a column hold."""


@dataclass(frozen=True)
class TextLayout:
    """How the lines of a file are laid out."""

    separator: str = ","
    """One character, several ("::"), "tab" or `WHITESPACE`. Quoted cells are supported only for one
    character.
    """
    header: bool = False
    """Whether the first line names the columns."""
    width: int | None = None
    """Number of columns; by default that of the first line."""
    user: str | int = 1
    item: str | int = 2
    rating: str | int | None = 3
    """The columns of the three: a name in the header, or a position counted from 1; None without ratings."""
    timestamp: str | int | None = None
    """The column of the time at which a rating was made."""

    def __post_init__(self) -> None:
        # Some shells and editors do not let a tab through.
        if self.separator in ("tab", "\\t"):
            object.__setattr__(self, "separator", "\t")
        if self.separator != WHITESPACE and not re.fullmatch(r'[^"\n\r\w.+-]+', self.separator):
            accepted = f"such as ',', ';', 'tab', '::' or {WHITESPACE!r}"
            raise InputError("separator", repr(self.separator), accepted)

    @property
    def described_separator(self) -> str:
        """The separator in words, for error messages."""
        return {"\t": "a tab", WHITESPACE: "blanks"}.get(self.separator, repr(self.separator))


_WITHOUT_TEXTS = (
    "pandas.read_csv(FILE, usecols=['USER', 'ITEM', 'RATING']).to_csv('ratings.csv', index=False)"
)
"""What leaves out texts of several lines, such as reviews."""

MOST_COLUMNS = 10_000
_CELL_BYTES = 255
_BLANK = " \t\r"
_NOTHING = ("nan", "NaN", "NA", "N/A", "<NA>", "NULL", "null", "None", "\\N")
"""What stands for no identifier where all others are integers."""
_INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})(?:\.0{1,9})?$"
"""An integer in its shortest form, perhaps with decimals of zero."""


def typed_table(path: Path) -> pl.LazyFrame | None:
    """Return a file whose columns have types, Parquet or JSON Lines; None of any other."""
    import polars as pl

    start = _beginning(path)
    if start.startswith(PARQUET):
        return pl.scan_parquet(path, glob=False)
    packed = start.startswith((GZIP, ZSTD))
    first = lines_of(path, 1) if packed or start.lstrip().startswith(b"{") else []
    if first and is_json_lines(first[0]):
        # All lines decide which fields there are, and of which types.
        return pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None)
    return None


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(1024)
    except OSError:
        return b""


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise InputError for a file that is no text in UTF-8, plain or packed with gzip or zstd."""
    from polars.exceptions import PolarsError

    refuse_binary(path, _beginning(path))
    try:
        yield
    except (PolarsError, OSError) as error:
        reason = "a folder" if path.is_dir() else str(error).partition("\n")[0]
        raise _fault(path) or InputError(str(path), reason, "a file that is a whole table") from error


def _fault(path: Path) -> InputError | None:
    """Return the error for the first line of a file that is no text in UTF-8, if there is one."""
    start = _beginning(path)
    if start.startswith((ZSTD, PARQUET)):
        return None
    try:
        with gzip.open(path) if start.startswith(GZIP) else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if b"\0" in line:
                    text = f"iconv -f utf-16le -t utf-8 {quote(str(path))} > ratings.csv"
                    accepted = f"text in UTF-8; this may be a binary file, or: {text}"
                    return InputError(f"{path}, line {number}", "a zero byte", accepted)
                line.decode()
    except UnicodeDecodeError as error:
        accepted = f"text in UTF-8, such as: iconv -f latin1 -t utf-8 {quote(str(path))} > ratings.csv"
        return InputError(f"{path}, line {number}", f"byte 0x{line[error.start]:02x}", accepted)
    except (OSError, EOFError, zlib.error):
        pass
    return None


def _scanned(
    source: Path | bytes, separator: str, quote: str | None, width: int, skipped: int = 0
) -> pl.LazyFrame:
    """Return the cells of a text, null behind the end of a line, in columns "0", "1", ..."""
    import polars as pl

    schema = {str(place): pl.String for place in range(width)}
    return pl.scan_csv(
        source,
        separator=separator,
        quote_char=quote,
        has_header=False,
        schema=schema,
        missing_columns="insert",
        truncate_ragged_lines=True,
        skip_lines=skipped,
        raise_if_empty=False,
        glob=False,
    )


def _lines(path: Path) -> pl.LazyFrame:
    """Return the lines of a file, and what stands in them behind a zero byte, which is null in text."""
    import polars as pl

    return _scanned(path, "\0", None, 2).select(line=pl.col("0").fill_null(""), zero="1")


def lines_of(path: Path, limit: int = 2**31 - 1) -> list[str]:
    """Return the first lines of a file, by default all, without their ends; none of an empty file."""
    with readable(path):
        lines = _lines(path).head(limit).collect()
    if lines["zero"].count() and (fault := _fault(path)):
        raise fault
    return list(lines["line"])


def first_cells(path: Path, separator: str) -> list[str]:
    """Return the cells of a file's first line."""
    lines = lines_of(path, 1)
    if not lines:
        raise InputError(str(path), "an empty file", "one row per line")
    if not lines[0].strip():
        raise InputError(f"{path}, line 1", "an empty line", "one row per line")
    return split_line(lines[0], separator)


def read_rows(
    path: Path,
    layout: TextLayout,
    *,
    timed: bool = False,
    where: str | None = None,
    typed: pl.LazyFrame | None = None,
) -> RatingRows:
    """Read the users, items, ratings and perhaps times of a file; pairs without ratings have NaN.

    ``where``: a condition on the columns, by their names, or as column_1, column_2, ... without a header;
    rows that do not meet it are left out. ``typed``: the file's table, if its columns have types; its cells
    are read as texts, so that every file is read by the same rules.

    Raises InputError when a line has too few or too many columns, an empty cell, an identifier that is not
    UTF-8 or a rating that is not a finite number; when the file is missing, empty or binary.
    """
    wanted: list[tuple[str | int, Cells]]
    wanted = [(layout.user, "identifier"), (layout.item, "identifier")]
    if layout.rating is not None:
        wanted.append((layout.rating, "number"))
    if timed and layout.timestamp is not None:
        wanted.append((layout.timestamp, "time"))
    table = _Table.of(path, layout, where) if typed is None else _Table.of_typed(path, layout, where, typed)
    users, items, *columns = table.read(wanted)
    values = np.full(users.places.size, np.nan) if layout.rating is None else columns.pop(0)
    return RatingRows(
        users,
        items,
        values,
        str(path),
        table.first_line,
        unit=table.unit,
        places=None if table.met is None else table.met.arg_true().to_numpy().astype(np.int64),
        times=columns[0] if columns else None,
        reading=table.reading(),
    )


def read_columns(path: Path, layout: TextLayout, wanted: Sequence[tuple[str | int, Cells]]) -> list[Any]:
    """Read columns of a file, by name or position from 1, shape (rows,).

    As float64 for times and for numbers, NaN for nothing; str for text; `Identifiers` for identifiers, as
    integers if all are. Raises InputError as for `read_rows`.
    """
    return _Table.of(path, layout).read(wanted)


@dataclass(frozen=True)
class _Table:
    """The rows of a text below its header, each as long as the first line, or of a table that has types."""

    path: Path
    layout: TextLayout
    names: list[str]
    """Of the columns; without a header column_1, column_2, ..."""
    cells: pl.LazyFrame
    """As texts, in columns "0", "1", ..."""
    where: str | None
    """The condition that says which rows are read."""
    met: pl.Series | None
    """Which they are; None where all are."""
    unit: str = "line"
    """What a row is called in error messages."""

    @classmethod
    def of(cls, path: Path, layout: TextLayout, where: str | None = None) -> _Table:
        """Return the table of a text."""
        import polars as pl

        first, start = first_cells(path, layout.separator), f"{path}, line 1"
        width = layout.width or len(first)
        if width == 1:
            likeliest = max((",", ";", "\t", "::", "|", " "), key=first[0].count)
            name = {" ": repr(WHITESPACE), "\t": "'tab'"}.get(likeliest, repr(likeliest))
            hint = f"; here the separator seems to be {name}" if likeliest in first[0] else ""
            raise InputError(start, "1 column", f"columns separated by {layout.described_separator}{hint}")
        if width > MOST_COLUMNS:
            raise InputError(start, f"{width} columns", f"at most {MOST_COLUMNS}, one row per line")
        numbered = [f"column_{number}" for number in range(1, width + 1)]
        names = [name.strip() for name in first] if layout.header else numbered
        with readable(path):
            cells, met = None if where else _plain_cells(path, layout, width), None
            cells = _cells(path, layout, width) if cells is None else cells
            if where is not None:
                # A name that two columns have is that of neither.
                places = [place for place, name in enumerate(names) if names.count(name) == 1]
                named = cells.select(pl.col(str(place)).alias(names[place]) for place in places)
                met = rows_that_meet(named, where)
        return cls(path, layout, names, cells, where, met)

    @classmethod
    def of_typed(cls, path: Path, layout: TextLayout, where: str | None, typed: pl.LazyFrame) -> _Table:
        """Return a table whose columns have types."""
        import polars as pl

        with readable(path):
            schema = typed.collect_schema()
            met = None if where is None else rows_that_meet(typed, where)
            texts = (
                pl.col(name).cast(pl.String).alias(str(place))
                for place, (name, kind) in enumerate(schema.items())
                if not kind.is_nested()
            )
            cells = typed.select(*texts, pl.lit(value=False).alias(_ODD))
        return cls(path, layout, schema.names(), cells, where, met, "row")

    @property
    def first_line(self) -> int:
        """Number of the first row in error messages."""
        return 1 + (self.unit == "line" and self.layout.header)

    def place(self, column: str | int) -> int:
        """Return the position of a column, from 0; raises InputError."""
        if isinstance(column, str) and not self.layout.header:
            accepted = "a position counted from 1, as the file has no header"
            raise InputError("column", repr(column), accepted)
        return column_place(column, self.names, f"{self.path}, line 1")

    def read(self, wanted: Sequence[tuple[str | int, Cells]]) -> list[Any]:
        """Return columns; see `read_columns`."""
        import polars as pl

        places = [self.place(column) for column, _ in wanted]
        if odd := set(map(str, places)) - set(self.cells.collect_schema().names()):
            name = self.names[int(min(odd))]
            raise InputError(str(self.path), f"lists or objects in {name!r}", "one value in every row")
        first = (_at_first(str(place), kind) for place, (_, kind) in zip(places, wanted, strict=True))
        table = self._collected(cells.alias(str(number)) for number, cells in enumerate(first))
        if table.is_empty():
            raise InputError(str(self.path), "a header and nothing below it", "one row per line")
        columns: list[Any] = []
        for number, (place, (_, kind)) in enumerate(zip(places, wanted, strict=True)):
            cells, name = table[str(number)], self._called(place)
            if kind == "identifier":
                columns.append(self._identifiers(cells, name))
            elif cells.dtype.is_float() and not cells.null_count():
                columns.append(cells.to_numpy())
            else:
                texts = self._collected([pl.col(str(place))])[str(place)]
                columns.append(self._array(texts.str.strip_chars(_BLANK), kind, name))
        return columns

    def reading(self) -> Reading:
        """Return what is read from where, and what a condition leaves out."""
        layout, timestamp = self.layout, self.layout.timestamp
        user, item, rating, times = (
            None if column is None else self._called(self.place(column))
            for column in (layout.user, layout.item, layout.rating, timestamp)
        )
        read = Reading(self.path.name, user or "", item or "", rating, times)
        return read if self.met is None else read.without(f"outside {self.where}", int((~self.met).sum()))

    def _called(self, place: int) -> str:
        """Return what a column is called in messages."""
        return self.names[place] if self.layout.header else f"column {place + 1}"

    def _collected(self, cells: Iterable[pl.Expr]) -> pl.DataFrame:
        cells = list(cells)
        with readable(self.path):
            table = self.cells.select(*cells, _ODD).collect(engine="streaming")
            if table[_ODD].any():
                table = _cells(self.path, self.layout, len(self.names)).select(cells).collect()
        return table if self.met is None else table.filter(self.met)

    def _error(self, row: int, found: str, accepted: str) -> InputError:
        line = row if self.met is None else int(self.met.arg_true()[row])
        return InputError(f"{self.path}, {self.unit} {line + self.first_line}", found, accepted)

    def _nothing(self, row: int, name: str, _text: str = "") -> InputError:
        filled = (
            f"a value in every {self.unit}; or, without such rows, {typed_condition(name, 'IS NOT NULL')}"
        )
        return self._error(row, f"nothing in {name}", filled)

    def _no_identifier(self, row: int, name: str, text: str) -> InputError:
        others = typed_condition(name, f"<> '{text}'")
        accepted = f"an identifier; or, without such rows, {others}"
        return self._error(row, f"{shown(repr(text))} in {name}", accepted)

    def _too_long(self, row: int, name: str, text: str) -> InputError:
        return self._error(row, f"{len(text.encode())} bytes in {name}", f"at most {_CELL_BYTES}")

    def _identifiers(self, cells: pl.Series, name: str) -> Identifiers:
        """Return a column of identifiers, given its cells as categories."""
        import polars as pl

        if cells.null_count():
            raise self._nothing(int(cells.is_null().arg_true()[0]), name)

        def meaning(texts: pl.Series) -> AnyArray:
            """Return what different cells mean; what is refused is named by its first line."""
            stripped = texts.str.strip_chars(_BLANK)
            missing = stripped.is_in(_NOTHING)
            numbers = stripped.filter(~missing).str.contains(_INTEGER)
            mixed = missing if not missing.all() and numbers.all() else missing & False
            for odd, error in (
                (stripped == "", self._nothing),
                (mixed, self._no_identifier),
                (stripped.str.len_bytes() > _CELL_BYTES, self._too_long),
            ):
                if odd.any():
                    row = cells.cast(pl.String).is_in(texts.filter(odd).implode()).arg_true()[0]
                    raise error(int(row), name, cells[row].strip(_BLANK))
            # 7.0 is 7, as a program writes it that took identifiers for measurements.
            shortest = stripped.str.replace(r"\.0+$", "") if numbers.all() else stripped
            integers = _integers(shortest)
            return as_texts(stripped, f"{self.path}, {name}") if integers is None else integers

        return Identifiers.of_texts(cells, meaning)

    def _array(self, cells: pl.Series, kind: Cells, name: str) -> AnyArray:
        """Return cells that are not all plain numbers; see `read_columns`."""
        import polars as pl

        empty = (cells.fill_null("") == "").arg_true()
        if empty.len() and not kind.endswith("nothing"):
            raise self._nothing(int(empty[0]), name)
        if kind.startswith("number"):
            numbers = cells.cast(pl.Float64, strict=False)
            wrong = (~numbers.is_finite().fill_null(value=False) & (cells.fill_null("") != "")).arg_true()
            if wrong.len():
                text = cells[int(wrong[0])]
                point = ", with a point before the decimals" if "," in text else ""
                raise self._error(int(wrong[0]), f"{shown(repr(text))} in {name}", f"a finite number{point}")
            return numbers.fill_null(np.nan).to_numpy()
        long = (cells.str.len_bytes().fill_null(0) > _CELL_BYTES).arg_true()
        if long.len():
            raise self._too_long(int(long[0]), name, cells[int(long[0])])
        texts = Identifiers.of_texts(cells.fill_null(""))
        return times_of(texts, f"{self.path}, {name}") if kind == "time" else texts.values


def _at_first(column: str, kind: Cells) -> pl.Expr:
    """Return the cells of a column as they are read at first: what is no number then is read once more."""
    import polars as pl

    cells = pl.col(column)
    if kind == "identifier":
        return cells.cast(pl.Categorical)
    number = cells.cast(pl.Float64, strict=False)
    return cells if kind == "text or nothing" else pl.when(number.is_finite()).then(number)


_BYTES_AT_ONCE = 1 << 24
_ODD = "odd"
"""Column of cells that says which lines have more or fewer than they should."""


def _plain_cells(path: Path, layout: TextLayout, width: int) -> pl.LazyFrame | None:
    """Return the cells below the header, read in one pass; None where a line may need a closer look.

    A line of too many cells, the first of them empty, shows in the number of separators alone.
    """
    import polars as pl

    mark = layout.separator
    if mark == WHITESPACE or len(mark.encode()) > 1 or _beginning(path).startswith((GZIP, ZSTD)):
        return None
    separators = lines = 0
    with path.open("rb") as file:
        while part := file.read(_BYTES_AT_ONCE):
            if b'"' in part or b"\0" in part:
                return None
            characters = np.frombuffer(part, dtype=np.uint8)
            separators += int(np.count_nonzero(characters == ord(mark)))
            lines += int(np.count_nonzero(characters == ord("\n")))
            ended = part.endswith(b"\n")
    if separators != (lines + (not ended)) * (width - 1):
        return None
    odd = pl.col(str(width - 1)).is_null() | pl.col(str(width)).is_not_null()
    return _scanned(path, mark, None, width + 1, int(layout.header)).with_columns(odd.alias(_ODD))


def _cells(path: Path, layout: TextLayout, width: int) -> pl.LazyFrame:
    """Return the cells below the header, once every line is known to have as many as it should."""
    import polars as pl

    line, mark = pl.col("line"), layout.separator
    lines = _lines(path).slice(int(layout.header))
    if mark == WHITESPACE or len(mark.encode()) > 1:
        parts = line.str.extract_all(r"[^ \t]+") if mark == WHITESPACE else line.str.split(mark)
        rows = _checked(path, layout, lines, parts.list.len(), width)
        divided = lines.head(rows).select(parts.alias("parts"))
        parted = (pl.col("parts").list.get(place).alias(str(place)) for place in range(width))
        return divided.select(*parted, pl.lit(value=False).alias(_ODD))
    source: Path | bytes = path
    skipped, quotes = int(layout.header), line.str.contains('"', literal=True)
    with_quotes = lines.filter(quotes)
    # Elsewhere in a cell, a quote is a character as any other.
    quoted = with_quotes.select(line.str.contains(f'(?:^|{re.escape(mark)})[ \t]*"').any()).collect().item()
    bare = line
    if quoted:
        blanks = " " if mark == "\t" else r" \t"
        plain = rf'[{blanks}]*(?:[^"{blanks}{re.escape(mark)}][^"{re.escape(mark)}]*)?'
        cell = rf'(?:"(?:[^"]|"")*"|{plain})'
        sound = line.str.contains(f"^(?:{cell}{re.escape(mark)})*{cell}$")
        if not with_quotes.select(sound.all()).collect().item():
            lines = lines.with_columns(_usually_quoted(line, mark)).collect().lazy()
            source, skipped = "\n".join(lines.collect()["line"]).encode(), 0
        bare = pl.when(sound).then(line.str.replace_all(r'"[^"]*"', ""))
    rows = _checked(path, layout, lines, bare.str.count_matches(mark, literal=True) + 1, width)
    cells = _scanned(source, mark, '"' if quoted else None, width, skipped).head(rows)
    return cells.with_columns(pl.lit(value=False).alias(_ODD))


def _usually_quoted(line: pl.Expr, mark: str) -> pl.Expr:
    r"""Return lines with quotes inside quotes written as "", for \", and without blanks before a quote."""
    end = f"({re.escape(mark)}|$)"
    marked = line.str.replace_all(rf'\\"{end}', "\0${1}")  # a backslash that ends its cell
    doubled = marked.str.replace_all('\\"', '""', literal=True).str.replace_all("\0", '\\"', literal=True)
    return doubled.str.replace_all(rf'(^|{re.escape(mark)})[ \t]+"', '${1}"')


def _checked(path: Path, layout: TextLayout, lines: pl.LazyFrame, widths: pl.Expr, width: int) -> int:
    """Return the number of rows, without empty lines at the end; refuse the first line of another width.

    Parameters
    ----------
    widths : Expr
        The number of cells of each line, null where a quote does not end as it should.
    """
    import polars as pl

    odd = pl.col("zero").is_not_null() | widths.ne_missing(width)
    faults = lines.with_row_index("row").filter(odd).with_columns(widths.alias("width")).collect()
    total = int(lines.select(pl.len()).collect().item())
    if faults.is_empty():
        return total
    row, text, _, n_cells = faults.row(0)
    empty = faults["line"].str.strip_chars() == ""
    if faults.height == total - row and empty.all() and not faults["zero"].count():
        return int(row)
    columns = f"{n_cells} column{'s' if n_cells != 1 else ''}" if text.strip() else "an empty line"
    accepted = f"{width} columns separated by {layout.described_separator}"
    if n_cells is None:
        columns = "a quote that does not end with its cell"
        accepted = f"quoted cells that end on their line, as those of: {_WITHOUT_TEXTS}"
    where = f"{path}, line {row + layout.header + 1}"
    raise _fault(path) or InputError(where, columns, accepted)


def _integers(cells: pl.Series) -> AnyArray | None:
    """Return the cells as integers if nothing is lost by it: "007" and "7" are different identifiers."""
    import polars as pl

    numbers = cells.cast(pl.Int64, strict=False)
    if numbers.null_count() or cells.str.contains(r"^(?:0.|-0|\+)").any():
        return None
    return numbers.to_numpy()
