import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.accounting import Loss, PrivacyAccountant
from dprec.accounting.accountant import ledger_arrays, ledger_from_arrays

Participation = tuple[NDArray[np.bool_], Loss, Loss]


def everybody(n_users: int) -> NDArray[np.bool_]:
    return np.ones(n_users, dtype=np.bool_)


def test_nobody_has_spent_anything_before_anything_is_charged() -> None:
    ledger = PrivacyAccountant(rated=everybody(2))
    assert np.isnan(ledger.per_rating).all()
    assert ledger.per_user.tolist() == [0, 0]


def test_only_who_took_part_is_charged_and_losses_add_up() -> None:
    ledger = PrivacyAccountant(rated=np.array([True, True, False]))
    ledger.charge(
        1, np.array([True, False, True]), np.array([1.0, 9.0, np.nan]), np.array([5.0, np.nan, 0.0])
    )
    ledger.charge(2, np.array([True, True, False]), np.array([0.5, 0.25, -1.0]), np.array([2.0, 1.0, 9.0]))
    assert ledger.per_rating[:2].tolist() == [1.5, 0.25]
    assert np.isnan(ledger.per_rating[2])
    assert ledger.per_user.tolist() == [7.0, 1.0, 0.0]
    assert ledger.exchanges.tolist() == [2, 1, 1]


def test_what_was_sent_unprotected_cannot_be_taken_back() -> None:
    ledger = PrivacyAccountant(rated=everybody(1))
    ledger.charge(1, everybody(1), np.inf, np.inf)
    ledger.charge(2, everybody(1), 1.0, 1.0)
    assert ledger.per_rating.tolist() == ledger.per_user.tolist() == [np.inf]


def test_a_round_in_which_nobody_took_part_costs_nothing() -> None:
    ledger = PrivacyAccountant(rated=everybody(2))
    ledger.charge(1, ~everybody(2), 1.0, 1.0)
    assert ledger.history == []


def test_the_history_tells_who_lost_what_in_which_round() -> None:
    ledger = PrivacyAccountant(rated=np.array([True, False, True]))
    ledger.charge(4, np.array([False, True, True]), np.array([np.nan, np.nan, 0.5]), np.array([np.nan, 2, 3]))
    (charge,) = ledger.history
    assert charge.round_index == 4
    assert charge.took_part(3).tolist() == [False, True, True]
    assert charge.per_rating == 0.5
    assert isinstance(charge.per_user, np.ndarray)
    assert charge.per_user[1:].tolist() == [2, 3]


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
def test_what_is_no_loss_of_these_users_is_refused(users: NDArray[np.bool_], loss: Loss) -> None:
    for losses in ((1.0, loss), (loss, 1.0)):
        ledger = PrivacyAccountant(rated=everybody(2))
        with pytest.raises(ValueError, match=r"for 2 users|negative or not a number"):
            ledger.charge(1, users, *losses)
        assert ledger.history == []


class InPlaceSums:
    """The sums as an array that every charge changes, NaN per rating until there is a loss."""

    def __init__(self, rated: NDArray[np.bool_]) -> None:
        self.rated = rated
        self.per_rating, self.per_user = np.full(rated.size, np.nan), np.zeros(rated.size)

    def charge(self, users: NDArray[np.bool_], per_rating: Loss, per_user: Loss) -> None:
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
    ledger = PrivacyAccountant(rated)
    for round_index, charge in enumerate(charges, start=1):
        ledger.charge(round_index, *charge)
    return ledger


@given(participations())
def test_sums_are_those_of_an_array_that_every_charge_changes(
    given_charges: tuple[NDArray[np.bool_], list[Participation]],
) -> None:
    rated, charges = given_charges
    ledger, expected = charged(rated, charges), InPlaceSums(rated)
    for charge in charges:
        expected.charge(*charge)
    assert ledger.per_rating.tobytes() == expected.per_rating.tobytes()
    assert ledger.per_user.tobytes() == expected.per_user.tobytes()


@given(participations())
def test_a_ledger_comes_back_from_its_arrays(
    given_charges: tuple[NDArray[np.bool_], list[Participation]],
) -> None:
    ledger = charged(*given_charges)
    again = ledger_from_arrays(ledger_arrays(ledger))
    assert again.rated.tolist() == ledger.rated.tolist()
    for one, other in zip(again.history, ledger.history, strict=True):
        assert one.round_index == other.round_index
        assert one.users.tolist() == other.users.tolist()
        for loss, expected in ((one.per_rating, other.per_rating), (one.per_user, other.per_user)):
            assert type(loss) is type(expected)
            np.testing.assert_array_equal(loss, expected)
    assert again.per_rating.tobytes() == ledger.per_rating.tobytes()


@pytest.mark.parametrize("name", ["rated", "user_sets", "losses", "rounds", "users", "per_user_row"])
def test_arrays_that_do_not_belong_together_are_refused(name: str) -> None:
    ledger = PrivacyAccountant(rated=everybody(9))
    ledger.charge(1, everybody(9), np.arange(9.0), 1.0)
    arrays = ledger_arrays(ledger)
    damaged = np.ones(17, dtype=np.int64) if name in ("rated", "rounds") else arrays[name][..., :0]
    with pytest.raises((ValueError, IndexError)):
        ledger_from_arrays({**arrays, name: damaged})


def test_a_million_users_over_a_hundred_rounds_take_little_memory() -> None:
    n_users, rounds = 1_000_000, 100
    counts = np.arange(n_users) % 50
    ledger = PrivacyAccountant(rated=counts > 0)
    for round_index in range(1, rounds + 1):
        asked = np.arange(n_users) % rounds != round_index
        ledger.charge(round_index, asked, 0.1, counts * 0.1)
    bits = n_users // 8
    assert ledger.nbytes == n_users + rounds * bits + 8 * n_users
    assert sum(array.nbytes for array in ledger_arrays(ledger).values()) < ledger.nbytes + 100 * rounds
