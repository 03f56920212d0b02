"""Text with a row per line and columns between separators, read through Polars.

Rules that Polars leaves open are checked on the lines themselves: every line has as many cells as the first,
and a quoted cell ends on its line. So a row of the table is a line of the file, and what is refused is named
by its line. Separators of several characters, and blanks, divide lines that are read whole.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from dprec.arrays import AnyArray
from dprec.datasets.columns import WHITESPACE, column_place, split_line
from dprec.datasets.held import texts_of, times_of
from dprec.errors import InputError, shown
from dprec.ratings import RatingRows

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


_GZIP, _ZSTD, _OLE = b"\x1f\x8b", b"(\xb5/\xfd", b"\xd0\xcf\x11\xe0"
_CONVERTED = "text in UTF-8, such as: iconv -f utf-16 -t utf-8 FILE"
_UNREAD = {
    b"PK\x03\x04": ("a zip archive", "what it holds: unzip FILE"),
    b"BZh": ("an archive", "what it holds: bunzip2 -k FILE"),
    b"\xfd7zXZ\0": ("an archive", "what it holds: unxz -k FILE"),
    _OLE: ("a spreadsheet", "the sheet saved as .csv; for Jester's own file, kind: jester"),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"), ("text in UTF-16 or UTF-32", _CONVERTED)),
}
"""By the first bytes of a file: what it is, and what makes a table of it. The first that fits counts."""

_WITHOUT_TEXTS = (
    "pandas.read_csv(FILE, usecols=['USER', 'ITEM', 'RATING']).to_csv('ratings.csv', index=False)"
)
"""What leaves out texts of several lines, such as reviews."""

MOST_COLUMNS = 10_000
_CELL_BYTES = 255


def is_parquet(path: Path) -> bool:
    """Return whether a file is a Parquet table; False if it cannot be read."""
    return _beginning(path).startswith(b"PAR1")


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

    start = _beginning(path)
    for mark, (found, accepted) in _UNREAD.items():
        if start.startswith(mark):
            sheet = b"[Content_Types].xml" in start
            raise InputError(str(path), *(_UNREAD[_OLE] if sheet else (found, accepted)))
    try:
        yield
    except (PolarsError, OSError) as error:
        reason = "a folder" if path.is_dir() else str(error).partition("\n")[0]
        raise _fault(path) or InputError(str(path), reason, "a file that is a whole table") from error


def _fault(path: Path) -> InputError | None:
    """Return the error for the first line of a file that is no text in UTF-8, if there is one."""
    start = _beginning(path)
    if start.startswith(_ZSTD):
        return None
    try:
        with gzip.open(path) if start.startswith(_GZIP) else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if b"\0" in line:
                    accepted = "text in UTF-8; this may be a binary file, or: iconv -f utf-16le -t utf-8 FILE"
                    return InputError(f"{path}, line {number}", "a zero byte", accepted)
                line.decode()
    except UnicodeDecodeError as error:
        accepted = "text in UTF-8, such as: iconv -f latin1 -t utf-8 FILE"
        return InputError(f"{path}, line {number}", f"byte 0x{line[error.start]:02x}", accepted)
    except (OSError, EOFError, zlib.error):
        pass
    return None


def _scanned(
    source: Path | bytes, separator: str, quote: str | None, width: int, skipped: int = 0
) -> pl.LazyFrame:
    """Return the cells of a text, null where there is nothing, in columns "0", "1", ..."""
    import polars as pl

    schema = {str(place): pl.String for place in range(width)}
    return pl.scan_csv(
        source,
        separator=separator,
        quote_char=quote,
        has_header=False,
        schema=schema,
        missing_columns="insert",
        skip_lines=skipped,
        raise_if_empty=False,
        glob=False,
    )


def _lines(path: Path) -> pl.LazyFrame:
    """Return the lines of a file, and what stands in them behind a zero byte, which is null in text."""
    import polars as pl

    return _scanned(path, "\0", None, 2).select(line=pl.col("0").fill_null(""), zero="1")


def lines_of(path: Path, most: int = 2**31 - 1) -> list[str]:
    """Return the first lines of a file, by default all, without their ends; none of an empty file."""
    with readable(path):
        lines = _lines(path).head(most).collect()
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


def read_rows(path: Path, layout: TextLayout, *, timed: bool = False) -> RatingRows:
    """Read the users, items, ratings and perhaps times of a file; pairs without ratings have NaN.

    Raises InputError when a line has too few or too many columns, an empty cell, an identifier that is not
    UTF-8 or a rating that is not a finite number; when the file is missing, empty or binary.
    """
    wanted: list[tuple[str | int, Cells]]
    wanted = [(layout.user, "identifier"), (layout.item, "identifier")]
    if layout.rating is not None:
        wanted.append((layout.rating, "number"))
    if timed and layout.timestamp is not None:
        wanted.append((layout.timestamp, "time"))
    users, items, *columns = read_columns(path, layout, wanted)
    values = np.full(users.size, np.nan) if layout.rating is None else columns.pop(0)
    times = columns[0] if columns else None
    return RatingRows(users, items, values, str(path), layout.header + 1, times=times)


def read_columns(path: Path, layout: TextLayout, wanted: Sequence[tuple[str | int, Cells]]) -> list[AnyArray]:
    """Read columns of a file, by name or position from 1, shape (rows,).

    As float64 for times and for numbers, NaN for nothing; str for text; int64 for identifiers that are all
    integers, else str. Raises InputError as for `read_rows`.
    """
    first, start = first_cells(path, layout.separator), f"{path}, line 1"
    width = layout.width or len(first)
    if width == 1:
        likeliest = max((",", ";", "\t", "::", "|", " "), key=first[0].count)
        name = {" ": repr(WHITESPACE), "\t": "'tab'"}.get(likeliest, repr(likeliest))
        hint = f"; here the separator seems to be {name}" if likeliest in first[0] else ""
        raise InputError(start, "1 column", f"columns separated by {layout.described_separator}{hint}")
    if width > MOST_COLUMNS:
        raise InputError(start, f"{width} columns", f"at most {MOST_COLUMNS}, one row per line")
    names = first if layout.header else [""] * width
    for column, _ in wanted:
        if isinstance(column, str) and not layout.header:
            accepted = "a position counted from 1, as the file has no header"
            raise InputError("column", repr(column), accepted)
    places = [column_place(column, names, start) for column, _ in wanted]
    with readable(path):
        table = _cells(path, layout, width).select(map(str, sorted(set(places)))).collect()
    if table.is_empty():
        raise InputError(str(path), "a header and nothing below it", "one row per line")
    columns = []
    for (column, kind), place in zip(wanted, places, strict=True):
        name = column if isinstance(column, str) else f"column {column}"
        columns.append(_array(table[str(place)], kind, name, str(path), layout.header + 1))
    return columns


def _cells(path: Path, layout: TextLayout, width: int) -> pl.LazyFrame:
    """Return the cells below the header, once every line is known to have as many as it should."""
    import polars as pl

    line, mark = pl.col("line"), layout.separator
    lines = _lines(path).slice(int(layout.header))
    if mark == WHITESPACE or len(mark.encode()) > 1:
        parts = line.str.extract_all(r"[^ \t]+") if mark == WHITESPACE else line.str.split(mark)
        rows = _checked(path, layout, lines, parts.list.len(), width)
        divided = lines.head(rows).select(parts.alias("parts"))
        return divided.select(pl.col("parts").list.get(place).alias(str(place)) for place in range(width))
    skipped, odd = int(layout.header), line.str.count_matches(mark, literal=True) + 1 != width
    quotes = line.str.contains('"', literal=True)
    if not any(lines.select((odd | pl.col("zero").is_not_null()).any(), quote=quotes.any()).collect().row(0)):
        return _scanned(path, mark, None, width, skipped)
    source: Path | bytes = path
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
    return _scanned(source, mark, '"' if quoted else None, width, skipped).head(rows)


def _usually_quoted(line: pl.Expr, mark: str) -> pl.Expr:
    r"""Return lines with quotes inside quotes written as "", for \", and without blanks before a quote."""
    end = f"({re.escape(mark)}|$)"
    kept = line.str.replace_all(rf'\\"{end}', "\0${1}")  # a backslash that ends its cell
    doubled = kept.str.replace_all('\\"', '""', literal=True).str.replace_all("\0", '\\"', literal=True)
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
    row, text, _, found = faults.row(0)
    empty = faults["line"].str.strip_chars() == ""
    if faults.height == total - row and empty.all() and not faults["zero"].count():
        return int(row)
    columns = f"{found} column{'s' if found != 1 else ''}" if text.strip() else "an empty line"
    accepted = f"{width} columns separated by {layout.described_separator}"
    if found is None:
        columns = "a quote that does not end with its cell"
        accepted = f"quoted cells that end on their line, as those of: {_WITHOUT_TEXTS}"
    where = f"{path}, line {row + layout.header + 1}"
    raise _fault(path) or InputError(where, columns, accepted)


def _array(cells: pl.Series, kind: Cells, name: str, source: str, first_line: int) -> AnyArray:
    """Return the cells of a column as numbers or text; see `read_columns`."""

    def error(row: int, found: str, accepted: str) -> InputError:
        return InputError(f"{source}, line {row + first_line}", f"{found} in {name}", accepted)

    if kind == "identifier" and (whole := _integers(cells)) is not None:
        return whole
    numeric = kind in ("number", "number or nothing")
    if numeric or kind == "time":
        numbers = _finite(cells)
        if not numbers.null_count():
            return numbers.to_numpy()
    cells = cells.fill_null("").str.strip_chars(" \t\r")
    empty = (cells == "").arg_true()
    if empty.len() and not kind.endswith("nothing"):
        raise error(int(empty[0]), "nothing", "a value in every line")
    if numeric:
        numbers = _finite(cells)
        wrong = (numbers.is_null() & (cells != "")).arg_true()
        if wrong.len():
            text = cells[int(wrong[0])]
            point = ", with a point before the decimals" if "," in text else ""
            raise error(int(wrong[0]), shown(repr(text)), f"a finite number{point}")
        return numbers.fill_null(np.nan).to_numpy()
    if kind == "identifier":
        missing, shortest = cells.is_in(["nan", "NaN"]), cells
        # In their shortest form, perhaps with decimals of zero.
        whole_numbers = cells.filter(~missing).str.contains(r"^(?:0|-?[1-9][0-9]{0,17})(?:\.0{1,9})?$")
        if not missing.all() and whole_numbers.all():
            if missing.any():
                row = int(missing.arg_true()[0])
                raise error(row, shown(repr(cells[row])), "an identifier in every line")
            # 7.0 is 7, as a program writes it that took identifiers for measurements.
            shortest = cells.str.replace(r"\.0+$", "")
        if (whole := _integers(shortest)) is not None:
            return whole
    sizes = cells.str.len_bytes()
    long = (sizes > _CELL_BYTES).arg_true()
    if long.len():
        raise error(int(long[0]), f"{sizes[int(long[0])]} bytes", f"at most {_CELL_BYTES}")
    texts = texts_of(cells, source)
    return times_of(texts, f"{source}, {name}") if kind == "time" else texts


def _finite(cells: pl.Series) -> pl.Series:
    """Return the cells as numbers, null where there is none."""
    import polars as pl

    numbers = cells.cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite(), None) if not numbers.is_finite().all() else numbers


def _integers(cells: pl.Series) -> AnyArray | None:
    """Return the cells as integers if nothing is lost by it: "007" and "7" are different identifiers."""
    import polars as pl

    numbers = cells.cast(pl.Int64, strict=False)
    if numbers.null_count() or cells.str.contains(r"^(?:0.|-0|\+)").any():
        return None
    return numbers.to_numpy()
