"""The accountant: who lost what in which round, and the losses of all rounds together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.accounting import (
    ChannelDraws,
    Epsilon,
    NoisySum,
    PrivacyAccountant,
    dominating_channel,
    gaussian_epsilon,
)

Participation = tuple[NDArray[np.bool_], Epsilon, Epsilon]


def everybody(n_users: int) -> NDArray[np.bool_]:
    return np.ones(n_users, dtype=np.bool_)


def test_nobody_has_lost_anything_before_anything_is_released() -> None:
    accountant = PrivacyAccountant(rated=everybody(2))
    assert np.isnan(accountant.get_epsilon(per="rating")).all()
    assert accountant.get_epsilon().tolist() == [0, 0]


def test_only_who_took_part_is_charged_and_losses_add_up() -> None:
    accountant = PrivacyAccountant(rated=np.array([True, True, False]))
    accountant.step(
        1, np.array([True, False, True]), np.array([1.0, 9.0, np.nan]), np.array([5.0, np.nan, 0.0])
    )
    accountant.step(2, np.array([True, True, False]), np.array([0.5, 0.25, -1.0]), np.array([2.0, 1.0, 9.0]))
    assert accountant.get_epsilon(per="rating")[:2].tolist() == [1.5, 0.25]
    assert np.isnan(accountant.get_epsilon(per="rating")[2])
    assert accountant.get_epsilon().tolist() == [7.0, 1.0, 0.0]


def test_what_was_sent_unprotected_cannot_be_taken_back() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), np.inf, np.inf)
    accountant.step(2, everybody(1), 1.0, 1.0)
    assert accountant.get_epsilon(per="rating").tolist() == accountant.get_epsilon().tolist() == [np.inf]


def test_a_round_in_which_nobody_took_part_costs_nothing() -> None:
    accountant = PrivacyAccountant(rated=everybody(2))
    accountant.step(1, ~everybody(2), 1.0, 1.0)
    assert accountant.history == []


def test_the_history_tells_who_lost_what_in_which_round() -> None:
    accountant = PrivacyAccountant(rated=np.array([True, False, True]))
    accountant.step(
        4, np.array([False, True, True]), np.array([np.nan, np.nan, 0.5]), np.array([np.nan, 2, 3])
    )
    (event,) = accountant.history
    assert event.round_index == 4
    assert event.took_part(3).tolist() == [False, True, True]
    assert event.per_rating == 0.5
    assert isinstance(event.per_user, np.ndarray)
    assert event.per_user[1:].tolist() == [2, 3]


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


@pytest.mark.parametrize("name", ["rated", "user_sets", "losses", "rounds", "users", "per_user_row"])
def test_arrays_that_do_not_belong_together_are_refused(name: str) -> None:
    accountant = PrivacyAccountant(rated=everybody(9))
    accountant.step(1, everybody(9), np.arange(9.0), 1.0)
    arrays = accountant.to_arrays()
    damaged = np.ones(17, dtype=np.int64) if name in ("rated", "rounds") else arrays[name][..., :0]
    with pytest.raises((ValueError, IndexError)):
        PrivacyAccountant.from_arrays({**arrays, name: damaged})


def test_a_million_users_over_a_hundred_rounds_take_little_memory() -> None:
    n_users, rounds = 1_000_000, 100
    counts = np.arange(n_users) % 50
    accountant = PrivacyAccountant(rated=counts > 0)
    for round_index in range(1, rounds + 1):
        asked = np.arange(n_users) % rounds != round_index
        accountant.step(round_index, asked, 0.1, counts * 0.1)
    bits = n_users // 8
    kept = sum(array.nbytes for array in accountant.to_arrays().values())
    assert 0 <= kept - (n_users + rounds * bits + 8 * n_users) < 100 * rounds


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


def test_mechanisms_that_do_not_compose_together_share_delta() -> None:
    draws, both = ChannelDraws((dominating_channel(0.1),), draws=np.array([300])), everybody(1)
    reports = PrivacyAccountant(rated=both)
    reports.step(1, both, 0.1, 30.0, draws)
    accountant = PrivacyAccountant(rated=both)
    accountant.step(1, both, 0.1, 30.0, draws)
    accountant.step(1, both, 0.0, 1.0, NoisySum(0.125))
    expected = reports.get_epsilon(5e-7) + gaussian_epsilon(0.125, 5e-7)
    assert accountant.get_epsilon(1e-6).tolist() == expected.tolist()


def test_between_two_profiles_a_sum_moves_twice_as_far_whatever_its_epsilon_is() -> None:
    accountant = PrivacyAccountant(rated=everybody(1))
    accountant.step(1, everybody(1), 0.1, 1.0, ChannelDraws((dominating_channel(1.0),)))
    assert accountant.between_profiles(1e-9).tolist() == accountant.get_epsilon(1e-9).tolist()
    accountant.step(1, everybody(1), 0.0, 0.5, NoisySum(0.25))
    reports = [(ChannelDraws((dominating_channel(1.0),)), everybody(1))]
    expected = ChannelDraws.composed(reports, 5e-7, "replace-one") + gaussian_epsilon(0.5, 5e-7)
    assert accountant.between_profiles(1e-6).tolist() == expected.tolist()
    accountant.step(2, everybody(1), 0.0, 2.0)
    assert accountant.between_profiles(1e-6).tolist() == (expected + 2.0).tolist()


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
