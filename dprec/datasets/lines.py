"""Cells of a line of text, and what separates them."""

import csv
import math
import re
from collections.abc import Sequence

LINES_LOOKED_AT = 20
"""Lines by which the layout of a file is found."""

WHITESPACE = "whitespace"
"""The separator that means any run of blanks and tabs."""


def found_separator(lines: Sequence[str]) -> str:
    """Return what separates the columns of a file.

    It divides all lines into the same number of cells, most of them filled; if nothing does, it is what the
    first line has most of, and else a comma.
    """
    filled = [line for line in lines if line.strip()]
    best, widest = "", 1
    # The likelier first, where several divide every line alike.
    for separator in ("::", "\t", ";", "|", ",", WHITESPACE):
        rows = [split_line(line, separator) for line in filled]
        widths = {len(row) for row in rows}
        # Two tabs between columns are blanks, not an empty column.
        if len(widths) == 1 and all("".join(column).strip() for column in zip(*rows, strict=True)):
            width = min(widths.pop(), 3)
            if width > widest:
                best, widest = separator, width
    if best or not filled:
        return best or ","
    return max((",", ";", "\t", "::", "|", WHITESPACE), key=lambda mark: len(split_line(filled[0], mark)))


def split_line(line: str, separator: str) -> list[str]:
    """Return the cells of a line."""
    if separator == WHITESPACE:
        return line.split()
    if len(separator) > 1:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return [line]


def is_number(cell: str) -> bool:
    """Return whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def is_time(cell: str) -> bool:
    """Return whether a cell holds a date, or seconds or milliseconds since 1970, from 1973 on."""
    text = cell.strip()
    dated = re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", text) is not None
    # No scale of ratings is as large.
    return dated or (is_number(text) and 1e8 <= float(text) < 1e14)


def is_value(cell: str) -> bool:
    """Return whether a cell holds a number or a date, as a name does not."""
    return is_number(cell) or is_time(cell)
