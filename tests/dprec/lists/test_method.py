"""Lists from sums: what devices are sent and rank by, and that the server reads hostile bytes of nobody."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.gradients import Aggregate
from dprec.lists import ListMethod, TableOptions
from dprec.lists.contributions import DIAGONAL, PairLayout, SetContributions
from dprec.lists.gram import ridge_of
from dprec.lists.method import ListDevice, ListLearner
from dprec.lists.model import ItemTable, ListModel
from dprec.randomness import ReleaseDraws
from dprec.sums import UNIT, Releases, TrustedAggregation
from tests import make
from tests.hostile import devices_sent
from tests.make import STARS
from tests.refusals import refused_at

USERS, ITEMS = 400, 12


def some_sets(seed: int = 0) -> sp.csr_array:
    """Return sets of two kinds of users, each of whom has items of one half of the catalogue."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, USERS)[:, None]
    likely = np.where(np.arange(ITEMS) // (ITEMS // 2) == kinds, 0.5, 0.05)
    return sp.csr_array((random.random((USERS, ITEMS)) < likely).astype(np.float64))


def learned(
    sets: sp.csr_array,
    options: TableOptions,
    multiplier: float,
    catalogue: Catalogue | None = None,
    of_features: bool = False,
) -> tuple[ListMethod, ListLearner, ListDevice]:
    """Run the rounds without messages, and return what devices hold at the end."""
    method, profiles = ListMethod(options=options, of_features=of_features), make.profiles_of_sets(sets)
    multipliers = tuple(multiplier / np.sqrt(share) for share in method.shares)
    learner = method.learner(Releases(USERS, ITEMS, STARS), catalogue, 0)
    for number, noise in enumerate(multipliers, start=1):
        device = method.device(learner.model_bytes(), ITEMS, STARS)
        layout = device.layout(number)
        words = np.zeros(profiles.items.size, dtype=np.uint64)
        vectors = device.contributions(profiles, layout, number, words)
        valid, total = layout.added_up(vectors.encode(layout))
        assert valid.all()
        released = TrustedAggregation().release(
            Aggregate(total, None, USERS), layout, noise, ReleaseDraws(0, number)
        )
        learner.learn(number, released, layout, noise, USERS)
    return method, learner, method.device(learner.learned_bytes(), ITEMS, STARS)


def weights_of_exact_sums(sets: sp.csr_array, ridge: float) -> Floats:
    """Return the regression of each item on all others, from what users contribute to pairs."""
    counts = sets.sum(axis=1)
    squares = DIAGONAL**2 * counts + counts * (counts - 1) / 2
    scaled = sp.diags_array(1 / np.sqrt(np.maximum(squares, DIAGONAL**2))) @ sets
    inverse = np.linalg.inv((sets.T @ scaled).toarray() + ridge * np.eye(ITEMS))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def test_without_noise_the_weights_are_those_of_the_regression() -> None:
    sets = some_sets()
    _, learner, device = learned(sets, TableOptions(items=ITEMS, popularity_share=0.0), 0.0)
    assert device.model is not None
    table = device.model.table
    pairs = SetContributions(sets.indptr.astype(np.int64), sets.indices.astype(np.int32))
    sums = pairs.vectors(PairLayout(ITEMS)).numbers * UNIT
    expected = weights_of_exact_sums(sets, ridge_of(sums, 0.0, USERS))
    assert np.allclose(table.weights, expected, atol=0.01)
    np.testing.assert_allclose(table.roots, learner._table.roots, rtol=1e-6)


def test_popularity_alone_is_one_round_and_one_list_for_all() -> None:
    sets = some_sets()
    method, _, device = learned(sets, TableOptions(items=0), 0.0)
    assert method.rounds == 1
    scores = device.predictions(make.profiles_of_sets(sets))
    assert np.all(scores == scores[0])
    normalised = sp.diags_array(1 / np.sqrt(np.maximum(sets.sum(axis=1), 1))) @ sets
    assert np.array_equal(np.argsort(-scores[0]), np.argsort(-normalised.sum(axis=0)))


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_what_is_left_out_follows_from_public_numbers(epsilon: float) -> None:
    tau = TrustedAggregation().multiplier(epsilon, 1e-6) / 6000
    suited = TableOptions().suited(tau, 10_000)
    assert suited.items is not None
    assert 50 <= suited.items < 2000
    assert suited.popularity_share is not None
    assert 0 < suited.popularity_share < 1
    assert TableOptions().suited(1.0, 10_000).items == 0  # noise that leaves popularity alone
    assert TableOptions().suited(tau, 20) == TableOptions(items=20, popularity_share=0.0)
    assert TableOptions(items=7, popularity_share=0.5).suited(tau, 20) == TableOptions(
        items=7, popularity_share=0.5
    )


def test_a_table_whose_items_nobody_found_is_no_larger() -> None:
    method = ListMethod(options=TableOptions(items=5, popularity_share=0.2))
    releases = Releases(USERS, ITEMS, STARS)
    learner = method.learner(releases, None, 0)
    asked = method.device(learner.model_bytes(), ITEMS, STARS).layout(2)
    assert asked.n_rows == learner.layout(2).n_rows == method.largest_layouts(releases)[1].n_rows == 15


def a_model(seed: int = 0) -> ListModel:
    random = np.random.default_rng(seed)
    inverse = np.eye(3) + 0.5 * (1 - np.eye(3))
    items = np.array([1, 4, 5], dtype=np.int32)
    table = ItemTable(items, inverse, (random.random(3) + 1).astype(np.float32).astype(float), 0.5)
    categories = random.random((ITEMS, 9)) < 0.5
    bins = random.integers(0, 64, (2, ITEMS), dtype=np.uint8)
    popularity = random.standard_normal(ITEMS).astype(np.float32).astype(float)
    return ListModel(popularity, categories, bins, table)


def test_a_model_is_received_as_it_was_sent() -> None:
    sent = a_model()
    received = ListModel.decode(sent.encode(), ITEMS)
    for one, other in zip(
        (sent.popularity, sent.categories, sent.bins, sent.table.items, sent.table.inverse, sent.table.roots),
        (
            *(received.popularity, received.categories, received.bins),
            *(received.table.items, received.table.inverse, received.table.roots),
        ),
        strict=True,
    ):
        assert np.array_equal(one, other)
    assert received.table.share == sent.table.share


def test_more_categories_than_fit_are_neither_sent_nor_read() -> None:
    many, items = 1 << 21, 9
    model = replace(a_model(), categories=np.zeros((items, many), dtype=np.bool_))
    with refused_at("the catalogue"):
        model.encode()
    head = np.array([many, 0, 0], dtype="<u4").tobytes() + bytes(4 * (items + 1))
    with pytest.raises(ValueError, match="2097152 categories of 9 items"):
        ListModel.decode(head + bytes(items * many // 8), items)


@given(data=st.data())
def test_no_bytes_of_a_server_harm_a_device(data: st.DataObject) -> None:
    method = ListMethod(options=TableOptions(items=3, popularity_share=0.1))
    good = b"\2" + a_model().encode()
    for device in devices_sent(data, good, lambda sent: method.device(sent, ITEMS, STARS)):
        layout = device.layout(1)
        assert layout.n_rows == ITEMS
        if device.model is not None:
            assert np.isfinite(device.predictions(make.profiles_of_sets(some_sets()))).all()
