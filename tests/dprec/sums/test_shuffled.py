"""Sums from anonymous messages: what devices say, how it is hidden, and what the server makes of counts."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import poisson

from dprec.accounting import HiddenMessages, hidden_epsilon, least_fakes
from dprec.arrays import Floats, Ints, offsets
from dprec.gradients import RoundDraws
from dprec.randomness import DeviceDraws, ReleaseDraws, uniforms, words
from dprec.sums import UNIT, Contributions, Layout, ShuffledAggregation, Vectors
from dprec.sums.shuffled import MessagePlan
from tests import make
from tests.summing import popularity

ITEMS = 6
BUDGET = make.user_budget()
SHUFFLE = ShuffledAggregation(messages=4, norm=0.8, colluders=2)
"""A message counts for .2."""


def draws(users: int, seed: int = 0) -> RoundDraws:
    """Return the words of users."""
    return RoundDraws(DeviceDraws(words(seed, "devices", 0, 2 * users).reshape(2, users)), 1, 0)


@dataclass(frozen=True, eq=False)
class Rows(Contributions[Layout]):
    """Vectors as they are, one number in each row."""

    numbers: Floats
    """Shape (users, rows)."""

    @property
    def n_users(self) -> int:
        return len(self.numbers)

    def of_users(self, users: slice) -> "Rows":
        return Rows(self.numbers[users])

    def work(self, layout: Layout) -> Ints:
        return np.full(self.n_users, self.numbers.shape[1])

    def vectors(self, layout: Layout) -> Vectors:
        users, rows = np.nonzero(self.numbers)
        units = np.trunc(self.numbers[users, rows] / UNIT).astype(np.int64)
        indptr = offsets(np.bincount(users, minlength=len(self.numbers)))
        return Vectors(indptr, rows.astype(np.int32), units[:, None])

    def encode(self, layout: Layout) -> list[bytes]:
        raise NotImplementedError


LINE = popularity(ITEMS)
SIGNED = replace(LINE, negative=True)


def vectors(users: int, seed: int = 0, *, signed: bool = False) -> Rows:
    """Return vectors of numbers of up to .2, some of them empty, whose sums are 1.2 at most."""
    random = np.random.default_rng(seed)
    numbers = (
        0.2 * random.random((users, ITEMS)) * (random.random((users, ITEMS)) < random.random((users, 1)))
    )
    return Rows(numbers * (random.choice([-1, 1], numbers.shape) if signed else 1))


@pytest.mark.parametrize("signed", [False, True])
def test_a_device_says_of_its_vector_what_is_in_it_and_nothing_twice(signed: bool) -> None:
    plan = MessagePlan(ITEMS, signed, 4, 0.0, round(0.2 / UNIT))
    rows = vectors(300, signed=signed)
    starts, orders = uniforms(words(1, "starts", 0, 300)), words(2, "orders", 0, 300)
    said = plan.said(rows.vectors(LINE), starts, orders)
    assert said.shape == (300, 4)
    for own, vector in zip(said.tolist(), rows.numbers, strict=True):
        named = [message for message in own if message != plan.null]
        assert len(set(named)) == len(named)
        cells = np.array(named, dtype=np.int64) % ITEMS
        below = np.array(named, dtype=np.int64) >= ITEMS
        assert (vector[cells] != 0).all()
        assert (below == (vector[cells] < 0)).all()
        assert abs(len(named) - min(4, np.abs(vector).sum() / 0.2)) < 1


def test_a_number_larger_than_a_message_is_named_once_and_counts_as_one() -> None:
    users = 200
    among, own = SHUFFLE.among(users), Rows(np.tile([1.0, 0, 0, 0, 0, 0], (users, 1)))
    _, sent = among.decode(among.encode(own, LINE, 0.0, draws(users)), LINE, 0.0)
    released = among.release(sent, LINE, 0.0, ReleaseDraws(1, 1))
    np.testing.assert_allclose(released[:, 0], [0.2 * users, 0, 0, 0, 0, 0], rtol=1e-6, atol=1e-9)


def test_a_number_is_sent_with_its_probability_whatever_the_order() -> None:
    """Shares are 6 deviations off with a chance of 2e-9 each, 6 of them."""
    users, own = 20_000, np.array([0.1, 0.3, 0.2, 0.25, 0.05, 0.4])
    plan = MessagePlan(ITEMS, False, 3, 0.0, round(0.5 / UNIT))
    random = np.random.default_rng(5)
    starts, orders = random.random(users), random.integers(0, 2**64, users, dtype=np.uint64)
    said = plan.said(Rows(np.tile(own, (users, 1))).vectors(LINE), starts, orders)
    sent = np.zeros((users, plan.null + 1))
    np.put_along_axis(sent, said, 1, axis=1)
    expected = own / 0.5
    off = np.sqrt(expected * (1 - expected) / users)
    assert np.abs((sent[:, :-1].mean(axis=0) - expected) / off).max() < 6


@pytest.mark.parametrize("null_fakes", [1, 3])
def test_fakes_are_independent_poisson_numbers_and_k_r_times_as_many_are_null(null_fakes: int) -> None:
    """Shares, and products of neighbours, are 6 deviations off with a chance of 2e-9 each, 60 of them."""
    users, plan = 30_000, MessagePlan(7, True, 4, 0.05, 1, null_fakes)
    counts, fakes = plan.faked(users, draws(users).devices, 1)
    table = np.zeros((users, plan.null + 1))
    np.add.at(table, (np.repeat(np.arange(users), counts), fakes), 1)
    means = np.full(plan.null + 1, plan.share)
    means[-1] *= null_fakes * plan.messages
    assert np.abs((table.mean(axis=0) - means) / np.sqrt(means / users)).max() < 6
    covariances = ((table - means)[:, 1:] * (table - means)[:, :-1]).mean(axis=0)
    assert np.abs(covariances / np.sqrt(means[1:] * means[:-1] / users)).max() < 6
    assert plan.fakes == pytest.approx(means.sum())
    expected = users * poisson.pmf([0, 1, 2], means.sum())
    seen = np.bincount(counts)[:3]
    assert np.abs((seen - expected) / np.sqrt(expected)).max() < 6
    assert counts.max() + plan.messages <= plan.most < 70


def test_how_many_messages_a_device_sends_says_nothing_about_its_vector() -> None:
    users = 200
    aggregation = SHUFFLE.among(users)
    sizes = {
        tuple(map(len, aggregation.encode(Rows(np.tile(own, (users, 1))), LINE, 3.0, draws(users))))
        for own in (np.zeros(ITEMS), np.eye(ITEMS)[3], np.full(ITEMS, 0.4))
    }
    assert len(sizes) == 1


def test_what_is_no_batch_is_rejected() -> None:
    aggregation = SHUFFLE.among(30)
    good = aggregation.encode(vectors(2), LINE, 2.0, draws(2))[0]
    bad = [b"", good[:3], b"\xff" * len(good), bytes(10_000)]
    valid, aggregate = aggregation.decode([*bad, good], LINE, 2.0)
    assert valid.tolist() == [False] * 4 + [True]
    assert aggregate.users == 1
    assert aggregate.total.sum() == len(good)
    assert aggregation.whole(np.array([0, 3, 10_000, len(good)]), LINE, 2.0).tolist() == [
        False,
        False,
        False,
        True,
    ]
    wrapping = aggregate.total.copy()
    wrapping[:2] += 2**63 - 1 - wrapping[:2]
    wrapping[2] += 2  # what is left of twice the largest integer
    for total in (aggregate.total - aggregate.total.sum(), aggregate.total * 1000, wrapping):
        assert not aggregation.possible(replace(aggregate, numbers=total), LINE, 2.0)


def test_dropouts_and_colluding_devices_do_not_thin_the_blanket() -> None:
    aggregation = ShuffledAggregation(messages=10, norm=2.0, dropouts=0.1, colluders=100).among(1000)
    (multiplier,) = aggregation.multipliers(BUDGET, (1.0,), 1.0)
    mechanism = aggregation.cost(multiplier, 1.0).mechanism
    assert isinstance(mechanism, HiddenMessages)
    assert mechanism.null_fakes == aggregation.null_fakes == 8
    assert mechanism.fakes == pytest.approx(least_fakes(10, 1.0, 1e-6, null_fakes=8))
    assert aggregation._plan(LINE, multiplier).share * 800 == pytest.approx(mechanism.fakes)
    # What is charged is what is sent: counts are 6 deviations off with a chance of 2e-9 each.
    nobody = aggregation.encode(Rows(np.zeros((1000, ITEMS))), LINE, multiplier, draws(1000))
    means = np.append(np.full(ITEMS, mechanism.fakes), 8 * 10 * mechanism.fakes) * 1000 / 800
    counts = aggregation.decode(nobody, LINE, multiplier)[1].total - 10_000 * (np.arange(ITEMS + 1) == ITEMS)
    assert np.abs((counts - means) / np.sqrt(means)).max() < 6
    present = np.ones(1000, dtype=np.bool_)
    assert aggregation.can_release(present, 900, 1, 0)
    assert not aggregation.can_release(present, 899, 1, 0)


@pytest.mark.parametrize("farthest", [1.0, math.sqrt(2)])
def test_the_noise_of_all_rounds_keeps_the_budget_and_no_less_would(farthest: float) -> None:
    aggregation = SHUFFLE.among(1000)
    multipliers = aggregation.multipliers(BUDGET, (0.2, 0.8), farthest)
    adjacency = "add-or-remove-one" if farthest == 1 else "replace-one"
    for factor, kept in ((1.0, True), (0.9999, False)):
        hidden = [aggregation.cost(factor * each, farthest).mechanism for each in multipliers]
        assert all(isinstance(each, HiddenMessages) for each in hidden)
        assert (hidden_epsilon(hidden, 1e-6, adjacency) <= 1) is kept  # type: ignore[arg-type]
    assert multipliers[0] == pytest.approx(2 * multipliers[1])
