"""Reports that protect themselves: unbiased, as noisy as stated, and one of each device."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.gradients import RoundDraws
from dprec.randomness import DeviceDraws, ReleaseDraws
from dprec.sums import LocalAggregation, ProfileContributions
from tests.summing import contributed, dense, popularity

ITEMS, USERS, EPSILON, SHARES = 40, 20_000, 2.0, (0.3, 0.7)
LAYOUT = popularity(ITEMS)
BUDGET = PrivacyBudget(epsilon=EPSILON, per="user")
LOCAL = LocalAggregation().among(USERS).divided(BUDGET, SHARES)
RELEASE = ReleaseDraws(1, 1)


def draws(users: int, round_index: int, first: int = 0) -> RoundDraws:
    numbers = np.arange(first, first + users, dtype=np.uint64)
    lasting = np.random.default_rng(3).integers(0, 2**64, USERS, dtype=np.uint64)[first : first + users]
    return RoundDraws(DeviceDraws(np.stack([numbers, ~numbers])), round_index, 0, lasting)


def sets(users: int = USERS) -> ProfileContributions:
    """Return users who have item 0, every other of whom has items 1 and 2 too, and some of whom have none."""
    counts = np.where(np.arange(users) % 2, 3, 1) * (np.arange(users) % 5 > 0)
    items = [np.arange(count) for count in counts]
    return contributed(offsets(counts), np.concatenate(items), ITEMS)


def test_estimates_of_contributions_shorter_than_one_are_unbiased() -> None:
    """40 numbers, each within 6 standard errors: false alarm 1e-7."""
    users, layout = 2000, popularity(ITEMS, fewest=4)
    local = LocalAggregation().among(users).divided(BUDGET, (1.0,))
    own = contributed(np.arange(users + 1), np.zeros(users, dtype=np.int64), ITEMS)
    short = dense(own, layout)
    assert np.linalg.norm(short, axis=1) == pytest.approx(np.full(users, 0.5))
    valid, aggregate = local.decode(local.encode(own, layout, 1.0, draws(users, 1)), layout, 1.0)
    assert valid.all()
    assert aggregate.total[-1] == users
    error = local.release(aggregate, layout, 1.0, RELEASE)[:, 0] / layout.scales - short.sum(axis=0)
    assert np.abs(error).max() <= 6 * local.reports.deviation * np.sqrt(users)


def test_what_each_report_tells_adds_up_to_the_release() -> None:
    users = 500
    reports = [b"no report", *LOCAL.encode(sets(users), LAYOUT, 1.0, draws(users, 1))]
    places, numbers = LOCAL.told(reports, LAYOUT, 1.0)
    assert np.array_equal(places, [at for at, each in enumerate(reports) if at and each])
    assert numbers.shape == (places.size, ITEMS)
    _, aggregate = LOCAL.decode(reports, LAYOUT, 1.0)
    released = LOCAL.release(aggregate, LAYOUT, 1.0, RELEASE)[:, 0] * places.size / aggregate.users
    assert numbers.sum(axis=0) == pytest.approx(released / LAYOUT.scales)


def test_reports_share_no_word_with_the_choice_of_ratings() -> None:
    asked = draws(USERS, 1)
    reports = LOCAL.encode(sets(), LAYOUT, 1.0, asked)
    _, seeds, _ = LOCAL._read(reports)
    ones = np.ones(USERS, dtype=np.int64)
    for item in range(ITEMS):
        words = asked.devices.per_cell(ones, item * ones, 1) >> np.uint64(32)
        # Some of the 32 bits of some users are alike by chance.
        assert np.isin(seeds, words).mean() < 0.01


def test_every_device_reports_once_and_in_proportion_to_the_shares() -> None:
    sent = [
        np.array([len(report) for report in LOCAL.encode(sets(), LAYOUT, 1.0, draws(USERS, at))])
        for at in (1, 2)
    ]
    assert set(sent[0] + sent[1]) == {LOCAL.report_bits(LAYOUT, 3, 1.0) // 8} == {5}
    # 20,000 turns: six deviations are 0.02.
    assert LOCAL.costing(sent[0]).mean() == pytest.approx(SHARES[0], abs=0.02)
    for at in (1, 2):
        turns = LOCAL.reporting(draws(USERS, at).lasting, at)
        assert np.array_equal(turns, LOCAL.costing(sent[at - 1]))


def test_what_no_device_sends_is_rejected() -> None:
    reports = list(LOCAL.encode(sets(50), LAYOUT, 1.0, draws(50, 2)))
    _, honest = LOCAL.decode(reports, LAYOUT, 1.0)
    no_candidate = bytes(4) + bytes([LOCAL.reports.candidates])
    hostile = [no_candidate, b"\0", bytes(4), bytes(6), b"\xff" * 1000]
    valid, aggregate = LOCAL.decode([*reports, *hostile], LAYOUT, 1.0)
    assert valid.tolist() == [True] * 50 + [False] * 5
    assert aggregate.users == 50
    assert np.array_equal(aggregate.total, honest.total)


def test_a_sum_that_no_candidates_have_is_impossible() -> None:
    _, honest = LOCAL.decode(LOCAL.encode(sets(50), LAYOUT, 1.0, draws(50, 2)), LAYOUT, 1.0)
    assert LOCAL.possible(honest, LAYOUT, 1.0)
    for place, number in ((0, 51 * 20_000), (1, -51 * 20_000), (0, -(2**63)), (-1, 51), (-1, -1)):
        total = honest.total.copy()
        total[place] = number
        assert not LOCAL.possible(replace(honest, numbers=total), LAYOUT, 1.0)
    nobody = replace(honest, numbers=np.zeros_like(honest.total))
    assert not LOCAL.release(nobody, LAYOUT, 1.0, RELEASE).any()


def test_the_loss_is_that_of_the_report_whatever_the_round() -> None:
    assert LOCAL.cost(1.0, 2.0).epsilon == pytest.approx(EPSILON, rel=1e-9)
    assert LOCAL.cost(1.0, 2.0).epsilon <= EPSILON
    assert LOCAL.cost(1.0, 2.0).mechanism is None
    first, second = LOCAL.multipliers(BUDGET, SHARES, 2.0)
    assert first / second == pytest.approx(np.sqrt(0.7 / 0.3))
