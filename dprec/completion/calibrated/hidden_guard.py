r"""Item biases that liars cannot raise, from reports that hide which items were rated.

As in `guarding`, but what a report says of an item's bias depends on how likely the item is to be rated,
which liars move as well. Given a probability s that a cell is rated, a symbol z has the slope by the latent
rating

    s m_z / (u_z + s r_z),

u_z being its probability where nothing is rated, r_z by how much a rating raises that and m_z the derivative
of r_z. It grows with s if m_z is above 0, and falls if it is below. So the propensity of an item is put
between two bounds, the least that it could be without any so many reports and the most; what honest reports
say of it, at the bias that is expected, is in between. Every symbol counts at the bound where it is least
favourable, and the most favourable reports are left out: no slope is above that of the honest reports alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dprec.arrays import Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion.calibrated.embedding import catalogue_features
from dprec.completion.calibrated.guarding import guarded_biases
from dprec.completion.calibrated.hidden_sets import HiddenReports
from dprec.completion.calibrated.regressions import PropensityBins, Regressed

_LEAST = 1e-300
"""Least probability of a symbol."""


def guarded_hidden_biases(
    reports: HiddenReports,
    users: Regressed,
    items: Regressed,
    catalogue: Catalogue | None,
    cuts: Floats,
    most: int,
) -> Floats:
    """Return the guarded biases of all items, shape (items,); who rates an item besides says nothing."""
    bins = PropensityBins.by_rank(users, reports.reported)
    counts = reports.of_items(bins.of, bins.sizes.size)

    def given(latent: Floats) -> tuple[Floats, Floats]:
        return reports.given(latent, cuts, bins.bias_variance)

    # Features are a constant, public data and then embeddings, which are what a liar chooses.
    public = 1
    if catalogue is not None:
        public += catalogue_features(catalogue, np.ones(len(counts), dtype=int)).shape[1]
    expected = np.array(items.expected.centre) + items.features[:, :public] @ items.coefficients[:public]
    return least_biases(counts, bins.means, given, reports.unrated, expected, items.spread, most)


def least_biases(
    counts: Floats,
    typical: Floats,
    given: Callable[[Floats], tuple[Floats, Floats]],
    unrated: Floats,
    expected: Floats,
    spread: Floats,
    most: int,
) -> Floats:
    """Return the least that biases may be without any so many reports on each item, shape (items,).

    Parameters
    ----------
    counts : ndarray
        Reports on each item by bin of users and symbol, shape (items, bins, symbols).
    typical : ndarray
        Propensity and bias of each bin, shape (bins, 2).
    given : callable
        From latent ratings to Pr(symbol | latent rating, rated) and the derivatives, shape (points, symbols).
    unrated : ndarray
        Pr(symbol | not rated), shape (symbols,).
    expected, spread : ndarray
        Propensities and biases that are expected, shape (items, 2), and their covariance around these.
    most : int
        Reports k that may be of liars.
    """
    from scipy.special import expit

    cells = _Cells(np.nonzero(counts), counts.shape, typical, given, unrated)
    reports = cells.owners, counts[cells.places].astype(np.int64)
    level = expected[cells.owners, 0] + typical[cells.places[1], 0]
    at_expected = cells.rises(expected[:, 1])[0]

    def by_propensity(above: Floats) -> Floats:
        share = expit(level + above[cells.owners])
        return cells.relative(share, at_expected, share * (1 - share) * at_expected)

    none, variance = np.zeros(len(counts)), float(spread[0, 0])
    low = guarded_biases(by_propensity, reports, most, none, variance)
    high = -guarded_biases(lambda below: -by_propensity(-below), reports, most, none, variance)
    shares = expit(level + low[cells.owners]), expit(level + high[cells.owners])

    def by_bias(biases: Floats) -> Floats:
        rise, slope = cells.rises(biases)
        share = np.where(slope > 0, *shares)
        return cells.relative(share, rise, share * slope)

    along = float(spread[0, 1]) / variance
    centres = expected[:, 1] + along * (low if along > 0 else high)
    return guarded_biases(by_bias, reports, most, centres, float(spread[1, 1]) - along * float(spread[0, 1]))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Items, bins and symbols of which there are reports; see `least_biases`."""

    places: tuple[Ints, ...]
    """The item, bin and symbol of each, shape (cells,) each."""
    shape: tuple[int, ...]
    """Items, bins and symbols."""
    typical: Floats
    given: Callable[[Floats], tuple[Floats, Floats]]
    unrated: Floats

    @property
    def owners(self) -> Ints:
        """The item of each cell."""
        return self.places[0]

    def rises(self, biases: Floats) -> tuple[Floats, Floats]:
        """Return by how much a rating of an item raises each symbol's probability, and the derivatives."""
        probabilities, slopes = self.given((biases[:, None] + self.typical[:, 1]).ravel())
        raised = probabilities.reshape(self.shape)[self.places] - self.unrated[self.places[2]]
        return raised, slopes.reshape(self.shape)[self.places]

    def relative(self, share: Floats, rise: Floats, slope: Floats) -> Floats:
        """Return slopes of the log likelihood, given the propensity and the slope of the likelihood."""
        return slope / np.maximum(self.unrated[self.places[2]] + share * rise, _LEAST)
