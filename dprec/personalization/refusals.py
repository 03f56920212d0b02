"""Item biases as those see them who have sent nothing: corrected where a kind of people refuses.

Reports show how a table's items are rated by those who send, and most of all by those with large epsilons. If
critics refuse, or ask for more noise, the table is too kind to everybody else. Three things are public:

- the level m_g of those at each epsilon, by which their ratings exceed what the item biases say: the most
  probable one given their reports, which noise makes less certain and not smaller;
- how many refuse. Users in the order of their epsilons are quantiles x of a normal distribution, on which m_g
  is regressed: refusals continue that line, as far as it is one;
- the public shares of the levels, for which latent ratings have mean 0 over everybody's ratings.

The level of all users together is a mean of that line's and the public one, by their precisions: the more
refuse, the less is known from reports. It moves the item biases. Choices are public, so that this costs no
privacy.
"""

from dataclasses import replace

import numpy as np

from dprec.arrays import Floats, Int32s, Ints
from dprec.observations import Observations
from dprec.ordinal import INVERSE_SQRT_2_PI, level_probabilities
from dprec.wire import ItemTable

_SPREAD = 0.25
"""Variance of a user's level, as devices assume it."""

_PUBLIC, _OFF_THE_LINE, _SLOPE, _GROUP = 0.15, 0.3, 0.3, 0.03
"""Standard deviations on the latent rating: of the mean of everybody's ratings around the public one, of what
refusals are off the line, of its slope, and of a group around it. Round numbers, which
`choose_refusals` of benchmarks/choosing holds against others on train ratings.
"""

_STEPS = 8
"""Newton steps to the most probable level, about which the logarithm is nearly quadratic."""

_FARTHEST = 2.0
"""Levels beyond are none of people who use the scale."""


def for_everybody(table: ItemTable, seen: Observations, numbers: Ints, *, public: bool) -> ItemTable:
    """Return a table for everybody, and not for those alone who send much.

    Parameters
    ----------
    table : ItemTable
        As it follows from the reports.
    seen : Observations
        With symbols.
    numbers : ndarray of int64, shape (users,)
        Of each user's budget, ascending with epsilon. Who has one for which there is no report refuses.
    public : bool
        Whether the table's cuts follow from public shares of the levels.
    """
    reports, of_cell, latent = seen.symbols, numbers[seen.users], table.means[seen.items]
    assert reports is not None, "reports without symbols"
    shares = np.bincount(numbers) / numbers.size
    cells = np.bincount(of_cell, minlength=shares.size).astype(np.float64)
    sending, refuse = np.flatnonzero(cells), shares * (cells == 0)
    if not sending.size:
        return table
    found, likelihood = [], np.hstack(reports.channels).T[reports.columns]
    for number in sending.tolist():
        own = of_cell == number
        found.append(_level(latent[own], table.cuts, likelihood[own], seen.users[own]))
    means, variances = np.array(found).T
    scores, refusing = _scores(shares), float(refuse.sum())
    # A weighted regression whose slope is expected near 0: the middle and height of what it is fitted to.
    places, weights = scores[sending], 1 / (variances + _GROUP**2)
    middle, height = _mean(places, weights), _mean(means, weights)
    precision = float(weights @ (places - middle) ** 2) + 1 / _SLOPE**2
    slope = float(weights @ ((places - middle) * (means - height))) / precision
    # The line where everybody is, those who refuse beside those who send.
    beyond = (1 - refusing) * _mean(scores, cells) + float(scores @ refuse) - middle
    by_reports = height + slope * beyond
    variance = float(1 / weights.sum()) + 1 / precision * beyond**2 + (refusing * _OFF_THE_LINE) ** 2
    trust = variance / (variance + _PUBLIC**2) if public else 0.0
    level = by_reports + trust * (-float(latent.mean()) - by_reports)
    return replace(table, means=table.means + level)


def _mean(values: Floats, weights: Floats) -> float:
    return float(values @ weights / weights.sum())


def _scores(shares: Floats) -> Floats:
    """Return the mean of a normal distribution between the quantiles that each share reaches over."""
    from scipy.special import ndtri

    ends = ndtri(np.clip(np.concatenate([[0.0], np.cumsum(shares)]), 0, 1))
    densities = INVERSE_SQRT_2_PI * np.exp(-(ends**2) / 2)
    return -np.diff(densities) / np.where(shares > 0, shares, 1.0)


def _level(latent: Floats, cuts: Floats, given: Floats, users: Int32s) -> tuple[float, float]:
    """Return the most probable level, expected within 1 of 0, and its variance: reports are by user."""
    spread, level = np.sqrt(1 + _SPREAD), 0.0
    scores, precision = np.zeros(latent.size), 1.0
    for _ in range(_STEPS):
        probabilities, slopes = level_probabilities((latent + level) / spread, cuts / spread)
        scores = (slopes / spread * given).sum(axis=1) / (probabilities * given).sum(axis=1)
        precision = 1 + float(scores @ scores)
        level = float(np.clip(level + (scores.sum() - level) / precision, -_FARTHEST, _FARTHEST))
    by_user = np.bincount(users, weights=scores)
    return level, (1 + float(by_user @ by_user)) / precision**2
