"""What follows from public numbers: how many items take part, and how much their table counts.

tau is the standard deviation of a number's noise in a sum of unit contributions, over the number of users.
"""

import numpy as np

POPULARITY_SHARE = 0.1
"""Share of the squared distance of means that finding the popular items spends, where not all take part."""


def table_items(tau: float, n_items: int) -> int:
    """Return how many of the most popular items take part."""
    if tau <= 0:
        return n_items
    return int(np.clip(200 * np.sqrt(7e-4 / tau), 50, n_items))


def ridge(tau: float) -> float:
    """Return what is added to the diagonal of a table."""
    return 30.0


def table_share(tau: float, *, content: bool) -> float:
    """Return what a standard deviation of the scores by the table counts for."""
    return 0.5 if content else 5.0
