"""Alternating least squares on sets: iALS where nothing is added, and contributions that are bounded."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dprec.arrays import Floats, Ints
from dprec.lists import ials
from dprec.private_als import UNIT_WEIGHT, ImplicitAls, ImplicitAlsOptions
from dprec.private_als.implicit import ImplicitDevice, ImplicitLayout, ImplicitLearner, ImplicitModel
from dprec.ratings import POSITIVE
from dprec.sums import UNIT, Releases
from tests import make

USERS, ITEMS, OWN = 30, 12, 4
OPTIONS = ImplicitAlsOptions(
    rank=3, rounds=2, item_share=1.0, pairs=OWN, exponent=0.0, clip=4.0, unobserved=0.3, ridge=0.7
)


def some_sets(own: int = OWN, seed: int = 0) -> sp.csr_array:
    """Return sets of so many items each, of which the first are chosen most often."""
    random = np.random.default_rng(seed)
    chances = np.linspace(3, 1, ITEMS)
    rows = [random.choice(ITEMS, own, replace=False, p=chances / chances.sum()) for _ in range(USERS)]
    return make.sparse_sets(*rows, items=ITEMS)


def a_round(learner: ImplicitLearner, device: ImplicitDevice, sets: sp.csr_array, index: int) -> None:
    """Run a round without noise and without messages."""
    layout = device.layout(index)
    words = np.arange(sets.nnz, dtype=np.uint64) << np.uint64(40)
    own = device.contributions(make.profiles_of_sets(sets), layout, index, words)
    valid, total = layout.added_up(own.encode(layout))
    assert valid.all()
    learner.learn(index, total * UNIT * layout.scales, layout, 0.0, USERS)


def learned(sets: sp.csr_array, options: ImplicitAlsOptions) -> tuple[Floats, ImplicitDevice]:
    """Return the first factors of the items, and what devices hold at the end."""
    method = ImplicitAls(options=options)
    learner = method.learner(Releases(USERS, ITEMS, POSITIVE), None, 5)
    start = np.zeros(0)
    for index in range(1, method.rounds + 1):
        a_round(learner, method.device(learner.model_bytes(), ITEMS, POSITIVE), sets, index)
        start = learner.model.factors if index == 1 else start
    return start, method.device(learner.learned_bytes(), ITEMS, POSITIVE)


def test_without_noise_and_clipping_it_is_ials() -> None:
    sets = some_sets()
    start, device = learned(sets, OPTIONS)
    options = ials.ImplicitOptions(rank=3, unobserved=0.3, ridge=0.7, frequency_scaling=0.0)
    factors = start.astype(np.float32).astype(np.float64)
    for _ in range(2):
        factors = ials.fold_in(sets.T.tocsr(), ials.fold_in(sets, factors, options), options)
    np.testing.assert_allclose(device.model.factors, factors, atol=2e-3)
    scores = ials.fold_in(sets, device.model.factors, options) @ device.model.factors.T
    np.testing.assert_allclose(device.predictions(make.profiles_of_sets(sets)), scores, atol=1e-9)


def test_of_the_items_only_the_most_popular_take_part_and_rare_ones_weigh_more() -> None:
    sets = some_sets()
    counts = np.asarray(sets.sum(axis=0))
    _, device = learned(sets, replace(OPTIONS, item_share=0.5, exponent=0.5))
    popular = device.model.popular
    assert popular.sum() == ITEMS // 2
    assert counts[popular].min() >= counts[~popular].max()
    expected = np.sqrt(counts[popular].min() / counts[popular]) * UNIT_WEIGHT
    np.testing.assert_allclose(device.model.weights[popular], expected, atol=0.51)
    assert not device.predictions(make.profiles_of_sets(sets))[:, ~popular].any()


def test_a_user_counts_for_so_many_pairs_at_most_and_for_a_clipped_norm() -> None:
    sets = some_sets(own=OWN + 3)
    method = ImplicitAls(options=replace(OPTIONS, clip=0.01))
    device = method.device(b"", ITEMS, POSITIVE)
    words = np.random.default_rng(1).integers(0, 2**63, sets.nnz).astype(np.uint64)
    counted = device.contributions(make.profiles_of_sets(sets), device.layout(1), 1, words)
    assert (np.diff(counted.indptr) == OWN).all()
    model = ImplicitModel(np.full(ITEMS, 9), np.random.default_rng(2).standard_normal((ITEMS, 3)))
    device = method.device(model.encode(), ITEMS, POSITIVE)
    own = device.contributions(make.profiles_of_sets(sets), device.layout(2), 2, words).factors
    lengths = np.linalg.norm(own.astype(np.float64), axis=1)
    assert (lengths <= 1).all()
    assert lengths.max() > 1 - 1e-5


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_no_user_contributes_more_than_one_and_some_contribute_almost_that(scale: float) -> None:
    random = np.random.default_rng(3)
    model = ImplicitModel(random.integers(1, 257, ITEMS), scale * random.standard_normal((ITEMS, 3)))
    method = ImplicitAls(options=replace(OPTIONS, clip=0.05))
    device, sets = method.device(model.encode(), ITEMS, POSITIVE), some_sets()
    layout = device.layout(2)
    words = np.zeros(sets.nnz, dtype=np.uint64)
    own = device.contributions(make.profiles_of_sets(sets), layout, 2, words)
    longest = max(
        float(np.linalg.norm(added(own.of_users(slice(user, user + 1)), layout).astype(np.float64))) * UNIT
        for user in range(USERS)
    )
    assert longest <= 1.0
    assert longest > 0.999 or scale != 1.0


def added(own: object, layout: ImplicitLayout) -> Ints:
    """Return the sum of vectors, shape (rows, width)."""
    vectors = own.vectors(layout)  # type: ignore[attr-defined]
    total = np.zeros((layout.n_rows, layout.width), dtype=np.int64)
    np.add.at(total, vectors.rows, vectors.numbers)
    return total


def test_vectors_and_reports_have_the_same_sum_and_who_has_nothing_adds_nothing() -> None:
    sets = some_sets().tolil()
    sets[3] = 0.0
    sets = sp.csr_array(sets)
    sets.eliminate_zeros()
    device = ImplicitAls(options=OPTIONS).device(a_model(seed=4).encode(), ITEMS, POSITIVE)
    for index in (1, 2):
        layout = device.layout(index)
        words = np.zeros(sets.nnz, dtype=np.uint64)
        own = device.contributions(make.profiles_of_sets(sets), layout, index, words)
        reports = own.encode(layout)
        assert reports[3] == b""
        valid, total = layout.added_up(reports)
        assert valid.all()
        assert np.array_equal(total, added(own, layout))
        assert not own.of_users(slice(3, 4)).vectors(layout).rows.size


def a_model(seed: int) -> ImplicitModel:
    random = np.random.default_rng(seed)
    return ImplicitModel(random.integers(1, 257, ITEMS), random.standard_normal((ITEMS, 3)))


def test_the_noise_of_all_statistics_is_the_same_in_the_papers_units() -> None:
    options = ImplicitAlsOptions()
    layout = ImplicitAls(options=options).largest_layouts(Releases(9, 50, POSITIVE))[1]
    assert isinstance(layout, ImplicitLayout)
    assert layout.n_rows == 6
    weight = np.sqrt(options.pairs / layout.item_share)
    everybody = np.sqrt(layout.matrix_share / layout.gramian_share)
    matrix, side = layout.scales[0], layout.scales[-1]
    # Of a matrix and a side of an item, and of the matrix of all users: 201 squared units, of 100 + 100 + 1.
    np.testing.assert_allclose([weight * matrix, weight * side, everybody * matrix], np.sqrt(201))
    assert layout.scales[1] == pytest.approx(matrix / np.sqrt(2))


@given(st.binary(max_size=80))
def test_devices_read_no_model_that_no_server_sends(data: bytes) -> None:
    method = ImplicitAls(options=OPTIONS)
    try:
        device = method.device(data, ITEMS, POSITIVE)
    except ValueError:
        return
    assert np.isfinite(device.model.factors).all()
    assert device.predictions(make.profiles_of_sets(some_sets())).shape == (USERS, ITEMS)
