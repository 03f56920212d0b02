"""Lists from sums of item sets: what sets add, what is learned of it, and what devices are sent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, Ints, offsets
from dprec.lists.departures import departure_of_sum, ridge_of
from dprec.lists.gram import DIAGONAL, DenoisedTable, popularity_share, table_items
from dprec.lists.groups import LIFT_STEP, MOST_GROUPS, ItemGroups
from dprec.lists.model import POPULARITY_STEP, ROOTS_STEP, ListModel, PairTable
from dprec.protocols import gram
from dprec.protocols.base import Public
from dprec.protocols.gram import GramProtocol, PairsInBlanketProtocol, PairTableOptions, SetDevice
from dprec.protocols.public_start import TasteDevice
from dprec.protocols.searches import SearchOptions
from dprec.ratings import POSITIVE
from dprec.sums import UNIT, CentralAggregation, LocalAggregation, Release, SecureAggregation
from tests import make
from tests.refusals import refused_at
from tests.summing import contributed, contributions, dense, pairs, played, popularity

USERS, ITEMS = 400, 12

SMALL, CHOSEN = 7, [0, 1, 3, 5, 6]
SETS = st.lists(st.sets(st.integers(0, SMALL - 1)), min_size=1, max_size=6)
CATEGORIES = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0]], bool)
PUBLIC = ListModel(np.zeros(SMALL), CATEGORIES, np.zeros((0, SMALL), dtype=np.uint8), PairTable.nothing())


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
    vectors = contributed(sets.indptr, sets.indices, ITEMS).vectors(pairs(ITEMS))
    sums = np.bincount(vectors.rows, vectors.numbers[:, 0] * UNIT, ITEMS * (ITEMS + 1) // 2)
    departed = departure_of_sum(sums, 1e-9, USERS)
    weights = weights_of_exact_sums(sets, ridge_of(sums, 0.0, USERS, departed))
    assert np.allclose(server.table.weights, weights, atol=0.01)
    assert np.allclose(devices[-1].model.table.weights, weights, atol=0.03)


def test_popularity_alone_is_one_round_and_one_list_for_all() -> None:
    sets, protocol = some_sets(), GramProtocol(table=PairTableOptions(items=0))
    assert protocol.rounds == 1
    _, devices = played(protocol, make.profiles_of_sets(sets), POSITIVE)
    scores = devices[-1].predictions(make.profiles_of_sets(sets))
    assert np.all(scores == scores[0])
    normalised = sp.diags_array(1 / np.sqrt(np.maximum(sets.sum(axis=1), 1))) @ sets
    apart = scores[0] - np.log(normalised.sum(axis=0))
    assert np.ptp(apart) <= 1.01 * POPULARITY_STEP


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_what_is_left_out_follows_from_public_numbers(epsilon: float) -> None:
    tau, options = CentralAggregation().multiplier(epsilon, 1e-6) / 6000, PairTableOptions()
    items = table_items(tau, 10_000, content=True)
    assert 50 <= items < 2000
    share = options.suited(items, tau, 10_000).popularity_share
    assert share is not None
    assert 0 < share < 1
    assert table_items(1.0, 10_000, content=True) == 0  # noise that leaves popularity alone
    assert table_items(tau, 20, content=True) == 20
    assert table_items(tau, 10_000, content=True, most_numbers=56) == 10  # of 11 items there are 66 pairs
    # A table of all items has it too.
    whole = PairTableOptions(items=20, popularity_share=popularity_share(tau, 20, content=True))
    assert options.suited(20, tau, 20) == whole
    given_ = PairTableOptions(items=7, popularity_share=0.5)
    assert given_.suited(7, tau, 20) == given_


def test_groups_that_are_left_out_follow_from_public_numbers() -> None:
    given_ = PairTableOptions(items=400, popularity_share=0.2)
    by_rule = given_.grouped(400, 1.4e-4, 8_000)
    assert (by_rule.groups, by_rule.grouped_items) == (20, 4_000)
    assert by_rule.shares == (1 - 0.8, 0.8 - 0.2, 0.2)
    assert by_rule.grouped(400, 1.4e-4, 8_000) == by_rule
    assert given_.grouped(400, 1e-3, 8_000) == replace(given_, groups=0)
    own = replace(given_, groups=30, grouped_items=500)
    assert own.grouped(400, 1e-3, 8_000) == own
    assert replace(own, grouped_items=5).grouped(400, 1e-3, 8_000).grouped_items == 400
    assert own.grouped(9, 1e-3, 300) == replace(own, groups=9, grouped_items=300)
    # Rounds of a search, of pairs, of groups.
    searched = replace(by_rule, search=SearchOptions(numbers=500, rounds=2))
    assert [searched.kind_of(number) for number in (1, 2, 3, 4)] == [0, 0, 1, 2]
    with refused_at("groups_share"):
        replace(by_rule, popularity_share=0.9).check(8_000)
    # Devices that protect what they send have no noise for less than nothing.
    budget = PrivacyBudget(epsilon=1.0, per="user")
    table = PairTableOptions(items=5, popularity_share=0.9, groups=2)
    local = GramProtocol(table=table, privacy=budget, aggregation=LocalAggregation())
    with refused_at("table.groups_share"):
        local.suited(Public(900, 12, POSITIVE))


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
    table = PairTable(items, inverse, (random.random(3) + 1).astype(np.float32).astype(float), 0.5)
    categories = random.random((ITEMS, 9)) < 0.5
    bins = random.integers(0, 64, (2, ITEMS), dtype=np.uint8)
    return ListModel(random.standard_normal(ITEMS).astype(np.float32).astype(float), categories, bins, table)


def a_larger_model(items: int = 60) -> ListModel:
    random = np.random.default_rng(5)
    sums = random.standard_normal((300, 40))
    inverse = np.linalg.inv(sums.T @ sums + 30 * np.eye(40))
    roots = np.sqrt(np.diag(inverse))
    table = PairTable(np.arange(0, 40, dtype=np.int32), inverse / np.outer(roots, roots), roots, 0.5)
    nothing = np.zeros((items, 0), dtype=np.bool_), np.zeros((0, items), dtype=np.uint8)
    return ListModel(random.standard_normal(items), *nothing, table)


def some_groups(items: int, groups: int, seed: int = 6) -> ItemGroups:
    """Return groups of every other item."""
    random, own = np.random.default_rng(seed), np.arange(0, items, 2, dtype=np.int32)
    return ItemGroups(own, random.standard_normal((own.size, groups)), random.standard_normal(groups), 0.75)


GROUPED = replace(a_larger_model(), groups=some_groups(60, 4))


@pytest.mark.parametrize(
    "sent",
    [
        a_model(),
        a_larger_model(),
        replace(a_model(), table=PairTable.nothing()),
        GROUPED,
        replace(a_model(), table=PairTable.nothing(), groups=some_groups(ITEMS, 1)),
    ],
)
def test_a_model_is_received_within_half_a_step_and_sent_on_as_it_was_received(sent: ListModel) -> None:
    n_items = sent.popularity.size
    received = ListModel.decode(sent.encode(), n_items)
    of_popularity, of_roots, of_inverse = 0.51 * np.array(sent.sent_steps)
    np.testing.assert_allclose(received.popularity, sent.popularity, rtol=0, atol=of_popularity)
    np.testing.assert_allclose(np.log(received.table.roots), np.log(sent.table.roots), rtol=0, atol=of_roots)
    np.testing.assert_allclose(received.table.inverse, sent.table.inverse, rtol=0, atol=of_inverse)
    assert (np.diag(received.table.inverse) == 1).all()
    for one, other, names in (
        (sent, received, ("categories", "bins")),
        (sent.table, received.table, ("items", "share")),
        (sent.groups, received.groups, ("items", "share")),
    ):
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    lifts = sent.groups.lifts
    np.testing.assert_allclose(received.groups.lifts, lifts, rtol=0, atol=0.51 * LIFT_STEP)
    np.testing.assert_allclose(received.groups.expected, sent.groups.expected, rtol=0, atol=0.51 * ROOTS_STEP)
    assert received.encode() == sent.encode()


def test_a_limit_makes_steps_longer_and_then_leaves_the_most_popular_items_of_the_table() -> None:
    sent = a_larger_model()
    whole = len(sent.encode())
    assert sent.within(None) is sent.within(whole) is sent
    most, items, steps = whole - 1, [40], [sent.sent_steps[2]]
    while most > 50:
        found = sent.within(most)
        own = len(found.encode())
        assert own <= most
        items.append(found.table.items.size)
        steps.append(found.sent_steps[2])
        assert items[-1] < items[-2] or steps[-1] > steps[-2]
        popular = np.argsort(-sent.popularity[:40])[: items[-1]]
        assert found.table.items.tolist() == sorted(popular.tolist())
        most = own - 1
    assert set(items) == {40, 20, 10, 5, 2, 0}
    with refused_at("max_bytes_down"):
        sent.within(20)


@pytest.mark.parametrize("part", [0.9, 0.7, 0.4])
def test_a_model_with_groups_is_within_a_limit_too(part: float) -> None:
    most = int(part * len(GROUPED.encode()))
    found = GROUPED.within(most)
    assert len(found.encode()) <= most
    # Groups stay as long as their table does, in longer steps.
    assert (found.groups.items.size > 0) == (found.table.items.size == 40)
    assert found.groups.step > LIFT_STEP or not found.groups.items.size
    received = ListModel.decode(found.encode(), 60)
    assert received.encode() == found.encode()
    assert received.groups.step == pytest.approx(found.groups.step)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(GROUPED, groups=replace(GROUPED.groups, lifts=GROUPED.groups.lifts + 250)),
        replace(GROUPED, groups=replace(GROUPED.groups, expected=GROUPED.groups.expected - 250)),
        replace(GROUPED, groups=replace(GROUPED.groups, share=201.0)),
        replace(GROUPED, groups=replace(GROUPED.groups, share=float("nan"))),
        replace(GROUPED, groups=some_groups(60, MOST_GROUPS + 1)),
    ],
)
def test_groups_out_of_range_are_refused(wrong: ListModel) -> None:
    with pytest.raises(ValueError, match=r"out of range|151 groups"):
        ListModel.decode(wrong.encode(), 60)


@pytest.mark.parametrize("farthest", [99.0, 101.0])
def test_roots_with_which_scores_would_overflow_are_refused(farthest: float) -> None:
    signs = np.where(np.arange(3) % 2, 1.0, -1.0)
    sent = replace(a_model(), table=replace(a_model().table, roots=np.exp(farthest * signs)))
    if farthest > 100:
        with pytest.raises(ValueError, match="roots out of range"):
            ListModel.decode(sent.encode(), ITEMS)
        return
    received = ListModel.decode(sent.encode(), ITEMS)
    with np.errstate(over="raise", invalid="raise"):
        assert np.isfinite(received.scores(sp.csr_array(np.eye(ITEMS)))).all()


def test_a_table_of_some_of_its_items_is_that_of_a_smaller_regression() -> None:
    random = np.random.default_rng(6)
    sums = random.standard_normal((50, 6))
    whole = sums.T @ sums + np.eye(6)
    popularity = np.diag(whole).copy()
    pairs_of = DenoisedTable(whole - np.diag(popularity), popularity)
    kept = np.array([0, 2, 5])
    smaller = DenoisedTable(pairs_of.pairs[np.ix_(kept, kept)], popularity[kept])
    large = PairTable.of(np.arange(6, dtype=np.int32), pairs_of, 2.0, 0.5).among(kept)
    small = PairTable.of(kept.astype(np.int32), smaller, 2.0, 0.5)
    np.testing.assert_allclose(large.inverse, small.inverse, atol=1e-12)
    np.testing.assert_allclose(large.roots, small.roots, atol=1e-12)
    assert large.items.tolist() == [0, 2, 5]


def test_more_categories_than_fit_are_neither_sent_nor_read() -> None:
    many, items = 1 << 21, 9
    model = replace(a_model(), categories=np.zeros((items, many), dtype=np.bool_))
    with refused_at("the catalogue"):
        model.encode()
    head = np.array([many, 0, 0], dtype="<u4").tobytes()
    with pytest.raises(ValueError, match="2097152 categories of 9 items"):
        ListModel.decode(head + bytes(99), items)


def test_a_device_without_a_model_predicts_nothing() -> None:
    device = SetDevice.begun(PairTableOptions(items=3), ITEMS)
    with pytest.raises(ValueError, match="have not received"):
        device.predictions(make.profiles_of_sets(some_sets()))


def test_who_has_no_item_of_a_table_adds_nothing_to_it() -> None:
    table = PairTableOptions(items=3, popularity_share=0.2)
    begun = SetDevice.begun(table, ITEMS)
    device = replace(begun, pairs=replace(begun.pairs, items=np.array([1, 4, 5], dtype=np.int32)))
    people, layout = make.profiles_of_sets(make.sparse_sets([0, 2], [2, 4], items=ITEMS)), device.release(2)
    assert dense(contributions(device, people, layout), layout).any(axis=1).tolist() == [False, True]


TASTES, TABLE, TAIL = 3, 12, 180


def people_of_tastes(users: int = 2_000) -> tuple[sp.csr_array, Ints]:
    """Return sets of users of one taste each, and the tastes, which items have in turn, popular first."""
    random = np.random.default_rng(8)
    tastes = random.integers(0, TASTES, users)
    likely = np.concatenate([np.full(TABLE, 0.45), np.full(TAIL, 0.1)])
    likely = likely * np.where(np.arange(likely.size) % TASTES == tastes[:, None], 1.0, 0.15)
    return sp.csr_array((random.random(likely.shape) < likely).astype(np.float64)), tastes


@pytest.mark.parametrize(("groups", "least", "most"), [(TASTES, 0.9, 1.0), (0, 0.45, 0.55)])
def test_items_outside_of_the_table_are_ranked_well_by_groups_alone(
    groups: int, least: float, most: float
) -> None:
    sets, tastes = people_of_tastes()
    table = PairTableOptions(items=TABLE, popularity_share=0.2, groups=groups, grouped_items=TABLE + TAIL)
    people = make.profiles_of_sets(sets)
    server, devices = played(GramProtocol(table=table), people, POSITIVE, multiplier=0.5)
    assert not any(device.again for device in devices)
    assert devices[1].pairs.items.tolist() == list(range(TABLE))
    if groups:
        of_table = devices[2].groups.groups[:TABLE]
        assert len(set(zip(of_table.tolist(), np.arange(TABLE) % TASTES, strict=True))) == TASTES
        assert server.groups.items.size == TABLE + TAIL
    tail = devices[-1].predictions(people)[:, TABLE:]
    of_taste = np.arange(TAIL) % TASTES == tastes[:, None]
    both = tail.reshape(len(tastes), -1, TASTES), of_taste.reshape(len(tastes), -1, TASTES)
    # Of neighbours in popularity, one of which is of the user's taste, and two are not.
    apart = both[0][both[1]][:, None] - both[0][~both[1]].reshape(-1, TASTES - 1)
    assert least <= ((apart > 0) + (apart == 0) / 2).mean() <= most


@pytest.mark.parametrize("search", [SearchOptions(), SearchOptions(numbers=200, rounds=2)])
def test_where_few_users_have_very_many_items_all_rounds_that_are_left_find_what_is_popular(
    search: SearchOptions,
) -> None:
    items, noise = 400, 20.0
    sets = make.random_sets(50, items, density=0.2, seed=9)
    table = PairTableOptions(items=8, popularity_share=0.2, groups=2, grouped_items=50, search=search)
    people, protocol = make.profiles_of_sets(sets), GramProtocol(table=table)
    server, devices = played(protocol, people, POSITIVE, multiplier=noise)
    searched = len(search.shares)
    assert [device.again for device in devices] == [False] * searched + [True, True, False]
    last = devices[searched - 1].release(searched).n_rows
    assert [devices[number - 1].release(number).n_rows for number in (searched + 1, searched + 2)] == [
        last
    ] * 2
    assert devices[searched].encode() == devices[searched + 1].encode()
    model = devices[-1].model
    assert model.table.items.size == model.groups.items.size == 0
    # The sum of the last stage is that of three releases by their precision: of all that they spend.
    assert list(server.sums) == list(range(searched))
    joined, deviation = server.sums[searched - 1]
    share = 1 - sum(0.2 * part for part in search.shares[:-1])
    assert deviation == pytest.approx(noise / np.sqrt(share))
    asked = devices[searched]
    exact = dense(contributions(asked, people, asked.release(searched + 1)), asked.release(searched + 1))
    # Of 100 numbers and more the deviation is off by 40 % with a probability below 1e-7.
    assert (joined - exact.sum(axis=0)).std() == pytest.approx(deviation, rel=0.4)


def test_where_a_table_shows_no_tastes_the_round_of_groups_finds_what_is_popular() -> None:
    items, noise = 100, 5.0
    likely = np.where(np.arange(items) < TABLE, 0.4, 0.02)
    sets = sp.csr_array((np.random.default_rng(4).random((2_000, items)) < likely).astype(np.float64))
    table = PairTableOptions(items=TABLE, popularity_share=0.2, groups=2, grouped_items=50)
    people, protocol = make.profiles_of_sets(sets), GramProtocol(table=table)
    server, devices = played(protocol, people, POSITIVE, multiplier=noise)
    assert [device.again for device in devices] == [False, False, True, False]
    model = devices[-1].model
    assert (model.table.share, model.groups.items.size) == (0, 0)
    # Of 40 % of the budget; the table tells of its own items besides.
    asked = devices[0].release(1)
    exact = dense(contributions(devices[0], people, asked), asked).sum(axis=0)
    assert server.sums[0][1] == pytest.approx(noise / np.sqrt(0.4))
    off = [(estimate - exact)[:TABLE].std() for estimate in (server.popularity, server.sums[0][0])]
    assert off[0] < off[1]


def test_a_table_is_judged_by_the_noise_that_its_sum_will_have(monkeypatch: pytest.MonkeyPatch) -> None:
    public, table = Public(2_000, 50, POSITIVE), PairTableOptions(items=20, popularity_share=0.2)
    privacy = PrivacyBudget(epsilon=4.0, per="user", composition="pld")
    protocol = PairsInBlanketProtocol(privacy=privacy, table=table).suited(public)
    server, judged = protocol.server(public, None, 0), list[float]()
    layouts = [server.held.release(1), pairs(20)]
    popular, following = (
        protocol.aggregation.deviation(layout, multiplier, 2_000)
        for layout, multiplier in zip(layouts, protocol.multipliers, strict=True)
    )
    # Sampling adds to it, so that it does not follow from the shares of the budget alone.
    assert following != pytest.approx(popular / 2, rel=0.01)

    def judge(known: Floats, items: Ints, deviation: float, users: int) -> bool:
        judged.append(deviation)
        return False

    monkeypatch.setattr(gram, "worth_a_table", judge)
    server.learn(layouts[0], 1, np.ones((50, 1)), 1.5 * popular, 2_000)
    assert judged == [pytest.approx(1.5 * following)]


def test_a_round_may_go_on_with_a_search() -> None:
    table = PairTableOptions(items=5, popularity_share=0.2, groups=2, grouped_items=6)
    assert rows_asked(table) == [[40], [15, 40], [12, 40]]
    assert rows_asked(PairTableOptions(items=40, popularity_share=0.0)) == [[820]]


def rows_asked(table: PairTableOptions) -> list[list[int]]:
    rounds = GramProtocol(table=table).may_ask(Public(9, 40, POSITIVE))
    return [[each.n_rows for each in layouts] for layouts in rounds]


def test_a_modulus_that_popularity_exceeds_if_asked_again_is_refused_at_once() -> None:
    table = PairTableOptions(items=50, popularity_share=0.5, groups=2, grouped_items=200, groups_share=0.05)
    public, privacy = Public(1_000, 300, POSITIVE), PrivacyBudget(epsilon=8.0, per="user", composition="pld")
    # Enough for groups, whose numbers are more and smaller.
    aggregation = SecureAggregation(norm=256, modulus_bits=18)
    protocol = GramProtocol(privacy=privacy, aggregation=aggregation, table=table)
    with refused_at("aggregation.modulus_bits"):
        protocol.suited(public)


def secretly_summed(epsilon: float, **options: Any) -> GramProtocol:
    return GramProtocol(privacy=make.user_budget(epsilon), aggregation=SecureAggregation(), **options)


@pytest.mark.parametrize("search", [SearchOptions(numbers=100), SearchOptions(numbers=1_000, rounds=1)])
def test_a_search_in_too_few_numbers_is_refused(search: SearchOptions) -> None:
    with refused_at("table.search.numbers"):
        secretly_summed(1.0, table=PairTableOptions(search=search)).suited(Public(30_000, 41_000, POSITIVE))


@pytest.mark.parametrize("most", [40_000, 300_000])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("users", [1_000, 30_000, 1_000_000])
@pytest.mark.parametrize("items", [300, 3_000, 41_000, pytest.param(1_000_000, marks=pytest.mark.thorough)])
def test_nobody_sends_more_than_its_bytes_in_all_rounds(
    items: int, users: int, epsilon: float, most: int
) -> None:
    public = Public(users, items, POSITIVE)
    protocol = secretly_summed(epsilon, max_bytes_up=most)
    suited = protocol.suited(public)
    suited.check(public)
    rounds = zip(suited.may_ask(public), suited.multipliers, strict=True)
    around = suited.adding_up.further_messages()
    bits = suited.adding_up.report_bits
    reports = sum(max(-(-bits(each, 0, noise) // 8) for each in layouts) for layouts, noise in rounds)
    sent = reports + sum(answer for _, answer in (*around.before, *around.after))
    assert sent <= most
    assert suited.suited(public) == suited


@pytest.mark.parametrize(
    ("table", "most"),
    [
        (PairTableOptions(items=600), 300_000),
        (PairTableOptions(items=100, groups=50, grouped_items=5_000), 300_000),
        (PairTableOptions(items=100, search=SearchOptions(numbers=41_000)), 100_000),
        (PairTableOptions(), 2_000),
    ],
)
def test_what_does_not_fit_a_users_bytes_is_refused(table: PairTableOptions, most: int) -> None:
    public = Public(30_000, 41_000, POSITIVE)
    with refused_at("max_bytes_up"):
        secretly_summed(1.0, table=table, max_bytes_up=most).suited(public)
    secretly_summed(1.0, table=table, max_bytes_up=10 * most).suited(public).check(public)
