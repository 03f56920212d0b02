"""Chooses the rating noise of nuclear-norm completion, on parts of MovieLens 100K's u1.base.

    python benchmarks/choose_nuclear_norm_noise.py [--path ../shared/data/ml-100k] [PRESET ...]

`rating_noise` is what rho is without a mechanism, so ratings are sent as they are; a mechanism's noise is
larger and computed from its channel. Figures are the RMSE on a tenth of the ratings of every fourth user, for
three draws of the tenth.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
from validation import Parts, arguments, best_of, measured, tenth_of_u1

from dprec.completion import NuclearNorm
from dprec.ratings import Ratings

NOISE = "protocol.completion.rating_noise"
TRIED = {NOISE: (0.1, 0.15, 0.2, 0.25)}
PRESETS = ("zheng-laplace-centred",)
SENT_AS_THEY_ARE = {"protocol.mechanism": "{kind: none}", "protocol.privacy": "null"}
EVERY = 4


def some_users(folder: str, seed: int) -> Parts:
    """Return the ratings of every fourth user, as a matrix of their own, divided as by `tenth_of_u1`."""
    learned, judging = (
        Ratings.from_triples(
            part.users[kept],
            part.items[kept],
            part.values[kept],
            part.scale,
            user_ids=np.arange(0, part.n_users, EVERY),
            item_ids=np.arange(part.n_items),
        )
        for part in tenth_of_u1(folder, seed)
        for kept in [part.users % EVERY == 0]
    )
    return learned, judging


def judged(preset: str, draws: dict[int, Parts], settings: dict[str, Any]) -> list[float]:
    """Return the RMSE on every draw."""
    return [measured(preset, SENT_AS_THEY_ARE | settings, parts, seed) for seed, parts in draws.items()]


def main() -> int:
    """Print every figure; return 1 if the default does not stand."""
    folder, names = arguments(__doc__, PRESETS)
    draws = {seed: some_users(folder, seed) for seed in (1, 2, 3)}
    current = {NOISE: NuclearNorm().rating_noise}
    agree = True
    for name in names:
        agree &= best_of(name, TRIED, partial(judged, name, draws), current)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
