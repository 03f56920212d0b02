"""The contract of mechanisms, on every registered one."""

import math
from functools import partial

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.mechanisms import MECHANISMS, BitsAndCounts, Laplace, ThresholdBit
from dprec.mechanisms.base import Mechanism
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.randomness import DeviceDraws
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, ProfileLevels
from dprec.testing import MechanismContract
from tests.distributions import check_counts, check_independent
from tests.make import STARS

EXAMPLES = {"binary-flip": BinaryFlip(p1=0.3, p2=0.2)}
"""Of the mechanisms that have settings without a default."""


class TestEveryMechanism(MechanismContract):
    @pytest.fixture(params=MECHANISMS.kinds)
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return EXAMPLES.get(request.param) or MECHANISMS[request.param]()


class _LosesMore(Mechanism):
    """Adds half the noise that its budget asks for."""

    def channel(self, scale, epsilon):
        return MECHANISMS["randomized-response"]().channel(scale, 2 * epsilon)


def test_the_contract_refuses_a_mechanism_that_loses_more_than_its_budget() -> None:
    with pytest.raises(pytest.fail.Exception) as failed:
        MechanismContract().test_the_exact_loss_is_the_budget(_LosesMore(kind="loses-more"))
    said = str(failed.value)
    assert "seen _LosesMore at epsilon 0.05 on the scale 'stars' costs 0.1; expected: At least 0.98" in said
    assert "\n" not in said


class _Textbook(Mechanism):
    """The exponential mechanism, by a bound that is twice its loss."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        steps = np.abs(np.subtract.outer(scale.values, scale.values)) / np.ptp(scale.values)
        return Channel.from_probabilities(np.exp(-epsilon * steps / 2), scale.values, scale.values, epsilon)


def test_the_contract_says_what_a_mechanism_costs_that_does_not_exhaust_its_budget() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"_Textbook at epsilon 0\.05 .* costs 0\.0\d+; expected"):
        MechanismContract().test_the_exact_loss_is_the_budget(_Textbook(kind="textbook"))


class _LosesMoreOnRatings(Mechanism):
    """Costs twice its budget, as its channel knows, but on a scale of two levels, where it says nothing."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        loss = 0.0 if scale.levels == 2 else 2 * epsilon
        rows = np.where(np.eye(scale.levels) > 0, np.exp(loss), 1.0)
        return Channel.from_probabilities(rows / rows.sum(axis=1), scale.values, scale.values, epsilon)


def test_the_contract_takes_no_overspending_for_a_refusal() -> None:
    with pytest.raises(pytest.fail.Exception, match="probabilities that cost"):
        MechanismContract().test_the_exact_loss_is_the_budget(_LosesMoreOnRatings(kind="loses-more"))


def test_the_same_generator_gives_the_same_noise() -> None:
    ratings = np.full(50, 3.0)
    first, again, other = (Laplace().perturb(ratings, 1.0, seed).tolist() for seed in (1, 1, 2))
    assert first == again != other
    assert Laplace().perturb(ratings, 1.0).tolist() != Laplace().perturb(ratings, 1.0).tolist()


@pytest.mark.parametrize("kind", ["laplace", "bounded-laplace", "none", "fisher-optimal"])
def test_what_is_no_budget_is_refused(kind: str) -> None:
    for epsilon in (0, -1, math.nan):
        with pytest.raises(InputError, match=f"^epsilon: {epsilon:g}; accepted: a number above 0$"):
            MECHANISMS[kind]().channel(STARS, epsilon)


def test_a_rating_is_left_for_the_counts_with_the_same_probability_whatever_it_is() -> None:
    channel = BitsAndCounts(bits=0.4).channel(STARS, 1.0)
    assert (channel.weights[:, -1] == channel.weights[0, -1]).all()
    assert channel.probabilities[0, -1] == pytest.approx(0.6)
    bit = ThresholdBit().channel(STARS, 1.0)
    np.testing.assert_allclose(channel.probabilities[:, :-1], 0.4 * bit.probabilities, rtol=1e-9)
    assert channel.values.tolist() == pytest.approx([*bit.values, 3.25])


ITEMS, USERS, EPSILON = 2, 30_000, 1.5


def suited(mechanism: type[Mechanism]) -> bool:
    """Return whether a report is a symbol for each cell, from the channel of its level, at a budget."""
    if not mechanism.private or mechanism is BinaryFlip:
        return False
    return mechanism.report_family.by_cell and mechanism.report_family.drawn is CellFamily.drawn


@pytest.mark.parametrize(
    "mechanism", [each for each in MECHANISMS if suited(each)], ids=lambda each: each.kind
)
def test_symbols_have_the_probabilities_of_the_channel_and_tell_nothing_of_each_other(
    mechanism: type[Mechanism],
) -> None:
    hides = mechanism.report_family.hides_items
    made = mechanism()  # type: ignore[call-arg]
    family = made.family(PrivacyBudget(epsilon=EPSILON, per="cell" if hides else "rating"), STARS, ITEMS)
    assert isinstance(family, CellFamily)
    levels = (1 + np.arange(2 * USERS) % 5).astype(np.uint8)
    people = ProfileLevels(np.full(USERS, 2), np.tile(np.arange(2, dtype=np.int32), USERS), levels)
    draw = partial(DeviceDraws.of, bytes(16), 0, offsets(people.counts), people.items, levels.astype(float))
    symbols = family.drawn(people, draw)
    channel = made.channel(STARS, EPSILON)
    assert channel.epsilon == pytest.approx(EPSILON, rel=1e-9)
    for level, shares in enumerate(channel.probabilities[-5:], start=1):
        drawn = symbols[levels == level]
        check_counts(np.bincount(drawn, minlength=shares.size), shares)
        check_independent(drawn[::2], drawn[1::2], classes=4)
