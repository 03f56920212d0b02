"""Alternating least squares on sets: iALS where nothing is added, and contributions that are bounded."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.lists import ials
from dprec.private_als.statistics import UNIT_WEIGHT
from dprec.protocols.base import Public
from dprec.protocols.implicit_als import (
    ImplicitAlsOptions,
    ImplicitAlsProtocol,
    ImplicitContributions,
    ImplicitDevice,
    ImplicitLayout,
    ImplicitModel,
)
from dprec.ratings import POSITIVE
from tests import make
from tests.summing import contributions, dense, played

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


def learned(sets: sp.csr_array, options: ImplicitAlsOptions) -> list[Any]:
    """Return what devices hold in each round without noise, and at the end."""
    people = make.profiles_of_sets(sets)
    return played(ImplicitAlsProtocol(factorization=options), people, POSITIVE, seed=5)[1]


def test_without_noise_and_clipping_it_is_ials() -> None:
    sets = some_sets()
    _, first, _, device = learned(sets, OPTIONS)
    options = ials.ImplicitOptions(rank=3, unobserved=0.3, ridge=0.7, frequency_scaling=0.0)
    factors = first.model.factors
    for _ in range(2):
        factors = ials.fold_in(sets.T.tocsr(), ials.fold_in(sets, factors, options), options)
    np.testing.assert_allclose(device.model.factors, factors, atol=4e-3)
    scores = ials.fold_in(sets, device.model.factors, options) @ device.model.factors.T
    np.testing.assert_allclose(device.predictions(make.profiles_of_sets(sets)), scores, atol=1e-9)


def test_of_the_items_only_the_most_popular_take_part_and_rare_ones_weigh_more() -> None:
    sets = some_sets()
    counts = np.asarray(sets.sum(axis=0))
    *_, device = learned(sets, replace(OPTIONS, item_share=0.5, exponent=0.5))
    popular = device.model.popular
    assert popular.sum() == ITEMS // 2
    assert counts[popular].min() >= counts[~popular].max()
    expected = np.sqrt(counts[popular].min() / counts[popular]) * UNIT_WEIGHT
    np.testing.assert_allclose(device.model.weights[popular], expected, atol=0.51)
    assert not device.predictions(make.profiles_of_sets(sets))[:, ~popular].any()


def test_a_user_counts_for_so_many_pairs_at_most_and_for_a_clipped_norm() -> None:
    people = make.profiles_of_sets(some_sets(own=OWN + 3))
    before = ImplicitDevice(replace(OPTIONS, clip=0.01), ImplicitModel.decode(b"", ITEMS, 3))
    counted = contributions(before, people, before.release(1))
    assert isinstance(counted, ImplicitContributions)
    assert (np.diff(counted.indptr) == OWN).all()
    device = replace(before, model=a_model(2))
    own = contributions(device, people, device.release(2))
    assert isinstance(own, ImplicitContributions)
    lengths = np.linalg.norm(own.factors.astype(np.float64), axis=1)
    assert (lengths <= 1).all()
    assert lengths.max() > 1 - 1e-5


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_no_user_contributes_more_than_one_and_some_contribute_almost_that(scale: float) -> None:
    device = ImplicitDevice(replace(OPTIONS, clip=0.05), a_model(3, scale))
    layout = device.release(2)
    own = contributions(device, make.profiles_of_sets(some_sets()), layout)
    longest = np.linalg.norm(dense(own, layout), axis=1).max()
    assert longest <= 1.0
    assert longest > 0.999 or scale != 1.0


def test_sums_are_the_same_however_many_users_are_added_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ImplicitDevice(OPTIONS, a_model(3))
    layout = device.release(2)
    own = contributions(device, make.profiles_of_sets(some_sets()), layout)
    rows, numbers = layout.rows_of_sum(own)
    monkeypatch.setattr("dprec.private_als.statistics._NUMBERS_AT_ONCE", 3 * layout.width)
    again = layout.rows_of_sum(own)
    assert [each.tolist() for each in again] == [rows.tolist(), numbers.tolist()]


def a_model(seed: int, scale: float = 1.0) -> ImplicitModel:
    random = np.random.default_rng(seed)
    return ImplicitModel(random.integers(1, 257, ITEMS), scale * random.standard_normal((ITEMS, 3)))


def test_the_noise_of_all_statistics_is_the_same_in_the_papers_units() -> None:
    options = ImplicitAlsOptions()
    layout = ImplicitAlsProtocol(factorization=options).largest(Public(9, 50, POSITIVE))[1]
    assert isinstance(layout, ImplicitLayout)
    assert layout.n_rows == 6
    weight = np.sqrt(options.pairs / layout.item_share)
    everybody = np.sqrt(layout.matrix_share / layout.gramian_share)
    matrix, side = layout.scales[0], layout.scales[-1]
    # Of a matrix and a side of an item, and of the matrix of all users: 201 squared units, of 100 + 100 + 1.
    np.testing.assert_allclose([weight * matrix, weight * side, everybody * matrix], np.sqrt(201))
    assert layout.scales[1] == pytest.approx(matrix / np.sqrt(2))
