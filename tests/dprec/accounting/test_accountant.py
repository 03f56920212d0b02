"""The accountant: who lost what in which round, and the losses of all rounds together."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.accounting import (
    ChannelDraws,
    Epsilon,
    EventMechanism,
    HiddenMessages,
    LargestLoss,
    NoisySum,
    Poisson,
    PrivacyAccountant,
    PrivacyLossDistribution,
    ShuffledProfiles,
    ShuffledReports,
    SubsampledGaussian,
    compose,
    dominating_channel,
    gaussian_epsilon,
    largest_mu,
    note_on_delta,
)
from dprec.accounting.events import Shuffled
from dprec.channel import Channel
from dprec.mechanisms.laplace import BoundedLaplace
from dprec.mechanisms.randomized_response import RandomizedResponse
from tests.make import STARS

Participation = tuple[NDArray[np.bool_], Epsilon, Epsilon]


def everybody(n_users: int) -> NDArray[np.bool_]:
    return np.ones(n_users, dtype=np.bool_)


def test_only_who_took_part_is_charged_and_losses_add_up() -> None:
    accountant = PrivacyAccountant(rated=np.array([True, True, False]))
    accountant.step(
        1, np.array([True, False, True]), np.array([1.0, 9.0, np.nan]), np.array([5.0, np.nan, 0.0])
    )
    accountant.step(2, np.array([True, True, False]), np.array([0.5, 0.25, -1.0]), np.array([2.0, 1.0, 9.0]))
    assert accountant.get_epsilon(per="rating")[:2].tolist() == [1.5, 0.25]
    assert np.isnan(accountant.get_epsilon(per="rating")[2])
    assert accountant.get_epsilon().tolist() == [7.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("users", "loss"),
    [
        (everybody(3), 1.0),
        (everybody(2), np.ones(3)),
        (everybody(2), np.array([1.0, np.nan])),
        (everybody(2), -0.5),
        (everybody(2), np.array([0.5, -0.5])),
    ],
)
def test_what_is_no_loss_of_these_users_is_refused(users: NDArray[np.bool_], loss: Epsilon) -> None:
    for losses in ((1.0, loss), (loss, 1.0)):
        accountant = PrivacyAccountant(rated=everybody(2))
        with pytest.raises(ValueError, match=r"for 2 users|negative or not a number"):
            accountant.step(1, users, *losses)
        assert accountant.history == []


class InPlaceSums:
    """The sums as an array that every charge changes, NaN per rating until there is a loss."""

    def __init__(self, rated: NDArray[np.bool_]) -> None:
        self.rated = rated
        self.per_rating, self.per_user = np.full(rated.size, np.nan), np.zeros(rated.size)

    def charge(self, users: NDArray[np.bool_], per_rating: Epsilon, per_user: Epsilon) -> None:
        one, other = np.broadcast_to(per_rating, users.shape), np.broadcast_to(per_user, users.shape)
        for user in np.flatnonzero(users):
            if self.rated[user]:
                spent = self.per_rating[user]
                self.per_rating[user] = one[user] if np.isnan(spent) else spent + one[user]
            self.per_user[user] += other[user]


@st.composite
def participations(draw: st.DrawFn) -> tuple[NDArray[np.bool_], list[Participation]]:
    n_users = draw(st.integers(1, 19))
    losses = st.floats(0, 1e300) | st.just(np.inf)
    masks = st.lists(st.booleans(), min_size=n_users, max_size=n_users).map(np.array)
    columns = st.lists(losses, min_size=n_users, max_size=n_users).map(np.array)
    # A few columns, so that charges share them.
    column = st.sampled_from([draw(columns), draw(columns), draw(losses)])
    return draw(masks), draw(st.lists(st.tuples(masks, column, column), max_size=8))


def charged(rated: NDArray[np.bool_], charges: list[Participation]) -> PrivacyAccountant:
    accountant = PrivacyAccountant(rated)
    for round_index, charge in enumerate(charges, start=1):
        accountant.step(round_index, *charge)
    return accountant


@given(participations())
def test_sums_are_those_of_an_array_that_every_charge_changes(
    given_charges: tuple[NDArray[np.bool_], list[Participation]],
) -> None:
    rated, charges = given_charges
    accountant, expected = charged(rated, charges), InPlaceSums(rated)
    for charge in charges:
        expected.charge(*charge)
    assert accountant.get_epsilon(per="rating").tobytes() == expected.per_rating.tobytes()
    assert accountant.get_epsilon().tobytes() == expected.per_user.tobytes()


@given(participations())
def test_an_accountant_comes_back_from_its_arrays(
    given_charges: tuple[NDArray[np.bool_], list[Participation]],
) -> None:
    accountant = charged(*given_charges)
    again = PrivacyAccountant.from_arrays(accountant.to_arrays())
    assert again.rated.tolist() == accountant.rated.tolist()
    for one, other in zip(again.history, accountant.history, strict=True):
        assert one.round_index == other.round_index
        assert one.users.tolist() == other.users.tolist()
        for loss, expected in ((one.per_rating, other.per_rating), (one.per_user, other.per_user)):
            assert type(loss) is type(expected)
            np.testing.assert_array_equal(loss, expected)
    assert again.get_epsilon(per="rating").tobytes() == accountant.get_epsilon(per="rating").tobytes()


@pytest.mark.parametrize("losses", [(0.5, 2.0), (2.0, 0.5), (0.5, 2.0, 1.0, 3.0)])
def test_a_user_whose_exchanges_share_no_rating_loses_the_most_of_any_of_them(
    losses: tuple[float, ...],
) -> None:
    parts = []
    for loss in losses:
        part = PrivacyAccountant(rated=np.array([True, True]))
        # The other user loses the same in every exchange.
        part.step(1, everybody(2), np.array([loss, 1.0]), np.array([loss, 1.0]))
        parts.append(part)
    apart = PrivacyAccountant.of_all(parts, same_ratings=False)
    assert apart.get_epsilon(per="rating").tolist() == [max(losses), 1.0]
    assert apart.get_epsilon().tolist() == [sum(losses), len(losses)]
    together = PrivacyAccountant.of_all(parts)
    assert together.get_epsilon(per="rating").tolist() == [sum(losses), len(losses)]


def test_without_a_delta_losses_add_up_and_with_one_draws_compose() -> None:
    accountant, report = PrivacyAccountant(rated=everybody(3)), ChannelDraws((dominating_channel(0.1),))
    for done in range(1, 201):
        users = np.array([True, done > 100, False])
        accountant.step(done, users, 0.1, 0.1, report)
    assert accountant.get_epsilon() == pytest.approx([20.0, 10.0, 0.0])
    composed = accountant.get_epsilon(1e-6)
    assert composed[2] == 0 < composed[1] < composed[0] < 20 / 2
    # The loss of a rating is a sum at every delta.
    assert accountant.get_epsilon(1e-6, per="rating")[:2] == pytest.approx([20.0, 10.0])
    by_itself = PrivacyAccountant(everybody(3), accountant.history[:100])
    assert by_itself.get_epsilon(1e-6)[0] == composed[1]


def test_events_of_which_only_epsilons_are_known_add_to_what_composes() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), 0.0, 0.75)
    assert not accountant.composes
    assert accountant.get_epsilon(1e-6).tolist() == [0.75]
    accountant.step(2, everybody(1), np.inf, np.inf, NoisySum(0.5))
    assert accountant.composes
    assert accountant.get_epsilon().tolist() == [np.inf]
    assert accountant.get_epsilon(1e-6).tolist() == [0.75 + gaussian_epsilon(0.5, 1e-6)]


@pytest.mark.parametrize(
    "mechanism", [NoisySum(0.5), HiddenMessages(2, 30.0), SubsampledGaussian(0.5, Poisson(0.1))]
)
def test_what_needs_a_delta_has_no_loss_without_one(mechanism: EventMechanism) -> None:
    accountant = PrivacyAccountant(rated=everybody(2))
    with pytest.raises(ValueError, match="without a delta"):
        accountant.step(1, everybody(2), 0.0, np.array([np.inf, 1.0]), mechanism)
    accountant.step(1, everybody(2), 0.0, np.inf, mechanism)
    assert np.isinf(accountant.get_epsilon()).all()
    assert np.isfinite(accountant.get_epsilon(1e-6)).all()


def test_mechanisms_that_do_not_compose_together_share_delta() -> None:
    draws, both = ChannelDraws((dominating_channel(0.1),), draws=np.array([300])), everybody(1)
    reports = PrivacyAccountant(rated=both)
    reports.step(1, both, 0.1, 30.0, draws)
    accountant = PrivacyAccountant(rated=both)
    accountant.step(1, both, 0.1, 30.0, draws)
    accountant.step(1, both, 0.0, np.inf, NoisySum(0.125))
    expected = reports.get_epsilon(5e-7) + gaussian_epsilon(0.125, 5e-7)
    assert accountant.get_epsilon(1e-6).tolist() == expected.tolist()


def test_between_two_profiles_a_sum_moves_twice_as_far_whatever_its_epsilon_is() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), 0.1, 1.0, ChannelDraws((dominating_channel(1.0),)))
    assert accountant.between_profiles(1e-9).tolist() == accountant.get_epsilon(1e-9).tolist()
    accountant.step(1, everybody(1), 0.0, np.inf, NoisySum(0.25))
    reports = [(ChannelDraws((dominating_channel(1.0),)), everybody(1))]
    expected = ChannelDraws.composed(reports, 5e-7, "replace-one") + gaussian_epsilon(0.5, 5e-7)
    assert accountant.between_profiles(1e-6).tolist() == expected.tolist()
    accountant.step(2, everybody(1), 0.0, 2.0)
    assert accountant.between_profiles(1e-6).tolist() == (expected + 2.0).tolist()


@pytest.mark.parametrize(
    "asked",
    [{"delta": -1e-6}, {"delta": 1.0}, {"delta": np.nan}, {"per": "users"}, {"adjacency": "replace_one"}],
)
def test_a_question_that_has_no_answer_is_refused(asked: dict[str, Any]) -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), np.inf, np.inf, NoisySum(0.5))
    with pytest.raises(ValueError, match="accepted: "):
        accountant.get_epsilon(**asked)
    if "delta" in asked:
        with pytest.raises(ValueError, match="a delta of"):
            accountant.between_profiles(asked["delta"])


def test_between_profiles_sums_need_a_delta_and_events_say_who_took_part() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    with pytest.raises(ValueError, match="a delta of"):
        accountant.between_profiles(0.0)
    with pytest.raises(ValueError, match="users of int64"):
        accountant.step(1, np.ones(1, dtype=np.int64), 0.1, 1.0)  # type: ignore[arg-type]


def test_the_adjacency_is_the_accountants_or_the_one_asked_for() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), np.inf, np.inf, NoisySum(0.5))
    without, between = gaussian_epsilon(0.5, 1e-6), gaussian_epsilon(1.0, 1e-6)
    assert accountant.get_epsilon(1e-6).tolist() == [without]
    assert accountant.get_epsilon(1e-6, adjacency="replace-one").tolist() == [between]
    accountant.adjacency = "replace-one"
    assert accountant.get_epsilon(1e-6).tolist() == [between]


def test_what_is_only_declared_is_claimed_and_nothing_of_it_proved() -> None:
    accountant = PrivacyAccountant(rated=everybody(2))
    accountant.step(3, np.array([True, False]), 0.5, 1.0, ChannelDraws((dominating_channel(1.0),)))
    declared = accountant.declared()
    assert declared.get_epsilon().tolist() == declared.get_epsilon(1e-6).tolist() == [np.inf, 0]
    assert not declared.composes
    assert [event.round_index for event in declared.history] == [3]
    assert declared.claimed is accountant
    assert declared.declared().claimed is accountant


@pytest.mark.parametrize(
    ("delta", "users", "warns"), [(1e-3, 943, False), (1e-3, 1001, True), (0.1, 10, False)]
)
def test_a_delta_above_one_in_the_number_of_users_is_warned_about(
    delta: float, users: int, warns: bool
) -> None:
    assert (note_on_delta(delta, users) is not None) is warns


LAPLACE, RESPONSE = BoundedLaplace().channel(STARS, 0.5), RandomizedResponse().channel(STARS, 0.5)
COUNTS = np.array([30, 0, 4, 30, 11])
EVERYBODY = np.ones(5, dtype=np.bool_)


def alone(channel: Channel, draws: int, delta: float = 1e-6) -> float:
    return compose([(PrivacyLossDistribution.of(channel), draws)]).epsilon(delta)


def losses_of(*drawn: ChannelDraws, delta: float = 1e-6) -> np.ndarray:
    """Return the composed losses of draws about everybody."""
    everybody = np.ones(np.size(drawn[0].draws), dtype=np.bool_)
    return ChannelDraws.composed([(one, everybody) for one in drawn], delta, "replace-one")


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


@pytest.mark.parametrize("epsilon", [1e-3, 0.02, 1.0, 20.0])
def test_the_dominating_channel_is_at_most_rounding_above_its_epsilon(epsilon: float) -> None:
    exact = dominating_channel(epsilon).epsilon
    # The logarithms of the draws are rounded to some 1e-14.
    assert epsilon - 1e-14 <= exact <= epsilon * (1 + 1e-8)
    # No channel with that epsilon costs more.
    for channel in (BoundedLaplace().channel(STARS, 1.0), RandomizedResponse().channel(STARS, 1.0)):
        assert alone(channel, 20) < alone(dominating_channel(1.0), 20)


def test_sums_with_noise_cost_those_who_take_part_by_gaussian_dp() -> None:
    mu = largest_mu(2.0, 1e-6)
    sums = [(NoisySum(mu), np.array([True, False, True])), (NoisySum(mu / 2), np.array([False, False, True]))]
    losses = NoisySum.composed(sums, 1e-6, "add-or-remove-one")
    assert losses[:2] == pytest.approx([2.0, 0.0])
    assert losses[2] == gaussian_epsilon(mu * math.sqrt(1.25), 1e-6)
    assert NoisySum.composed(sums, 1e-9, "add-or-remove-one")[0] > 2.5


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


TWO_BITS = dominating_channel(0.3)


@pytest.mark.parametrize("drawn", [1.0, 0.6, 0.3])
@pytest.mark.parametrize(
    "charge",
    [
        lambda _: (0.3, ChannelDraws((TWO_BITS,))),
        lambda _: (math.inf, NoisySum(0.2)),
        lambda _: (math.inf, SubsampledGaussian(0.5, Poisson(0.1))),
        lambda number: (math.inf, NoisySum(0.1 * number)),
        lambda _: (0.3 * np.arange(50), ChannelDraws((TWO_BITS,), draws=np.arange(50))),
        lambda _: (0.3, ChannelDraws((TWO_BITS, dominating_channel(0.1)), np.arange(50) % 2)),
        lambda number: (0.3 * number, None),
        lambda _: (math.inf, None),
    ],
)
def test_the_largest_loss_so_far_is_that_of_all_users(
    charge: Callable[[int], tuple[Epsilon, EventMechanism | None]], drawn: float
) -> None:
    """Whether one user is accounted for, as where all events cost alike, or everybody."""
    accountant, draws = PrivacyAccountant(everybody(50)), np.random.default_rng(3)
    largest = LargestLoss(accountant, 1e-6)
    for number in range(1, 6):
        per_user, mechanism = charge(number)
        accountant.step(number, draws.random(50) < drawn, 0.0, per_user, mechanism)
        if number != 2:  # asked after several events as well
            expected = accountant.get_epsilon(1e-6).max()
            assert largest.so_far() == (pytest.approx(expected, rel=1e-12) if expected < math.inf else None)
    assert LargestLoss(accountant, 1e-6).so_far() == largest.so_far()


@pytest.mark.parametrize(
    "mechanism",
    [
        ChannelDraws((TWO_BITS, dominating_channel(0.1)), np.arange(20) % 2, np.arange(20), np.ones(20) / 8),
        NoisySum(0.2),
        SubsampledGaussian(0.5, Poisson(0.1)),
        HiddenMessages(2, 30.0),
        Shuffled(
            ChannelDraws((TWO_BITS,), draws=np.arange(1, 21)),
            ShuffledReports(TWO_BITS, np.repeat(np.arange(20), np.arange(1, 21)), np.full(210, 1000), 20),
        ),
        Shuffled(
            ChannelDraws((dominating_channel(0.5),)),
            ShuffledProfiles(np.full(20, 0.5), np.arange(20) * 100),
        ),
        None,
    ],
)
def test_one_user_loses_as_much_alone_as_among_all(mechanism: EventMechanism | None) -> None:
    """Of what was released once, and three times, in the rounds in which the user took part."""
    once, draws = PrivacyAccountant(everybody(20)), np.random.default_rng(5)
    for number in (1, 2):
        alone = np.inf if mechanism is not None and mechanism.needs_delta else 20 + np.arange(20.0)
        once.step(number, draws.random(20) < 0.8, 0.5, alone, mechanism)
    thrice = PrivacyAccountant(everybody(20), once.history * 3)
    # Amplified losses have equal shares of delta, of which a user alone has fewer, and a finer grid.
    close = 0.1 if isinstance(mechanism, Shuffled) else 1e-9
    for user in (0, 7, 19):
        for times, whole in ((1, once), (3, thrice)):
            alone = once.of_user(user, times)
            for delta in (0.0, 1e-6):
                assert alone.get_epsilon(delta)[0] == pytest.approx(whole.get_epsilon(delta)[user], rel=close)
            np.testing.assert_equal(alone.get_epsilon(per="rating")[0], whole.get_epsilon(per="rating")[user])


def test_nobody_has_lost_anything_before_the_first_event() -> None:
    assert LargestLoss(PrivacyAccountant(everybody(3)), 1e-6).so_far() == 0.0
