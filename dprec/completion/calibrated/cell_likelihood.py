"""The likelihood of a symbol of a cell that may or may not be rated, and its slopes.

With sigma the logistic function, a cell is rated with probability sigma(a) at a propensity a, and then at
latent rating t it has level x with probability p_x(t) (`dprec.ordinal`); so

    Pr(z | a, t) = (1 - sigma(a)) Q[0, z] + sigma(a) sum_x p_x(t) Q[x, z].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dprec.ordinal import level_probabilities

_LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class CellLikelihood:
    """Probabilities of symbols at propensities and latent ratings, and their derivatives by both."""

    probabilities: NDArray[np.float64]
    """Shape (..., symbols)."""
    by_propensity: NDArray[np.float64]
    by_latent: NDArray[np.float64]

    @classmethod
    def at(
        cls,
        propensity: NDArray[np.float64],
        latent: NDArray[np.float64],
        channel: tuple[NDArray[np.float64], NDArray[np.float64]],
        cuts: NDArray[np.float64],
        variance: float = 0.0,
    ) -> CellLikelihood:
        """Evaluate the likelihood.

        Parameters
        ----------
        propensity, latent : ndarray
            Of shapes that broadcast, the latent rating's without leading axes of length 1.
        channel : pair of ndarray, shapes (symbols,) and (levels, symbols)
            Pr(symbol | not rated) and Pr(symbol | level).
        cuts : ndarray, shape (levels - 1,)
        variance : float
            Of the latent rating around the given one, over which the likelihood is averaged.
        """
        unrated, rated = channel
        spread = np.sqrt(1 + variance)
        levels, slopes = level_probabilities(latent.ravel() / spread, cuts / spread)
        given = (levels @ rated).reshape(*latent.shape, -1)
        moved = (slopes @ rated).reshape(given.shape) / spread
        share = expit(propensity)[..., None]
        probabilities = np.maximum((1 - share) * unrated + share * given, _LEAST)
        return cls(probabilities, share * (1 - share) * (given - unrated), share * moved)
