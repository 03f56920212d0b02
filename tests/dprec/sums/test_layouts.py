"""What layouts say of honest contributions, held against these, up to the integers that are masked."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dprec.completion import Profiles
from dprec.lists.model import ListModel, PairTable
from dprec.private_als.statistics import (
    TARGET_BITS,
    UNIT_WEIGHT,
    StatisticsContributions,
    StatisticsLayout,
)
from dprec.protocols.gram import ListTableOptions, PairTableOptions, SetDevice
from dprec.protocols.implicit_als import ImplicitContributions, ImplicitLayout
from dprec.protocols.item_sums import GroupSum
from dprec.protocols.public_start import TasteDevice
from dprec.protocols.secret_sets import ProfileDevice, SecretSetOptions
from dprec.sums import UNIT, Adding, Contributions, Layout, Release, SecureAggregation
from dprec.sums.secure import VectorPlan
from dprec.wire import ItemTable
from tests.make import STARS
from tests.summing import contributed, contributions, dense, pairs, popularity

ITEMS = 24

BELOW_ONE = 1 - 1e-6


@dataclass(frozen=True)
class Honest:
    """The contributions of one user, and what they are for."""

    layout: Layout
    contributions: Contributions[Any]
    counts: int
    """Items of the user."""
    evenly: bool = True
    """Whether all parts of items are equally long, as `Layout.honest` supposes."""
    of_all: int = 0
    """Rows at the end that are of no item."""
    of_pairs: bool = False
    """Whether rows are pairs of items."""

    @property
    def rows(self) -> np.ndarray:
        """The numbers of each row that the user has a part in."""
        return self.contributions.vectors(self.layout).numbers * UNIT


def sets(draw: st.DrawFn) -> np.ndarray:
    return np.array(sorted(draw(st.sets(st.integers(0, ITEMS - 1), min_size=1))), dtype=np.int32)


@st.composite
def statistics(draw: st.DrawFn) -> Honest:
    """Draw ratings of one user, of items whose public weights differ by up to 256 times."""
    items, fewest = sets(draw), draw(st.integers(1, 40))
    rank, share = draw(st.integers(0, 3)), draw(st.sampled_from([0.0, 0.2, 0.5]))
    weights = np.array(draw(st.lists(st.sampled_from([1, 19, 255, 256]), min_size=ITEMS, max_size=ITEMS)))
    limit = draw(st.none() | st.integers(items.size, 60))
    if draw(st.booleans()) or limit is not None:
        weights = np.full(ITEMS, UNIT_WEIGHT)
    layout = StatisticsLayout(weights, rank, 1.0, 1.3, share, limit, fewest=fewest)
    own = np.array(draw(st.lists(st.floats(-1, 1), min_size=layout.columns, max_size=layout.columns)))
    own = np.ones(1) if rank == 0 else own * (BELOW_ONE / max(float(np.linalg.norm(own)), 1.0))
    most, loud = 1 << TARGET_BITS, draw(st.booleans())
    size = st.sampled_from([-most, most] if loud else [-most, 0, 17, most])
    targets = np.array(draw(st.lists(size, min_size=items.size, max_size=items.size)))
    made = StatisticsContributions(np.array([0, items.size]), items, targets, own[None].astype(np.float32))
    alike = len(set(weights[items].tolist())) == 1
    return Honest(layout, made, items.size, evenly=alike and loud and rank == 0)


@st.composite
def implicit(draw: st.DrawFn) -> Honest:
    """Draw a set of one user, with factors as long as they may be."""
    items, rank, share = sets(draw), draw(st.integers(1, 3)), draw(st.sampled_from([0.005, 0.5]))
    weights = np.array(draw(st.lists(st.integers(1, 256), min_size=ITEMS, max_size=ITEMS)))
    layout = ImplicitLayout(weights, rank, 1.0, 1.0, 0.5, sends_targets=False, gramian_share=share)
    own = np.array(draw(st.lists(st.floats(0.1, 1), min_size=rank, max_size=rank)))
    factors = (own * BELOW_ONE / np.linalg.norm(own))[None].astype(np.float32)
    ones = np.full(items.size, 1 << TARGET_BITS)
    made = ImplicitContributions(np.array([0, items.size]), items, ones, factors)
    evenly = len(set(weights[items].tolist())) == 1
    return Honest(layout, made, items.size, evenly, of_all=1)


@st.composite
def lists(draw: st.DrawFn) -> Honest:
    """Draw a set of one user, for a list."""
    items, fewest = sets(draw), draw(st.integers(1, 40))
    categories = np.array(draw(st.lists(st.booleans(), min_size=3 * ITEMS, max_size=3 * ITEMS)))
    bins = np.arange(2 * ITEMS, dtype=np.uint8).reshape(2, ITEMS)
    public = ListModel(np.zeros(ITEMS), categories.reshape(ITEMS, 3), bins, PairTable.nothing())
    options = ListTableOptions(items=ITEMS, popularity_share=0.0, fewest=fewest)
    everything = np.arange(ITEMS, dtype=np.int32)
    products = TasteDevice(options, public, everything, np.zeros((ITEMS, 0)), 0.0).release(1)
    table = PairTableOptions(items=ITEMS, popularity_share=0.0, groups=3, fewest=fewest)
    of_groups = GroupSum(everything, (everything % 3).astype(np.uint8), 3, fewest)
    groups = replace(SetDevice.begun(table, ITEMS), groups=of_groups).release(2)
    layout = draw(st.sampled_from((popularity(ITEMS, fewest), pairs(ITEMS, fewest), products, groups)))
    made = contributed([0, items.size], items, ITEMS)
    return Honest(layout, made, items.size, evenly=False, of_pairs=layout.n_rows == ITEMS * (ITEMS + 1) / 2)


@st.composite
def profiles(draw: st.DrawFn) -> Honest:
    """Draw ratings of one user whose set is hidden as well."""
    items, round_index = sets(draw), draw(st.integers(1, 3))
    split = np.array(draw(st.lists(st.sampled_from([0.1, 0.4]), min_size=8, max_size=8)))
    split[2:6] *= draw(st.sampled_from([np.ones(4), np.array([1, 0, 0, 1]), np.array([0, 1, 1, 0])]))
    options = SecretSetOptions(split=tuple((split / split.sum()).tolist()))
    table = ItemTable.of_biases(np.arange(4.0), np.linspace(-1, 1, ITEMS), np.zeros(ITEMS))
    table = replace(table, embeddings=np.cos(np.arange(2.0 * ITEMS)).reshape(ITEMS, 2))
    levels = draw(st.lists(st.integers(1, 5), min_size=items.size, max_size=items.size))
    device = ProfileDevice(options, table, STARS)
    people = Profiles(np.array([0, items.size]), items, np.array(levels, dtype=np.float64), ITEMS)
    layout = device.release(round_index)
    return Honest(layout, contributions(device, people, layout), items.size, evenly=False)


EVERY = statistics() | implicit() | lists() | profiles()


def test_every_layout_is_drawn() -> None:
    def below(layout: type[Layout]) -> set[type[Layout]]:
        return {layout}.union(*map(below, layout.__subclasses__()))

    of_dprec = {each for each in below(Layout) if each.__module__.startswith("dprec.")}
    assert {each for each in of_dprec if not each.__abstractmethods__} == {
        *(StatisticsLayout, ImplicitLayout, Release),
    }


@given(honest=EVERY)
@settings(max_examples=60)
def test_no_honest_contribution_is_beyond_what_its_layout_says(honest: Honest) -> None:
    layout, rows = honest.layout, honest.rows
    numbers = np.abs(rows).max(initial=0.0)
    assert numbers <= layout.largest * (1 + 1e-12)
    assert float((rows**2).sum()) <= 1 + 1e-12
    if not layout.signed:
        assert rows.min(initial=0.0) >= 0
    lengths = np.linalg.norm(rows, axis=1)
    if layout.limit is not None:
        assert len(lengths) <= layout.limit
        assert lengths.max(initial=0.0) <= (1 + 1e-12) / math.sqrt(layout.limit)
    (said,) = layout.honest(np.array([honest.counts]))
    of_items = slice(len(rows) - honest.of_all)
    if honest.of_pairs:
        assert lengths.max() == pytest.approx(said, rel=1e-8)
    else:
        # Features and parts of an item have rows of their own.
        of_item = math.sqrt(float((rows[of_items] ** 2).sum()) / honest.counts)
        assert of_item <= said * (1 + 1e-9)
    if honest.evenly:
        np.testing.assert_allclose(lengths[of_items], said, rtol=1e-4)


@given(honest=EVERY, reports=st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_of_a_device_move_a_sum_by_more_than_one_each(honest: Honest, reports: list[bytes]) -> None:
    valid, total = honest.layout.added_up(reports)
    assert valid.shape == (len(reports),)
    assert np.linalg.norm(total.astype(np.float64)) * UNIT <= valid.sum()
    assert honest.layout.signed or (total >= 0).all()


@given(
    honest=EVERY,
    norm=st.integers(40, 300),
    key=st.integers(0, 2**32),
)
@settings(max_examples=60)
def test_no_rounded_number_is_beyond_what_devices_prove(honest: Honest, norm: int, key: int) -> None:
    plan = VectorPlan.of(honest.layout, norm)
    if plan.steps < 1:
        return
    keys = np.array([[key], [0]], dtype=np.uint64)
    (vector,) = plan.vectors(honest.contributions, honest.layout, keys).astype(np.int64)
    assert np.abs(vector).max() <= plan.largest_rounded
    assert int((vector**2).sum()) <= norm**2
    assert np.abs(vector).max() <= plan.largest_sum(1)
    bounds = SecureAggregation(norm=norm, users=9, proofs="norm")
    without_noise = bounds.bounds(honest.layout, 0.0)
    assert without_noise is not None
    assert without_noise.hold(vector)


@pytest.mark.parametrize("fewest", [1, 16, 20, 45])
def test_one_heavy_rating_counts_no_more_than_one_of_the_fewest(fewest: int) -> None:
    """Beside 19 that weigh a 256th of it, at rank 1."""
    layout = StatisticsLayout(np.array([256] + [1] * 19), 1, 1.0, 1.0, 0.0, fewest=fewest)
    most, items = np.full(20, 1 << TARGET_BITS), np.arange(20, dtype=np.int32)
    own = np.full((1, 1), BELOW_ONE, dtype=np.float32)
    rows = StatisticsContributions(np.array([0, 20]), items, most, own).vectors(layout).numbers * UNIT
    assert np.abs(rows).max() == pytest.approx(min(layout.largest, 256 / math.sqrt(256**2 + 19)), rel=1e-4)


class TooLoud(Adding):
    """Adds all that its norm allows to one number, and none to another."""

    def cells(self, profiles: Profiles, release: Release, words: Any) -> tuple[Any, Any, Any]:
        users = profiles.n_users
        return 2 * np.arange(users + 1), np.tile([1, 3], users), np.tile([-0.8, 0.6], users)


def test_no_number_is_larger_than_its_release_names() -> None:
    layout = Release(TooLoud(), 1, 4, 5, most=0.25, negative=True)
    added = dense(contributed([0, 1, 2], [2, 4], 5), layout)
    np.testing.assert_allclose(added, [[0, -0.25, 0, 0.25]] * 2, atol=1e-9)
