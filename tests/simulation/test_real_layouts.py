"""Files of ratings as distributors lay them out: each runs, or the error names the setting that it needs."""

import gzip
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dprec.datasets import DelimitedTable, Synthetic
from dprec.errors import InputError
from dprec.ratings import Ratings
from simulation import run
from tests.refusals import refused_at

USERS, ITEMS = 40, 30
MADE = Synthetic(users=USERS, items=ITEMS, ratings=600).load()
ROWS = list(zip((MADE.users + 1).tolist(), (MADE.items + 1).tolist(), MADE.values.tolist(), strict=True))
"""User, item and rating, 1 to 5 stars."""

TIME = 978300760


def lines(row: str, header: str = "") -> Callable[[Path], object]:
    """Return what writes a rating per line, with user, item, stars, half stars, 0 to 10, and a time."""
    text = "".join(
        row.format(
            user=user,
            item=item,
            stars=int(stars),
            half=stars - 0.5 * (user % 2),
            ten=_of_ten(user, item),
            time=TIME + item,
        )
        + "\n"
        for user, item, stars in ROWS
    )
    return lambda path: path.write_text(f"{header}\n{text}" if header else text)


def _of_ten(user: int, item: int) -> int:
    """Return 0 for most, which is what a book that was looked at has, and else 1 to 10."""
    return 0 if (user * item) % 8 else 1 + (user + item) % 10


def packed(write: Callable[[Path], object]) -> Callable[[Path], object]:
    def write_packed(path: Path) -> None:
        write(path)
        path.write_bytes(gzip.compress(path.read_bytes()))

    return write_packed


def parquet(path: Path) -> None:
    users, items, ratings = zip(*ROWS, strict=True)
    frame = pd.DataFrame({"user_id": users, "book_id": items, "rating": ratings, "is_read": 1})
    frame.astype({"user_id": str}).to_parquet(path)


def films(path: Path) -> None:
    by_film = sorted((item, user, stars) for user, item, stars in ROWS)
    texts, last = [], 0
    for item, user, stars in by_film:
        texts += [f"{item}:"] * (item != last) + [f"{user},{int(stars)},2005-09-{1 + item % 28:02}"]
        last = item
    path.write_text("\n".join(texts) + "\n")


@dataclass(frozen=True)
class Layout:
    """A file's name, what writes it, and what must be configured."""

    file: str
    write: Callable[[Path], object]
    scale: tuple[float, float] = (1, 5)
    refused: str = ""
    fix: dict[str, Any] = field(default_factory=dict)
    ratings: int = len(ROWS)


HALF_STARS, TEN = (0.5, 5), (0, 10)
RATED = sum(_of_ten(user, item) > 0 for user, item, _ in ROWS)
LAYOUTS = {
    "MovieLens 100K": Layout("u.data", lines("{user}\t{item}\t{stars}\t{time}")),
    "MovieLens 1M": Layout("ratings.dat", lines("{user}::{item}::{stars}::{time}")),
    "MovieLens latest": Layout(
        "ratings.csv", lines("{user},{item},{half},{time}", "userId,movieId,rating,timestamp"), HALF_STARS
    ),
    "Amazon": Layout("ratings_Books.csv", lines("A{user}Z,00{item}X,{stars}.0,{time}")),
    "RC": Layout(
        "rating_final.csv",
        lines("U10{user},1350{item},{stars},1,2", "userID,placeID,rating,food_rating,service_rating"),
    ),
    "Douban": Layout("book.dat", lines("{user}\t{item}\t{stars}")),
    "Book-Crossing": Layout(
        "BX-Book-Ratings.csv", lines('"{user}";"0{item}X";"{ten}"', '"User-ID";"ISBN";"Book-Rating"'), TEN
    ),
    "Book-Crossing, rated": Layout(
        "BX-Book-Ratings.csv",
        lines('"{user}";"0{item}X";"{ten}"', '"User-ID";"ISBN";"Book-Rating"'),
        (1, 10),
        fix={"missing": [0]},
        ratings=RATED,
    ),
    "Netflix, listed": Layout(
        "netflix.csv", lines("{user},{item},{stars},2005-09-06", "CustId,MovieId,Rating,Date")
    ),
    "a packed TSV without header": Layout("plays.tsv.gz", packed(lines("{user}\t{item}\t{stars}"))),
    "Parquet": Layout("ratings.parquet", parquet),
    "unusual names": Layout(
        "mine.csv",
        lines("{stars},{item},{user}", "stars,item,who"),
        refused=r"^[^:]*mine.csv, line 1: which of the columns 'stars', 'item', 'who' holds",
        fix={"user_column": "who"},
    ),
    "a stray 99": Layout(
        "mine.csv",
        lambda path: (lines("{user},{item},{stars}")(path), path.write_text(path.read_text() + "1,99,99\n")),
        refused=r"^[^:]*: 1 of 601 ratings \(99\) widen the scale .*; accepted: .*dataset.missing=\[99\]",
        fix={"missing": [99]},
    ),
    "a slider": Layout(
        "jester.csv",
        lambda path: path.write_text(
            "".join(f"{user},{item},{4.97 * stars - 14.92 + item / 100:.2f}\n" for user, item, stars in ROWS)
        ),
        (-10, 11),
        refused=r"^[^:]*jester.csv: ratings from .*: .* --set dataset.low=-10 --set dataset.high=11",
        fix={"low": -10, "high": 11},
    ),
}


def summary_of(layout: Layout, path: Path, **settings: Any) -> dict[str, Any]:
    dataset = {"kind": "csv", "path": str(path), **settings}
    return run("nothing-sent", dataset=dataset, simulation={"backend": "local"}).summary


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_real_layout_runs_or_names_the_setting_that_it_needs(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    path = tmp_path / layout.file
    layout.write(path)
    assert len(layout.fix) <= 1 or layout.refused
    if layout.refused:
        with pytest.raises(InputError, match=layout.refused) as caught:
            summary_of(layout, path)
        assert "\n" not in str(caught.value)
    dataset = summary_of(layout, path, **layout.fix)["dataset"]
    assert tuple(dataset["scale"]) == layout.scale
    assert dataset["train_ratings"] + dataset["test_ratings"] == layout.ratings
    if layout.ratings == len(ROWS):
        assert (dataset["users"], dataset["items"]) == (USERS, len({item for _, item, _ in ROWS}))


def test_zeros_that_may_mean_not_rated_are_noted(tmp_path: Path) -> None:
    layout = LAYOUTS["Book-Crossing"]
    path = tmp_path / layout.file
    layout.write(path)
    notes = " ".join(summary_of(layout, path)["dataset"]["notes"])
    assert "% are 0: if that means not rated, --set 'dataset.missing=[0]' leaves them out" in notes
    assert "not rated" not in " ".join(summary_of(layout, path, missing=[0])["dataset"]["notes"])


def test_the_command_for_a_list_by_films_works(tmp_path: Path) -> None:
    path, listed = tmp_path / "combined_data_1.txt", tmp_path / "ratings.csv"
    films(path)
    with refused_at("combined_data_1.txt, line 1") as caught:
        DelimitedTable(path=str(path)).load()
    command = caught.value.accepted.partition("rating: ")[2]
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    dataset = DelimitedTable(path=str(listed))
    np.testing.assert_array_equal(dataset.load().to_sparse().toarray(), _without_empty(MADE))
    assert dataset.load_timed().times is not None


def _without_empty(ratings: Ratings) -> Any:
    matrix = ratings.to_sparse().toarray()
    return matrix[:, matrix.any(axis=0)]


def test_play_counts_become_signs_by_a_threshold(tmp_path: Path) -> None:
    path = tmp_path / "plays.tsv"
    path.write_text("".join(f"{user}\t{item}\t{7 ** int(stars)}\n" for user, item, stars in ROWS))
    with pytest.raises(InputError, match=r"accepted: .*--set dataset.high=16807 if it is a rating"):
        run("one-bit-input", dataset={"kind": "csv", "path": str(path)})
    result = run(
        "one-bit-input",
        dataset={"kind": "csv", "path": str(path), "low": 1, "high": 16807},
        binarization={"kind": "threshold", "above": 343},
        simulation={"backend": "local"},
    )
    assert result.summary["dataset"]["binarized_above"] == 343
    assert set(result.predictions["rating"].tolist()) == {-1, 1}
