"""What whoever averages the reports of several collections comes to know of a rating."""

import numpy as np

from dprec.observations import Observations
from dprec.ratings import Ratings

_SLACK = 1e-9
"""Difference of log likelihoods that rounding may make."""

_LEAST = 1e-300


def recovered(observed: Observations, true: Ratings) -> float | None:
    """Return the share of reported ratings whose true level is the likeliest, given all reports about it.

    Levels that reports do not tell apart count as one: of a bit it is the share whose side is recovered.
    None where no report depends on a rating.
    """
    reports = observed.symbols
    if reports is None or not observed.items.size:
        return None
    logarithms = [np.log(np.maximum(channel, _LEAST)).T for channel in reports.channels]
    first = np.cumsum([0, *(len(rows) for rows in logarithms[:-1])])
    of_reports = np.vstack(logarithms)[first[reports.channel_of] + reports.symbols]
    cells = observed.users.astype(np.int64) * observed.shape[1] + observed.items
    begins = np.flatnonzero(np.diff(cells, prepend=-1))
    told = np.add.reduceat(of_reports, begins, axis=0)
    places = np.minimum(np.searchsorted(true.cells, cells[begins]), max(true.count - 1, 0))
    rated = (true.cells[places] == cells[begins]) & (np.ptp(told, axis=1) > _SLACK)
    of_true = told[np.flatnonzero(rated), true.levels[places[rated]].astype(np.int64) - 1]
    return float((of_true >= told[rated].max(axis=1) - _SLACK).mean()) if rated.any() else None
