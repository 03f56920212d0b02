"""Devices that count what they draw."""

import numpy as np
from scipy import stats

from dprec.protocols.counted_negatives import CountedNegativesProtocol
from dprec.ratings import Ratings
from tests.make import synthetic

USERS, ITEMS = 40, 30
ROUNDS, NEGATIVES = 50, 4


def counts_of(held: Ratings, seed: int = 7) -> np.ndarray:
    """Return how often each device drew each item, shape (users, items)."""
    protocol = CountedNegativesProtocol(rounds=ROUNDS, negatives=NEGATIVES)
    users, items = (each.ravel() for each in np.indices((USERS, ITEMS)))
    scores = protocol.alone(held, None, seed).predict(users, items)
    return np.ceil(-scores).reshape(USERS, ITEMS).astype(np.int64)


def test_devices_draw_what_their_users_do_not_have_as_often_as_federated_models() -> None:
    held = synthetic(USERS, ITEMS, 400, positive=">= 1")
    counts, sets = counts_of(held), held.to_sets().toarray() > 0
    assert not counts[sets].any()
    np.testing.assert_array_equal(counts.sum(axis=1), ROUNDS * NEGATIVES * held.counts)
    # Evenly among them; false alarms: 1e-6.
    expected = (counts.sum(axis=1) / (~sets).sum(axis=1))[:, None]
    distance = (np.where(sets, 0, counts - expected) ** 2 / expected).sum()
    freedom = (~sets).sum() - USERS
    assert stats.chi2.ppf(5e-7, freedom) < distance < stats.chi2.isf(5e-7, freedom)


def test_what_devices_spare_is_never_drawn_and_ranked_above_all_that_is() -> None:
    whole = synthetic(USERS, ITEMS, 400, positive=">= 1")
    tested = np.zeros(whole.count, dtype=np.bool_)
    tested[whole.indptr[:-1][whole.counts > 1]] = True
    held, apart = whole.select(~tested), whole.select(tested)
    spared, drawn = counts_of(held.beside(apart)), counts_of(held)
    protocol = CountedNegativesProtocol(rounds=ROUNDS, negatives=NEGATIVES)
    scores = protocol.alone(held.beside(apart), None, 7).predict(
        *(each.ravel() for each in np.indices((USERS, ITEMS)))
    )
    ranked = np.where(spared > 0, scores.reshape(USERS, ITEMS), -np.inf).max(axis=1)
    assert (scores.reshape(USERS, ITEMS)[apart.users, apart.items] > ranked[apart.users]).all()
    assert not spared[apart.users, apart.items].any()
    assert drawn[apart.users, apart.items].mean() > 1
    np.testing.assert_array_equal(spared.sum(axis=1), drawn.sum(axis=1))


def test_what_stands_beside_ratings_has_level_zero_and_changes_none_of_them() -> None:
    whole = synthetic(USERS, ITEMS, 400)
    kept = np.arange(400) % 3 > 0
    beside = whole.select(kept).beside(whole.select(~kept))
    np.testing.assert_array_equal(beside.cells, whole.cells)
    np.testing.assert_array_equal(beside.indptr, whole.indptr)
    np.testing.assert_array_equal(beside.levels, np.where(kept, whole.levels, 0))
