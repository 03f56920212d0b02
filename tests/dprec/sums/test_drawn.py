"""The noise of sums as devices and servers draw it: its distribution, and what must be independent."""

import numpy as np
import pytest
from scipy import stats

from dprec.accounting import PrivacyBudget
from dprec.arrays import Floats, Ints
from dprec.gradients import Aggregate, RoundDraws
from dprec.kernels.draws import projections
from dprec.randomness import DRAWS, ReleaseDraws, SecretDraws
from dprec.secure_aggregation import honest_shares
from dprec.sums import CentralAggregation, LocalAggregation, ProfileContributions, Release, SecureAggregation
from dprec.sums.local import _with_norm_1
from dprec.sums.unit_vectors import candidate_keys, normals
from tests.distributions import check_counts, check_drawn, check_independent, check_share
from tests.summing import contributed, devices, popularity

ROUNDS = (1, 2)
EPSILON = 2.0


def nothing(users: int) -> ProfileContributions:
    return contributed(np.zeros(users + 1), [], 20_000)


def test_a_trusted_server_adds_normal_noise_another_in_each_round() -> None:
    layout, multiplier = popularity(30_000), 2.5
    empty = Aggregate(np.zeros((layout.n_rows, layout.width), dtype=np.int64), None, 3)
    one, other = (
        CentralAggregation().release(empty, layout, multiplier, ReleaseDraws(1, round_index)) / layout.scales
        for round_index in ROUNDS
    )
    for noise in (one, other):
        check_drawn(noise, stats.norm(scale=multiplier))
    check_independent(one, other)
    check_independent(one[::2], one[1::2])


SECURE = SecureAggregation(norm=64, colluders=2).among(40)


def shares_of(layout: Release, multiplier: float, round_index: int) -> Ints:
    """Return the vectors of devices that contribute nothing, shape (devices, numbers)."""
    reports = SECURE.encode(nothing(4), layout, multiplier, devices(4, round_index))
    alone = [SECURE.decode([report], layout, multiplier)[1] for report in reports]
    steps = SECURE._plan(layout, multiplier).steps
    released = [SECURE.release(each, layout, multiplier, ReleaseDraws(1, 1)) for each in alone]
    return np.rint([steps * (each / layout.scales)[:, 0] for each in released]).astype(np.int64)


@pytest.mark.parametrize("multiplier", [0.2, 3.0])
def test_the_share_of_a_device_is_skellam_noise_of_what_those_add_up_to_who_are_sure(
    multiplier: float,
) -> None:
    """Of the noise that a release needs, each of the honest devices that are left has its part."""
    layout, left = popularity(20_000), honest_shares(40, SECURE.dropouts, SECURE.colluders)
    assert left == 40 - 4 - 2
    variance = (multiplier * SECURE.norm) ** 2 / left
    share = stats.skellam(variance / 2, variance / 2)
    first, second = (shares_of(layout, multiplier, round_index) for round_index in ROUNDS)
    for each in (*first[:2], second[0]):
        check_drawn(each, share)
    # Devices, rounds and the numbers of a vector.
    check_independent(first[0], first[1])
    check_independent(first[0], second[0])
    check_independent(first[0, ::2], first[0, 1::2])


USERS = 22_000
LOCAL = LocalAggregation().among(USERS).divided(PrivacyBudget(epsilon=EPSILON, per="user"), (0.4, 0.6))


def said_locally() -> tuple[Ints, Ints]:
    """Return the seeds that devices with one item send in round 2, and which of the preferred candidates."""
    layout = popularity(9)
    one_item = contributed(np.arange(USERS + 1), np.full(USERS, 3), 9)
    reports = LOCAL.encode(one_item, layout, 1.0, devices(USERS, 2))
    _, seeds, chosen = LOCAL._read(reports)
    keys, count = candidate_keys(seeds), seeds.size
    some = one_item.vectors(layout).of_users(np.arange(count))
    indptr, cells, values = _with_norm_1(some, layout.n_rows)
    products = np.empty((count, LOCAL.reports.candidates))
    projections(keys, indptr, cells, values, normals(), products)
    order = np.argsort(-products, axis=1, kind="stable")
    return seeds.astype(np.int64), np.flatnonzero((order == chosen[:, None]).ravel()) % order.shape[1]


def test_what_a_device_prefers_has_its_odds_whatever_its_seed() -> None:
    """The seed is sent: did it follow from the word of the choice, it would say whether that is true."""
    seeds, places = said_locally()
    reports = LOCAL.reports
    others = reports.candidates - reports.preferred
    shares = np.full(reports.candidates, reports.fewest / DRAWS)
    shares[: reports.preferred] = (1 - others * reports.fewest / DRAWS) / reports.preferred
    check_counts(np.bincount(places, minlength=shares.size), shares)
    preferred = places < reports.preferred
    check_share(int(preferred.sum()), places.size, float(shares[: reports.preferred].sum()))
    assert reports.epsilon == pytest.approx(EPSILON, rel=1e-9)
    check_counts(np.bincount(seeds >> 27, minlength=32), np.full(32, 1 / 32))
    check_independent(seeds, preferred)
    check_independent(seeds, places)
    # Nor does any other bit of the seed.
    for bits in (8, 16, 24):
        check_independent(seeds >> bits & 255, preferred)


@pytest.mark.parametrize("multiplier", [0.05, 3.0, 400.0])
def test_noise_that_is_drawn_as_one_is_that_of_all_shares_once(multiplier: float) -> None:
    """With what devices say taken off; of large variances, it is a rounded normal deviate."""
    layout, users = popularity(30_000), 7
    own = contributed(np.arange(users + 1) * 5, np.arange(5 * users), 30_000)
    one, other = (
        SECURE.summed(own, layout, multiplier, devices(users, number), np.ones(users, dtype=np.bool_))[1]
        for number in ROUNDS
    )
    assert one.undrawn == one.users == users
    plan = SECURE._plan(layout, multiplier)
    drawn = []
    for number, total in zip(ROUNDS, (one, other), strict=True):
        released = SECURE.release(total, layout, multiplier, ReleaseDraws(1, number))[:, 0] / layout.scales
        drawn.append(np.rint(released * plan.steps) - total.total)
    variance = users * (multiplier * SECURE.norm) ** 2 / honest_shares(40, SECURE.dropouts, SECURE.colluders)
    for noise in drawn:
        check_drawn(noise, stats.skellam(variance / 2, variance / 2))
    check_independent(*drawn)


def test_parts_of_a_sum_with_noise_and_without_have_the_noise_of_all() -> None:
    layout, multiplier = popularity(30_000), 2.0
    reports = SECURE.encode(nothing(4), layout, multiplier, devices(4))
    _, seen = SECURE.decode(reports, layout, multiplier)
    assert seen.undrawn == 0
    _, unseen = SECURE.summed(nothing(4), layout, multiplier, devices(4), np.array([1, 0, 1, 1], dtype=bool))
    total = seen + unseen
    assert (total.users, total.undrawn) == (7, 3)
    released = SECURE.release(total, layout, multiplier, ReleaseDraws(1, 1))[:, 0] / layout.scales
    variance = 7 * (multiplier * SECURE.norm) ** 2 / honest_shares(40, SECURE.dropouts, SECURE.colluders)
    noise = np.rint(released * SECURE._plan(layout, multiplier).steps)
    check_drawn(noise, stats.skellam(variance / 2, variance / 2))


def test_a_device_that_stands_by_itself_draws_the_same_noise() -> None:
    """Its words come from another cipher, and go the same way."""
    layout, multiplier = popularity(20_000), 3.0
    own = RoundDraws(SecretDraws.of(bytes(range(32)), np.arange(3), np.ones(3), "test"), 1, 0)
    (report,) = SECURE.encode(nothing(1), layout, multiplier, own)
    _, aggregate = SECURE.decode([report], layout, multiplier)
    released: Floats = SECURE.release(aggregate, layout, multiplier, ReleaseDraws(1, 1)) / layout.scales
    variance = (multiplier * SECURE.norm) ** 2 / honest_shares(40, SECURE.dropouts, SECURE.colluders)
    noise = np.rint(released * SECURE._plan(layout, multiplier).steps)
    check_drawn(noise, stats.skellam(variance / 2, variance / 2))
