"""CPU seconds of lists for large catalogues: ranking them, runs of popularity, and private iALS."""

import functools
import time
from typing import Any

import numpy as np
from measuring import ANEW, DATA, Figures, Line, dprec_run, job, main

LISTED, RATED, USERS = 50, 27, 400
"""Items of a list, rated items of a user, and users who are ranked for."""


def ranking(items: int) -> Figures:
    """Return what a list takes as it is ranked in rounds, given scores that take nothing."""
    from dprec import predictions
    from dprec.datasets import Synthetic

    rated = Synthetic(users=USERS, items=items, ratings=RATED * USERS).load()
    scores, users = np.random.default_rng(1).standard_normal((USERS, items)), np.arange(USERS)

    def rows(some: Any, n_items: int) -> Any:
        return scores[some]

    arguments = predictions.cells_from_rows(rows, items), predictions.Unrated(rated)
    # An earlier version ranks by cells there.
    earlier = getattr(predictions, "best_items", None)
    rank: Any = earlier or functools.partial(predictions.scored_lists, predict_rows=rows)
    rank(*arguments, users[:9], LISTED, items)
    started = time.process_time()
    rank(*arguments, users, LISTED, items)
    return {"µs a user": 1e6 * (time.process_time() - started) / USERS}


def run(preset: str, data: str, *settings: str) -> tuple[str, ...]:
    return dprec_run(preset, f"dataset={{{data}}}", "simulation.backend=local", *settings)


CITEULIKE = f"kind: lightgcn, path: {DATA / 'citeulike' / 'users.dat'}"
GENERATED = "kind: synthetic, positive: '> 0', "
GOWALLA = GENERATED + "users: 29858, items: 40981, ratings: 1027370"
LARGE = GENERATED + "users: 500, items: 100000, ratings: 17000"
ROUNDS = "4 rounds; the earlier version finishes none of them in a minute"

SIZE, US, ITEMS = "29,858 users x 40,981 items, generated", ("µs a user",), (41_000, 100_000)
LINES = (
    *(Line(f"ranking {n:,} items", job(__file__, "ranking", n), units=US) for n in ITEMS),
    Line("`popularity`, CiteULike", run("popularity", CITEULIKE), settings=ANEW),
    Line(f"`popularity`, {SIZE}", run("popularity", GOWALLA), settings=ANEW),
    Line("`dp-ials`, CiteULike", run("dp-ials", CITEULIKE), settings=ANEW),
    Line("`dp-ials`, 500 users x 100,000 items, generated", run("dp-ials", LARGE), (), settings=ROUNDS),
)

if __name__ == "__main__":
    main(__file__, __doc__, LINES, {"ranking": ranking})
