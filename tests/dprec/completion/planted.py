"""Ratings of a known low rank under a known mixture of Gaussians."""

import numpy as np

from dprec.completion import Observations
from dprec.randomness import generator
from tests.make import STARS

PI, SIGMA = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 4.0])


def planted(seed: int, pi: np.ndarray = PI, sigma: np.ndarray = SIGMA) -> tuple[Observations, np.ndarray]:
    """400 x 300 matrix of rank 3, 30 % of it observed under noise that is a mixture of Gaussians."""
    random = generator(seed, "planted")
    truth = random.normal(size=(400, 3)) @ random.normal(size=(300, 3)).T
    users, items = np.nonzero(random.random(truth.shape) < 0.3)
    noise = sigma[random.choice(pi.size, users.size, p=pi)] * random.normal(size=users.size)
    cells = users.astype(np.int32), items.astype(np.int32), truth[users, items] + noise
    return Observations.of(*cells, truth.shape, STARS), truth
