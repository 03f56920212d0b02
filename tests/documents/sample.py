"""What the code of pages finds in its folder: a few ratings, in the layouts that the pages name."""

import json
import shutil
from pathlib import Path

import pandas as pd

from tests.paths import preset_file

USERS, ITEMS = ["ann", "bob", "eve", *map(str, range(4, 31))], ["film", "a", "bc", *map(str, range(4, 21))]

FRAME = pd.DataFrame(
    [
        (user, item, 1 + (place * 7 + at * 3 + place * at) % 5)
        for place, user in enumerate(USERS)
        for at, item in enumerate(ITEMS)
        if (place + at) % 3
    ],
    columns=["user", "item", "rating"],
)

SMALL = "dataset={kind: synthetic, users: 40, items: 30, ratings: 400}"


MINE = """
name: mine
dataset: {kind: csv, path: ratings.csv}
split: {kind: holdout}
baselines: false
epsilons: [1.0]
protocols: [one-bit-on-device]
"""
"""A comparison where a page names one of the reader's own."""


def write_sample(folder: Path) -> None:
    """Write ratings, pairs and plays, items.csv, ml-100k, run.yaml and mine.yaml to a folder."""
    FRAME.to_csv(folder / "ratings.csv", index=False)
    rows = FRAME.to_dict("records")
    (folder / "ratings.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    years = [f"{item},{1990 + at},drama|war" for at, item in enumerate(ITEMS)]
    (folder / "items.csv").write_text("\n".join(["item,year,genres", *years]) + "\n", encoding="utf-8")
    FRAME[["user", "item"]].to_csv(folder / "pairs.csv", index=False)
    plays = FRAME.assign(rating=5 ** FRAME["rating"])
    plays.to_csv(folder / "plays.tsv", index=False, header=False, sep="\t")
    shutil.copy(preset_file("blp-mf"), folder / "run.yaml")
    (folder / "mine.yaml").write_text(MINE, encoding="utf-8")
    _write_movielens(folder / "PATH" / "TO" / "ml-100k")


def _write_movielens(folder: Path) -> None:
    folder.mkdir(parents=True)
    numbers = {name: 1 + at for at, name in enumerate([*USERS, *ITEMS])}
    lines = [
        f"{numbers[user]}\t{numbers[item] - len(USERS)}\t{rating}\t{875_000_000 + at}\n"
        for at, (user, item, rating) in enumerate(FRAME.itertuples(index=False))
    ]
    (folder / "u.data").write_text("".join(lines), encoding="utf-8")
    (folder / "u1.base").write_text("".join(lines[::2] + lines[1::4]), encoding="utf-8")
    (folder / "u1.test").write_text("".join(lines[3::4]), encoding="utf-8")
    films = [f"{1 + at}|Film {at} ({1960 + at})|01-Jan-1995|||{'0|' * 18}1\n" for at in range(len(ITEMS))]
    (folder / "u.item").write_text("".join(films), encoding="latin-1")
