"""Tables in any layout that the documents name, written at random, are read back."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.datasets import DelimitedTable
from dprec.datasets.lines import WHITESPACE

HEADERS: dict[str, tuple[str, ...]] = {
    "user": ("user", "userId", "User-ID", "user_id:token", "reviewerID", "uid", "customer_id", "Reader"),
    "item": ("item", "movieId", "ISBN", "item_id:token", "asin", "book_id", "video_id", "Game Title"),
    "rating": ("rating", "Book-Rating", "rating:float", "overall", "stars", "review_score", "Value"),
    "timestamp": ("timestamp", "time", "date", "timestamp:float", "unixReviewTime"),
}
TEXTS = st.from_regex(re.compile(r"[A-Za-z][\w-]{0,6}", re.ASCII), fullmatch=True)
IDENTIFIERS = st.one_of(st.integers(1, 99), TEXTS)
PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=4, max_size=20, unique=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Draw the columns of a table by role, and what each is called."""
    pairs = draw(PAIRS)
    names = [
        draw(st.lists(each, min_size=7, max_size=7, unique=True))
        for each in (st.integers(1, 99), TEXTS, st.integers(1, 99), TEXTS)
    ]
    users, items = draw(st.sampled_from(names[:2])), draw(st.sampled_from(names[2:]))
    columns: dict[str, list[Any]] = {
        "user": [users[user] for user, _ in pairs],
        "item": [items[item] for _, item in pairs],
    }
    if draw(st.booleans()):
        columns["rating"] = [draw(st.integers(1, 5)) for _ in pairs]
    if draw(st.booleans()):
        columns["timestamp"] = [draw(st.integers(10**9, 2 * 10**9)) for _ in pairs]
    return columns, {role: draw(st.sampled_from(HEADERS[role])) for role in columns}


@settings(max_examples=75, deadline=None)
@given(
    tables(),
    st.sampled_from([",", ";", "\t", "|", "::", " "]),
    st.booleans(),
    st.sampled_from(["plain", "quoted", "packed", "parquet", "jsonl"]),
    st.randoms(use_true_random=False),
)
def test_a_table_of_any_layout_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    table: tuple[dict[str, list[Any]], dict[str, str]],
    separator: str,
    header: bool,
    form: str,
    random: Any,
) -> None:
    columns, names = table
    path = tmp_path_factory.mktemp("tables") / "mine"
    order = list(columns)
    typed = form in ("parquet", "jsonl")
    if header or typed:
        # Without a header, users, items, ratings and times come in this order.
        random.shuffle(order)
    blanks = separator == " " and any(" " in names[role] for role in order)
    if blanks or (separator in (" ", "::") and form == "quoted"):
        separator = ";"
    _write(path, [(names[role], columns[role]) for role in order], separator, header, form)
    rated = "rating" in columns
    settings: dict[str, Any] = {"low": 1.0, "high": 5.0} if rated else {}
    if not rated and not header and not typed and "timestamp" in columns:
        settings = {"rating_column": "none", "timestamp_column": 3}
    ratings = DelimitedTable(path=str(path), **settings).load()
    rows = set(zip(columns["user"], columns["item"], columns.get("rating", columns["user"]), strict=True))
    values = ratings.values.tolist() if rated else ratings.user_ids[ratings.users].tolist()
    users, items = ratings.user_ids[ratings.users].tolist(), ratings.item_ids[ratings.items].tolist()
    assert set(zip(users, items, values, strict=True)) == rows
    read = ratings.reading
    assert read is not None
    if header or typed:
        assert (read.users, read.items) == (names["user"], names["item"])
        assert (read.ratings, read.times) == (names.get("rating"), names.get("timestamp"))


def _write(path: Path, columns: list[tuple[str, list[Any]]], separator: str, header: bool, form: str) -> None:
    frame = pl.DataFrame(dict(columns))
    if form == "parquet":
        frame.write_parquet(path)
        return
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in frame.iter_rows(named=True)))
        return
    mark = '"' if form == "quoted" else ""
    rows = [list(frame.columns)] if header else []
    rows += [list(row) for row in frame.iter_rows()]
    lines = (separator.join(f"{mark}{cell}{mark}" for cell in row) + "\n" for row in rows)
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if form == "packed" else text)


def test_blanks_are_a_separator_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("7  a\t4\n8 b  5\n")
    table = DelimitedTable(path=str(tmp_path / "mine"), separator=WHITESPACE, low=1.0, high=5.0)
    assert table.load().values.tolist() == [4, 5]
