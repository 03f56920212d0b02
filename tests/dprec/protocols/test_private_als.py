"""Private alternating least squares: what devices contribute, what is learned of it, and sent."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.completion import Profiles
from dprec.private_als.statistics import TARGET_BITS, StatisticsContributions
from dprec.protocols.private_als import FactorizationOptions, ItemDevice, ItemModel, PrivateAlsProtocol
from tests import make
from tests.summing import contributions, played

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
    device = ItemDevice(options, model, SPAN)
    found = contributions(device, profiles, device.release(round_index))
    assert isinstance(found, StatisticsContributions)
    return found


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


def planted(users: int, items: int, seed: int = 0) -> tuple[Profiles, np.ndarray, np.ndarray]:
    """Return exact ratings by biases and one factor, the biases, and the item factors."""
    random = np.random.default_rng(seed)
    chosen = random.random((users, items)) < 0.5
    biases, factors = random.normal(0, 0.3, items), random.normal(0, 0.5, items)
    whole = 3.2 + biases + np.outer(random.normal(0, 0.6, users), factors)
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    return Profiles(indptr, np.nonzero(chosen)[1].astype(np.int32), whole[chosen], items), biases, factors


def test_planted_biases_and_factors_are_found_without_noise() -> None:
    profiles, biases, factors = planted(400, 30)
    options = FactorizationOptions(rank=1, factor_rounds=4, noise=0.05)
    server, _ = played(PrivateAlsProtocol(factorization=options), profiles, seed=1)
    assert server.best.popular.all()
    assert np.corrcoef(server.best.biases, biases)[0, 1] > 0.98
    assert abs(np.corrcoef(server.best.all_factors[:, 0], factors)[0, 1]) > 0.98
    assert server.best.mean == pytest.approx(3.2, abs=0.15)


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
        with pytest.raises(ValueError, match=r"bytes|finite|range"):
            ItemModel.decode(hostile, 5, 2)
