"""What a user contributes to the statistics of the items, their sums, and the steps that items take."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dprec.completion import Profiles, packed_outer
from dprec.gradients import Aggregate
from dprec.private_als.statistics import (
    TARGET_BITS,
    UNIT_WEIGHT,
    StatisticsContributions,
    StatisticsLayout,
    chosen_ratings,
)
from dprec.private_als.steps import shrunken_biases, shrunken_factors
from dprec.sums import UNIT, CentralAggregation
from tests.dprec.private_als.partitions import LAYOUTS, a_partition, some_users, summed


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 1, 1, 9)])
def test_ratings_are_chosen_in_proportion_to_their_weights(weights: tuple[int, ...]) -> None:
    users, width = 20_000, len(weights)
    items = np.tile(np.arange(width, dtype=np.int32), users)
    profiles = Profiles(np.arange(users + 1) * width, items, np.ones(users * width), width)
    words = np.random.default_rng(3).integers(0, 2**63, items.size).astype(np.uint64) * np.uint64(2)
    candidates = np.ones(items.size, dtype=np.bool_)
    chosen = chosen_ratings(profiles, candidates, np.tile(weights, users), 1, words)
    assert np.array_equal(chosen // width, np.arange(users))
    share = weights[-1] / sum(weights)
    low, high = binom.ppf([5e-8, 1 - 5e-8], users, share)  # a false alarm in 1e-7
    assert low <= np.sum(items[chosen] == width - 1) <= high


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_no_profile_on_a_grid_of_extremes_contributes_more_than_one(share: float) -> None:
    layout = StatisticsLayout(np.array([256, 100]), 2, 1.0, 1.0, share, None)
    most, longest = 1 << TARGET_BITS, 0.0
    for angle, targets in product(np.linspace(0, np.pi, 13), product([-most, 0, 1, most], repeat=2)):
        x = np.array([[np.cos(angle), np.sin(angle)]], dtype=np.float32) * np.float32(1 - 1e-6)
        one = StatisticsContributions(
            np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array(targets), x
        )
        longest = max(longest, float(np.linalg.norm(one.numbers(layout).astype(np.float64))) * UNIT)
    assert 0.99 < longest <= 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_the_cells_whatever_the_partitions(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    expected = np.zeros((layout.n_rows, layout.width), dtype=np.int64)
    np.add.at(expected, partition.items, partition.numbers(layout))
    parts = [some_users(partition, list(range(*bounds))) for bounds in [(0, 7), (7, 8), (8, 40)]]
    assert np.array_equal(summed(partition, layout), expected)
    assert np.array_equal(sum(summed(part, layout) for part in parts), expected)
    trusted = CentralAggregation()
    assert trusted.possible(Aggregate(expected, None, 40), layout, 1.0)
    assert not trusted.possible(Aggregate(expected + 41 * 2**36, None, 40), layout, 1.0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_the_same_however_many_users_are_added_up_together(
    layout: StatisticsLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = summed(partition := a_partition(layout), layout)
    monkeypatch.setattr("dprec.private_als.statistics._NUMBERS_AT_ONCE", 3 * layout.width)
    assert len(list(layout.blocks(partition.n_users))) > 10
    assert np.array_equal(summed(partition, layout), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_gram_matrices_and_right_hand_sides(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    found = summed(partition, layout) * UNIT * layout.scales
    users = np.repeat(np.arange(partition.n_users), np.diff(partition.indptr))
    weights = partition.user_weights(layout)[users] * layout.weights[partition.items] / UNIT_WEIGHT
    x = partition.factors.astype(np.float64)[users]
    targets = partition.targets * (layout.clip / 2**TARGET_BITS)
    matrices = added(weights[:, None] * packed_outer(x), partition.items, layout)
    sides = added((weights * targets)[:, None] * x, partition.items, layout)
    assert np.allclose(found[:, layout.matrix_width :], sides, atol=1e-2)
    if layout.matrix_width:
        assert np.allclose(found[:, : layout.matrix_width], matrices, atol=1e-6)


def added(
    values: NDArray[np.float64], items: NDArray[np.int32], layout: StatisticsLayout
) -> NDArray[np.float64]:
    total = np.zeros((layout.n_rows, values.shape[1]))
    np.add.at(total, items, values)
    return total


def symmetric(seed: int, items: int = 6, rank: int = 3) -> NDArray[np.float64]:
    matrices = np.random.default_rng(seed).standard_normal((items, rank, rank))
    return matrices + matrices.transpose(0, 2, 1)


def test_without_noise_the_biases_are_those_of_ridge_regression() -> None:
    counts, sums = np.array([4.0, 1.0, 0.0, -2.0]), np.array([2.0, 1.0, 0.0, 3.0])
    biases = shrunken_biases(counts, sums, noise=0.0, residual=0.5, prior=0.25)
    assert biases == pytest.approx([2 / 6, 1 / 3, 0, 0])


def test_biases_have_the_least_expected_squared_error() -> None:
    random = np.random.default_rng(1)
    count, noise, residual, prior, draws = 5.0, 2.0, 0.4, 0.3, 200_000
    true = random.normal(0, np.sqrt(prior), draws)
    sums = count * true + random.normal(0, np.sqrt(noise**2 + residual * count), draws)
    counts = np.full(draws, count)
    biases = shrunken_biases(counts, sums, noise=noise, residual=residual, prior=prior)
    error = np.mean((biases - true) ** 2)
    for factor in (0.9, 1.1):
        assert np.mean((factor * biases - true) ** 2) > error


def test_without_noise_the_factors_are_those_of_the_projected_matrix() -> None:
    matrices, sides = symmetric(2), np.random.default_rng(3).standard_normal((6, 3))
    values, vectors = np.linalg.eigh(matrices)
    assert values.min() < -0.5
    projected = vectors * np.maximum(values, 0)[:, None, :] @ vectors.transpose(0, 2, 1)
    # Nothing is said in the directions that are projected away, so sides there mean nothing.
    along = vectors * (values > 0)[:, None, :] @ vectors.transpose(0, 2, 1)
    wanted = np.linalg.solve(projected + 0.7 / 0.2 * np.eye(3), (along @ sides[:, :, None]))[:, :, 0]
    found = shrunken_factors(matrices, sides, noise=0.0, residual=np.full(6, 0.7), prior=0.2)
    assert np.allclose(found, wanted)
