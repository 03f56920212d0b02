"""The bits of gradient reports, as devices draw them: their odds, and what must not tell of each other."""

import math

import numpy as np
import pytest

from dprec.arrays import Bools, Ints
from dprec.completion import Profiles
from dprec.gradients import (
    FittedProfiles,
    GradientReport,
    OneBitGradient,
    ReducedOneBitGradient,
    RoundDraws,
    SampledSigns,
)
from dprec.gradients.one_bit import projection
from dprec.randomness import DeviceDraws, words
from tests.distributions import check_counts, check_independent, check_share

USERS, ITEMS, EPSILON, PUBLIC = 80_000, 8, 2.0, 5
ROUNDS = (1, 2)
LIE = 1 / (1 + math.exp(EPSILON))


def answered(gradient: GradientReport, round_index: int, share: int = 1) -> tuple[Ints, Bools]:
    """Return the coordinate of each answer, and whether it is a lie.

    Everybody rates every item far above what is predicted, so each coordinate of the gradient is below -1.
    """
    users = USERS // share
    items = np.tile(np.arange(ITEMS, dtype=np.int32), users)
    profiles = Profiles(np.arange(users + 1) * ITEMS, items, np.full(items.size, 11.0), ITEMS)
    keys = words(3, "devices", 0, 2 * users).reshape(2, users)
    draws = RoundDraws(DeviceDraws(keys), round_index, PUBLIC)
    own, factors = np.ones((users, 1)), np.ones((ITEMS, 1))
    said = gradient.answers(
        gradient.encode(FittedProfiles(profiles, own, factors), EPSILON * share, draws), (ITEMS, 1), EPSILON
    )
    assert said is not None
    signs = np.full(ITEMS, -1.0)
    if isinstance(gradient, ReducedOneBitGradient):
        projected = projection(PUBLIC, gradient.dimensions, ITEMS).sum(axis=1) * -20
        assert np.abs(projected).min() > 1
        signs = np.sign(projected)
    return said.coordinates, said.answers != signs[said.coordinates]


@pytest.mark.parametrize(
    ("gradient", "share"),
    [(OneBitGradient(), 1), (ReducedOneBitGradient(dimensions=4), 1), (SampledSigns(coordinates=2), 2)],
    ids=["one-bit", "reduced", "sampled"],
)
def test_a_bit_is_a_lie_as_often_as_the_budget_says_whatever_is_asked(
    gradient: GradientReport, share: int
) -> None:
    (coordinates, lies), (_, later) = (answered(gradient, round_index, share) for round_index in ROUNDS)
    assert lies.size == later.size == USERS
    for each in (lies, later):
        # An epsilon that is 5 % larger makes 8 % fewer lies.
        check_share(int(each.sum()), USERS, LIE, wrong=0.08)
    drawn = np.bincount(coordinates)
    check_counts(drawn, np.full(drawn.size, 1 / drawn.size))
    # The coordinate is sent, and so are the next round's bit and another user's.
    check_independent(coordinates, lies)
    check_independent(lies, later)
    check_independent(lies[::2], lies[1::2])
