"""CPU seconds of lists: ranking by rows and by cells, fitting iALS, and whole runs over large catalogues.

    python benchmarks/lists.py [ranking ials runs]

The package `implicit` is timed beside iALS where it is installed, with its own threads set to one. Ranked are
lists of 50 for users with 27 rated items; rounds of sums once ranked by cells. Runs are in one process, on
generated sets of any rating.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dprec.arrays import AnyInts, Floats
from dprec.datasets import Synthetic, selected
from dprec.lists.ials import ImplicitOptions, ials
from dprec.predictions import Unrated, cells_from_rows, scored_lists
from simulation import run

RUNS = (("popularity", 29_858, 40_981, 1_027_370), ("dp-ials", 500, 100_000, 17_000))
"""Preset, users, items, ratings."""


def seconds(function: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    """Return the CPU seconds of a call."""
    began = time.process_time()
    function(*arguments, **named)
    return time.process_time() - began


def ranking() -> None:
    """Print what a list takes, given scores that take nothing."""
    users = np.arange(400)
    for items in (41_000, 100_000):
        rated = Synthetic(users=400, items=items, ratings=10_800).load()
        scores = np.random.default_rng(1).standard_normal((400, items))

        def rows(some: AnyInts, n_items: int, scores: Floats = scores) -> Floats:
            return scores[some]

        cells, unrated = cells_from_rows(rows, items), Unrated(rated)
        ways: dict[str, dict[str, Any]] = {"rows": {"predict_rows": rows}, "cells": {}}
        for way, named in ways.items():
            scored_lists(cells, unrated, users[:9], 50, items, **named)
            taken = seconds(scored_lists, cells, unrated, users, 50, items, **named)
            print(f"ranking {items:,} items by {way}: {taken / users.size * 1e6:,.0f} us a user")


def fitting() -> None:
    """Print what sweeps take, here and by the package implicit."""
    for users, items, ratings, sweeps in ((6034, 3533, 1_000_209, 16), (500, 100_000, 17_000, 1)):
        dataset = Synthetic(users=users, items=items, ratings=ratings, positive=">= 4")
        sets = selected(dataset).load().to_sets()
        options = ImplicitOptions.of(sets, sweeps=sweeps)
        size = f"{sweeps} sweeps over {users:,} users x {items:,} items of rank {options.rank}"
        ials(sets[:9], options)
        print(f"iALS, {size}: {seconds(ials, sets, options):.2f} s")
        if importlib.util.find_spec("implicit") is None:
            continue
        from scipy.sparse import csr_matrix

        package = importlib.import_module("implicit.cpu.als")
        theirs = package.AlternatingLeastSquares(options.rank, iterations=sweeps, num_threads=1)
        print(f"implicit, {size}: {seconds(theirs.fit, csr_matrix(sets), show_progress=False):.2f} s")


def runs() -> None:
    """Print what whole runs take after the imports."""
    from dprec.kernels.compilation import prepare

    prepare()
    for preset, users, items, ratings in RUNS:
        sizes = f"users: {users}, items: {items}, ratings: {ratings}"
        settings = (f"dataset={{kind: synthetic, {sizes}, positive: '> 0'}}", "simulation.backend=local")
        taken = seconds(run, preset, overrides=settings, page=False)
        print(f"{preset}, {users:,} users x {items:,} items: {taken:.1f} s")


PARTS = {"ranking": ranking, "ials": fitting, "runs": runs}


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        for part in sys.argv[1:] or PARTS:
            PARTS[part]()
