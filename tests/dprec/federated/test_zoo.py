"""The models of the zoo: the slopes that devices follow, and that each learns what is planted.

What a model learns is judged on one fixed draw, beside averages or popularity.
"""

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import simulation
from dprec.arrays import Bools, Floats, offsets
from dprec.completion import Profiles
from dprec.components import deviations
from dprec.errors import InputError
from dprec.federated import (
    AveragedFactorization,
    Devices,
    FederatedModel,
    FederatedReconstruction,
    LowRankUpdates,
    NeuralFiltering,
    OwnEdges,
    Profile,
    SharedRepresentation,
    begun,
)
from dprec.federated.local_training import batches, others, scattered
from dprec.federated.neural_filtering import gradients
from dprec.randomness import generator, words
from dprec.ratings import POSITIVE, RatingScale
from dprec.testing import contract
from tests import make

USERS, ITEMS = 80, 30
IN_TORCH = (
    pytest.mark.thorough,
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed"),
)


def in_torch(tested: Any) -> Any:
    """Mark a test that needs PyTorch, which takes its time to import."""
    for mark in IN_TORCH:
        tested = mark(tested)
    return tested


TestZoo = contract(
    AveragedFactorization(rank=3, epochs=2),
    NeuralFiltering(factors=2, epochs=2, batch=16),
    OwnEdges(size=4, negatives=2),
    FederatedReconstruction(size=3, epochs=2, batch=16),
    LowRankUpdates(size=4, rank=2, batch=16),
    sizes={"rounds": 2},  # What a round leaves behind is in the second.
)


TestInTorch = in_torch(contract(SharedRepresentation(size=3, features=2, head_epochs=2)))


def learned(model: FederatedModel, devices: Devices, scale: RatingScale, rounds: int) -> Floats:
    """Return what is predicted after rounds without clipping, shape (users, items)."""
    parameters, step = model.start(ITEMS, scale, generator(1, "start")), model.steps()
    for number in range(1, rounds + 1):
        keys = words(1, "draws", 0, 2 * USERS, round_index=number).reshape(USERS, 2)
        computed = model.computed(parameters, Devices(devices.profiles, devices.state, keys))
        devices = Devices(devices.profiles, computed.state, keys)
        parameters = step(parameters, tuple(each.mean(axis=0) for each in computed.updates), number)
    return np.stack([model.predict(parameters, held, kept) for held, _, kept in devices.each()])


def devices_of(model: FederatedModel, values: Floats, held: Bools, scale: RatingScale) -> Devices:
    """Return devices that hold some cells of a matrix."""
    profiles = Profiles(offsets(held.sum(axis=1)), np.nonzero(held)[1].astype(np.int32), values[held], ITEMS)
    keys = words(1, "keys", 0, 2 * USERS).reshape(USERS, 2)
    return Devices(profiles, begun(model, ITEMS, scale, keys), keys)


def planted_ratings() -> tuple[Floats, Bools]:
    """Return ratings of two kinds of users, who like either half of the items, and those that are held."""
    random = np.random.default_rng(3)
    kinds, halves = np.arange(USERS) % 2, np.arange(ITEMS) % 2
    liked = np.where(kinds[:, None] == halves, 4.0, 2.0) + random.normal(0, 0.5, (USERS, ITEMS))
    return np.clip(np.rint(liked), 1, 5), random.random((USERS, ITEMS)) < 0.4


@pytest.mark.parametrize(
    "model",
    [
        AveragedFactorization(rank=2, epochs=5, batch=6, rate=0.05, ridge=0.05, item_rate=3.0, deviation=0.3),
        pytest.param(
            SharedRepresentation(size=4, features=3, batch=6, rate=0.05, item_rate=3.0, head_epochs=3),
            marks=IN_TORCH,
        ),
    ],
    ids=lambda model: model.kind,
)
def test_a_model_of_ratings_learns_what_averages_cannot(model: FederatedModel) -> None:
    """Noise and rounding leave an RMSE of about .58; every item's mean is 3, which is off by 1.15."""
    values, held = planted_ratings()
    predicted = learned(model, devices_of(model, values, held, make.STARS), make.STARS, 10)
    errors = (predicted - values)[~held]
    assert np.sqrt(np.mean((values - 3.0)[~held] ** 2)) > 1.1
    assert np.sqrt(np.mean(errors**2)) < 0.7


@pytest.mark.parametrize(
    "model",
    [
        NeuralFiltering(factors=4, epochs=2, batch=20, rate=0.1, item_rate=5.0, deviation=0.5),
        OwnEdges(size=8, step_size=0.03),
        FederatedReconstruction(size=4, item_rate=50.0, deviation=0.3, support_rate=0.1),
        LowRankUpdates(size=6, rank=2, item_rate=6.0),
    ],
    ids=lambda model: model.kind,
)
def test_a_model_of_lists_learns_what_popularity_cannot(model: FederatedModel) -> None:
    """Users have some of one half of the items, whose others should be first; by chance, half of them are."""
    random = np.random.default_rng(4)
    likely = np.arange(USERS)[:, None] % 2 == np.arange(ITEMS) % 2
    held = likely & (random.random((USERS, ITEMS)) < 0.5)
    scores = learned(model, devices_of(model, np.ones(held.shape), held, POSITIVE), POSITIVE, 10)
    scores[held] = -np.inf
    first = np.argsort(-scores, axis=1)[:, :5]
    assert np.take_along_axis(likely, first, axis=1).mean() > 0.9


def test_the_slopes_of_the_network_are_those_of_its_loss() -> None:
    """Of every parameter and both of a user's vectors, by finite differences."""
    model, random, small = NeuralFiltering(factors=2, deviation=1.0), np.random.default_rng(5), 1e-6
    shared = model.start(6, POSITIVE, random)
    own = model.begin(6, POSITIVE, random)
    items, labels = np.array([1, 4, 4, 0]), np.array([1.0, 0.0, 0.0, 1.0])
    _, slopes, own_slopes = gradients(shared, own, items, labels)
    whole = [np.zeros_like(each) for each in shared[:2]]
    for place, rows in zip(whole, slopes[:2], strict=True):
        np.add.at(place, items, rows)
    for array, slope in zip([*shared, *own], [*whole, *slopes[2:], *own_slopes], strict=True):
        for place in np.ndindex(array.shape):
            losses = []
            for change in (small, -2 * small):
                array[place] += change
                losses.append(gradients(shared, own, items, labels)[0] * labels.size)
            array[place] += small
            assert slope[place] == pytest.approx((losses[0] - losses[1]) / (2 * small), abs=1e-6)


def test_what_a_device_sends_of_its_edges_is_minus_the_slope_of_its_loss() -> None:
    model, small, profile = (
        OwnEdges(size=3, negatives=2),
        1e-6,
        Profile(np.array([1, 4], np.int32), np.full(2, np.nan), 7),
    )
    (items,) = model.start(7, POSITIVE, np.random.default_rng(6))

    def sent() -> Any:
        return model.update((items,), profile, np.random.default_rng(7), ())

    (change,) = sent().change
    for place in np.ndindex(items.shape):
        losses = []
        for move in (small, -2 * small):
            items[place] += move
            losses.append(sent().loss * 4)
        items[place] += small
        assert change[place] == pytest.approx((losses[1] - losses[0]) / (2 * small), abs=1e-6)


def test_a_step_of_factorisation_follows_the_slope_of_squared_errors_and_ridge() -> None:
    """One batch, of which all slopes are those before the step."""
    model = AveragedFactorization(rank=2, epochs=1, rate=1e-6, ridge=0.3)
    random, profile = np.random.default_rng(8), Profile(np.array([0, 3], np.int32), np.array([5.0, 2.0]), 4)
    (items,), (own,) = model.start(4, make.STARS, random), model.begin(4, make.STARS, random)

    def loss(items: Floats, own: Floats) -> float:
        rows = items[profile.items]
        errors = profile.values - rows[:, 0] - own[0] - rows[:, 1:] @ own[1:]
        penalties = (rows[:, 1:] ** 2).sum() + 2 * (own**2).sum()
        return float((errors**2).sum() + 0.3 * penalties) / 2

    made = model.update((items,), profile, random, (own,))
    for array, moved in ((items, made.change[0]), (own, made.state[0] - own)):
        for place in np.ndindex(array.shape):
            losses = []
            for change in (1e-5, -2e-5):
                array[place] += change
                losses.append(loss(items, own))
            array[place] += 1e-5
            assert moved[place] / 1e-6 == pytest.approx((losses[1] - losses[0]) / 2e-5, abs=1e-4)


@in_torch
def test_a_device_trains_its_head_before_the_representation_and_sends_the_latter_alone() -> None:
    """With one feature that is tanh of nearly 0, so that the head is fitted to an offset, by hand."""
    model = SharedRepresentation(size=1, features=1, rate=0.1, head_epochs=1, epochs=1)
    items, layer, offset, head = np.full((3, 1), 0.5), np.full((1, 1), 0.4), np.zeros(1), np.array([3.0, 1.0])
    profile = Profile(np.array([2], np.int32), np.array([4.0]), 3)
    made = model.update((items, layer, offset), profile, np.random.default_rng(0), (head,))
    feature = np.tanh(0.2)
    error = 3.0 + feature - 4.0
    trained = head - 0.1 * error * np.array([1.0, feature])
    assert made.loss == pytest.approx(error**2)
    np.testing.assert_allclose(made.state[0], trained)
    at_feature = (trained[0] + trained[1] * feature - 4.0) * trained[1] * (1 - feature**2)
    np.testing.assert_allclose(made.change[0][:, 0], [0.0, 0.0, -0.1 * at_feature * 0.4])
    np.testing.assert_allclose(made.change[1], [[-0.1 * at_feature * 0.5]])
    np.testing.assert_allclose(made.change[2], [-0.1 * at_feature])


@in_torch
def test_threads_of_torch_change_no_bit() -> None:
    import torch

    model, random = SharedRepresentation(), np.random.default_rng(9)
    parameters = model.start(2000, make.STARS, random)
    held = np.sort(random.choice(2000, 300, replace=False)).astype(np.int32)
    profile, found = Profile(held, random.choice(make.STARS.values, 300), 2000), []
    threads = torch.get_num_threads()
    for count in (1, 4):
        torch.set_num_threads(count)
        state = model.begin(2000, make.STARS, random)
        made = model.update(parameters, profile, np.random.default_rng(1), state)
        found.append([*made.change, *made.state, model.predict(parameters, profile, made.state)])
    torch.set_num_threads(threads)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_torch_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError) as caught:
        simulation.run(make.small_run({"kind": "federated", "model": {"kind": "fedrep"}}), page=False)
    assert str(caught.value).endswith(
        "fedrep: PyTorch is not installed; accepted: pip install 'dprec[torch]'"
    )


def test_items_that_are_drawn_are_all_that_a_user_lacks_evenly() -> None:
    """Six of ten items, 6000 times: each 1000 times but for 6 deviations of 29, with probability 1e-8."""
    profile = Profile(np.array([0, 1, 5, 9], np.int32), np.zeros(4), 10)
    counts = np.bincount(others(np.random.default_rng(1), profile, 6000), minlength=10)
    assert np.flatnonzero(counts).tolist() == [2, 3, 4, 6, 7, 8]
    assert np.abs(counts[counts > 0] - 1000).max() < 6 * 29
    everything = Profile(np.arange(3, dtype=np.int32), np.zeros(3), 3)
    assert others(np.random.default_rng(1), everything, 5).size == 0


def test_batches_hold_every_example_once_in_order_or_shuffled() -> None:
    assert [each.tolist() for each in batches(5, 2)] == [[0, 1], [2, 3], [4]]
    shuffled = np.concatenate(list(batches(50, 7, np.random.default_rng(1))))
    assert sorted(shuffled) == list(range(50))
    assert shuffled.tolist() != list(range(50))
    assert list(batches(0, 7)) == []
    assert scattered(np.array([[1.0], [2.0]]), np.array([2, 0]), 3).tolist() == [[2.0], [0.0], [1.0]]


def test_the_rate_of_items_moves_their_parameters_alone() -> None:
    model = NeuralFiltering(item_rate=7.0)
    ones = tuple(np.ones(1) for _ in range(8))
    moved = model.step(tuple(np.zeros(1) for _ in range(8)), ones, 1)
    assert [float(each[0]) for each in moved] == [7.0, 7.0, *[1.0] * 6]
    assert {each.key for each in deviations(model)} == {"item_rate"}
