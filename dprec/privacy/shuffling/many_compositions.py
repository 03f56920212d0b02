"""What the reports of every user tell together, where users' reports are of many kinds in many numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft

from dprec.accounting import ComposedLoss, PrivacyLossDistribution
from dprec.accounting.pld import EXPONENTS, NEGLIGIBLE, TAIL

_AT_ONCE = 1 << 20
"""Points of the windows that are transformed together."""


def compose_many(
    kinds: Sequence[PrivacyLossDistribution], times: NDArray[np.int64], delta: float
) -> NDArray[np.float64]:
    """Return an epsilon of every user that holds with delta for all of its draws.

    What `dprec.accounting.pld.compose` does for one user; what depends on a kind is computed once.

    Parameters
    ----------
    kinds : sequence of PrivacyLossDistribution
        What is drawn from, all on the same grid.
    times : ndarray of int64, shape (users, kinds)
        How often each user draws from each kind.
    delta : float
        Above 0.

    Returns
    -------
    ndarray of float64, shape (users,)
    """
    epsilons = np.zeros(len(times))
    drawn = np.flatnonzero(times.any(axis=1))
    if not drawn.size:
        return epsilons
    times = times[drawn]
    points = times @ np.array([kind.points for kind in kinds])
    first, last = _windows(kinds, times, points)
    lengths = 1 << np.ceil(np.log2(last - first + 1)).astype(np.int64)
    for length in np.unique(lengths).tolist():
        spectra = [kind.spectrum(length) for kind in kinds]
        moduli, angles = (np.array([spectrum[part] for spectrum in spectra]) for part in (0, 1))
        same = np.flatnonzero(lengths == length)
        for block in np.array_split(same, -(-same.size * length // _AT_ONCE)):
            masses = irfft(_products(times[block], moduli, angles), length)
            for row, user in enumerate(block.tolist()):
                total = ComposedLoss.of_transform(
                    masses[row], kinds[0].step, int(first[user]), int(times[user].sum()), int(points[user])
                )
                epsilons[drawn[user]] = total.epsilon(delta)
    return epsilons


def _products(
    times: NDArray[np.int64], moduli: NDArray[np.float64], angles: NDArray[np.float64]
) -> NDArray[np.complex128]:
    """Return the Fourier transforms of the users' sums: products of those of the draws."""
    logs = times @ np.maximum(moduli, 2 * NEGLIGIBLE)
    return np.where(logs > NEGLIGIBLE, np.exp(np.maximum(logs, NEGLIGIBLE) + 1j * (times @ angles)), 0.0)


def _windows(
    kinds: Sequence[PrivacyLossDistribution], times: NDArray[np.int64], points: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last point of windows that users' sums leave with `TAIL` on either side."""
    margin, step = -np.log(TAIL), kinds[0].step
    scales = np.sqrt(2 * margin / (times @ np.array([kind.variance for kind in kinds])))
    least, most = EXPONENTS[0] * scales.min(), EXPONENTS[-1] * scales.max()
    ratio = EXPONENTS[1] / EXPONENTS[0]
    exponents = least * ratio ** np.arange(np.ceil(np.log(most / least) / np.log(ratio)) + 1)
    ends = []
    for sign in (-1, 1):
        moments = np.array([kind.log_moments(sign * exponents) for kind in kinds])
        # Pr(loss >= x) <= E[exp(t loss)] exp(-t x) for every t above 0 (Chernoff).
        ends.append(((times @ moments + margin) / exponents).min(axis=1) / step)
    first = np.maximum(-points, np.floor(-ends[0]).astype(np.int64))
    return first, np.minimum(points, np.ceil(ends[1]).astype(np.int64))
