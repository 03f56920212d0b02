"""What devices are sent of a calibrated model: the same latent ratings, in other units."""

import numpy as np
import pytest

from dprec.completion import Calibrated, CalibratedModel
from dprec.observations import Observations, SymbolReports
from dprec.personalization import TableOptions, broadcast_of
from dprec.personalization.broadcast import calibrated_broadcast
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
SHAPE = (80, 40)


@pytest.fixture(scope="module")
def seen() -> Observations:
    random = np.random.default_rng(1)
    user_factors, item_factors = random.normal(size=(80, 2)), random.normal(size=(40, 2))
    users, items = np.nonzero(random.random(SHAPE) < 0.6)
    latent = 3.3 + (user_factors @ item_factors.T)[users, items] + 0.3 * random.normal(size=users.size)
    levels = np.clip(np.rint(latent), 1, 5).astype(np.int64)
    symbols = SymbolReports((np.eye(5),), levels - 1, np.zeros_like(levels))
    users, items = users.astype(np.int32), items.astype(np.int32)
    return Observations(users, items, levels.astype(float), SHAPE, STARS, evidence=symbols)


@pytest.fixture(scope="module")
def model(seen: Observations) -> CalibratedModel:
    return Calibrated(factors=2, sweeps=20).fit(seen, seed=1)


def test_devices_expect_what_the_model_does_before_it_reads_a_users_ratings(model: CalibratedModel) -> None:
    broadcast, latent = calibrated_broadcast(model), model.latent
    assert broadcast.priors.shape == (80, 3)
    assert np.abs(latent.item_factors.means).max() > 0.1
    ours = (
        broadcast.table.means
        + broadcast.priors[:, :1]
        + broadcast.priors[:, 1:] @ broadcast.table.item_factors.T
    )
    products = latent.user_factors.regressed @ latent.item_factors.means.T
    theirs = latent.items.means + latent.users.regressed[:, None] + products
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_factors_of_variance_1_on_devices_vary_latent_ratings_as_those_of_the_model(
    model: CalibratedModel,
) -> None:
    table, latent = calibrated_broadcast(model).table, model.latent
    np.testing.assert_allclose(
        (table.item_factors**2).sum(axis=1),
        latent.item_factors.means**2 @ latent.user_factors.spreads,
        rtol=1e-12,
    )
    about_factors = np.einsum("ikk,k->i", latent.item_factors.covariances, latent.user_factors.spreads)
    np.testing.assert_allclose(table.deviations**2, latent.items.variances + about_factors, rtol=1e-12)
    assert about_factors.min() > 0


def test_a_calibrated_model_is_broadcast_as_it_is_without_the_options_of_other_completions(
    seen: Observations, model: CalibratedModel
) -> None:
    other = broadcast_of(model, seen, TableOptions(dimensions=0), seed=1)
    np.testing.assert_array_equal(other.table.embeddings, model.embedding.items)
    np.testing.assert_array_equal(other.table.means, model.items.means)
