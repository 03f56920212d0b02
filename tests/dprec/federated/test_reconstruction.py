"""FedRecon: what a device sends is what the paper's formulas say, and nothing stays on it."""

import numpy as np
import pytest

from dprec.federated import FederatedReconstruction, Profile
from dprec.federated.local_training import examples
from dprec.ratings import POSITIVE

ITEMS = 9
PROFILE = Profile(np.array([1, 4, 7], np.int32), np.full(3, np.nan), ITEMS)


def chance(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


def test_the_support_set_makes_the_users_vector_and_the_query_set_moves_the_table() -> None:
    """Algorithm 1 of the paper, a gradient step for all examples of each set at once, one by one."""
    model = FederatedReconstruction(
        size=3, negatives=2, batch=100, rate=0.3, support_rate=0.2, support_epochs=2, deviation=1.0
    )
    (table,) = model.start(ITEMS, POSITIVE, np.random.default_rng(1))
    (change,) = model.update((table,), PROFILE, np.random.default_rng(2), ()).change

    random = np.random.default_rng(2)
    items, labels = examples(random, PROFILE, 2)
    order = random.permutation(9)
    # Half of nine, rounded to even.
    support, query = order[:4], order[4:]
    own = np.zeros(3)
    for _ in range(2):
        slope = np.zeros(3)
        for place in support:
            vector = table[items[place]]
            slope += (chance(own @ vector) - labels[place]) * vector
        own -= 0.2 * slope
    expected = np.zeros((ITEMS, 3))
    for place in query:
        expected[items[place]] -= 0.3 * (chance(own @ table[items[place]]) - labels[place]) * own
    np.testing.assert_allclose(change, expected, atol=1e-14)


def test_a_second_batch_sees_what_the_first_has_moved() -> None:
    """With one example in a batch, in two passes over a single item and its label."""
    profile, model = (
        Profile(np.zeros(1, np.int32), np.full(1, np.nan), 1),
        FederatedReconstruction(size=2, batch=1, epochs=2, rate=0.5, support=0.01),
    )
    table = np.array([[0.6, -0.3]])
    # There is no other item to draw, and a hundredth of one example is none: the vector stays 0.
    (change,) = model.update((table,), profile, np.random.default_rng(1), ()).change
    assert change.tolist() == [[0.0, 0.0]]
    both = Profile(np.arange(2, dtype=np.int32), np.full(2, np.nan), 2)
    table = np.array([[0.6, -0.3], [0.2, 0.4]])
    model = FederatedReconstruction(size=2, batch=1, epochs=2, rate=0.5, support_epochs=1, support_rate=1.0)
    (change,) = model.update((table,), both, np.random.default_rng(1), ()).change
    ((moved,),) = (np.flatnonzero(change.any(axis=1)),)
    # The other item made the vector.
    own = 0.5 * table[1 - moved]
    vector = table[moved].copy()
    for _ in range(2):
        vector += 0.5 * (1 - chance(own @ vector)) * own
    np.testing.assert_allclose(change[moved], vector - table[moved], atol=1e-14)


def test_nothing_is_kept_and_predictions_follow_from_all_that_a_device_holds() -> None:
    model = FederatedReconstruction(size=3, negatives=2, deviation=1.0)
    (table,) = model.start(ITEMS, POSITIVE, np.random.default_rng(1))
    assert not model.keeps
    assert model.update((table,), PROFILE, np.random.default_rng(2), ()).state == ()
    scores = model.predict((table,), PROFILE, ())
    assert scores.tolist() == model.predict((table,), PROFILE, ()).tolist()
    nobody = Profile(np.zeros(0, np.int32), np.zeros(0), ITEMS)
    assert model.predict((table,), nobody, ()).tolist() == [0.0] * ITEMS
    others = np.setdiff1d(np.arange(ITEMS), PROFILE.items)
    assert scores[PROFILE.items].mean() > scores[others].mean()
    assert model.update((table,), PROFILE, np.random.default_rng(2), ()).loss == pytest.approx(
        np.log(2), rel=0.5
    )
