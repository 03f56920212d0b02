"""The shares of the levels over everybody, estimated from the private reports alone.

Every rating is reported once whether or not the shares are learned, so that learning them costs no privacy
beyond what the ledger charges. What the reports cannot distinguish stays as the public histogram has it.
"""

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from dprec.observations import SymbolReports

_PUBLIC_RATINGS = 20.0
"""Ratings read in clear that the public histogram counts as."""

_STEPS, _HALVINGS, _TOLERANCE = 100, 60, 1e-12


def learned_shares(reports: SymbolReports, public: ArrayLike) -> Floats:
    """Return the most probable shares of the levels given symbols and a Dirichlet prior, shape (levels,).

    The logarithm of the posterior, sum_z n_z log (Q^T s)_z + sum_x a_x log s_x with n_z reports of symbol z
    and prior counts a in proportion to ``public``, is strictly concave, so that Newton's method with a line
    search finds its one maximum under sum_x s_x = 1 (Boyd and Vandenberghe [boyd2004], section 10.2).

    ``public``, shape (levels,): shares to which the prior is centred, all above 0, in any unit. Result: all
    above 0; their sum is 1.
    """
    prior = np.asarray(public, dtype=np.float64)
    shares = prior / prior.sum()
    prior = _PUBLIC_RATINGS * shares
    columns = np.hstack(reports.channels)
    first = np.cumsum([0, *(channel.shape[1] for channel in reports.channels[:-1])])
    counts = np.bincount(first[reports.channel_of] + reports.symbols, minlength=columns.shape[1])
    columns, counts = columns[:, counts > 0], counts[counts > 0]

    def height(at: Floats) -> float:
        return float(counts @ np.log(at @ columns) + prior @ np.log(at))

    for _ in range(_STEPS):
        expected = shares @ columns
        slope = columns @ (counts / expected) + prior / shares
        curvature = (columns * (counts / expected**2)) @ columns.T + np.diag(prior / shares**2)
        towards, level = np.linalg.solve(curvature, np.column_stack([slope, np.ones(shares.size)])).T
        step = towards - level * (towards.sum() / level.sum())
        gain = float(slope @ step)
        if gain < _TOLERANCE * (counts.sum() + _PUBLIC_RATINGS):
            break
        start = height(shares)
        for halving in range(_HALVINGS):
            tried = shares + step * 0.5**halving
            if tried.min() > 0 and height(tried) >= start + 0.25 * gain * 0.5**halving:
                shares = tried
                break
    normalised: Floats = shares / shares.sum()
    return normalised
