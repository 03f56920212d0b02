"""What the server learns from sums, and what it tells the devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprec.completion import Profiles
from dprec.errors import SettingError
from dprec.private_als import UNIT, FactorizationOptions, ItemLearner, ItemModel, contributions_of
from dprec.private_als.statistics import sum_of_contributions
from dprec.ratings import RatingScale

SCALE = RatingScale.evenly(1, 5, 1)


def planted(users: int, items: int, seed: int = 0) -> tuple[Profiles, np.ndarray, np.ndarray]:
    """Return exact ratings by effects and one factor, the effects, and the item factors."""
    random = np.random.default_rng(seed)
    chosen = random.random((users, items)) < 0.5
    biases, factors = random.normal(0, 0.3, items), random.normal(0, 0.5, items)
    whole = 3.2 + biases + np.outer(random.normal(0, 0.6, users), factors)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    return Profiles(indptr, np.nonzero(chosen)[1].astype(np.int32), whole[chosen], items), biases, factors


def learned(profiles: Profiles, options: FactorizationOptions, multiplier: float = 0.0) -> ItemLearner:
    learner, random = ItemLearner(options, SCALE, profiles.n_items, 1), np.random.default_rng(1)
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


def test_noise_that_drowns_everything_teaches_nothing() -> None:
    profiles, _, _ = planted(40, 10)
    learner = learned(profiles, FactorizationOptions(rank=2, factor_rounds=3), 1e6)
    model = learner.learned
    assert np.abs(model.biases).max() < 1e-3
    assert np.abs(model.factors).max() < 1e-3
    assert 1 <= model.mean <= 5
    assert np.isfinite(learner.model.factors).all()


def test_items_with_few_ratings_have_no_factors() -> None:
    profiles, _, _ = planted(300, 20)
    rare = profiles.items >= 10
    kept = ~rare | (profiles.users < 4)
    counts = np.bincount(profiles.users[kept], minlength=300)
    few = Profiles(np.concatenate([[0], np.cumsum(counts)]), profiles.items[kept], profiles.values[kept], 20)
    learner = learned(few, FactorizationOptions(rank=1, factor_rounds=1), 3.0)
    assert learner.learned.popular[:10].all()
    assert not learner.learned.popular[10:].any()
    assert not learner.learned.all_factors[10:].any()
    assert learner.model.weights.max() == 256


def test_counts_are_released_once_and_gram_matrices_in_every_round_of_factors() -> None:
    options = FactorizationOptions(rank=2, bias_rounds=3, factor_rounds=2)
    model = ItemModel.begin(5, 2, 3.0)
    widths = [model.layout(options, round_index, 4.0).matrix_width for round_index in range(1, 6)]
    assert widths == [1, 0, 0, 3, 3]
    assert sum(options.shares) == pytest.approx(1.0)
    assert len(options.shares) == options.rounds == 5
    assert replace(options, rank=0).rounds == 3


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


@pytest.mark.parametrize(
    ("setting", "value"),
    [("noise", 1e300), ("level_ridge", 1e-320), ("matrix_share", 1e-300), ("bias_rounds", 10**8)],
)
def test_settings_beyond_what_can_be_computed_are_refused(setting: str, value: float) -> None:
    with pytest.raises(SettingError, match=f"{setting}: .*; accepted: at "):
        FactorizationOptions(**{setting: value})  # type: ignore[arg-type]
