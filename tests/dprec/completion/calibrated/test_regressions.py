from dataclasses import replace

import numpy as np
import pytest

from dprec.catalogue import Catalogue
from dprec.completion import Regressed
from dprec.completion.calibrated.embedding import ItemSetEmbedding, catalogue_features, item_features
from dprec.completion.calibrated.regressions import Expected, PropensityBins

PAIRS = Expected(centre=(0.0, 0.0), spread=(1.0, 0.25), coefficients=(0.5, 0.05))


def planted(spread: float, noise: float, entities: int = 4000) -> tuple[Regressed, np.ndarray]:
    """Return biases solved from one noisy observation each, and the true ones."""
    random = np.random.default_rng(5)
    features = np.column_stack([np.ones(entities), random.normal(size=(entities, 2))])
    true = features @ [0.5, -0.3, 0.2] + random.normal(size=entities) * np.sqrt(spread)
    observed = true + random.normal(size=entities) * np.sqrt(noise)
    side = Regressed.prior(features, Expected(spread=(0.1,)))
    precision = np.full((entities, 1, 1), 1 / noise)
    for _ in range(60):
        side = side.solved(precision, observed[:, None] / noise)
    return side, true


def test_the_regression_and_the_spread_are_learned() -> None:
    side, true = planted(spread=0.25, noise=0.5)
    # Six standard errors each: false alarm 2e-9.
    np.testing.assert_allclose(side.coefficients[:, 0], [0.5, -0.3, 0.2], atol=6 * np.sqrt(0.75 / 4000))
    assert side.spreads[0] == pytest.approx(0.25, abs=6 * 0.75 * np.sqrt(2 / 4000))
    # The posterior is the best linear estimate, and knows how good it is.
    errors = side.biases - true
    assert np.mean(errors**2) == pytest.approx(side.variances[0], rel=6 * np.sqrt(2 / 4000))
    assert side.variances[0] == pytest.approx(1 / (1 / 0.5 + 1 / side.spreads[0]))


def test_the_posterior_is_that_of_the_joint_normal_distribution() -> None:
    random = np.random.default_rng(3)
    entities = 6
    features = np.column_stack([np.ones(entities), random.normal(size=entities)])
    centre = np.column_stack([np.full(entities, -3.0), random.normal(size=entities)])
    expected = replace(PAIRS, centre=centre, spread=(1.5, 0.3), ratios=np.array([2.0, 1.0]))
    side = Regressed.prior(features, expected)
    roots = random.normal(size=(entities, 2, 2))
    precision = roots @ roots.swapaxes(1, 2)
    target = random.normal(size=(entities, 2))
    solved = side.solved(precision, target)
    # Brute force: all pairs have a joint prior whose covariance includes that of the coefficients.
    prior = np.kron(np.eye(entities), np.diag([1.5, 0.3]))
    for own, variances in enumerate([(1.0, 0.5), (0.1, 0.05)]):
        block = (features * np.array(variances)) @ features.T
        prior[own::2, own::2] += block
    joint = np.zeros_like(prior)
    for entity in range(entities):
        joint[2 * entity : 2 * entity + 2, 2 * entity : 2 * entity + 2] = precision[entity]
    inverse = np.linalg.inv(prior)
    means = np.linalg.solve(inverse + joint, inverse @ centre.ravel() + target.ravel())
    np.testing.assert_allclose(solved.means.ravel(), means, atol=1e-9)
    # In other units it is the same posterior.
    factors = np.array([3.0, 0.5])
    other = side.scaled(factors).solved(precision / np.outer(factors, factors), target / factors)
    np.testing.assert_allclose(other.means, solved.means * factors, atol=1e-9)
    np.testing.assert_allclose(other.spread, solved.spread * np.outer(factors, factors), atol=1e-9)
    np.testing.assert_allclose(other.coefficient_variances, solved.coefficient_variances * factors**2)


def test_bins_hold_neighbours_and_their_sizes_differ_by_little() -> None:
    side = Regressed.prior(np.zeros((720, 0)), PAIRS)
    means = np.random.default_rng(6).normal(size=(720, 2))
    bins = PropensityBins.by_rank(replace(side, means=means), np.arange(720) % 2 == 0)
    assert np.bincount(bins.of).tolist() == [20] * 36
    assert bins.sizes.sum() == 360
    outer = bins.of // 3
    assert all(means[outer == b, 0].max() < means[outer == b + 1, 0].min() for b in range(11))
    first = [means[bins.of == b, 1].max() for b in (0, 1)], [means[bins.of == b, 1].min() for b in (1, 2)]
    assert np.all(np.less(*first))
    chosen = (bins.of == 7) & (np.arange(720) % 2 == 0)
    np.testing.assert_allclose(bins.means[7] - means[chosen].mean(axis=0), [0.5, 0], atol=1e-12)
    assert bins.bias_variance == 0.25


RANDOM = np.random.default_rng(2)
USERS, ITEMS = np.nonzero(np.column_stack([RANDOM.random((30, 8)) < 0.4, np.zeros((30, 1), dtype=bool)]))
GEOMETRY = ItemSetEmbedding.of(USERS, ITEMS, (30, 9), 3, seed=1)
YEARS = np.array([-1.5, 0.0, 0.5, 1.0, 1.5, -0.5, -1.0, 0.25, -0.25])
CATALOGUE = Catalogue(YEARS[:, None], RANDOM.random((9, 2)) < 0.5, ("year",), ("drama", "war"))


def test_an_item_has_an_intercept_popularity_public_data_and_its_embedding_in_this_order() -> None:
    features = item_features(GEOMETRY, CATALOGUE, 2)
    assert features.shape == (9, 1 + 2 + 2 + 2 + 2)
    np.testing.assert_array_equal(features[:, 0], 1.0)
    np.testing.assert_array_equal(features[:8, 1], GEOMETRY.popularity[:8])
    np.testing.assert_array_equal(features[:, 3:7], catalogue_features(CATALOGUE, GEOMETRY.item_counts))
    np.testing.assert_array_equal(features[:, 7:], GEOMETRY.items[:, :2])
    assert item_features(GEOMETRY, None, 2).shape == (9, 1 + 2 + 2)
