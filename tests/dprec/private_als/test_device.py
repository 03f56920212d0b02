"""What a device contributes: whichever ratings it holds, and whatever the server sends it.

What a user contributes to the statistics of the items, and how much of it anybody can change.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dprec.completion import Profiles, packed_outer
from dprec.gradients import Aggregate
from dprec.private_als import (
    TARGET_BITS,
    UNIT_WEIGHT,
    FactorizationOptions,
    ItemLearner,
    ItemModel,
    StatisticsContributions,
    StatisticsLayout,
    contributions_of,
)
from dprec.private_als.device import chosen_ratings, sum_of_contributions
from dprec.private_als.learner import shrunken_biases, shrunken_factors
from dprec.sums import UNIT, TrustedAggregation
from tests import make
from tests.dprec.private_als.partitions import LAYOUTS, a_partition, some_users
from tests.make import STARS

OPTIONS = FactorizationOptions(rank=2, bias_rounds=2, factor_rounds=1, ratings_per_user=3)
ITEMS, SPAN = 8, 4.0


def some_profiles(users: int = 12, seed: int = 0) -> Profiles:
    random = np.random.default_rng(seed)
    chosen = random.random((users, ITEMS)) < 0.6
    chosen[0] = False
    return make.profiles(make.rated(chosen, random.integers(1, 6, int(chosen.sum()))))


def a_model(scale: float = 0.5, seed: int = 1) -> ItemModel:
    random = np.random.default_rng(seed)
    weights = np.array([256, 0, 90, 256, 1, 0, 128, 40])
    return ItemModel(3.4, random.normal(0, 0.3, ITEMS), weights, random.normal(0, scale, (6, 2)), gain=300.0)


def contributed(
    profiles: Profiles, model: ItemModel, round_index: int, options: FactorizationOptions = OPTIONS
) -> StatisticsContributions:
    words = np.random.default_rng(2).integers(0, 2**63, profiles.items.size).astype(np.uint64) * np.uint64(2)
    layout = model.layout(options, round_index, SPAN)
    return contributions_of(profiles, model, options, layout, round_index, words)


@pytest.mark.parametrize("weights", ["uniform", "adaptive"])
@pytest.mark.parametrize("round_index", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.5, 1e-30, 1e30])
def test_removing_any_user_changes_the_sums_by_at_most_one(
    weights: str, round_index: int, scale: float
) -> None:
    options, profiles, model = replace(OPTIONS, weights=weights), some_profiles(), a_model(scale)
    layout = model.layout(options, round_index, SPAN)
    everybody = contributed(profiles, model, round_index, options)
    total = sum_of_contributions(everybody, layout)
    changes = []
    for user in range(profiles.n_users):
        kept = np.repeat(np.arange(profiles.n_users), np.diff(everybody.indptr)) != user
        counts = np.diff(everybody.indptr) * (np.arange(profiles.n_users) != user)
        others = StatisticsContributions(
            np.concatenate([[0], np.cumsum(counts)]),
            everybody.items[kept],
            everybody.targets[kept],
            everybody.factors,
        )
        change = (total - sum_of_contributions(others, layout)).astype(np.float64)
        changes.append(float(np.linalg.norm(change)) * UNIT)
    assert changes[0] == 0.0
    assert max(changes) <= 1.0
    # Item factors beyond all bounds leave a user without a solution, and with nothing to contribute.
    assert max(changes) > 0.1 or (round_index == 3 and scale != 0.5)


@pytest.mark.parametrize("round_index", [1, 2, 3])
def test_a_contribution_depends_on_the_users_own_ratings_alone(round_index: int) -> None:
    profiles, model = some_profiles(), a_model()
    before = contributed(profiles, model, round_index)
    changed = replace(profiles, values=np.where(profiles.users == 5, 1.0, profiles.values))
    after = contributed(changed, model, round_index)
    users = np.repeat(np.arange(profiles.n_users), np.diff(before.indptr))
    assert np.array_equal(before.items, after.items)
    assert np.array_equal(before.targets[users != 5], after.targets[users != 5])
    assert not np.array_equal(before.targets[users == 5], after.targets[users == 5])
    others = np.arange(profiles.n_users) != 5
    assert np.array_equal(before.factors[others], after.factors[others])


def test_targets_are_clipped_and_counted_from_what_is_known() -> None:
    profiles, model = some_profiles(), replace(a_model(), mean=3.0, biases=np.zeros(ITEMS))
    options = replace(OPTIONS, ratings_per_user=ITEMS, rating_clip=0.25)
    first = contributed(profiles, model, 1, options)
    wanted = np.clip(profiles.values - 3.0, -1, 1)
    assert np.array_equal(first.targets / 2**TARGET_BITS, wanted)
    assert np.array_equal(first.items, profiles.items)


def test_biases_are_estimated_as_a_whole_and_factors_from_the_rest() -> None:
    profiles = some_profiles()
    model = replace(a_model(), biases=np.linspace(-0.5, 0.5, ITEMS))
    exact = replace(profiles, values=model.mean + model.biases[profiles.items])
    options = replace(OPTIONS, ratings_per_user=ITEMS)
    biases, factors = (contributed(exact, model, round_index, options) for round_index in (2, 3))
    clip = options.residual_clip * SPAN
    assert np.allclose(biases.targets * clip / 2**TARGET_BITS, model.biases[profiles.items], atol=1e-3)
    assert np.all(np.abs(factors.targets) <= 1)


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
    assert np.array_equal(sum_of_contributions(partition, layout), expected)
    assert np.array_equal(sum(sum_of_contributions(part, layout) for part in parts), expected)
    trusted = TrustedAggregation()
    assert trusted.possible(Aggregate(expected, None, 40), layout, 1.0)
    assert not trusted.possible(Aggregate(expected + 41 * 2**36, None, 40), layout, 1.0)


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
    total = np.zeros((layout.n_rows, values.shape[1]))
    np.add.at(total, items, values)
    return total


def planted(users: int, items: int, seed: int = 0) -> tuple[Profiles, np.ndarray, np.ndarray]:
    """Return exact ratings by biases and one factor, the biases, and the item factors."""
    random = np.random.default_rng(seed)
    chosen = random.random((users, items)) < 0.5
    biases, factors = random.normal(0, 0.3, items), random.normal(0, 0.5, items)
    whole = 3.2 + biases + np.outer(random.normal(0, 0.6, users), factors)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    return Profiles(indptr, np.nonzero(chosen)[1].astype(np.int32), whole[chosen], items), biases, factors


def learned(profiles: Profiles, options: FactorizationOptions, multiplier: float = 0.0) -> ItemLearner:
    learner, random = ItemLearner(options, STARS, profiles.n_items, 1), np.random.default_rng(1)
    for round_index in range(1, options.rounds + 1):
        layout = learner.layout(round_index)
        words = random.integers(0, 2**62, profiles.items.size).astype(np.uint64)
        own = contributions_of(profiles, learner.model, options, layout, round_index, words)
        total = sum_of_contributions(own, layout) * UNIT
        noisy = (total + multiplier * random.standard_normal(total.shape)) * layout.scales
        learner.learn(round_index, noisy, layout, multiplier, profiles.n_users)
    return learner


def test_planted_biases_and_factors_are_found_without_noise() -> None:
    profiles, biases, factors = planted(400, 30)
    options = FactorizationOptions(rank=1, factor_rounds=4, noise=0.05)
    learner = learned(profiles, options)
    assert learner.learned.popular.all()
    assert np.corrcoef(learner.learned.biases, biases)[0, 1] > 0.98
    assert abs(np.corrcoef(learner.learned.all_factors[:, 0], factors)[0, 1]) > 0.98
    assert learner.learned.mean == pytest.approx(3.2, abs=0.15)


def test_a_model_is_read_as_it_was_sent_and_nothing_else_is() -> None:
    random = np.random.default_rng(4)
    weights = np.array([256, 0, 3, 0, 100])
    model = ItemModel(3.25, random.normal(0, 1, 5), weights, random.normal(0, 1, (3, 2)), 1.5)
    data = model.encode()
    read = ItemModel.decode(data, 5, 2)
    assert (read.mean, read.gain) == (3.25, 1.5)
    assert np.array_equal(read.weights, weights)
    assert np.allclose(read.biases, model.biases, rtol=1e-6)
    assert np.allclose(read.all_factors, model.all_factors, rtol=1e-6)
    not_finite = replace(model, biases=np.full(5, np.nan)).encode()
    too_heavy = replace(model, weights=weights * 2).encode()
    negative = replace(model, gain=-1.0).encode()
    for hostile in (b"", data[:-1], data + b"\0", not_finite, too_heavy, negative, data[:10]):
        with pytest.raises(ValueError, match=r"items|finite|range"):
            ItemModel.decode(hostile, 5, 2)


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
