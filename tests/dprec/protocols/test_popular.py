"""Popularity by a search: what sets add to it, what devices are sent, and what a user's bytes allow."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.lists.popular import PopularityPlan, PopularitySearch
from dprec.protocols.base import Public
from dprec.protocols.popular import PopularityProtocol
from dprec.protocols.searches import SearchOptions, bytes_up, decode_search, encode_search
from dprec.ratings import POSITIVE
from dprec.sums import CentralAggregation, LocalAggregation, SecureAggregation
from tests import make
from tests.refusals import refused_at
from tests.summing import contributed, dense, played

BUDGET = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)


def suited(items: int, users: int = 20_000, **options: Any) -> PopularityProtocol:
    given: dict[str, Any] = {"privacy": BUDGET, "aggregation": SecureAggregation()}
    return PopularityProtocol(**given | options).suited(Public(users, items, POSITIVE))


@pytest.mark.parametrize("fewest", [1, 3])
def test_a_user_adds_an_equal_part_to_each_bucket_that_an_item_of_it_is_in(fewest: int) -> None:
    options = SearchOptions(numbers=16, rounds=2)
    device: Any = PopularityProtocol(search=options, fewest=fewest, privacy=BUDGET).begin(
        Public(3, 12, POSITIVE)
    )
    sets = [np.arange(12), np.array([0, 5]), np.array([], dtype=np.int64)]
    owned = contributed(offsets(np.array([each.size for each in sets])), np.concatenate(sets), 12)
    for number in (1, 2):
        layout = device.release(number)
        for own, row in zip(sets, dense(owned, layout), strict=True):
            rows, present = device.search.rows(own, number - 1)
            buckets = np.unique(rows[present])
            expected = np.zeros(layout.n_rows)
            expected[buckets] = 1 / math.sqrt(max(buckets.size, fewest))
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-9)
            assert np.array_equal(device.about(own, layout), expected > 0)
            assert row.max() <= layout.largest


def test_a_search_finds_what_is_popular_and_devices_rank_by_it() -> None:
    random = np.random.default_rng(2)
    likely = np.where(np.arange(400) % 40 == 3, 0.6, 0.01)
    sets = sp.csr_array((random.random((3_000, 400)) < likely).astype(np.float64))
    protocol = PopularityProtocol(search=SearchOptions(numbers=200, rounds=2), privacy=BUDGET)
    people = make.profiles_of_sets(sets)
    # Ten items are in 1,800 sets each, which add about 700, and the noise of a number is about 14.
    server, devices = played(protocol, people, POSITIVE, multiplier=10.0)
    assert protocol.rounds == len(server.sums) == 2
    scores = devices[-1].predictions(people)[0]
    assert np.array_equal(np.sort(np.argsort(-scores)[:10]), np.arange(3, 400, 40))
    # What is looked into is sent as buckets; nothing else is, before the end.
    assert devices[0].encode() == b"\0"
    assert 1 < len(devices[1].encode()) < 40
    # The popularity of a bucket is sent once, in steps of .05 of its logarithm.
    assert np.abs(scores - np.log(server.device.search.popularity(server.sums))).max() <= 0.025 + 1e-9


def test_without_privacy_near_ties_are_ranked_as_they_were_counted() -> None:
    counts = np.random.default_rng(1).permutation(1_000 - np.arange(40))
    people = make.profiles_of_sets(sp.csr_array((np.arange(1_000)[:, None] < counts).astype(np.float64)))
    _, devices = played(PopularityProtocol().suited(Public(1_000, 40, POSITIVE)), people, POSITIVE)
    assert np.array_equal(np.argsort(-devices[-1].predictions(people)[0]), np.argsort(-counts))


def test_a_search_that_is_no_search_is_refused() -> None:
    plan = PopularityPlan.of(400, 200, 2)
    search = PopularitySearch.begun(plan).narrowed(0, np.arange(plan.stages[0].rows, dtype=np.float64))
    sent = encode_search(search)
    assert np.array_equal(decode_search(sent, plan).chosen[0], search.chosen[0])
    other = PopularityPlan.of(400, 100, 2)
    for wrong in (
        sent[:-1],
        sent + b"\0",
        encode_search(
            PopularitySearch.begun(other).narrowed(0, np.arange(other.stages[0].rows, dtype=np.float64))
        ),
    ):
        with pytest.raises(ValueError, match="bytes"):
            decode_search(wrong, plan)


def bytes_sent(protocol: PopularityProtocol, users: int, items: int) -> int:
    rounds = protocol.may_ask(Public(users, items, POSITIVE))
    return bytes_up(protocol.adding_up, zip(rounds, protocol.multipliers, strict=True))


@pytest.mark.parametrize(("items", "rounds"), [(3_000, 1), (41_000, 1), (1_000_000, 3)])
def test_as_many_numbers_are_sent_as_a_users_bytes_allow(items: int, rounds: int) -> None:
    protocol = suited(items)
    assert protocol.rounds == rounds
    layouts, sent = protocol.largest(Public(20_000, items, POSITIVE)), bytes_sent(protocol, 20_000, items)
    assert sent <= 300_000
    assert rounds == 1 or sent > 290_000
    assert sum(layout.n_rows for layout in layouts) <= (protocol.search.numbers or 0)


def test_one_round_is_taken_if_it_fits_although_two_in_fewer_numbers_do_not() -> None:
    one = suited(2_000, users=500)
    enough = bytes_sent(one, 500, 2_000)
    rounds = [suited(2_000, users=500, max_bytes_up=enough + more).rounds for more in (-1, 0, 1_000)]
    assert rounds == [2, 1, 1]


def test_who_sends_no_numbers_has_one_of_each_item_to_add_to_unless_noise_hides_most() -> None:
    central: dict[str, Any] = {"aggregation": CentralAggregation()}
    assert suited(1_000_000, users=1_000_000, **central).rounds == 1
    by_itself = PrivacyBudget(epsilon=1.0, per="user", composition="sum")
    for few in ({"aggregation": LocalAggregation(), "privacy": by_itself}, central):
        search = suited(1_000_000, users=1_000, **few).search
        assert search.rounds == 2
        assert 0.99 / 6 <= search.plan(1_000_000).rows / 1_000_000 <= 1 / 6


def test_one_round_is_taken_where_noise_hides_most_items_if_several_do_not_fit() -> None:
    one = suited(400, users=30, search=SearchOptions(rounds=1))
    sent = bytes_sent(one, 30, 400)
    assert [suited(400, users=30, max_bytes_up=most).rounds for most in (sent, 300_000)] == [1, 2]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"max_bytes_up": 2_000}, "max_bytes_up"),
        ({"max_bytes_up": 40_000, "search": SearchOptions(numbers=30_000)}, "max_bytes_up"),
        ({"search": SearchOptions(numbers=100)}, "search.numbers"),
        ({"search": SearchOptions(numbers=1_000, rounds=1)}, "search.numbers"),
    ],
)
def test_numbers_and_bytes_that_are_too_few_are_refused(options: dict[str, Any], key: str) -> None:
    with refused_at(key):
        suited(41_000, **options)
