"""Latent ratings of several parts, solved in turn."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion.calibrated.latent_ratings import Cells, LatentRatings
from dprec.completion.calibrated.regressions import RegressedBiases, RegressedVectors

USERS, ITEMS = 60, 40


@pytest.fixture(scope="module")
def cells() -> Cells:
    random = np.random.default_rng(1)
    users, items = np.nonzero(random.random((USERS, ITEMS)) < 0.6)
    return Cells(users, items, (USERS, ITEMS))


def start(factors: int, slopes: int) -> LatentRatings:
    random = np.random.default_rng(3)
    of_users, of_items = random.standard_normal((USERS, 2)), np.ones((ITEMS, 1))
    return LatentRatings(
        RegressedBiases.at_zero(of_users, 0.2, intercept=False),
        RegressedBiases.at_zero(of_items, 0.2, intercept=True),
        RegressedVectors.at(np.zeros((USERS, slopes)), of_users, variance=0.1, spread=0.1),
        random.standard_normal((ITEMS, slopes)),
        RegressedVectors.at(random.standard_normal((USERS, factors)), of_users, variance=0.1, spread=1.0),
        RegressedVectors.at(np.zeros((ITEMS, factors)), of_items, variance=0.0, spread=0.1),
    )


@pytest.mark.parametrize(("factors", "slopes"), [(2, 0), (0, 2), (2, 1)])
def test_latent_ratings_that_are_seen_with_little_noise_are_recovered(
    cells: Cells, factors: int, slopes: int
) -> None:
    latent = start(factors, slopes)
    random = np.random.default_rng(4)
    true = random.standard_normal((USERS, 1)) + random.standard_normal(ITEMS)
    true += random.standard_normal((USERS, slopes)) @ latent.embeddings.T
    true += random.standard_normal((USERS, factors)) @ random.standard_normal((factors, ITEMS))
    seen, precision = (
        true[cells.users, cells.items] + 0.3 * random.standard_normal(cells.users.size),
        1 / 0.3**2,
    )

    def looked_up(latent: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return precision * (seen - latent), np.full(latent.size, precision)

    for sweep in range(60):
        latent = latent.with_item_biases(cells, looked_up)
        latent = latent.with_item_factors(cells, looked_up, learn=sweep > 5)
        latent = latent.with_user_biases(cells, looked_up).with_slopes(cells, looked_up)
        latent = latent.with_user_factors(cells, looked_up)
    users, items = (side.ravel() for side in np.indices(true.shape))
    unseen = np.ones(true.shape, dtype=np.bool_)
    unseen[cells.users, cells.items] = False
    errors = (latent.means(users, items).reshape(true.shape) - true)[unseen]
    assert np.sqrt((errors**2).mean()) < 0.15 * true.std()
    variances = latent.variances(users, items).reshape(true.shape)[unseen]
    # The parts' posteriors are independent by assumption, which makes variances too small, not too large.
    assert 0.2 < variances.mean() / (errors**2).mean() < 1.5


def test_scales_move_between_factors_without_changing_any_latent_rating() -> None:
    latent = start(2, 0)
    moved = latent.user_factors.scaled(np.array([2.0, 0.5])), latent.item_factors.scaled(np.array([0.5, 2.0]))
    np.testing.assert_allclose(
        moved[0].means @ moved[1].means.T, latent.user_factors.means @ latent.item_factors.means.T
    )
    np.testing.assert_allclose(
        moved[0].second_moments[:, 0, 1], latent.user_factors.second_moments[:, 0, 1], atol=1e-12
    )
