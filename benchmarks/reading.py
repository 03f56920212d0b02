"""CPU seconds and memory of reading a table of ratings, beside `polars.read_csv` alone.

Tables have 20,000,000 ratings of 138,000 users and 26,744 items at ten levels, in random order; one with
integer identifiers and times, the other with identifiers that are texts. They are kept in the folder for
temporary files; the first run of each writes it, and is not the best one.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import CPU, MEMORY, Figures, Line, Peer, job, main

USERS, ITEMS, RATINGS = 138_000, 26_744, 20_000_000


def table(name: str) -> Path:
    """Return a table of random pairs of users and items, which is written if it is not there."""
    import polars as pl

    path = Path(tempfile.gettempdir()) / f"dprec-reading-{name}.csv"
    if path.is_file():
        return path
    random, cells = np.random.default_rng(0), np.zeros(0, dtype=np.int64)
    while cells.size < RATINGS:
        items = (random.random(RATINGS) ** 2 * ITEMS).astype(np.int64)
        cells = np.union1d(cells, random.integers(0, USERS, RATINGS) * ITEMS + items)
    users, items = np.divmod(random.permutation(cells)[:RATINGS], ITEMS)
    values, times = random.integers(1, 11, RATINGS) / 2, random.integers(10**9, 12 * 10**8, RATINGS)
    if name == "integers":
        written = pl.DataFrame({"userId": users, "movieId": items, "rating": values, "timestamp": times})
    else:
        texts = pl.DataFrame({"user_id": users * 7919, "item_id": items * 104729, "rating": values})
        named = pl.format("A{}XQ", "user_id").alias("user_id"), pl.format("B0{}", "item_id").alias("item_id")
        written = texts.with_columns(*named)
    written.write_csv(path)
    return path


def with_polars(name: str) -> Figures:
    import polars as pl

    pl.read_csv(table(name))
    return {CPU: time.process_time()}


def with_dprec(name: str) -> Figures:
    from dprec.datasets import DelimitedTable

    DelimitedTable(path=str(table(name))).load()
    return {CPU: time.process_time()}


LINES = tuple(
    Line(
        f"{RATINGS:,} ratings with {words}",
        job(__file__, "with_dprec", name),
        peer=Peer("polars", job(__file__, "with_polars", name), here=True),
        settings="polars: read_csv, which arranges nothing",
        units=(CPU, MEMORY),
    )
    for name, words in (
        ("integers", "integer identifiers and times"),
        ("texts", "identifiers that are texts"),
    )
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {each.__name__: each for each in (with_dprec, with_polars)})
