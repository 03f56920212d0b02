"""Ratings predicted on the device: what profiles add to each sum, and what the server learns of it.

Popularity, biases, embeddings, and the rounds that lead there.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, offsets
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.errors import SettingError
from dprec.protocols.base import Public
from dprec.protocols.secret_sets import ProfileDevice, SecretSetOptions, SecretSetProtocol, split_at
from dprec.secret_sets.popularity import Counts
from dprec.sums import CentralAggregation, ProfileContributions, Release
from dprec.wire import ItemTable
from tests.make import STARS
from tests.summing import contributions, dense, played

USERS, ITEMS = 2000, 30
OPTIONS = SecretSetOptions(histogram="netflix", split=(0.2, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1))
HALF = np.arange(ITEMS) < ITEMS // 2

SMALL, WIDTH = 7, 3
PROFILES = st.lists(st.dictionaries(st.integers(0, SMALL - 1), st.integers(1, 5)), min_size=1, max_size=6)
PARTS = SecretSetOptions(split=(0.3, 0.2, 0.25, 0.1, 0.1, 0.05, 0.0, 0.0))


def small(round_index: int, size: float = 1.0) -> Release:
    """Return what is summed of counts and residuals, or of all other parts, by a table of such a size."""
    random = np.random.default_rng(0)
    table = ItemTable.of_biases(np.arange(4.0), random.normal(0, size, SMALL), np.zeros(SMALL))
    table = replace(table, embeddings=random.normal(0, size, (SMALL, WIDTH)))
    return ProfileDevice(PARTS, table, STARS).release(round_index)


LAYOUTS = [small(1), small(2), small(2, 0.0), small(2, 300.0)]


def given_by(layout: Release, profiles: list[dict[int, int]]) -> ProfileContributions:
    """Return what users contribute who have levels by item."""
    cells = [cell for each in profiles for cell in sorted(each.items())]
    items, levels = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    indptr = offsets(np.array([len(each) for each in profiles]))
    people = Profiles(indptr, items.astype(np.int32), levels.astype(np.float64), SMALL)
    found = contributions(layout.device, people, layout)
    assert isinstance(found, ProfileContributions)
    return found


def unit(values: Floats) -> Floats:
    norm = np.linalg.norm(values)
    return values / norm if norm > 1e-6 else 0 * values


def expected(layout: Any, profile: dict[int, int]) -> Floats:
    """Return the vector of a profile, made from its definition."""
    table = layout.device.table
    rated, residuals = np.zeros(SMALL), np.zeros(SMALL)
    items = sorted(profile)
    if items:
        rated[items] = 1
        left = np.array([profile[item] for item in items]) - table.means[items]
        residuals[items] = left - left.mean()
    features = table.embeddings
    of_raters = rated[:, None] * (rated @ features - features)
    parts = {
        "counts": rated,
        "residuals": residuals,
        "features": residuals @ features,
        "profiles": of_raters.ravel(),
        "tastes": (residuals[:, None] * (residuals @ features - residuals[:, None] * features)).ravel(),
    }
    shares = layout.device.parts(layout.round_index)
    assert [size for *_, size in shares] == [parts[part].size for part, *_ in shares]
    assert sum(share for _, share, _ in shares) == pytest.approx(1)
    return np.concatenate([np.sqrt(share) * unit(parts[part]) for part, share, _ in shares])


@pytest.mark.parametrize("layout", LAYOUTS)
@given(profiles=PROFILES)
def test_vectors_are_those_of_the_profiles(layout: Release, profiles: list[dict[int, int]]) -> None:
    found = dense(given_by(layout, profiles), layout)
    assert np.allclose(found, [expected(layout, profile) for profile in profiles], rtol=0, atol=1e-9)


def test_what_is_no_profile_is_rejected_and_nothing_else() -> None:
    layout = small(2)
    (good,) = given_by(layout, [{1: 5, 4: 2}]).encode(layout)
    bad = [b"\xff\xff\xff\xff\xff", good[:-1], good + b"\1", good[:-1] + b"\0", good[:-1] + b"\6"]
    valid, total = layout.added_up([*bad, good, b""])
    assert valid.tolist() == [False] * len(bad) + [True, True]
    assert np.array_equal(total, layout.added_up([good])[1])


def test_a_malicious_user_cares_for_how_often_its_target_is_rated_and_for_its_residuals() -> None:
    target = np.array([2])
    first, second = ((layout.device, layout) for layout in LAYOUTS[:2])
    assert np.flatnonzero(first[0].about(target, first[1])).tolist() == [2, SMALL + 2]  # type: ignore[attr-defined]
    assert np.flatnonzero(second[0].about(target, second[1])).tolist() == [2]  # type: ignore[attr-defined]


def test_no_more_features_count_than_were_agreed_on() -> None:
    few, random = replace(OPTIONS, features=4), np.random.default_rng(0)
    protocol = SecretSetProtocol(sums=few)
    table = ItemTable.of_biases(OPTIONS.cuts(STARS), np.zeros(9), np.ones(9))
    for width, used in ((3, 3), (4, 4), (5, 4)):
        sent = replace(table, embeddings=random.normal(0, 1, (9, width))).encode()
        assert protocol.device(sent, 9, STARS).release(2).n_rows == 9 + used + 2 * 9 * used
    assert [layout.n_rows for layout in protocol.largest(Public(3, 9, STARS))] == [18, 85, 72]


def biases() -> Floats:
    """Return the latent biases of the items that `population` rates."""
    return np.random.default_rng(1).normal(0, 0.6, ITEMS) + 0.3 * HALF


def population(seed: int = 0) -> Profiles:
    """Return profiles of two kinds of users, each of whom mostly rates one half of the catalogue."""
    random = np.random.default_rng(seed)
    kinds = random.integers(0, 2, USERS)[:, None]
    likely = np.where(kinds == HALF, 0.6, 0.15) * np.linspace(1, 0.4, ITEMS)[np.argsort(np.argsort(biases()))]
    users, items = np.nonzero(random.random((USERS, ITEMS)) < likely)
    latent = biases()[items] + random.normal(0, 0.5, USERS)[users] + random.normal(0, 1, users.size)
    levels = np.searchsorted(OPTIONS.cuts(STARS), latent) + 1
    indptr = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=USERS))]).astype(np.int64)
    return Profiles(indptr, items.astype(np.int32), levels.astype(np.float64), ITEMS)


def a_catalogue() -> Catalogue:
    years = np.random.default_rng(2).normal(0, 1, ITEMS)
    years = (years - years.mean()) / years.std()
    return Catalogue(years[:, None], np.column_stack([HALF, ~HALF]), ("year",), ("left", "right"))


@pytest.mark.parametrize("catalogue", [None, a_catalogue()], ids=["alone", "with public data"])
def test_without_noise_biases_and_popularity_are_recovered(catalogue: Catalogue | None) -> None:
    _, devices = played(SecretSetProtocol(sums=OPTIONS), population(), catalogue=catalogue)
    device = devices[-1]
    counts = np.bincount(population().items, minlength=ITEMS)
    expected = biases() - np.average(biases(), weights=counts)
    assert np.abs(device.table.means - expected).max() < 0.35
    assert np.corrcoef(device.table.means, expected)[0, 1] > 0.98
    # Devices are sent popularity in steps of .7 of its standard deviation, which add a variance of .04.
    assert np.corrcoef(device.table.numbers[:, 0], np.log(counts))[0, 1] > 0.96


@pytest.mark.parametrize("failed", [(1,), (2,), (3,), (1, 2, 3)])
def test_releases_that_fail_teach_nothing_and_break_nothing(failed: tuple[int, ...]) -> None:
    protocol = SecretSetProtocol(sums=OPTIONS)
    server, devices = played(protocol, population(), failed=failed, catalogue=a_catalogue())
    device = devices[-1]
    assert np.isfinite(device.predictions(population())).all()
    knows = np.abs(device.table.means).max() > 0
    assert knows == (1 not in failed)
    assert bool(server.held.encode()) == knows


def test_counts_are_estimated_between_the_noisy_ones_and_their_prior() -> None:
    random = np.random.default_rng(0)
    public = random.normal(0, 1, (500, 2))
    true = np.exp(1.5 + 0.8 * public[:, 0] + random.normal(0, 0.7, 500))
    noisy = true + random.normal(0, 6, 500)
    alone, helped = (Counts.of(noisy, 6.0, each, 1000).means for each in (public[:, :0], public))
    assert (alone >= 0).all()
    assert np.square(helped - true).mean() < 0.95 * np.square(alone - true).mean()
    assert np.square(alone - true).mean() < 0.7 * np.square(noisy - true).mean()
    exact = Counts.of(true, 1e-3, public[:, :0], 1000)
    assert np.allclose(exact.means, true, rtol=0.1)


def test_popularity_counts_as_far_as_it_is_known() -> None:
    random = np.random.default_rng(1)
    true, nothing = np.exp(random.normal(1, 1, 400)), np.zeros((400, 0))
    spreads = []
    for deviation in (1e-3, 3.0, 1e3):
        counts = Counts.of(true + random.normal(0, deviation, 400), deviation, nothing, 10_000)
        spreads.append(float(np.sqrt(counts.shares @ counts.popularity**2)))
    assert spreads[0] == pytest.approx(1, abs=1e-2)
    # What noise alone says of items is nothing; in between, as much as the counts are reliable.
    assert spreads[2] < 0.2 < spreads[1] < 0.95


def test_without_public_data_profiles_are_summed_only_where_noise_is_low() -> None:
    splits = {tau: split_at(tau, content=False) for tau in (1e-2, 1e-3, 3e-4, 1e-5)}
    assert splits[1e-2] == splits[1e-3] == splits[3e-4] == split_at(1e-2)
    assert splits[3e-4][4:] == (0.0,) * 4
    assert splits[1e-5] == split_at(1e-5)
    budget = PrivacyBudget(epsilon=4.0, per="user", composition="pld")
    noisy = SecretSetProtocol(privacy=budget, aggregation=CentralAggregation())
    public = Public(943, 1682, STARS)
    assert 3e-4 < noisy.whole_multiplier / 943 < 2e-3
    assert noisy.suited(public).sums.split == split_at(1e-3) != splits[1e-3]
    assert noisy.suited(replace(public, content=False)).sums.split == splits[1e-3]


def test_the_split_follows_from_public_numbers() -> None:
    splits = [split_at(tau) for tau in (0.0, 1e-5, 1e-4, 1e-3, 1e-2)]
    assert all(sum(split) == pytest.approx(1) for split in splits)
    assert splits[0] == splits[1]
    assert SecretSetOptions().suited(1e-3).split == split_at(1e-3)
    assert OPTIONS.suited(1e-3) == OPTIONS
    SecretSetOptions(split=splits[-1]).check(STARS)
    for split in (
        (0.5,) * 6,
        (0.5, 0.5),
        (1.0, 0, 0, 0, 0, 0),
        (0, 0.5, 0.5, 0, 0, 0),
        (0.5, 0.5, 0, 0, 0, 0),
    ):
        with pytest.raises(SettingError, match="add up to 1"):
            SecretSetOptions(split=split).check(STARS)
    with pytest.raises(SettingError, match="histogram"):
        SecretSetOptions(histogram=(1.0, 2.0)).check(STARS)
