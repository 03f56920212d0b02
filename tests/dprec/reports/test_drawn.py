"""What families of reports draw beside symbols: samples, counts, answers on answers, answers about profiles.

Of symbols by themselves see `tests/dprec/mechanisms/test_contract.py`.
"""

import math
from functools import partial

import numpy as np
import pytest

from dprec.accounting import OwnBudgets, PrivacyBudget
from dprec.arrays import offsets
from dprec.mechanisms import (
    BitsAndCounts,
    FisherOptimal,
    LayeredMechanism,
    LocalHashing,
    ResidualBits,
    TwoLayers,
    UserLevelBit,
)
from dprec.randomness import DRAWS, DeviceDraws
from dprec.reports import (
    CountFamily,
    DrawsFor,
    LayeredFamily,
    ProfileFamily,
    ProfileLevels,
    SampledRatingsFamily,
    Wanted,
)
from dprec.reports.partly_answered import ResidualBitFamily
from tests.distributions import check_counts, check_independent, check_share
from tests.make import STARS


def people(users: int, levels: tuple[int, ...], number: int | None = None) -> ProfileLevels:
    """Return users who have rated the same items alike, the first ones of the catalogue."""
    items = np.tile(np.arange(len(levels), dtype=np.int32), users)
    numbers = None if number is None else np.full(users, number, dtype=np.uint8)
    own = np.tile(np.array(levels, dtype=np.uint8), users)
    return ProfileLevels(np.full(users, len(levels)), items, own, numbers)


def drawing(of: ProfileLevels) -> DrawsFor:
    return partial(DeviceDraws.of, bytes(16), 0, offsets(of.counts), of.items, of.levels.astype(float))


def test_a_rating_takes_part_with_the_probability_of_its_users_epsilon() -> None:
    """At 1 for reports at 3: a share of .09, and each rating by itself."""
    budget = OwnBudgets.of({0.5: 0.5, 1: 0.3, 3: 0.2}, sampled_at=3.0)
    family = FisherOptimal().family(budget, STARS, 12)
    assert isinstance(family, SampledRatingsFamily)
    of = people(24_000, (3,) * 12, number=1)
    reader = family.reader(24_000, Wanted(symbols=True))
    assert reader.take(np.arange(24_000), family.encode(of, drawing(of))).all()
    seen = reader.observations()
    taken = np.zeros((24_000, 12), dtype=np.bool_)
    taken[seen.users, seen.items] = True
    check_share(int(taken.sum()), taken.size, math.expm1(1) / math.expm1(3))
    check_independent(taken[:, ::2], taken[:, 1::2])
    # Whether a rating takes part says nothing of what is then said of it.
    assert seen.symbols is not None
    (channel,) = {each.tobytes(): each for each in seen.symbols.channels}.values()
    check_counts(np.bincount(seen.symbols.symbols, minlength=channel.shape[1]), channel[2])
    check_independent(seen.items, seen.symbols.symbols)


def test_a_count_of_one_rating_is_off_as_often_as_the_budget_says_in_each_group_by_itself() -> None:
    """An epsilon that is 5 % larger moves 6 % fewer."""
    users, epsilon = 150_000, 1.5
    family = BitsAndCounts(bits=0.4, groups=2).family(PrivacyBudget(epsilon=epsilon), STARS, 2)
    assert isinstance(family, CountFamily)
    of = people(users, (5, 1))
    counts, question = family.follow_up, family.follow_up.group_codec.encode(np.array([[0, 1]]))[0]
    noisy = counts.codec.decode(counts.encode(of, question, drawing(of)))[1]
    symbols = family.drawn(of, drawing(of)).reshape(users, 2)
    left = family.left(symbols)
    check_counts(np.bincount(symbols[:, 0], minlength=3), family.reference_channel.probabilities[4])
    moved = noisy != np.array([1, 0])
    share = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    for group in (0, 1):
        assert not noisy[~left[:, group], group].any()
        own = moved[left[:, group], group]
        check_share(int(own.sum()), own.size, share, wrong=0.06)
    both = moved[left.all(axis=1)]
    check_independent(*both.T)
    check_independent(left[:, 0], left[:, 1])


@pytest.mark.parametrize("mechanism", [TwoLayers(), LocalHashing(answers=3)], ids=str)
def test_an_answer_and_the_report_on_it_have_the_odds_of_their_channels(mechanism: LayeredMechanism) -> None:
    users, level = 40_000, 2
    family = mechanism.family(PrivacyBudget(epsilon=2.0), STARS, 3)
    assert isinstance(family, LayeredFamily)
    of = people(users, (level,))
    first, again = (
        family.drawn(
            of, lambda purpose, at=at: drawing(of)(purpose if purpose == "report" else f"{purpose} {at}")
        )
        for at in (1, 2)
    )
    layers, width = family.layers, family.layers[0].instantaneous.shape[1]
    shares = np.concatenate([each.permanent[level - 1] @ each.instantaneous for each in layers]) / len(layers)
    for reports in (first, again):
        check_counts(np.bincount(reports, minlength=shares.size), shares)
    # Of one answer, reports are drawn by themselves: pairs of them have these odds.
    together = np.concatenate(
        [
            (
                each.permanent[level - 1][:, None, None]
                * each.instantaneous[:, :, None]
                * each.instantaneous[:, None]
            )
            .sum(axis=0)
            .ravel()
            for each in layers
        ]
    ) / len(layers)
    pair, one = np.divmod(first.astype(np.int64), width)
    assert np.array_equal(pair, again // width)
    check_counts(
        np.bincount(pair * width**2 + one * width + again % width, minlength=together.size), together
    )


def test_a_residual_is_compared_falsely_as_often_as_its_share_of_the_budget_says() -> None:
    users, most = 40_000, 2
    family = ResidualBits(bits=most).family(PrivacyBudget(epsilon=4.0, per="user"), STARS, 3)
    assert isinstance(family, ResidualBitFamily)
    of = people(users, (1, 5, 4))
    symbols = family.drawn(of, drawing(of)).reshape(users, 3)
    answered = symbols < 2
    assert (answered.sum(axis=1) == most).all()
    check_counts(np.bincount(np.argmin(answered, axis=1), minlength=3), np.full(3, 1 / 3))
    lies = symbols != np.array([0, 1, 1])
    check_share(int(lies[answered].sum()), int(answered.sum()), 1 / (1 + math.exp(2.0)), wrong=0.09)
    first, last = (
        np.take_along_axis(lies, np.argsort(~answered, axis=1, kind="stable")[:, [place]], axis=1).ravel()
        for place in range(most)
    )
    check_independent(first, last)
    check_independent(np.argmin(answered, axis=1), first)


def test_an_answer_about_a_profile_is_honest_as_often_as_the_budget_says_however_all_are_divided() -> None:
    users, item = 40_000, 17
    family = UserLevelBit(profile=1).family(PrivacyBudget(epsilon=2.0, per="user"), STARS, 30)
    assert isinstance(family, ProfileFamily)
    assert family.answers == 1
    code = family.code
    own = ProfileLevels(
        np.ones(users, dtype=np.int64), np.full(users, item, np.int32), np.full(users, 4, np.uint8)
    )
    answers = family.numbers.decode(family.encode(own, drawing(own)))[1][:, 0]
    multipliers, blocks = np.divmod(answers, code.blocks)
    honest = (multipliers + 1) * 2 * item % code.modulus // code.size == blocks
    check_share(int(honest.sum()), users, code.draws / DRAWS)
    assert code.epsilon == pytest.approx(2.0, rel=1e-9)
    check_counts(
        np.bincount(multipliers, minlength=code.multipliers), np.full(code.multipliers, 1 / code.multipliers)
    )
    check_independent(multipliers, honest)
    # Among the others, no block is likelier.
    place = np.zeros(users, dtype=np.int64)
    true = (multipliers + 1) * 2 * item % code.modulus // code.size
    place[~honest] = (blocks - true)[~honest] % code.blocks - 1
    others = np.bincount(place[~honest], minlength=code.blocks - 1)
    check_counts(others, np.full(code.blocks - 1, 1 / (code.blocks - 1)))
