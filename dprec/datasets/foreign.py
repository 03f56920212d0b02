"""Files that are no table of ratings: how each is known, and what makes a table of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from dprec.datasets.lines import WHITESPACE, is_number
from dprec.errors import InputError, shown

RESHAPED = (
    "a line per rating, which pandas makes of a column per item (with header=None, if its first line holds "
    "ratings): pandas.read_csv(FILE, index_col=0).stack().dropna().to_csv('ratings.csv', header=False)"
)
"""What to do with a matrix in a file."""

GZIP, ZSTD = b"\x1f\x8b", b"(\xb5/\xfd"
"""How files begin that are unpacked as they are read."""

_SPREADSHEET = ("a spreadsheet", "the sheet saved as .csv; for Jester's own file, kind: jester")
_ENCODED = ("text in UTF-16 or UTF-32", "text in UTF-8: iconv -f utf-16 -t utf-8 {file} > ratings.csv")
_SPARSE = (
    "import numpy, scipy.io, scipy.sparse; m = scipy.sparse.coo_array(LOADED); "
    "numpy.savetxt('ratings.csv', numpy.c_[m.row, m.col, m.data], fmt='%g', delimiter=',')"
)
_OF_MATLAB = _SPARSE.replace("LOADED", "scipy.io.loadmat({name})['VARIABLE']")
_OF_SCIPY = _SPARSE.replace("LOADED", "scipy.sparse.load_npz({name})")
_OF_NUMPY = "import numpy; numpy.savetxt('ratings.csv', numpy.load({name}), fmt='%g', delimiter=',')"
_OF_PICKLE = "import pandas; pandas.read_pickle({name}).to_csv('ratings.csv', index=False)"
_OF_HDF = "import pandas; pandas.read_hdf({name}).to_csv('ratings.csv', index=False)"
_OF_ARROW = "import polars; polars.read_ipc({name}).write_parquet('ratings.parquet')"
_OF_JSON = "import polars; polars.read_json({name}).write_ndjson('ratings.jsonl')"

_BINARY: tuple[tuple[bytes, str, str], ...] = (
    (b"BZh", "an archive", "what it holds: bunzip2 -k {file}"),
    (b"\xfd7zXZ\0", "an archive", "what it holds: unxz -k {file}"),
    (b"7z\xbc\xaf", "an archive", "what it holds: 7z x {file}"),
    (b"Rar!", "an archive", "what it holds: unrar x {file}"),
    (b"\xd0\xcf\x11\xe0", *_SPREADSHEET),
    *((mark, *_ENCODED) for mark in (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")),
    (b"\x93NUMPY", "an array of NumPy", f'text, of an array with a row per rating: python -c "{_OF_NUMPY}"'),
    (
        b"MATLAB 5.0 MAT-file",
        "variables of MATLAB",
        f'text, of a matrix users x items: python -c "{_OF_MATLAB}"',
    ),
    (b"\x89HDF", "a file of HDF5", f'a table: python -c "{_OF_HDF}"; of MATLAB 7.3, what h5py reads'),
    *(
        (
            b"\x80" + bytes([protocol]),
            "a pickle, which is not loaded, since that would run whatever code is in it",
            f'a table, if you trust the file: python -c "{_OF_PICKLE}"',
        )
        for protocol in range(2, 6)
    ),
    (
        b"SQLite format 3",
        "a database",
        "a table: sqlite3 -header -csv {file} 'SELECT * FROM T' > ratings.csv",
    ),
    (b"ARROW1", "a file of Arrow", f'Parquet: python -c "{_OF_ARROW}"'),
)
"""First bytes, what such a file is, and what is accepted; a shell writes the file, and Python its name."""

_TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        r"\s*(?i:<!doctype|<html|<\?xml|<head)",
        "a page of the web",
        "the file itself, as a browser downloads it",
    ),
    (r"version https://git-lfs", "a pointer of Git LFS", "what it points at: git lfs pull"),
    (r"\s*\[\s*(\{|$)", "a JSON array", f'JSON Lines: python -c "{_OF_JSON}"'),
    (
        r"\s*\{\s*$",
        "a JSON object of several lines",
        "JSON Lines, an object on each: jq -c . {file} > ratings.jsonl",
    ),
    (
        r"%%MatrixMarket",
        "a matrix of Matrix Market",
        "a line per entry: grep -v '^%' {file} | tail -n +2 > ratings.txt",
    ),
    (r"(?i:@relation)", "a table of ARFF", "its rows: grep -v '^[@%]' {file} | grep . > ratings.csv"),
    (
        r"\(\S+,\s*\S+\)\t",
        "pairs with the items drawn beside them, as of NCF",
        "the pairs, as test_path beside train_path: "
        r"sed -E 's/^\(([^,]+), *([^)]+)\).*/\1\t\2/' {file} > test.tsv",
    ),
    (
        r"\S+( \d+:[\d.eE+-]+)+\s*$",
        "lines of index:value, as of LibSVM",
        'a line per rating, if a line is a user: awk \'{{for(n=2;n<=NF;n++){{split($n,p,":");'
        'print NR","p[1]","p[2]}}}}\' {file} > ratings.csv',
    ),
    (
        r"\d+:\s*$",
        "{line}, with the ratings of a film below it",
        "a line per rating, as the Netflix Prize becomes by: "
        """awk -F, 'NF==1{{film=$1+0;next}}{{print $1","film","$2","$3}}' {file} > ratings.csv""",
    ),
)
"""The same by how the first line matches."""


def refuse_binary(path: Path, start: bytes) -> None:
    """Refuse a file that is no text, given its first bytes; raises InputError."""
    if start.startswith(b"PK\x03\x04"):
        _refuse(path, *_zipped(start))
    if start[257:262] == b"ustar":
        _refuse(path, "an archive", "what it holds: tar -xf {file}")
    for mark, found, accepted in _BINARY:
        if start.startswith(mark):
            _refuse(path, found, accepted)


def _zipped(start: bytes) -> tuple[str, str]:
    if b"[Content_Types].xml" in start:
        return _SPREADSHEET
    if b".npy" in start[:64]:
        accepted = f'text, of a sparse matrix users x items: python -c "{_OF_SCIPY}"'
        return "arrays of NumPy or SciPy", accepted
    return "a zip archive", "what it holds: unzip {file}"


def refuse_text(path: Path, lines: Sequence[str]) -> None:
    """Refuse a text that is known to be no table, given its first lines; raises InputError."""
    told = [line for line in lines if line.strip()]
    # A comment of ARFF comes before what it is known by.
    first = next((line for line in told if not re.match("%[^%]", line)), "")
    for pattern, found, accepted in _TEXTS:
        if re.match(pattern, first):
            _refuse(Path(f"{path}, line 1"), found.replace("{line}", shown(repr(first))), accepted, path)


def _refuse(where: Path, found: str, accepted: str, file: Path | None = None) -> None:
    path = str(file or where)
    # Within double quotes of a shell, Python's own are single.
    name = f"'{path}'" if path.isprintable() and not set(path) & set("'\"\\$`!") else "FILE"
    raise InputError(str(where), found, accepted.format(file=quote(path), name=name))


def check_layout(rows: Sequence[Sequence[str]], separator: str, source: str) -> None:
    """Refuse first lines that are lists or those of a matrix, or whose third column holds times.

    Only where no column is configured and none named in a header; a column that is configured is believed.
    """
    widths = {len(row) for row in rows}
    integers = all(cell.isascii() and cell.isdigit() for row in rows for cell in row)
    if separator == WHITESPACE and len(widths) > 1 and integers:
        kind = f"--set 'dataset={{kind: lightgcn, path: {source}}}', if each is of a user and its items"
        raise InputError(source, "lines of integers, of different lengths", f"{kind}; or columns")
    cells = {cell.strip() for row in rows[1:] for cell in row[1:]}
    given = {cell for cell in cells if cell.lower() not in {"", "nan", "na", "null", "none", "?"}}
    # Ratings in the first lines of a matrix have few different values; identifiers of items have more.
    if min(widths) >= 10 and 0 < len(given) <= 30 and all(map(is_number, given)):
        found = f"{len(rows[0])} columns of few different numbers, as of a column per item"
        believed = "or, if a line is a rating, --set dataset.user_column=1"
        raise InputError(source, found, f"{RESHAPED}; {believed}")
    if min(widths) > 2 and all(_is_time(row[2]) for row in rows):
        found = f"times in the third column, such as {rows[0][2].strip()!r}, where ratings are expected"
        raise InputError(source, found, _with_times_third(rows, source))


def _with_times_third(rows: Sequence[Sequence[str]], source: str) -> str:
    """Return what to do with a table whose third column holds times: ratings behind them, before, or none."""
    columns = [*zip(*rows, strict=False)]
    numbers = [all(map(is_number, column)) and not any(map(_is_time, column)) for column in columns]
    rated = next((place for place, numeric in enumerate(numbers[3:], start=4) if numeric), None)
    if rated is not None:
        return f"--set dataset.rating_column={rated} --set dataset.timestamp_column=3"
    pairs = "--set dataset.rating_column=none --set dataset.timestamp_column=3, if there are no ratings"
    repeated = len(columns) == 3 and numbers[1] and len(set(columns[1])) < min(len(rows), 11)
    return f"{of_one_item(source)}; or {pairs}" if repeated else pairs


def of_one_item(source: str) -> str:
    """Return what makes a table of lines (user, rating, date), whose item is the file."""
    made = f"awk -F, -v OFS=, '{{print $1,\"ITEM\",$2,$3}}' {quote(source)} >> ratings.csv"
    return f"of one item's users, ratings and dates, its name in a column: {made}"


def _is_time(cell: str) -> bool:
    text = cell.strip()
    dated = re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", text) is not None
    # Seconds or milliseconds since 1970, from 1973 on; no scale of ratings is as large.
    return dated or (is_number(text) and 1e8 <= float(text) < 1e14)
