"""Events, and how those of a kind compose."""

import math

import numpy as np
import pytest

from dprec.accounting import (
    ChannelDraws,
    Loss,
    NoisySum,
    PrivacyLossDistribution,
    ShuffledProfiles,
    compose,
    dominating_channel,
    gaussian_epsilon,
    largest_mu,
)
from dprec.channel import Channel
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
LAPLACE, RESPONSE = BoundedLaplace().channel(STARS, 0.5), RandomizedResponse().channel(STARS, 0.5)
COUNTS = np.array([30, 0, 4, 30, 11])
EVERYBODY = np.ones(5, dtype=np.bool_)


def alone(channel: Channel, draws: int, delta: float = 1e-6) -> float:
    return compose([(PrivacyLossDistribution.of(channel), draws)]).epsilon(delta)


def losses_of(*drawn: ChannelDraws, delta: float = 1e-6) -> np.ndarray:
    """Return the composed losses of draws about everybody."""
    everybody = np.ones(np.size(drawn[0].draws), dtype=np.bool_)
    return ChannelDraws.composed([(one, everybody) for one in drawn], delta, "replace-one")


def test_every_user_has_the_loss_of_its_own_draws() -> None:
    drawn = ChannelDraws((LAPLACE, RESPONSE), np.array([0, 1, 1, 1, 1]), COUNTS)
    expected = [alone(LAPLACE, 30), 0, alone(RESPONSE, 4), alone(RESPONSE, 30), alone(RESPONSE, 11)]
    np.testing.assert_allclose(losses_of(drawn), expected, rtol=1e-9)


def test_several_events_about_the_same_users_compose() -> None:
    first, second = (
        ChannelDraws((LAPLACE,), 0, COUNTS),
        ChannelDraws((LAPLACE,), 0, np.array([0, 0, 7, 1, 5])),
    )
    expected = [alone(LAPLACE, draws) if draws else 0.0 for draws in (30, 0, 11, 31, 16)]
    np.testing.assert_allclose(losses_of(first, second), expected, rtol=1e-9)
    more = losses_of(first, ChannelDraws((RESPONSE,), 0, COUNTS))
    assert (more[COUNTS > 0] > losses_of(first)[COUNTS > 0]).all()
    assert (more <= 2 * COUNTS * 0.5).all()


def test_one_mechanism_in_several_rounds_is_drawn_from_as_often_as_users_took_part() -> None:
    report = ChannelDraws((LAPLACE,))
    rounds = [np.arange(5) < took_part for took_part in (5, 3, 3, 1)]
    losses = ChannelDraws.composed([(report, users) for users in rounds], 1e-6, "replace-one")
    # As one event with all draws, to the last bit.
    assert losses.tolist() == losses_of(ChannelDraws((LAPLACE,), 0, np.array([4, 3, 3, 1, 1]))).tolist()


def test_a_loss_that_does_not_compose_is_added_for_those_who_took_part() -> None:
    added = ChannelDraws((LAPLACE,), 0, COUNTS, np.arange(5.0))
    users = np.array([True, True, False, True, False])
    losses = ChannelDraws.composed([(added, users)], 1e-6, "replace-one")
    assert (
        losses.tolist()
        == np.where(users, losses_of(ChannelDraws((LAPLACE,), 0, COUNTS)) + np.arange(5), 0).tolist()
    )


def test_the_loss_grows_with_the_draws_and_never_exceeds_the_sum() -> None:
    draws = np.arange(60)
    losses = losses_of(ChannelDraws((LAPLACE,), 0, draws))
    assert (np.diff(losses) > 0).all()
    assert (losses <= draws * LAPLACE.epsilon).all()
    assert losses[-1] < 0.5 * draws[-1] * LAPLACE.epsilon


def test_losses_that_are_too_small_for_a_grid_are_within_delta() -> None:
    channel = dominating_channel(1e-15)
    assert 0 < channel.epsilon < 1e-14
    assert losses_of(ChannelDraws((channel,), 0, COUNTS), delta=1e-9).tolist() == [0] * 5


def test_what_was_composed_before_is_not_composed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from dprec.accounting import events as module

    composed = []

    def counted(draws: list[tuple[PrivacyLossDistribution, int]]) -> object:
        composed.append(draws)
        return compose(draws)

    monkeypatch.setattr(module, "compose", counted)
    draws = np.array([3, 8, 3, 0, 8])
    drawn = [ChannelDraws((BoundedLaplace().channel(STARS, 0.37),), 0, draws) for _ in range(2)]
    first, again = map(losses_of, drawn)
    assert len(composed) == 2
    np.testing.assert_array_equal(first, again)
    for epsilon, delta in ((0.38, 1e-6), (0.37, 1e-5)):
        channel = BoundedLaplace().channel(STARS, epsilon)
        other = losses_of(ChannelDraws((channel,), 0, draws), delta=delta)
        assert other[0] == pytest.approx(alone(channel, 3, delta), rel=1e-9)
    assert len(composed) == 6


@pytest.mark.parametrize("epsilon", [1e-3, 0.02, 1.0, 20.0])
def test_the_dominating_channel_is_at_most_rounding_above_its_epsilon(epsilon: float) -> None:
    exact = dominating_channel(epsilon).epsilon
    # The logarithms of the draws are rounded to some 1e-14.
    assert epsilon - 1e-14 <= exact <= epsilon * (1 + 1e-8)
    # No channel with that epsilon costs more.
    for channel in (BoundedLaplace().channel(STARS, 1.0), RandomizedResponse().channel(STARS, 1.0)):
        assert alone(channel, 20) < alone(dominating_channel(1.0), 20)


def test_the_dominating_channel_of_no_bound_tells_everything() -> None:
    assert math.isinf(dominating_channel(math.inf).epsilon)


def test_sums_with_noise_cost_those_who_take_part_by_gaussian_dp() -> None:
    mu = largest_mu(2.0, 1e-6)
    sums = [(NoisySum(mu), np.array([True, False, True])), (NoisySum(mu / 2), np.array([False, False, True]))]
    losses = NoisySum.composed(sums, 1e-6, "add-or-remove-one")
    assert losses[:2] == pytest.approx([2.0, 0.0])
    assert losses[2] == gaussian_epsilon(mu * math.sqrt(1.25), 1e-6)
    assert NoisySum.composed(sums, 1e-9, "add-or-remove-one")[0] > 2.5


@pytest.mark.parametrize("between", [2.0, math.sqrt(2)])
def test_two_profiles_are_further_apart_than_a_profile_and_none(between: float) -> None:
    sums = [(NoisySum(0.5, between_profiles=between), EVERYBODY)]
    one, two = (NoisySum.composed(sums, 1e-6, each)[0] for each in ("add-or-remove-one", "replace-one"))
    assert (one, two) == (gaussian_epsilon(0.5, 1e-6), pytest.approx(gaussian_epsilon(0.5 * between, 1e-6)))


def test_sums_compose_with_those_whose_noise_costs_the_same() -> None:
    def cost(distance: float, delta: float) -> float:
        return distance

    assert NoisySum(1.0, cost).group == NoisySum(2.0, cost).group != NoisySum(1.0).group
    assert (
        NoisySum.composed(
            [(NoisySum(3.0, cost), EVERYBODY), (NoisySum(4.0, cost), EVERYBODY)], 0.1, "replace-one"
        )[0]
        == 10.0
    )


def test_shuffling_never_costs_more_than_the_draws_do() -> None:
    drawn = ChannelDraws((LAPLACE,), 0, COUNTS)
    hidden = ShuffledProfiles(0.5 * COUNTS, np.array([10_000, 0, 10_000, 0, 10_000]))
    shuffled = drawn.shuffled(hidden)
    losses = shuffled.composed([(shuffled, EVERYBODY)], 1e-6, "replace-one")
    local, amplified = losses_of(drawn), hidden.per_user(1e-6)
    assert losses.tolist() == np.minimum(local, amplified).tolist()
    assert losses[2] < local[2]
    assert losses[3] == local[3]
    assert shuffled.per_report(1e-6) is None


def test_losses_of_one_person_are_rounded_once() -> None:
    assert Loss.composed([Loss(0.1, 0.3)] * 10) == Loss(1.0, 3.0)
    assert Loss.composed([]) == Loss(0.0, 0.0)
