"""Files that are no table of ratings: how each is known, and what makes a table of it."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from dprec.datasets.lines import WHITESPACE, found_separator, is_number, is_time, split_line
from dprec.errors import InputError, shown

_RESHAPED = (
    'a line per rating: python -c "import pandas; pandas.read_csv({read}).stack().dropna()'
    ".to_csv('ratings.csv', header=False)\""
)
RESHAPED = _RESHAPED.format(read="'FILE', index_col=0")
"""What to do with a matrix in a file."""

GZIP, ZSTD = b"\x1f\x8b", b"(\xb5/\xfd"
"""How files begin that are unpacked as they are read."""

PARQUET = b"PAR1"
"""How a table begins whose columns have types."""

# Without a header, since pandas would number the names, or ratings, that are in its first line twice.
_SHEET = (
    "import pandas; pandas.read_excel({name}, header=None).to_csv('ratings.csv', index=False, header=False)"
)
_SPREADSHEET = ("a spreadsheet", f'a table: python -c "{_SHEET}"; for Jester\'s own file, kind: jester')
_ENCODED = ("text in UTF-16 or UTF-32", "text in UTF-8: iconv -f utf-16 -t utf-8 {file} > ratings.csv")
_SPARSE = (
    "import numpy, scipy.io, scipy.sparse; m = scipy.sparse.coo_array(LOADED); numpy.savetxt('ratings.csv', "
    "numpy.c_[m.row, m.col, m.data], fmt=['%d', '%d', '%.17g'], delimiter=',')"
)
_OF_MATLAB = _SPARSE.replace("LOADED", "scipy.io.loadmat({name})['VARIABLE']")
_OF_SCIPY = _SPARSE.replace("LOADED", "scipy.sparse.load_npz({name})")
_OF_NUMPY = "import numpy; numpy.savetxt('ratings.csv', numpy.load({name}), fmt='%.17g', delimiter=',')"
_OF_PICKLE = (
    "import pandas; d = pandas.read_pickle({name}); "
    "(d.reset_index() if d.index.nlevels > 1 else d).to_csv('ratings.csv', index=False)"
)
_OF_HDF = _OF_PICKLE.replace("read_pickle", "read_hdf")
_OF_COLUMNS = (
    "import json, pandas; pandas.DataFrame(json.load(open({name}))).to_csv('ratings.csv', index=False)"
)
_OF_PYTHON = (
    "import ast, fileinput, json; open('ratings.jsonl', 'w').writelines(json.dumps(ast.literal_eval(line)) "
    "+ '\\n' for line in fileinput.input({name}, openhook=fileinput.hook_compressed, encoding='utf-8'))"
)
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
    (b"MATLAB 5.0 MAT-file", "variables of MATLAB", f'text, of users x items: python -c "{_OF_MATLAB}"'),
    (b"\x89HDF", "a file of HDF5", f'a table: python -c "{_OF_HDF}"; of MATLAB 7.3, what h5py reads'),
    *(
        (
            b"\x80" + bytes([protocol]),
            "a pickle, which is not loaded, since that would run whatever code is in it",
            f'a table, if you trust the file: python -c "{_OF_PICKLE}"',
        )
        for protocol in range(2, 6)
    ),
    (b"SQLite format 3", "a database", "text: sqlite3 -header -csv {file} 'SELECT * FROM T' > ratings.csv"),
    (b"ARROW1", "a file of Arrow", f'Parquet: python -c "{_OF_ARROW}"'),
)
"""First bytes, what such a file is, and what is accepted; a shell writes the file, and Python its name."""

_TEXTS: tuple[tuple[str, str, str], ...] = (
    (r"\s*(?i:<!doctype|<html|<\?xml|<head)", "a page of the web", "the file that it leads to"),
    (r"version https://git-lfs", "a pointer of Git LFS", "what it points at: git lfs pull"),
    (r"\s*\[\s*(\{|$)", "a JSON array", f'JSON Lines: python -c "{_OF_JSON}"'),
    (r"\s*\{\s*$", "a JSON object of several lines", "JSON Lines: jq -c . {file} > ratings.jsonl"),
    (r'\s*\{\s*"[^"]*"\s*:\s*[\[{]', "a JSON object of columns", f'a table: python -c "{_OF_COLUMNS}"'),
    (r"\s*\{\s*u?'", "lines of Python, not JSON", f'JSON Lines: python -c "{_OF_PYTHON}"'),
    (r'(?i:"?sep=."?\s*$)', "{line}, as Excel reads it", "the lines below it: sed 1d {file} > ratings.csv"),
    (
        r"%%MatrixMarket",
        "a matrix of Matrix Market",
        "its entries: grep -v '^%' {file} | tail -n +2 > ratings.txt",
    ),
    (r"(?i:@relation)", "a table of ARFF", "its rows: grep -v '^[@%]' {file} | grep . > ratings.csv"),
    (
        r"\(\S+,\s*\S+\)\t",
        "pairs with the items drawn beside them, as of NCF",
        r"the pairs: sed -E 's/^\(([^,]+), *([^)]+)\).*/\1\t\2/' {file} > test.tsv; with --set "
        "'dataset={{kind: csv, train_path: {train}, test_path: test.tsv, rating_column: none}}'",
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
        "a line per rating: "
        """awk -F, 'NF==1{{film=$1+0;next}}{{print $1","film","$2","$3}}' {file} > ratings.csv""",
    ),
)
"""The same by how the first line matches."""


def refuse_binary(path: Path, start: bytes) -> None:
    """Refuse a file that is no text, given its first bytes; raises InputError."""
    if start.startswith(b"PK\x03\x04"):
        _refuse(path, *_zipped(path))
    with suppress(zlib.error):
        unpacked = zlib.decompressobj(31).decompress(start, 512) if start.startswith(GZIP) else start
        if unpacked[257:262] == b"ustar":
            _refuse(path, "an archive", "what it holds: tar -xf {file}")
    for mark, found, accepted in _BINARY:
        if start.startswith(mark):
            _refuse(path, found, accepted)


def _zipped(path: Path) -> tuple[str, str]:
    names: list[str] = []
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.startswith(("xl/", "[Content_Types]")) for name in names):
        return _SPREADSHEET
    if any(name.endswith(".npy") for name in names):
        accepted = f'text, of a sparse matrix users x items: python -c "{_OF_SCIPY}"'
        return "arrays of NumPy or SciPy", accepted
    return "a zip archive", "what it holds: unzip {file}"


def is_json_lines(first_line: str) -> bool:
    """Return whether a line is a row as a JSON object; False for one that holds whole columns."""
    try:
        row = json.loads(first_line)
    except ValueError:
        return False
    return isinstance(row, dict) and not all(isinstance(value, dict | list) for value in row.values())


def refuse_text(path: Path, lines: Sequence[str]) -> None:
    """Refuse a text that is known to be no table, given its first lines; raises InputError."""
    filled, where = [line for line in lines if line.strip()], Path(f"{path}, line 1")
    # A comment of ARFF comes before what it is known by.
    first = next((line for line in filled if not re.match("%[^%]", line)), "")
    for pattern, found, accepted in _TEXTS:
        if re.match(pattern, first):
            _refuse(where, found.replace("{line}", shown(repr(first))), accepted, path)
    rows = [line for line in filled if line[0] not in "#%"] or filled
    widths = {len(split_line(line, found_separator(rows))) for line in (*filled[:1], *rows[:1])}
    # A header may begin with the mark of a comment; it has a name for each column.
    if filled and (filled[0][0] == "%" or (filled[0][0] == "#" and len(widths) > 1)):
        accepted = "the lines without comments: grep -v '^[#%]' {file} > ratings.csv"
        _refuse(where, f"a comment, {shown(repr(filled[0]))}", accepted, path)


def _refuse(where: Path, found: str, accepted: str, file: Path | None = None) -> None:
    path = str(file or where)
    train = path.removesuffix("test.negative") + "train.rating"
    names = {"name": _in_python(path), "train": train if Path(train).exists() else "TRAIN"}
    # What reads text reads it unpacked.
    text = f"<(zcat {quote(path)})" if file is not None and path.endswith(".gz") else quote(path)
    raise InputError(str(where), found, accepted.format(file=text, **names))


def _in_python(path: str) -> str:
    """Return a path as Python has it within double quotes of a shell, so that its own are single."""
    return f"'{path}'" if path.isprintable() and not set(path) & set("'\"\\$`!") else "'FILE'"


def check_layout(rows: Sequence[Sequence[str]], separator: str, source: str) -> None:
    """Refuse first lines that are lists or those of a matrix, or whose third column holds times.

    Only where no column is configured and none named in a header; a column that is configured is believed.
    """
    widths = {len(row) for row in rows}
    integers = all(cell.isascii() and cell.isdigit() for row in rows for cell in row)
    if separator == WHITESPACE and len(widths) > 1 and integers:
        kind = f"--set 'dataset={{kind: lightgcn, path: {source}}}', if each is of a user and its items"
        raise InputError(source, "lines of integers, of different lengths", f"{kind}; or columns")
    if min(widths) >= 10:
        _check_matrix(rows, separator, source)
    if min(widths) > 2 and all(is_time(row[2]) for row in rows):
        found = f"times in the third column, such as {rows[0][2].strip()!r}, where ratings are expected"
        raise InputError(source, found, _with_times_third(rows, source))


def _check_matrix(rows: Sequence[Sequence[str]], separator: str, source: str) -> None:
    rated = [sum(not is_number(cell) or float(cell) != 99 for cell in row[1:]) for row in rows]
    if all(is_number(row[0]) and float(row[0]) == count for row, count in zip(rows, rated, strict=True)):
        found = f"{len(rows[0])} columns, the first of how many of the others are not 99, as of Jester"
        raise InputError(source, found, f"--set 'dataset={{kind: jester, path: {source}}}'")
    cells = {cell.strip() for row in rows[1:] for cell in row[1:]}
    values = {cell for cell in cells if cell.lower() not in {"", "nan", "na", "null", "none", "?"}}
    # Ratings in the first lines of a matrix have few different values; identifiers of items have more.
    if not 0 < len(values) <= 30 or not all(map(is_number, values)):
        return
    read = _in_python(source)
    if separator != ",":
        read += f", sep={separator!r}" if separator != WHITESPACE else r", sep=r'\s+'"
    # Names of items differ from each other, and ratings of one user do not.
    header = len(set(rows[0])) == len(rows[0])
    read += "" if header else ", header=None"
    users = [row[0] for row in rows[header:]]
    read += ", index_col=0" if len(set(users)) == len(users) else ""
    unrated = sorted({"-1", "0", "99"} & {f"{float(cell):g}" for cell in values})
    missing = f"with --set dataset.missing=[{','.join(unrated)}], if not rated; " if unrated else ""
    believed = "or, if a line is a rating, --set dataset.user_column=1"
    found = f"{len(rows[0])} columns of few different numbers, as of a column per item"
    raise InputError(source, found, f"{_RESHAPED.format(read=read)}; {missing}{believed}")


def _with_times_third(rows: Sequence[Sequence[str]], source: str) -> str:
    """Return what to do with a table whose third column holds times: ratings behind them, before, or none."""
    columns = [*zip(*rows, strict=False)]
    numbers = [all(map(is_number, column)) and not any(map(is_time, column)) for column in columns]
    rated = next((place for place, numeric in enumerate(numbers[3:], start=4) if numeric), None)
    if rated is not None:
        return f"--set dataset.rating_column={rated} --set dataset.timestamp_column=3"
    pairs = "--set dataset.rating_column=none --set dataset.timestamp_column=3, if there are no ratings"
    repeated = len(columns) == 3 and numbers[1] and len(set(columns[1])) < min(len(rows), 11)
    return f"{of_one_item(source)}; or {pairs}" if repeated else pairs


def of_one_item(source: str) -> str:
    """Return what makes a table of lines (user, rating, date), whose item is the file."""
    command = f"awk -F, -v OFS=, '{{print $1,\"ITEM\",$2,$3}}' {quote(source)} >> ratings.csv"
    return f"of one item's users, ratings and dates, its name in a column: {command}"
