"""Tables of a comparison as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def to_csv(rows: Sequence[Row]) -> str:
    """Return a CSV table with one line per row; what does not apply is empty."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(["" if row.get(column) is None else row[column] for column in columns] for row in rows)
    return text.getvalue()
