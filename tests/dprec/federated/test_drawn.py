"""The noise on updates of federated models, that of the server and that of devices."""

from dataclasses import dataclass
from typing import Self, cast

import numpy as np
import pytest
from scipy import stats

from dprec.arrays import AnyInts, Floats, Ints, Uint64s
from dprec.completion import Profiles
from dprec.federated import STEPS, Devices, UpdateCode
from dprec.gradients import RoundDraws
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from tests.distributions import check_drawn, check_independent

DEVIATION, CLIP = 1.7, 0.25
ROUNDS = (1, 2)


def mean_of(total: np.ndarray, round_index: int, users: int = 50) -> Floats:
    code = UpdateCode(((total.size // 4, 4),), CLIP, 0.0)
    (released,), _ = code.released(total, users, DEVIATION, ReleaseDraws(1, round_index))
    return released.ravel() * users / CLIP


def test_a_server_adds_normal_noise_another_in_each_round_and_to_other_sums() -> None:
    empty = np.zeros(20_000, dtype=np.int64)
    first, second, other = mean_of(empty, 1), mean_of(empty, 2), mean_of(empty + STEPS, 1) - 1
    for noise in (first, second, other):
        check_drawn(noise, stats.norm(scale=DEVIATION))
    check_independent(first, second)
    check_independent(first, other)
    check_independent(first[::2], first[1::2])


def updates_sent(round_index: int, users: int, numbers: int) -> Floats:
    """Return what devices send that have nothing to send, in clips, shape (users, numbers)."""
    code = UpdateCode(((numbers,),), CLIP, DEVIATION)
    draws = RoundDraws(DeviceDraws(words(3, "devices", 0, 2 * users).reshape(2, users)), round_index, 0)
    valid, rows = code.numbers(code.reports(code.steps((np.zeros((users, numbers)),))[0], draws))
    assert valid.all()
    return rows


@pytest.mark.parametrize(("users", "numbers"), [(2, 10_000), (10_000, 2)])
def test_a_device_adds_normal_noise_of_its_own_to_each_number_in_each_round(users: int, numbers: int) -> None:
    first, second = (updates_sent(round_index, users, numbers) for round_index in ROUNDS)
    for noise in (first, second):
        check_drawn(noise, stats.norm(scale=DEVIATION))
    check_independent(first, second)
    # Two users, or two numbers of the same.
    check_independent(first[::2], first[1::2])
    check_independent(first[:, ::2], first[:, 1::2])


@dataclass(frozen=True, eq=False)
class FarOut:
    """Draws whose first words are the least, of the farthest deviates."""

    further: DeviceDraws

    def given(self, indptr: Ints, items: AnyInts, values: Floats) -> Self:
        raise NotImplementedError

    def asked(self, question: bytes) -> Self:
        return cast(Self, self.further.asked(question))

    def per_user(self, index: int, round_index: int) -> Uint64s:
        raise NotImplementedError

    def per_cell(self, counts: AnyInts, items: AnyInts, round_index: int) -> Uint64s:
        return np.zeros(items.size, dtype=np.uint64)


def test_what_a_model_draws_is_the_users_the_rounds_and_the_questions() -> None:
    users = 20_000
    nobody = Profiles(np.zeros(users + 1, dtype=np.int64), np.zeros(0, np.int32), np.zeros(0), 1)
    own = DeviceDraws(words(3, "devices", 0, 2 * users).reshape(2, users))
    asked = [RoundDraws(own, number, 0) for number in ROUNDS] + [RoundDraws(own.asked(b"another"), 1, 0)]
    keys = np.concatenate([Devices.in_round(nobody, (), draws).keys for draws in asked])
    assert len(np.unique(keys, axis=0)) == 3 * users
    assert np.array_equal(Devices.in_round(nobody, (), asked[0]).keys, keys[:users])
    drawn = [random.random() for _, random, _ in Devices(nobody, (), keys[:users]).each()]
    check_drawn(np.array(drawn), stats.uniform())


def test_far_out_too_a_device_can_send_any_number_whatever_its_update_is() -> None:
    users, numbers = 2, 10_000
    code = UpdateCode(((numbers,),), CLIP, 50.0)
    draws = RoundDraws(FarOut(DeviceDraws(words(3, "devices", 0, 2 * users).reshape(2, users))), 1, 0)
    valid, rows = code.numbers(code.reports(code.steps((np.zeros((users, numbers)),))[0], draws))
    assert valid.all()
    # One step apart, as integers are, up to what chance leaves out.
    check_drawn(stats.norm.cdf(rows / 50.0) * 2.0**64, stats.uniform())
