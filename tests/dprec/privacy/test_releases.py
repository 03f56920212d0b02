"""What was drawn about users, and their composed losses."""

import math

import numpy as np
import pytest

from dprec.accounting import ChannelDraws, PrivacyBudget, PrivacyLossDistribution, compose, dominating_channel
from dprec.accounting.events import composed_losses
from dprec.channel import Channel
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from dprec.mechanisms.unprotected import Raw
from dprec.mechanisms.zheng import ZhengRandomizedResponse
from dprec.ratings import RatingScale

STARS = RatingScale.evenly(1, 5, 1)
LAPLACE, RESPONSE = BoundedLaplace().channel(STARS, 0.5), RandomizedResponse().channel(STARS, 0.5)
COUNTS = np.array([30, 0, 4, 30, 11])
EVERYBODY = np.ones(5, dtype=np.bool_)


def alone(channel: Channel, draws: int, delta: float = 1e-6) -> float:
    return compose([(PrivacyLossDistribution.of(channel), draws)]).epsilon(delta)


def test_every_user_has_the_loss_of_its_own_draws() -> None:
    releases = ChannelDraws((LAPLACE, RESPONSE), np.array([0, 1, 1, 1, 1]), COUNTS)
    expected = [alone(LAPLACE, 30), 0, alone(RESPONSE, 4), alone(RESPONSE, 30), alone(RESPONSE, 11)]
    np.testing.assert_allclose(composed_losses([releases], 1e-6), expected, rtol=1e-9)


def test_several_releases_about_the_same_users_add_up() -> None:
    zeros = np.zeros(5, dtype=np.int64)
    two = [
        ChannelDraws((LAPLACE,), zeros, COUNTS),
        ChannelDraws((LAPLACE,), zeros, np.array([0, 0, 7, 1, 5])),
    ]
    expected = [alone(LAPLACE, draws) if draws else 0.0 for draws in (30, 0, 11, 31, 16)]
    np.testing.assert_allclose(composed_losses(two, 1e-6), expected, rtol=1e-9)
    mixed = [ChannelDraws((LAPLACE,), zeros, COUNTS), ChannelDraws((RESPONSE,), zeros, COUNTS)]
    more = composed_losses(mixed, 1e-6)
    assert (more[COUNTS > 0] > composed_losses(mixed[:1], 1e-6)[COUNTS > 0]).all()
    assert (more <= 2 * COUNTS * 0.5).all()


def test_the_loss_grows_with_the_draws_and_never_exceeds_the_sum() -> None:
    draws = np.arange(60)
    losses = composed_losses([ChannelDraws((LAPLACE,), np.zeros(60, dtype=np.int64), draws)], 1e-6)
    assert (np.diff(losses) > 0).all()
    assert (losses <= draws * LAPLACE.epsilon).all()
    assert losses[-1] < 0.5 * draws[-1] * LAPLACE.epsilon


def test_losses_that_are_too_small_for_a_grid_are_within_delta() -> None:
    channel = dominating_channel(1e-15)
    assert 0 < channel.epsilon < 1e-14
    assert (
        composed_losses([ChannelDraws((channel,), np.zeros(5, dtype=np.int64), COUNTS)], 1e-9).tolist()
        == [0] * 5
    )


def test_what_was_composed_before_is_not_composed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from dprec.privacy import releases as module

    composed = []

    def counted(draws: list[tuple[PrivacyLossDistribution, int]]) -> object:
        composed.append(draws)
        return compose(draws)

    monkeypatch.setattr(module, "compose", counted)
    zeros, draws = np.zeros(5, dtype=np.int64), np.array([3, 8, 3, 0, 8])
    first, again = (
        composed_losses([ChannelDraws((BoundedLaplace().channel(STARS, 0.37),), zeros, draws)], 1e-6)
        for _ in range(2)
    )
    assert len(composed) == 2
    np.testing.assert_array_equal(first, again)
    for epsilon, delta in ((0.38, 1e-6), (0.37, 1e-5)):
        channel = BoundedLaplace().channel(STARS, epsilon)
        other = composed_losses([ChannelDraws((channel,), zeros, draws)], delta)
        assert other[0] == pytest.approx(alone(channel, 3, delta), rel=1e-9)
    assert len(composed) == 6


def test_what_is_not_protected_has_no_bound() -> None:
    raw = Raw().family(None, STARS, 40)
    losses = composed_losses([raw.releases(COUNTS, EVERYBODY)], 1e-6)
    assert losses.tolist() == [math.inf, 0, math.inf, math.inf, math.inf]


def test_a_report_is_a_draw_for_every_cell_of_those_who_sent_it() -> None:
    sent = np.array([True, True, False, True, True])
    per_rating = BoundedLaplace().family(PrivacyBudget(epsilon=0.5), STARS, 40)
    releases = per_rating.releases(COUNTS, sent)
    assert releases.draws.tolist() == [30, 0, 0, 30, 11]
    assert len(releases.channels) == 1
    per_user = BoundedLaplace().family(PrivacyBudget(epsilon=0.5, per="user"), STARS, 40)
    channels = per_user.releases(COUNTS, sent)
    used = [channels.channels[place].epsilon for place in channels.channel[[0, 4]]]
    assert used == pytest.approx([0.5 / 30, 0.5 / 11])
    hidden = ZhengRandomizedResponse().family(PrivacyBudget(epsilon=0.5, per="cell"), STARS, 40)
    assert hidden.releases(COUNTS, sent).draws.tolist() == [40, 40, 0, 40, 40]


@pytest.mark.parametrize("epsilon", [1e-3, 0.02, 1.0, 20.0])
def test_the_least_private_channel_is_at_most_rounding_above_its_epsilon(epsilon: float) -> None:
    exact = dominating_channel(epsilon).epsilon
    # The logarithms of the draws are rounded to some 1e-14.
    assert epsilon - 1e-14 <= exact <= epsilon * (1 + 1e-8)
    # No channel with that epsilon costs more.
    for channel in (BoundedLaplace().channel(STARS, 1.0), RandomizedResponse().channel(STARS, 1.0)):
        assert alone(channel, 20) < alone(dominating_channel(1.0), 20)


def test_the_least_private_channel_of_no_bound_tells_everything() -> None:
    assert math.isinf(dominating_channel(math.inf).epsilon)
