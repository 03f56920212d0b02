"""Lists from sums of item sets: what sets add, what is learned of it, and what devices are sent."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Floats, offsets
from dprec.lists.gram import DIAGONAL, ridge_of
from dprec.lists.model import ItemTable, ListModel
from dprec.protocols.base import Public
from dprec.protocols.gram import GramProtocol, PairTableOptions, SetDevice
from dprec.protocols.public_start import TasteDevice
from dprec.ratings import POSITIVE
from dprec.sums import UNIT, CentralAggregation, Release
from tests import make
from tests.refusals import refused_at
from tests.summing import contributed, contributions, dense, pairs, played, popularity

USERS, ITEMS = 400, 12

SMALL, CHOSEN = 7, [0, 1, 3, 5, 6]
SETS = st.lists(st.sets(st.integers(0, SMALL - 1)), min_size=1, max_size=6)
CATEGORIES = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0]], bool)
PUBLIC = ListModel(np.zeros(SMALL), CATEGORIES, np.zeros((0, SMALL), dtype=np.uint8), ItemTable.nothing())


def products(fewest: int = 1) -> Release:
    """Return a sum of public features of the other items, for some items."""
    table = PairTableOptions(items=5, popularity_share=0.2, fewest=fewest)
    return TasteDevice(table, PUBLIC, np.array(CHOSEN, dtype=np.int32), np.zeros((5, 0)), 0.0).release(2)


LAYOUTS = [popularity(SMALL), pairs(SMALL), products()]
BOUNDED = [popularity(SMALL, 3), pairs(SMALL, 3), products(3)]


def added(layout: Release, *sets: set[int]) -> Floats:
    """Return what sets add, shape (sets, rows)."""
    items = [item for own in sets for item in sorted(own)]
    return dense(contributed(offsets(np.array([len(own) for own in sets])), items, SMALL), layout)


def expected(layout: Release, own: set[int]) -> Floats:
    """Return the vector of a set, made from its definition."""
    x = np.zeros(SMALL)
    x[list(own)] = 1
    if isinstance(layout.device, TasteDevice):
        features = layout.device.features
        table = np.zeros((5, features.shape[1]))
        for row, item in enumerate(CHOSEN):
            others = features[list(own - {item})].sum(axis=0)
            if item in own and others.any():
                table[row] = others / np.linalg.norm(others) / np.sqrt(len(own & set(CHOSEN)))
        return table.ravel()
    if layout.n_rows == SMALL:
        return x / max(1.0, float(np.sqrt(len(own))))
    both = (np.outer(x, x) * np.where(np.eye(SMALL), DIAGONAL, 1))[np.triu_indices(SMALL)]
    return both / max(float(np.linalg.norm(both)), DIAGONAL)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(sets=SETS)
def test_vectors_are_those_of_the_sets(layout: Release, sets: list[set[int]]) -> None:
    found = added(layout, *sets)
    assert np.allclose(found, [expected(layout, own) for own in sets], rtol=0, atol=2 * UNIT)


@pytest.mark.parametrize("layout", [*LAYOUTS, *BOUNDED, popularity(SMALL, normalised=False)])
def test_the_largest_number_of_a_set_is_as_large_as_is_said(layout: Release) -> None:
    every = [{item for item in range(SMALL) if bits >> item & 1} for bits in range(1 << SMALL)]
    largest = added(layout, *every).max()
    # Features may be spread over several numbers of an item.
    least = 0.9 if isinstance(layout.device, TasteDevice) else 1 - 1e-9
    assert least * layout.largest <= largest <= layout.largest


@pytest.mark.parametrize(("layout", "bounded"), [*zip(LAYOUTS, BOUNDED, strict=True)])
@given(own=st.sets(st.integers(0, SMALL - 1)))
def test_small_sets_count_as_larger_ones_and_large_ones_as_they_are(
    layout: Release, bounded: Release, own: set[int]
) -> None:
    (one,), (other,) = added(layout, own), added(bounded, own)
    n = len(own & set(CHOSEN) if isinstance(layout.device, TasteDevice) else own)
    if n >= 3 or not one.any():
        assert np.array_equal(one, other)
        return
    # As if the weight of 3 items were on fewer.
    of_pairs = layout.n_rows == SMALL * (SMALL + 1) / 2
    weight, least = (DIAGONAL**2 * n + n * (n - 1) / 2, DIAGONAL**2 * 3 + 3) if of_pairs else (n, 3)
    assert np.allclose(other, one * np.sqrt(weight / least), rtol=0, atol=2 * UNIT)


def some_sets(seed: int = 0) -> sp.csr_array:
    """Return sets of two kinds of users, each of whom has items of one half of the catalogue."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, USERS)[:, None]
    likely = np.where(np.arange(ITEMS) // (ITEMS // 2) == kinds, 0.5, 0.05)
    return sp.csr_array((random.random((USERS, ITEMS)) < likely).astype(np.float64))


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
    protocol = GramProtocol(table=PairTableOptions(items=ITEMS, popularity_share=0.0))
    server, devices = played(protocol, make.profiles_of_sets(sets), POSITIVE)
    table = devices[-1].model.table
    sums = contributed(sets.indptr, sets.indices, ITEMS).vectors(pairs(ITEMS)).numbers * UNIT
    assert np.allclose(table.weights, weights_of_exact_sums(sets, ridge_of(sums, 0.0, USERS)), atol=0.01)
    np.testing.assert_allclose(table.roots, server.table.roots, rtol=1e-6)


def test_popularity_alone_is_one_round_and_one_list_for_all() -> None:
    sets, protocol = some_sets(), GramProtocol(table=PairTableOptions(items=0))
    assert protocol.rounds == 1
    _, devices = played(protocol, make.profiles_of_sets(sets), POSITIVE)
    scores = devices[-1].predictions(make.profiles_of_sets(sets))
    assert np.all(scores == scores[0])
    normalised = sp.diags_array(1 / np.sqrt(np.maximum(sets.sum(axis=1), 1))) @ sets
    assert np.array_equal(np.argsort(-scores[0]), np.argsort(-normalised.sum(axis=0)))


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_what_is_left_out_follows_from_public_numbers(epsilon: float) -> None:
    tau = CentralAggregation().multiplier(epsilon, 1e-6) / 6000
    items = PairTableOptions().items_at(tau, 10_000, None)
    assert 50 <= items < 2000
    share = PairTableOptions().suited(items, tau, 10_000).popularity_share
    assert share is not None
    assert 0 < share < 1
    assert PairTableOptions().items_at(1.0, 10_000, None) == 0  # noise that leaves popularity alone
    assert PairTableOptions().items_at(tau, 20, None) == 20
    assert PairTableOptions().suited(20, tau, 20) == PairTableOptions(items=20, popularity_share=0.0)
    given_ = PairTableOptions(items=7, popularity_share=0.5)
    assert given_.suited(7, tau, 20) == given_


def test_a_table_whose_items_nobody_found_is_no_larger() -> None:
    protocol, public = (
        GramProtocol(table=PairTableOptions(items=5, popularity_share=0.2)),
        Public(9, 12, POSITIVE),
    )
    asked = protocol.device(protocol.server(public, None, 0).held.encode(), 12, POSITIVE).release(2)
    assert asked.n_rows == protocol.largest(public)[1].n_rows == 15
    assert protocol.suited(public).table.content
    assert not protocol.suited(replace(public, content=False)).table.content


def a_model(seed: int = 0) -> ListModel:
    random = np.random.default_rng(seed)
    inverse = np.eye(3) + 0.5 * (1 - np.eye(3))
    items = np.array([1, 4, 5], dtype=np.int32)
    table = ItemTable(items, inverse, (random.random(3) + 1).astype(np.float32).astype(float), 0.5)
    categories = random.random((ITEMS, 9)) < 0.5
    bins = random.integers(0, 64, (2, ITEMS), dtype=np.uint8)
    return ListModel(random.standard_normal(ITEMS).astype(np.float32).astype(float), categories, bins, table)


def test_a_model_is_received_as_it_was_sent() -> None:
    sent = a_model()
    received = ListModel.decode(sent.encode(), ITEMS)
    for one, other in zip((sent, sent.table), (received, received.table), strict=True):
        for name, value in vars(one).items():
            assert name == "table" or np.array_equal(getattr(other, name), value)


def test_more_categories_than_fit_are_neither_sent_nor_read() -> None:
    many, items = 1 << 21, 9
    model = replace(a_model(), categories=np.zeros((items, many), dtype=np.bool_))
    with refused_at("the catalogue"):
        model.encode()
    head = np.array([many, 0, 0], dtype="<u4").tobytes() + bytes(4 * (items + 1))
    with pytest.raises(ValueError, match="2097152 categories of 9 items"):
        ListModel.decode(head + bytes(items * many // 8), items)


def test_a_device_without_a_model_predicts_nothing() -> None:
    device = SetDevice(PairTableOptions(items=3), ITEMS, np.arange(3, dtype=np.int32), None)
    with pytest.raises(ValueError, match="have not received"):
        device.predictions(make.profiles_of_sets(some_sets()))


def test_who_has_no_item_of_a_table_adds_nothing_to_it() -> None:
    table = PairTableOptions(items=3, popularity_share=0.2)
    device = SetDevice(table, ITEMS, np.array([1, 4, 5], dtype=np.int32), None)
    people, layout = make.profiles_of_sets(make.sparse_sets([0, 2], [2, 4], items=ITEMS)), device.release(2)
    assert dense(contributions(device, people, layout), layout).any(axis=1).tolist() == [False, True]
