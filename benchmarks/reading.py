"""CPU seconds and memory of reading a table of ratings, beside `polars.read_csv` alone.

    python benchmarks/reading.py [--ratings 20000000]

The table has 138,000 users, 26,744 items and ten levels, in random order; once with integer identifiers and
times, once with identifiers that are texts. Each way of reading it is a process of its own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

USERS, ITEMS = 138_000, 26_744


def write_tables(folder: Path, ratings: int) -> None:
    """Write both tables, of different random pairs of users and items."""
    import polars as pl

    random = np.random.default_rng(0)
    cells = np.zeros(0, dtype=np.int64)
    while cells.size < ratings:
        items = (random.random(ratings) ** 2 * ITEMS).astype(np.int64)
        cells = np.union1d(cells, random.integers(0, USERS, ratings) * ITEMS + items)
    users, items = np.divmod(random.permutation(cells)[:ratings], ITEMS)
    values, times = random.integers(1, 11, ratings) / 2, random.integers(10**9, 12 * 10**8, ratings)
    numbers = pl.DataFrame({"userId": users, "movieId": items, "rating": values, "timestamp": times})
    numbers.write_csv(folder / "integers.csv")
    texts = (
        pl.format("A{}XQ", pl.col("userId") * 7919).alias("user_id"),
        pl.format("B0{}", pl.col("movieId") * 104729).alias("item_id"),
    )
    numbers.select(*texts, "rating").write_csv(folder / "texts.csv")


def _with_polars(path: str) -> None:
    import polars as pl

    pl.read_csv(path)


def _with_dprec(path: str) -> None:
    from dprec.datasets import DelimitedTable

    DelimitedTable(path=path).load()


WAYS: dict[str, Callable[[str], None]] = {"polars.read_csv": _with_polars, "dprec": _with_dprec}


def main() -> None:
    """Print the figures of all tables and ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", type=int, default=20_000_000)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way is not None:
        WAYS[asked.way](asked.path)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{time.process_time():.1f} CPU s, {peak:,} MiB")
        return
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), asked.ratings)
        for path in sorted(Path(folder).iterdir()):
            for way in WAYS:
                command = [sys.executable, __file__, "--way", way, "--path", str(path)]
                ended = subprocess.run(command, check=True, capture_output=True, text=True)
                print(f"{path.name} ({path.stat().st_size // 2**20} MiB), {way}: {ended.stdout.strip()}")


if __name__ == "__main__":
    main()
