"""Federated collaborative filtering: the devices' factors, the gradient they send, and Adam's steps."""

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.federated import RULES, CollaborativeFiltering, code_of
from dprec.gradients import RoundDraws
from dprec.lists import ials
from dprec.randomness import DeviceDraws
from dprec.ratings import POSITIVE
from dprec.testing import ModelContract, contract
from tests import make
from tests.models import Drawing, Guessing, Means, Mixing, Remembering

USERS, ITEMS = 9, 7
MODEL = CollaborativeFiltering(rank=3, confidence=4.0, ridge=0.5, step_size=0.2, item_ridge=0.1)


TestModels = contract(CollaborativeFiltering(), MODEL, Means())


def some_factors(seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal((ITEMS, 3))


def loss(sets: Floats, own: Floats, factors: Floats) -> float:
    """Return sum of c (p - x . y)^2, with c = 5 where p = 1."""
    return float(((1 + MODEL.confidence * sets) * (sets - own @ factors.T) ** 2).sum())


def test_a_users_factors_are_those_of_ials_but_for_the_scale() -> None:
    sets, factors = make.random_sets(USERS, ITEMS), some_factors()
    own = MODEL.user_factors(factors, make.profiles_of_sets(sets))
    # The paper's loss is alpha times that of `dprec.lists.ials`, but for targets of 1 + 1 / alpha.
    options = ials.ImplicitOptions(
        rank=3, unobserved=1 / MODEL.confidence, ridge=MODEL.ridge / MODEL.confidence, frequency_scaling=0.0
    )
    np.testing.assert_allclose(own, (1 + 1 / MODEL.confidence) * ials.fold_in(sets, factors, options))


def test_what_devices_send_is_minus_half_the_gradient_of_their_loss() -> None:
    sets, factors = make.random_sets(USERS, ITEMS), some_factors()
    profiles = make.profiles_of_sets(sets)
    own, (sent,) = MODEL.user_factors(factors, profiles), MODEL.updates((factors,), profiles)
    dense, small = sets.toarray(), 1e-6
    for item in range(ITEMS):
        for place in range(3):
            moved = np.zeros((2, ITEMS, 3))
            moved[0, item, place], moved[1, item, place] = small, -small
            above, below = (loss(dense, own, factors + change) for change in moved)
            slope = (above - below) / (2 * small)
            assert sent[:, item, place].sum() == pytest.approx(-slope / 2, abs=1e-5)


def test_a_users_update_depends_on_its_own_set_alone() -> None:
    sets, factors = make.random_sets(USERS, ITEMS), some_factors()
    (everybody,) = MODEL.updates((factors,), make.profiles_of_sets(sets))
    for user in range(USERS):
        (alone,) = MODEL.updates((factors,), make.profiles_of_sets(sets[user : user + 1]))
        assert np.array_equal(alone[0], everybody[user])


def test_numbers_are_read_as_devices_clip_them_and_with_the_noise_they_add() -> None:
    """The noise of 9 x 21 numbers is within 6 deviations but with a probability of 4e-7."""
    profiles, parameters = make.profiles_of_sets(make.random_sets(USERS, ITEMS)), (some_factors(),)
    updates = MODEL.updates(parameters, profiles)
    plain = code_of(MODEL, ITEMS, POSITIVE, 0.1, 0.0)
    devices = DeviceDraws.of(bytes(16), 0, profiles.indptr, profiles.items, np.ones(profiles.items.size), "a")
    sent = plain.reports(plain.steps(updates)[0], RoundDraws(devices, 1, 0))
    valid, rows = plain.numbers([b"no report", *sent])
    assert valid.tolist() == [False] + [True] * USERS
    assert np.array_equal(rows, plain.clipped(updates))
    assert np.all(np.linalg.norm(rows, axis=1) <= 1)
    noisy = code_of(MODEL, ITEMS, POSITIVE, 0.1, 2.0)
    _, rows = noisy.numbers(noisy.reports(noisy.steps(updates)[0], RoundDraws(devices, 1, 0)))
    assert np.abs(rows - plain.clipped(updates)).max() < 6 * 2.0
    assert (rows - plain.clipped(updates)).std() == pytest.approx(2.0, rel=0.5)


def test_adam_takes_a_full_step_at_first_and_remembers_what_came_before() -> None:
    factors, ones = some_factors(), np.ones((ITEMS, 3))
    model = CollaborativeFiltering(rank=3, step_size=0.2, first_moment=0.5, second_moment=0.75)
    step = model.steps()
    (first,) = step((factors,), (3 * ones,), 1)
    np.testing.assert_allclose(first, factors + 0.2, atol=1e-7)
    # The means of 3 and -1, weighted 1 to 2 and 3 to 4: 1/3 and 31/7.
    (second,) = step((first,), (-ones,), 2)
    np.testing.assert_allclose(second, first + 0.2 * (1 / 3) / np.sqrt(31 / 7), atol=1e-7)
    (again,) = model.steps()((factors,), (3 * ones,), 1)
    assert np.array_equal(again, first)


@pytest.mark.parametrize(
    ("model", "rule"),
    [(Mixing(least=60), "alone"), (Drawing(), "draws"), (Remembering(), "memory"), (Guessing(), "alone")],
)
def test_the_contract_of_models_finds_those_that_mix_draw_or_remember(model: Means, rule: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="; change: "):
        ModelContract().test_the_rule_is_kept(model, next(each for each in RULES if each.name == rule))
