"""What a user contributes to the statistics of the items, and how much of it anybody can change."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.completion import packed_outer
from dprec.private_als import TARGET_BITS, UNIT, UNIT_WEIGHT, Contributions, StatisticsLayout
from dprec.private_als.statistics import possible_sum, sum_of_contributions
from tests.dprec.private_als.partitions import LAYOUTS, a_partition, some_users


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_largest_change_over_removing_any_user_is_bounded_by_one_and_nearly_reached(
    layout: StatisticsLayout,
) -> None:
    partition = a_partition(layout)
    everybody = sum_of_contributions(partition, layout)
    changes = []
    for user in range(partition.n_users):
        others = some_users(partition, [other for other in range(partition.n_users) if other != user])
        change = (everybody - sum_of_contributions(others, layout)).astype(np.float64) * UNIT
        changes.append(float(np.linalg.norm(change)))
    assert max(changes) <= 1.0
    assert max(changes) > 0.6


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_no_profile_on_a_grid_of_extremes_contributes_more_than_one(share: float) -> None:
    layout = StatisticsLayout(np.array([256, 100]), 2, 1.0, 1.0, share, None)
    most, longest = 1 << TARGET_BITS, 0.0
    for angle, targets in product(np.linspace(0, np.pi, 13), product([-most, 0, 1, most], repeat=2)):
        x = np.array([[np.cos(angle), np.sin(angle)]], dtype=np.float32) * np.float32(1 - 1e-6)
        one = Contributions(np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array(targets), x)
        longest = max(longest, float(np.linalg.norm(one.numbers(layout).astype(np.float64))) * UNIT)
    assert 0.99 < longest <= 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_the_cells_whatever_the_cohorts(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    expected = np.zeros((layout.n_items, layout.width), dtype=np.int64)
    np.add.at(expected, partition.items, partition.numbers(layout))
    parts = [some_users(partition, list(range(*bounds))) for bounds in [(0, 7), (7, 8), (8, 40)]]
    assert np.array_equal(sum_of_contributions(partition, layout), expected)
    assert np.array_equal(sum(sum_of_contributions(part, layout) for part in parts), expected)
    assert possible_sum(expected, 40)
    assert not possible_sum(expected + 41 * 2**36, 40)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_gram_matrices_and_right_hand_sides(layout: StatisticsLayout) -> None:
    partition = a_partition(layout)
    found = sum_of_contributions(partition, layout) * UNIT * layout.scales
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
    total = np.zeros((layout.n_items, values.shape[1]))
    np.add.at(total, items, values)
    return total
