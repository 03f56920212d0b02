"""Lists by graph filters, held against GF-CF with exact eigenvectors, computed densely."""

from typing import Any

import numpy as np
import pytest

from dprec.arrays import Floats, offsets
from dprec.completion import Profiles
from dprec.components import deviations
from dprec.errors import SettingError
from dprec.protocols.base import Public
from dprec.protocols.graph_filter import GraphFilterOptions, GraphFilterProtocol
from dprec.randomness import ReleaseDraws
from dprec.ratings import POSITIVE
from dprec.sums import SecureAggregation, ShuffledAggregation
from tests.summing import contributions, dense, devices, played

USERS, ITEMS, RANK, LOW_PASS = 60, 16, 3, 0.7


def test_secure_sums_without_noise_are_the_papers() -> None:
    assert deviations(GraphFilterProtocol()) == ()
    (shuffled,) = deviations(GraphFilterProtocol(aggregation=ShuffledAggregation()))
    assert shuffled.value == "privirec with shuffle"


def population() -> Floats:
    """Return sets of three tastes, so that the third eigenvalue stands out; nobody has the last item."""
    random = np.random.default_rng(3)
    likely = np.where(np.arange(USERS)[:, None] % 3 == np.arange(ITEMS) % 3, 0.6, 0.08)
    sets = (random.random((USERS, ITEMS)) < likely).astype(np.float64)
    sets[:, -1] = 0
    return sets


def profiles_of(sets: Floats) -> Profiles:
    users, items = np.nonzero(sets)
    counts = np.bincount(users, minlength=len(sets))
    return Profiles(offsets(counts), items.astype(np.int32), np.full(items.size, np.nan), ITEMS)


def exact(sets: Floats, *, low_rank: bool) -> Floats:
    """Return the scores of GF-CF; of low rank, with the best approximation of the item-item matrix."""
    of_users, of_items = (np.maximum(sets.sum(axis=axis), 1.0) for axis in (1, 0))
    normalised = sets / np.sqrt(np.outer(of_users, of_items))
    together = normalised.T @ normalised
    values, vectors = np.linalg.eigh(together)
    leading = vectors[:, -RANK:]
    if low_rank:
        together = leading * values[-RANK:] @ leading.T
    smooth = leading @ leading.T * np.sqrt(of_items) / np.sqrt(of_items)[:, None]
    scores: Floats = sets @ (together + LOW_PASS * smooth)
    return scores


def protocol(**given: Any) -> GraphFilterProtocol:
    options = GraphFilterOptions(rank=RANK, low_pass=LOW_PASS, iterations=30, **given)
    return GraphFilterProtocol(filters=options).suited(Public(USERS, ITEMS, POSITIVE))


@pytest.mark.parametrize("low_rank", [False, True])
def test_scores_are_those_of_gf_cf(low_rank: bool) -> None:
    """To the single precision of what devices are sent."""
    sets = population()
    _, held = played(protocol(low_rank=low_rank), profiles_of(sets), POSITIVE)
    found, expected = held[-1].predictions(profiles_of(sets)), exact(sets, low_rank=low_rank)
    np.testing.assert_allclose(found, expected, atol=3e-6 * np.abs(expected).max())
    # An item that nobody has says nothing, and nothing says anything of it.
    assert not found[:, -1].any()


def test_secure_sums_are_as_exact_as_their_grid() -> None:
    sets, suited = population(), protocol()
    people, aggregation = profiles_of(sets), suited.adding_up
    server = suited.server(Public(USERS, ITEMS, POSITIVE), None, 0)
    for number in range(1, suited.rounds + 1):
        layout = server.held.release(number)
        own = contributions(server.held, people, layout)
        _, total = aggregation.summed(
            own, layout, 0.0, devices(USERS, number), np.ones(USERS, dtype=np.bool_)
        )
        server.learn(
            layout, number, aggregation.release(total, layout, 0.0, ReleaseDraws(1, number)), 0.0, USERS
        )
    expected = exact(sets, low_rank=False)
    apart = np.linalg.norm(server.learned.predictions(people) - expected) / np.linalg.norm(expected)
    assert 0 < apart < 2e-3


def test_rounds_sum_users_of_items_pairs_and_products() -> None:
    """As the formulas have them, up to the factors that make contributions at most 1 long."""
    sets = population()
    _, held = played(protocol(), profiles_of(sets), POSITIVE)
    shares = sets / np.maximum(sets.sum(axis=1, keepdims=True), 1.0)
    vectors = held[2].vectors
    assert np.linalg.norm(vectors, 2) == pytest.approx(1, abs=1e-5)
    rows = [
        sets / 4,
        np.array(
            [np.outer(own, part)[np.triu_indices(ITEMS)] for own, part in zip(sets, shares, strict=True)]
        ),
        np.array([np.outer(part, own @ vectors).ravel() for own, part in zip(sets, shares, strict=True)]),
    ]
    for number, expected in enumerate(rows, start=1):
        layout = held[number - 1].release(number)
        own = dense(contributions(held[number - 1], profiles_of(sets), layout), layout)
        np.testing.assert_allclose(own, expected, atol=1e-10)


def test_no_epsilon_is_told_and_why() -> None:
    guarantee = protocol().guarantee((USERS, ITEMS))
    assert (guarantee.status, guarantee.trust) == ("none", "secure-aggregation")
    assert "no epsilon bounds what they tell" in guarantee.reason
    assert guarantee.reason.endswith("hold everything else that the user has.")
    # Without a sum of pairs, an item's row of a product is that of its only user.
    few = protocol(low_rank=True).guarantee((USERS, ITEMS))
    assert few.reason.endswith("each round tells the mean of the vectors of all that the user has.")
    assert isinstance(protocol().aggregation, SecureAggregation)


def test_a_matrix_of_many_items_is_refused_where_it_is_summed() -> None:
    public = Public(USERS, 5000, POSITIVE)
    with pytest.raises(SettingError, match=r"low_rank.*false, for 5000 items.*at most 4096 items"):
        GraphFilterProtocol().check_settings(public)
    GraphFilterProtocol(filters=GraphFilterOptions(low_rank=True)).check_settings(public)
