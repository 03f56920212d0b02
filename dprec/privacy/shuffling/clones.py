"""What shuffling gains for any reports of a known epsilon: hiding among clones.

A report of another rating is, with some probability, drawn as if its rating were x or y, whichever x and y
are to be told apart: it is a clone of one of them. The number of clones of x among all reports is then all
that the shuffled reports tell (Feldman, McMillan and Talwar [feldman2021]).
"""

from __future__ import annotations

import math

import numpy as np

_TAIL = 1e-15
"""Probability that the number of clones lies beyond either end of what is summed."""

_MARGIN = 1 + 1e-9
"""Factor that covers rounding errors of the sum."""


def clones_delta(epsilon: float, reports: int, local_epsilon: float) -> float:
    """Return a delta with which epsilon holds for one of the shuffled reports, each of a local epsilon.

    A report is a clone of x or y, at even odds, with probability e^-local ([feldman2021], Theorem 3.1 and
    section 4): nothing but the local epsilon needs to be known of the channels, which may differ.

    Parameters
    ----------
    epsilon, local_epsilon : float
        At least 0, the second finite.
    reports : int
        The report itself included.
    """
    return _mixture_delta(epsilon, reports, local_epsilon, math.exp(-local_epsilon))


def two_answers_delta(epsilon: float, reports: int, local_epsilon: float, symbols: int) -> float:
    """Return the same for k-ary randomised response, from the probabilities of its symbols.

    A report has x's own symbol with probability q = 1 / (e^local + k - 1) or more, and y's likewise, so that
    it is a clone with probability 2 q. Whoever sent a third symbol is taken to be known. This is the
    reduction of Feldman, McMillan and Talwar [feldman2023] in a form that holds for every k (its erratum is
    about third symbols). The privacy blanket hides a report among third symbols as well.

    Parameters
    ----------
    epsilon, reports, local_epsilon
        As in `clones_delta`.
    symbols : int
        k, at least 2.
    """
    lie = 1 / (math.exp(local_epsilon) + symbols - 1)
    one_of_two = lie * (math.exp(local_epsilon) + 1)
    return min(1.0, one_of_two * _mixture_delta(epsilon, reports, local_epsilon, 2 * lie))


def _mixture_delta(epsilon: float, reports: int, local_epsilon: float, clone: float) -> float:
    """Return the divergence of the number of clones of x, by which symbol the report itself has.

    With C ~ Binomial(n - 1, clone), A ~ Binomial(C, 1/2) and D = 1 of probability p = e^local / (e^local + 1)
    it is that of (A + D, C + 1) from (A + 1 - D, C + 1). Given C, a count of a tells more the larger it is.
    """
    if epsilon >= local_epsilon:
        return 0.0
    from scipy.stats import binom  # every start of a process would wait for it

    truth = 1 / (1 + math.exp(-local_epsilon))
    factor = math.exp(epsilon)
    gain, cost = truth - factor * (1 - truth), factor * truth - (1 - truth)
    first, last = (int(binom.ppf(tail, reports - 1, clone)) for tail in (_TAIL, 1 - _TAIL))
    clones = np.arange(first, last + 1)
    least = np.floor((clones + 1) * (cost / (gain + cost))) + 1
    given = gain * binom.sf(least - 2, clones, 0.5) - cost * binom.sf(least - 1, clones, 0.5)
    total = float(binom.pmf(clones, reports - 1, clone) @ np.maximum(0.0, given))
    return min(1.0, _MARGIN * total + 2 * _TAIL)


def closed_form_epsilon(reports: int, local_epsilon: float, delta: float) -> float:
    """Return an epsilon that holds with delta, in closed form ([feldman2021], Theorem 3.1).

    Parameters
    ----------
    delta : float
        Above 0.

    Returns
    -------
    float
        The local epsilon where there are too few reports for the theorem.
    """
    grown = math.exp(local_epsilon)
    if reports < 16 * grown * math.log(2 / delta):
        return local_epsilon
    noise = 8 * math.sqrt(grown * math.log(4 / delta) / reports) + 8 * grown / reports
    return min(local_epsilon, math.log1p((grown - 1) / (grown + 1) * noise))
