"""What devices are sent of a calibrated model: the same latent ratings, in other units.

Tables of items from the predictions of a completion that states no uncertainty.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion import Calibrated, CalibratedModel, Completed, Observations
from dprec.observations import SymbolReports
from dprec.ordinal import expected_rating
from dprec.personalization import TableOptions
from dprec.personalization.broadcast import calibrated_broadcast, derived_broadcast, leanings
from tests import make
from tests.make import SHARES, STARS

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
    return make.observations(users, items, levels.astype(float), SHAPE, evidence=symbols)


@pytest.fixture(scope="module")
def model(seen: Observations) -> CalibratedModel:
    return Calibrated(factors=2, sweeps=20).fit(seen, seed=1)


def own_means(embeddings: NDArray[np.float64], seen: Observations) -> NDArray[np.float64]:
    """Return the mean embedding of each user's items, with five at the origin."""
    sums = np.zeros((seen.shape[0], embeddings.shape[1]))
    np.add.at(sums, seen.users, embeddings[seen.items])
    means: NDArray[np.float64] = sums / (seen.counts + 5)[:, None]
    return means


def test_what_items_say_of_their_users_is_found_by_least_squares(seen: Observations) -> None:
    random = np.random.default_rng(4)
    embeddings, planted_leanings = random.normal(size=(40, 4)), random.normal(size=(4, 3))
    expected = own_means(embeddings, seen) @ planted_leanings
    np.testing.assert_allclose(leanings(embeddings, seen.item_sets, expected), planted_leanings)
    # A dimension that says nothing has no part in it.
    flat = embeddings * [1, 1, 0, 1]
    assert not leanings(flat, seen.item_sets, expected)[2].any()
    assert leanings(embeddings, seen.item_sets, 0 * expected).shape == (0, 3)
    assert leanings(embeddings[:, :0], seen.item_sets, expected).shape == (0, 3)


def test_factors_of_variance_1_on_devices_vary_latent_ratings_as_those_of_the_model(
    model: CalibratedModel, seen: Observations
) -> None:
    table, latent = calibrated_broadcast(model, seen.item_sets), model.latent
    np.testing.assert_allclose(
        (table.item_factors**2).sum(axis=1),
        latent.item_factors.means**2 @ latent.user_factors.spreads,
        rtol=1e-12,
    )
    about_factors = np.einsum("ikk,k->i", latent.item_factors.covariances, latent.user_factors.spreads)
    np.testing.assert_allclose(table.deviations**2, latent.items.variances + about_factors, rtol=1e-12)
    assert about_factors.min() > 0


USERS, ITEMS = 200, 40
OPTIONS = TableOptions(histogram=SHARES, dimensions=4, features=2)
CUTS = OPTIONS.cuts(STARS)


@dataclass(frozen=True, eq=False)
class Predicted(Completed):
    """Knows the rating of every cell."""

    ratings: NDArray[np.float64]

    def predict(self, users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
        predictions: NDArray[np.float64] = self.ratings[users, items]
        return predictions


def planted(spread: float = 1.0, **given: Any) -> tuple[Predicted, Observations, NDArray[np.float64]]:
    """Return predictions with the biases of items, reports of a third of the cells, and the latent biases."""
    random = np.random.default_rng(0)
    biases, levels = random.normal(0, 0.4, ITEMS), random.normal(0, 0.8, USERS)
    biases[0] = 0.6
    latent = biases + levels[:, None]
    ratings = expected_rating(latent.ravel(), np.zeros(latent.size), CUTS, STARS.values).reshape(latent.shape)
    # Nobody reports item 0, and more and more the later ones; every second one is for those who rate high.
    chances = np.linspace(0, 0.6, ITEMS) * np.where(np.arange(ITEMS) % 2, 1, 1 + np.sign(levels)[:, None])
    users, items = np.nonzero(random.random((USERS, ITEMS)) < chances)
    values = ratings[users, items] + random.normal(0, spread, users.size)
    shape = (USERS, ITEMS)
    seen = make.observations(users, items, values, shape, **given)
    return Predicted(ratings), seen, biases


def predicted_latent(completed: Predicted, seen: Observations) -> NDArray[np.float64]:
    """Return the latent prediction of every reported cell."""
    grid = np.linspace(-3, 3, 2001)
    ratings = expected_rating(grid, np.zeros(grid.size), CUTS, STARS.values)
    latent: NDArray[np.float64] = np.interp(completed.ratings[seen.users, seen.items], ratings, grid)
    return latent


def test_the_biases_of_items_are_separated_from_those_of_users() -> None:
    completed, seen, biases = planted()
    table = derived_broadcast(completed, seen, OPTIONS, seed=0)
    counts, latent = np.bincount(seen.items, minlength=ITEMS), predicted_latent(completed, seen)
    averages = np.bincount(seen.items, weights=latent, minlength=ITEMS) / np.maximum(counts, 1)
    known = counts >= 40
    # Compared by their spread, since an overall level may move between users and items.
    errors, naive = (own[known] - biases[known] for own in (table.means, averages))
    assert errors.std() < 0.5 * naive.std()
    assert table.embeddings.shape == (ITEMS, 4)
    assert table.leanings.shape == (4, 1)
    np.testing.assert_array_equal(table.cuts, CUTS)


def test_deviations_follow_from_the_reports_and_their_spread() -> None:
    precisions = []
    for spread in (1.0, 3.0):
        completed, seen, _ = planted(spread)
        table = derived_broadcast(completed, seen, OPTIONS, seed=0)
        counts, precision = np.bincount(seen.items, minlength=ITEMS), 1 / table.deviations**2
        # Precisions are straight lines in the number of reports.
        slope, prior = np.polyfit(counts, precision, 1)
        np.testing.assert_allclose(precision, prior + slope * counts, rtol=1e-6)
        precisions.append(slope * seen.values.var())
    # A report's precision is inverse to the spread of the values, at the slope of the expected rating.
    assert precisions[0] == pytest.approx(precisions[1])
    around = predicted_latent(completed, seen).mean() + np.array([-0.01, 0.01])
    low, high = expected_rating(around, np.zeros(2), CUTS, STARS.values)
    assert precisions[0] == pytest.approx(((high - low) / 0.02) ** 2, rel=0.01)
