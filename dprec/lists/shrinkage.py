"""What noisy numbers most likely are: means over a prior that is estimated from all of them together.

The prior is a nonparametric maximum likelihood estimate (Kiefer and Wolfowitz [kiefer1956]; the algorithm and
its use for empirical Bayes as in Jiang and Zhang [jiang2009]). It is on the ratio of a number to a
public or estimated base, because counts spread over orders of magnitude and are never negative.
"""

import numpy as np

from dprec.arrays import Floats

_RATIOS = np.concatenate([[0.0], np.geomspace(0.02, 200.0, 33)])
"""Ratios to the base that the prior weighs, 0 and eight in each power of ten."""

_WIDTHS = np.maximum(0.14 * _RATIOS, 0.01)
"""Standard deviation of each ratio's component: half the step between two."""

_STEPS = 60
"""Steps of expectation and maximization."""

_BLOCK = 1 << 15
"""Numbers that are worked on at once: 34 ratios of so many are 9 MB."""


def posterior_means(noisy: Floats, deviation: float, base: Floats) -> Floats:
    """Return the means of nonnegative numbers given their noisy values, shape (numbers,).

    A number is its base times a ratio, whose prior is the mixture, the same for all, under which the noisy
    values are most likely. Where noise is small beside a number, the mean is the noisy value itself.

    Parameters
    ----------
    noisy : ndarray, shape (numbers,)
        Numbers with independent Gaussian noise.
    deviation : float
        The noise's standard deviation, above 0.
    base : ndarray, shape (numbers,)
        Above 0.
    """
    prior = np.full(_RATIOS.size, 1 / _RATIOS.size)
    blocks = [slice(start, start + _BLOCK) for start in range(0, noisy.size, _BLOCK)]
    likelihoods = [_likelihoods(noisy[block], deviation, base[block]) for block in blocks]
    for _ in range(_STEPS):
        members = np.zeros(_RATIOS.size)
        for likelihood in likelihoods:
            members += (1 / (likelihood @ prior)) @ likelihood
        prior = prior * members / max(noisy.size, 1)
    means = np.empty(noisy.size)
    for block, likelihood in zip(blocks, likelihoods, strict=True):
        centres, variances = _components(base[block])
        within = centres + variances / (variances + deviation**2) * (noisy[block, None] - centres)
        weights = likelihood * prior
        means[block] = (weights * within).sum(axis=1) / weights.sum(axis=1)
    return np.maximum(means, 0.0)


def _components(base: Floats) -> tuple[Floats, Floats]:
    centres = base[:, None] * _RATIOS
    return centres, (base[:, None] * _WIDTHS) ** 2


def _likelihoods(noisy: Floats, deviation: float, base: Floats) -> Floats:
    """Return how likely each number is under each component, the likeliest 1, shape (numbers, ratios)."""
    centres, variances = _components(base)
    total = variances + deviation**2
    logarithms = -0.5 * ((noisy[:, None] - centres) ** 2 / total + np.log(total))
    return np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
