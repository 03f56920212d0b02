"""Chooses up to which noise best asks for a table: `MOST_NOISE` in dprec/protocols/best_lists.py.

A table of pairs, and popularity alone with the whole budget, are played as in list_settings.py, on validation
items. Figures are NDCG@10 of six draws. Fails if the rule picks what is worse by more than three
standard errors.
"""

from collections.abc import Iterator

import numpy as np
from list_settings import pairs_at, popularity_at, reached, validation_draws
from validation import asked, decide, stands

from dprec.protocols.best_lists import MOST_NOISE

TAUS = (1e-3, 2e-3, 3e-3, 4e-3, 5.5e-3, 8e-3)


def judged(folder: str) -> Iterator[bool]:
    for title, drawn in validation_draws(folder).items():
        every = drawn()
        for tau in TAUS:
            table = np.array([reached(pairs_at(tau, draw), tau, draw) for draw in every])
            alone = np.array([reached(popularity_at(tau, draw), tau, draw) for draw in every])
            gains, picked = table - alone, tau <= MOST_NOISE
            about = f"{title}, tau {tau:g}: table {table.mean():.4f}, popularity alone {alone.mean():.4f}"
            error = gains.std(ddof=1) / np.sqrt(gains.size)
            name, behind = ("table", -gains.mean()) if picked else ("popularity", gains.mean())
            yield stands(f"{about}; picked {name}", behind, 3 * error)


if __name__ == "__main__":
    decide(judged(asked(__doc__).path))
