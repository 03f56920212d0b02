"""Federated models as published: a step of each beside its paper's formula, and what devices keep."""

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.components import deviations
from dprec.federated import CountedFiltering, FederatedModel, GradientFactorization, PersonalTables, Profile
from dprec.federated.local_training import others
from dprec.federated.neural_filtering import gradients
from dprec.ratings import POSITIVE
from dprec.testing import contract

ITEMS = 9
HELD = np.array([1, 4, 6], np.int32)
PROFILE = Profile(HELD, np.full(3, np.nan), ITEMS)

TestPublished = contract(
    PersonalTables(size=3, epochs=2, batch=16),
    GradientFactorization(size=3, batch=8, deviation=0.1),
    CountedFiltering(factors=2, epochs=2, batch=16),
    sizes={"rounds": 2},  # What a round leaves behind is in the second.
)


def begun(model: FederatedModel) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    random = np.random.default_rng(1)
    return model.start(ITEMS, POSITIVE, random), model.begin(ITEMS, POSITIVE, random)


def examples(negatives: int) -> tuple[list[int], list[float]]:
    """Return the items and the labels that a device of seed 2 trains on in its first epoch."""
    drawn = others(np.random.default_rng(2), PROFILE, negatives * HELD.size).tolist()
    return [*HELD.tolist(), *drawn], [1.0] * HELD.size + [0.0] * len(drawn)


def logistic(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


def test_a_score_function_steps_before_the_table_which_follows_the_new_one() -> None:
    """One batch of Algorithm 1 of PFedRec, example by example; items that were drawn twice move twice."""
    model = PersonalTables(size=2, rate=0.3, table_rate=0.7)
    (table,), own = begun(model)[0], np.array([0.6, -0.2, 0.1])
    made = model.update((table,), PROFILE, np.random.default_rng(2), (own, np.zeros(ITEMS)))
    chosen, labels = examples(4)
    weights, offset = own[:2], own[2]
    slope = np.zeros(3)
    for item, label in zip(chosen, labels, strict=True):
        slope += (logistic(table[item] @ weights + offset) - label) * np.array([*table[item], 1.0])
    weights, offset = weights - 0.3 * slope[:2] / 15, offset - 0.3 * slope[2] / 15
    expected, losses = table.copy(), []
    for item, label in zip(chosen, labels, strict=True):
        likely = logistic(table[item] @ weights + offset)
        losses.append(-np.log(likely if label else 1 - likely))
        expected[item] -= 0.3 * 0.7 * ITEMS / 15 * (likely - label) * weights
    assert len(set(chosen)) < len(chosen)
    np.testing.assert_allclose(table + made.change[0], expected, atol=1e-12)
    np.testing.assert_allclose(made.state[0], [*weights, offset], atol=1e-12)
    np.testing.assert_allclose(made.state[1], expected @ weights + offset, atol=1e-12)
    assert made.loss == pytest.approx(np.mean(losses))
    np.testing.assert_array_equal(model.predict((table,), PROFILE, made.state), made.state[1])


def test_a_device_that_never_trained_predicts_by_the_table_of_the_server() -> None:
    model = PersonalTables(size=2)
    (table,), state = begun(model)
    expected = table.sum(axis=1) / np.sqrt(6)
    np.testing.assert_allclose(model.predict((table,), PROFILE, state), expected)


def test_a_device_sends_the_gradients_of_its_items_under_its_new_vector() -> None:
    """One step of the user-level algorithm of FedMF; errors are those before it, as in the authors' code."""
    model = GradientFactorization(size=2, rate=0.05, ridge=0.3, negatives=2, epochs=1, item_rate=4.0)
    (items,), (own,) = begun(model)
    made = model.update((items,), PROFILE, np.random.default_rng(2), (own,))
    chosen, labels = examples(2)
    errors = [label - items[item] @ own for item, label in zip(chosen, labels, strict=True)]
    upward = sum(error * items[item] for item, error in zip(chosen, errors, strict=True))
    stepped = own + 0.05 * 2 * (upward - 0.3 * own)
    gradients = np.zeros_like(items)
    for item, error in zip(chosen, errors, strict=True):
        gradients[item] += 2 * (error * stepped - 0.3 * items[item])
    np.testing.assert_allclose(made.state[0], stepped, atol=1e-12)
    np.testing.assert_allclose(made.change[0], gradients, atol=1e-12)
    (moved,) = model.step((items,), made.change, 1)
    np.testing.assert_allclose(moved, items + 4.0 * gradients)


def test_the_first_step_of_adam_is_its_rate_against_the_sign_of_every_slope() -> None:
    """Of one batch; Adam divides a slope by its size, and what no example has stays."""
    model = CountedFiltering(factors=2, negatives=1, epochs=1, batch=99, rate=0.01, deviation=0.5)
    parameters, state = begun(model)
    made = model.update(parameters, PROFILE, np.random.default_rng(2), state)
    chosen, labels = (np.array(each) for each in examples(1))
    trained = np.isin(np.arange(ITEMS), chosen)
    assert 0 < trained.sum() < ITEMS
    assert (made.change[-1] > 0).tolist() == trained.tolist()
    _, slopes, of_user = gradients(parameters[:-1], state, chosen, labels)
    upward = [np.zeros_like(each) for each in parameters[:2]]
    for whole, rows in zip(upward, slopes[:2], strict=True):
        np.subtract.at(whole, chosen, rows)
    moved = [*made.change[:-1], *(new - old for new, old in zip(made.state, state, strict=True))]
    for change, along in zip(moved, [*upward, *(-each for each in (*slopes[2:], *of_user))], strict=True):
        np.testing.assert_allclose(change, 0.01 * along / (np.abs(along) + 1e-8), atol=1e-12)


def test_the_server_divides_an_items_change_by_how_many_trained_it() -> None:
    """Of four devices, two trained the first item and none the last; the network has the mean of all."""
    model = CountedFiltering(factors=1, layers=1)
    random = np.random.default_rng(3)
    parameters = model.start(3, POSITIVE, random)
    profiles = [
        Profile(np.array(held, np.int32), np.full(len(held), np.nan), 3) for held in ([0], [0], [1], [1])
    ]
    made = [model.update(parameters, each, random, model.begin(3, POSITIVE, random)) for each in profiles]
    changes = [np.stack(each) for each in zip(*(each.change for each in made), strict=True)]
    counts = (changes[-1] > 0).sum(axis=0)
    moved = model.step(parameters, tuple(each.mean(axis=0) for each in changes), 1)
    for old, new, change in zip(parameters[:2], moved[:2], changes[:2], strict=True):
        np.testing.assert_allclose(new, old + change.sum(axis=0) / np.maximum(counts, 1)[:, None], atol=1e-12)
    for old, new, change in zip(parameters[2:-1], moved[2:-1], changes[2:-1], strict=True):
        np.testing.assert_allclose(new, old + change.mean(axis=0))
    assert not moved[-1].any()


@pytest.mark.parametrize("model", [PersonalTables(size=3), GradientFactorization(size=3), CountedFiltering()])
def test_what_devices_keep_never_moves_the_parameters(model: FederatedModel) -> None:
    """The next parameters follow from what is sent, whatever a device keeps, and that is no part of it."""
    parameters, state = begun(model)
    made = model.update(parameters, PROFILE, np.random.default_rng(2), state)
    assert [each.shape for each in made.change] == [each.shape for each in parameters]
    assert any((new != old).any() for new, old in zip(made.state, state, strict=True))
    other = made._replace(state=tuple(np.zeros_like(each) for each in state))
    moved = [model.step(parameters, each.change, 1) for each in (made, other)]
    for one, another in zip(*moved, strict=True):
        np.testing.assert_array_equal(one, another)


def test_settings_that_leave_the_papers_are_data() -> None:
    assert not deviations(PersonalTables())
    assert {each.key for each in deviations(GradientFactorization())} == {"batch"}
    assert {each.key for each in deviations(CountedFiltering(item_rate=2.0, deviation=0.1))} == {
        *("item_rate", "deviation")
    }
