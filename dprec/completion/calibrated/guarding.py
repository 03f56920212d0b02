r"""Item biases for lists that malicious users cannot raise: the least they are without any so many reports.

For an item with reports R, let g_A(c) be the slope at bias c of the log posterior without a subset A of R,

    g_A(c) = sum over R \ A of s_j(c) - (c - m) / t,

s_j being the slope of a report's log likelihood, m and t what is expected of the bias and its variance. The
least of them over all A of at most k reports leaves out the k largest positive slopes:

    g(c) = sum over R of s_j(c) - sum of the k largest max(0, s_j(c)) - (c - m) / t.

The guarded bias is where g falls to 0. If at most k of the reports are of malicious users, the honest ones
are R \ A for one such A, so g is at most the slope that these have, at every c: the guarded bias is at most
the bias that honest reports say, whatever malicious users send. It is found by halving an interval, and of
two slopes of which one is never above the other, that one's interval is never to the right. All this holds
given m, t and what is known of users. For m, nothing is read of who rated an item but how many did, less k.

Where reports hide which items were rated, what a report says of an item's bias depends on how likely the item
is to be rated, which malicious users move as well. Given a probability s that a cell is rated, a symbol z has
the slope by the latent rating

    s m_z / (u_z + s r_z),

u_z being its probability where nothing is rated, r_z by how much a rating raises that and m_z the derivative
of r_z. It grows with s if m_z is above 0, and falls if it is below. So the propensity of an item is put
between two bounds, the least that it could be without any so many reports and the most; what honest reports
say of it, at the bias that is expected, is in between. Every symbol counts at the bound where it is least
favourable, and the most favourable reports are left out: no slope is above that of the honest reports alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints, offsets
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import LIKED, ItemSetEmbedding, catalogue_features
from dprec.completion.calibrated.hidden_sets import HiddenReports
from dprec.completion.calibrated.regressions import PropensityBins, Regressed
from dprec.components import Options, option

_REACH, _HALVINGS = 4.0, 13
"""Guarded biases are from -4 to 4, in units of the noise on a latent rating, and found to within 0.001."""


@dataclass(frozen=True, kw_only=True)
class Guard(Options):
    """Lists that malicious users cannot lift an item into: ranked by the least that an item may be worth.

    Predictions stay as they are.
    """

    malicious: float = option(
        "Share of users who may be malicious. So many reports on each item, the most favourable "
        "ones, are left out.",
        0.05,
        gt=0,
        lt=0.5,
    )

    def most(self, n_users: int) -> int:
        """Return how many of so many users may be malicious."""
        return math.ceil(self.malicious * n_users)


def guarded_biases(
    slopes: Callable[[Floats], Floats],
    reports: tuple[AnyInts, Ints],
    n_malicious: int,
    centres: Floats,
    variance: float,
) -> Floats:
    """Return the guarded biases of all items, shape (items,).

    Parameters
    ----------
    slopes : callable
        From biases of all items to the slope of every row's reports, shape (rows,).
    reports : tuple of ndarray
        The item of each row, and how many reports it stands for; shape (rows,) each.
    n_malicious : int
        Reports k that may be of malicious users.
    centres, variance : ndarray and float
        What is expected of the biases.
    """
    from dprec.kernels.rows import add_without_largest

    by_item = np.argsort(reports[0], kind="stable")
    indptr = offsets(np.bincount(reports[0], minlength=centres.size))
    counts, sums = reports[1][by_item], np.empty(centres.size)
    low, high = np.full(centres.size, -_REACH), np.full(centres.size, _REACH)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        add_without_largest(sums, indptr, slopes(middle)[by_item], counts, n_malicious)
        rises = sums > (middle - centres) / variance
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return low


def guarded_priors(
    items: Regressed, embedding: ItemSetEmbedding, catalogue: Catalogue | None, n_malicious: int
) -> Floats:
    """Return what is expected of the biases by catalogue and popularity less so many raters, shape (items,).

    An item is expected to be worth no more than any that is more popular, so that raters who are added raise
    it no higher than these. Who the raters are says nothing: its own place is what a malicious user chooses.
    """
    counts, coefficients = embedding.item_counts, items.coefficients[:, -1]
    logarithms, total = np.log1p(counts), max(int(counts.sum()), 1)
    mean = float(counts @ logarithms) / total
    spread = math.sqrt(float(counts @ (logarithms - mean) ** 2) / total) or 1.0
    least = int(counts[counts > 0].min(initial=counts.max(initial=0)))
    grid = np.arange(least, int(counts.max(initial=0)) + 1)
    centred = embedding.count_reliability * (np.log1p(grid) - mean)
    popularity = centred / spread
    expected = coefficients[0] + coefficients[1] * popularity + coefficients[2] * (popularity**2 - 1)
    expected += LIKED * embedding.count_reliability * centred
    rising = np.minimum.accumulate(expected[::-1])[::-1]
    priors = rising[np.maximum(counts - n_malicious - least, 0)]
    if catalogue is not None:
        public = catalogue_features(catalogue, counts)
        priors = priors + public @ coefficients[3 : 3 + public.shape[1]]
    return priors


def cautions(biases: Floats, guarded: Floats, counts: Ints, n_malicious: int, preferences: Floats) -> Floats:
    """Return by how much items are lowered in lists, on the latent rating, at least 0; shape (items,).

    An embedding is a mean over an item's raters, so that malicious users choose as large a share of it as
    they are: so many standard deviations of what users' preferences may add are taken off as well.

    ``counts``: raters of each item; ``preferences``: variance of what preferences add, shape (items,).
    """
    shares = np.minimum(1.0, n_malicious / np.maximum(counts, 1))
    return np.maximum(biases - guarded, 0.0) + shares * np.sqrt(preferences)


_LEAST = 1e-300
"""Least probability of a symbol."""


def guarded_hidden_biases(
    reports: HiddenReports,
    users: Regressed,
    items: Regressed,
    catalogue: Catalogue | None,
    cuts: Floats,
    n_malicious: int,
) -> Floats:
    """Return the guarded biases of all items, shape (items,); who rates an item besides says nothing."""
    bins = PropensityBins.by_rank(users, reports.reported)
    counts = reports.of_items(bins.of, bins.sizes.size)

    def probabilities_at(latent: Floats) -> tuple[Floats, Floats]:
        return reports.given(latent, cuts, bins.bias_variance)

    # Features are a constant, public data and then embeddings, which are what a malicious user chooses.
    public = 1
    if catalogue is not None:
        public += catalogue_features(catalogue, np.ones(len(counts), dtype=int)).shape[1]
    expected = np.array(items.expected.centre) + items.features[:, :public] @ items.coefficients[:public]
    return least_biases(
        counts, bins.means, probabilities_at, reports.unrated, expected, items.spread, n_malicious
    )


def least_biases(
    counts: Floats,
    typical: Floats,
    probabilities_at: Callable[[Floats], tuple[Floats, Floats]],
    unrated: Floats,
    expected: Floats,
    spread: Floats,
    n_malicious: int,
) -> Floats:
    """Return the least that biases may be without any ``n_malicious`` reports on each item, shape (items,).

    ``counts``: reports on each item by bin of users and symbol, shape (items, bins, symbols); ``typical``:
    propensity and bias of each bin, shape (bins, 2); ``probabilities_at``: from latent ratings to Pr(symbol |
    latent rating, rated) and the derivatives, shape (points, symbols); ``unrated``: Pr(symbol | not rated),
    shape (symbols,); ``expected``, ``spread``: propensities and biases that are expected, shape (items, 2),
    and their covariance around these.
    """
    from scipy.special import expit

    # Items, bins and symbols of which there are reports.
    places = owners, bins, symbols = np.nonzero(counts)
    reports, unlikely = (owners, counts[places].astype(np.int64)), unrated[symbols]
    level = expected[owners, 0] + typical[bins, 0]

    def rises(biases: Floats) -> tuple[Floats, Floats]:
        """Return by how much a rating of an item raises each symbol's probability, and the derivatives."""
        probabilities, slopes = probabilities_at((biases[:, None] + typical[:, 1]).ravel())
        raised = probabilities.reshape(counts.shape)[places] - unlikely
        return raised, slopes.reshape(counts.shape)[places]

    def by_propensity(above: Floats) -> Floats:
        share = expit(level + above[owners])
        return share * (1 - share) * at_expected / np.maximum(unlikely + share * at_expected, _LEAST)

    at_expected = rises(expected[:, 1])[0]

    none, variance = np.zeros(len(counts)), float(spread[0, 0])
    low = guarded_biases(by_propensity, reports, n_malicious, none, variance)
    high = -guarded_biases(lambda below: -by_propensity(-below), reports, n_malicious, none, variance)
    shares = expit(level + low[owners]), expit(level + high[owners])

    def by_bias(biases: Floats) -> Floats:
        rise, slope = rises(biases)
        share = np.where(slope > 0, *shares)
        return share * slope / np.maximum(unlikely + share * rise, _LEAST)

    along = float(spread[0, 1]) / variance
    centres = expected[:, 1] + along * (low if along > 0 else high)
    remaining_variance = float(spread[1, 1]) - along * float(spread[0, 1])
    return guarded_biases(by_bias, reports, n_malicious, centres, remaining_variance)
