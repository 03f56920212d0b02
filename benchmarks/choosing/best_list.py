"""Chooses up to which noise best-list asks for a table: `MOST_NOISE` in dprec/protocols/best_list.py.

    python benchmarks/choosing/best_list.py [--path ../shared/data/ml-100k]

A table of pairs, and popularity alone with the whole budget, are judged as in list_settings.py, on validation
items. Figures are NDCG@10 of six draws. Fails if the rule picks what is worse by more than three
standard errors.
"""

import sys

import numpy as np
from list_settings import judged, validation_draws
from validation import arguments

from dprec.protocols.best_list import MOST_NOISE

TAUS = (1e-3, 2e-3, 3e-3, 4e-3, 5.5e-3, 8e-3)


def main() -> int:
    """Print every figure; return 1 if the rule does not stand."""
    folder, _ = arguments(__doc__, [])
    agree = True
    for title, drawn in validation_draws(folder).items():
        every = drawn()
        for tau in TAUS:
            table, alone = (
                np.array([judged(draw, tau, {}, table=asked) for draw in every]) for asked in (True, False)
            )
            gains = table - alone
            error = gains.std(ddof=1) / np.sqrt(gains.size)
            picked = tau <= MOST_NOISE[every[0].catalogue is not None]
            name = "table" if picked else "popularity"
            print(
                f"{title}, tau {tau:g}: table {table.mean():.4f}, popularity alone {alone.mean():.4f}, "
                f"gain {gains.mean():+.4f} +- {error:.4f}; picked: {name}"
            )
            agree &= bool((gains.mean() if picked else -gains.mean()) > -3 * error)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
