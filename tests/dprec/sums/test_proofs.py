"""What devices prove of sums that nobody sees the parts of, and what malicious users can add all the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from dprec.arrays import Bools
from dprec.gradients import RoundDraws
from dprec.protocols.gram import SetDevice
from dprec.randomness import DeviceDraws, ReleaseDraws
from dprec.secure_aggregation import BEYOND_BOUNDS
from dprec.sums import (
    UNIT,
    Aggregation,
    CentralAggregation,
    LocalAggregation,
    PartOfContributions,
    ProfileContributions,
    Release,
    SecureAggregation,
    ShuffledAggregation,
)
from dprec.sums.proofs import Bounds
from tests.summing import contributed, pairs, popularity

USERS, MALICIOUS, ITEMS, TARGET = 60, 3, 20, 7
MULTIPLIER = 0.5
LAYOUTS = [popularity(ITEMS, 4), pairs(ITEMS, 4)]
SECURE = SecureAggregation(norm=256, colluders=2)
EVERY: list[Aggregation] = [
    CentralAggregation(),
    SECURE,
    replace(SECURE, proofs="norm"),
    replace(SECURE, proofs="norm-and-noise"),
    ShuffledAggregation(colluders=2),
    LocalAggregation(epsilon=2.0, shares=(1.0,)),
]


def installed(aggregation: Aggregation) -> Aggregation:
    return aggregation.among(USERS)


def noise_of(aggregation: Aggregation) -> float:
    """Return the multiplier of a release, which follows from the budget where every report is protected."""
    if aggregation.by_itself:
        assert isinstance(aggregation, LocalAggregation)
        return aggregation.reports.deviation * math.sqrt(USERS)
    return MULTIPLIER


def draws(users: int, some: slice = slice(None), round_index: int = 1) -> RoundDraws:
    keys = np.arange(2 * users, dtype=np.uint64).reshape(2, users)
    own = DeviceDraws(np.ascontiguousarray(keys[:, some]))
    return RoundDraws(own, round_index, 0, np.arange(users, dtype=np.uint64)[some])


def some_sets(users: int) -> ProfileContributions:
    items = np.stack([np.sort(np.random.default_rng(user).permutation(ITEMS)[:6]) for user in range(users)])
    items[:, 0] = np.minimum(items[:, 0], TARGET)
    return contributed(np.arange(users + 1) * 6, items.ravel(), ITEMS)


def about_target(layout: Release) -> Bools:
    assert isinstance(layout.device, SetDevice)
    return layout.device.about(np.array([TARGET]), layout)


def lies(layout: Release) -> PartOfContributions[Release]:
    whole = contributed(np.arange(MALICIOUS + 1) * 3, np.tile([2, TARGET, 11], MALICIOUS), ITEMS)
    return PartOfContributions(whole, about_target(layout))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("aggregation", EVERY)
def test_what_malicious_users_choose_is_accepted_and_adds_no_more_than_is_said(
    aggregation: Aggregation, layout: Release
) -> None:
    among, multiplier = installed(aggregation), noise_of(aggregation)
    reports = among.crafted(lies(layout), layout, multiplier, draws(MALICIOUS), MALICIOUS)
    valid, total = among.decode(reports, layout, multiplier)
    assert valid.all()
    assert among.possible(total, layout, multiplier)
    # Read as that of nobody else: no others' fakes are taken off, nor are others silent in this round.
    total = replace(total, users=MALICIOUS if aggregation.by_itself else 0)
    deviation = 0.0 if aggregation.kind == "central" else multiplier
    released = among.release(total, layout, deviation, ReleaseDraws(1, 1))[:, 0]
    about, most = about_target(layout), among.most_of_one(layout, multiplier)
    # The noise that is drawn where this is proved: below 6 deviations of a share of it each.
    drawn = 6 * multiplier * MALICIOUS / math.sqrt(USERS) if aggregation == EVERY[3] else 0.0
    assert released.max() <= MALICIOUS * most * (1 + 1e-9) + drawn
    # As much as an honest device adds, or more.
    honest = layout.added_up(lies(layout).encode(layout))[1][:, 0] * UNIT
    assert released[about].max() >= 0.9 * honest[about].max() - drawn


@pytest.mark.parametrize("aggregation", EVERY)
def test_a_device_sends_the_same_whoever_else_is_computed_beside_it(aggregation: Aggregation) -> None:
    among, layout, multiplier, own = (
        installed(aggregation),
        LAYOUTS[1],
        noise_of(aggregation),
        some_sets(USERS),
    )
    together = list(among.encode(own, layout, multiplier, draws(USERS)))
    parts = [slice(0, 1), slice(1, 33), slice(33, USERS)]
    apart = [among.encode(own.of_users(some), layout, multiplier, draws(USERS, some)) for some in parts]
    assert [report for part in apart for report in part] == together
    first, second, third, whole = (among.decode(part, layout, multiplier)[1] for part in (*apart, together))
    sums = (first + second + third, whole)
    released = (among.release(total, layout, multiplier, ReleaseDraws(1, 1)) for total in sums)
    np.testing.assert_array_equal(*released)
    again = list(among.encode(own, layout, multiplier, draws(USERS, round_index=2)))
    assert again != together or aggregation.kind == "central"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_proofs_one_malicious_user_sets_a_sum_to_anything(layout: Release) -> None:
    among = SECURE.among(USERS)
    honest = among.encode(some_sets(USERS - 1), layout, MULTIPLIER, draws(USERS - 1))
    one = PartOfContributions(lies(layout).whole.of_users(slice(0, 1)), about_target(layout))
    lie = among.crafted(one, layout, MULTIPLIER, draws(1), 1)
    _, total = among.decode([*honest, *lie], layout, MULTIPLIER)
    released = among.release(total, layout, MULTIPLIER, ReleaseDraws(1, 1))[:, 0]
    assert among.most_of_one(layout, MULTIPLIER) == math.inf
    # As much as half of all honest users could add to a number, and to those about the target alone.
    assert released.max() > USERS / 2
    assert released[~about_target(layout)].max() < USERS / 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_proofs_exclude_numbers_and_norms_beyond_their_bounds_before_the_sum(layout: Release) -> None:
    none = SECURE.among(USERS)
    proved = replace(none, proofs="norm")
    own = some_sets(USERS)
    honest = proved.encode(own, layout, MULTIPLIER, draws(USERS))
    assert honest == none.encode(own, layout, MULTIPLIER, draws(USERS))
    lie = none.crafted(lies(layout), layout, MULTIPLIER, draws(MALICIOUS), MALICIOUS)
    valid, total = proved.decode([*honest, *lie], layout, MULTIPLIER)
    assert valid.tolist() == [True] * USERS + [False] * MALICIOUS
    np.testing.assert_array_equal(total.total, proved.decode(honest, layout, MULTIPLIER)[1].total)
    assert total.users == USERS


def test_whose_proof_fails_counts_as_dropped_out_and_spoils_no_release() -> None:
    everybody = np.ones(USERS, dtype=np.bool_)
    none, proved = SECURE.among(USERS), replace(SECURE, proofs="norm").among(USERS)
    assert not none.can_release(everybody, USERS - 1, 1, 7)
    assert proved.can_release(everybody, USERS - USERS // 10, 1, 7)
    assert not proved.can_release(everybody, USERS - USERS // 10 - 1, 1, 7)


@given(
    largest=st.integers(1, 300),
    norm=st.integers(1, 300),
    variance=st.sampled_from([0.0, 0.3, 50.0]),
    signs=st.lists(st.integers(-1, 1), min_size=1, max_size=40),
)
def test_what_fills_bounds_keeps_to_them_and_no_number_is_beyond(
    largest: int, norm: int, variance: float, signs: list[int]
) -> None:
    bounds = Bounds.around(min(largest, norm), norm, len(signs), variance)
    filled = bounds.filled(np.array(signs))
    assert bounds.hold(filled)
    assert np.abs(filled).max() <= bounds.of_one_number
    if any(signs):
        assert filled.any()
        assert not bounds.hold(filled + np.sign(filled) * math.ceil(bounds.largest + 1))
    assert not bounds.hold(np.full(len(signs), math.ceil(math.sqrt(bounds.squares)) + 1))


def chances(variance: float, most: int) -> np.ndarray:
    """Return the probabilities of Skellam noise from ``-most`` to ``most``."""
    return np.asarray(special.ive(np.abs(np.arange(-most, most + 1)), variance))


@pytest.mark.parametrize("variance", [0.02, 0.3, 6.0])
@pytest.mark.parametrize("own", [(3, 0), (2, -2), (0, 0), (1, 1)])
def test_an_honest_vector_is_beyond_its_bounds_no_more_often_than_delta_has_room_for(
    own: tuple[int, int], variance: float
) -> None:
    """By the exact distribution of two numbers; what is not enumerated is beyond the bound of a number."""
    bounds, most = Bounds.around(3, 3, 2, variance), 400
    assert bounds.largest < most - 3
    first, second = (np.arange(-most, most + 1) + number for number in own)
    kept = (np.abs(first) <= bounds.largest)[:, None] & (np.abs(second) <= bounds.largest)
    kept &= (first**2)[:, None] + second**2 <= bounds.squares
    each = chances(variance, most)
    assert np.outer(each, each)[~kept].sum() <= BEYOND_BOUNDS
