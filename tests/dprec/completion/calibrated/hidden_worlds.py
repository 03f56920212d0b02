"""Planted ratings whose cells are all reported, for tests of hidden item sets."""

import numpy as np
from scipy.special import expit

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import Mechanism
from dprec.observations import Observations
from dprec.ordinal import cut_points, level_probabilities
from tests import make
from tests.make import SHARES, STARS

CUTS = cut_points(SHARES, 0.5)


def planted_levels(
    users: int, items: int, taste: float = 0.0, better: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all levels, 0 where nothing is rated, the item biases, and each item's side in preferences."""
    random = np.random.default_rng(4)
    sides = [np.where(np.arange(size) < size // 2, 1.0, -1.0) for size in (users, items)]
    biases = random.normal(scale=0.6, size=items) + better * sides[1]
    propensity = -2 + random.normal(size=(users, 1)) + random.normal(size=items) + biases
    rated = random.random((users, items)) < expit(propensity + taste * np.outer(*sides))
    latent = random.normal(scale=0.5, size=(users, 1)) + biases
    below = np.cumsum(level_probabilities(latent.ravel(), CUTS)[0], axis=1)
    drawn = 1 + (random.random(latent.size)[:, None] > below[:, :-1]).sum(axis=1)
    return np.where(rated, drawn.reshape(latent.shape), 0).astype(np.uint8), biases, sides[1]


def reported(levels: np.ndarray, mechanism: Mechanism, epsilon: float) -> Observations:
    """Send every cell through a mechanism, and return what the server sees."""
    n_users, n_items = levels.shape
    calibrated = mechanism.family(PrivacyBudget(epsilon=epsilon, per="cell"), STARS, n_items)
    words = np.random.default_rng(7).integers(0, 2**64, levels.size, dtype=np.uint64)
    symbols = calibrated.perturb(np.full(n_users, n_items), levels.ravel(), words)
    shown = np.flatnonzero(~np.isnan(calibrated.reference_channel.values[symbols]))
    users, items = np.divmod(shown, n_items)
    counts = np.bincount(users, minlength=n_users)
    return make.observations(
        users,
        items,
        calibrated.read(counts, symbols[shown]),
        levels.shape,
        evidence=calibrated.evidence_of(counts, symbols[shown], np.ones(n_users, dtype=np.bool_)),
    )
