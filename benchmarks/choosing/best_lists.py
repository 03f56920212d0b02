"""Chooses up to which noise best asks for a table: `MOST_NOISE` in dprec/protocols/best_lists.py.

    python benchmarks/choosing/best_lists.py [--path ../shared/data/ml-100k]

A table of pairs, and popularity alone with the whole budget, are played as in list_settings.py, on validation
items. Figures are NDCG@10 of six draws. Fails if the rule picks what is worse by more than three
standard errors.
"""

import sys

import numpy as np
from list_settings import pairs_at, reached, validation_draws
from validation import arguments

from dprec.accounting import PrivacyBudget
from dprec.protocols.best_lists import MOST_NOISE
from dprec.protocols.popular import PopularityProtocol

TAUS = (1e-3, 2e-3, 3e-3, 4e-3, 5.5e-3, 8e-3)

POPULARITY = PopularityProtocol(
    content=True, privacy=PrivacyBudget(epsilon=1.0, per="user", composition="pld")
)
"""Contributions are as long as with any budget."""


def main() -> int:
    """Print every figure; return 1 if the rule does not stand."""
    folder, _ = arguments(__doc__, [])
    agree = True
    for title, drawn in validation_draws(folder).items():
        every = drawn()
        content = every[0].catalogue is not None
        for tau in TAUS:
            table = np.array([reached(pairs_at(tau, draw), tau, draw) for draw in every])
            alone = np.array([reached(POPULARITY, tau, draw) for draw in every])
            gains = table - alone
            error = gains.std(ddof=1) / np.sqrt(gains.size)
            picked = tau <= MOST_NOISE[content]
            name = "table" if picked else "popularity"
            print(
                f"{title}, tau {tau:g}: table {table.mean():.4f}, popularity alone {alone.mean():.4f}, "
                f"gain {gains.mean():+.4f} +- {error:.4f}; picked: {name}"
            )
            agree &= bool((gains.mean() if picked else -gains.mean()) >= -3 * error)
    return int(not agree)


if __name__ == "__main__":
    sys.exit(main())
