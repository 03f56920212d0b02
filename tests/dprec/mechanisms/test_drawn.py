"""The symbols that devices send about ratings, by every mechanism: those of its channel, each by itself."""

from functools import partial

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.mechanisms import MECHANISMS, Mechanism
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.randomness import DeviceDraws
from dprec.reports import CellFamily, Profiles
from tests.distributions import check_counts, check_independent
from tests.make import STARS

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
    people = Profiles(np.full(USERS, 2), np.tile(np.arange(2, dtype=np.int32), USERS), levels)
    draw = partial(DeviceDraws.of, bytes(16), 0, offsets(people.counts), people.items, levels.astype(float))
    symbols = family.drawn(people, draw)
    channel = made.channel(STARS, EPSILON)
    assert channel.epsilon == pytest.approx(EPSILON, rel=1e-9)
    for level, shares in enumerate(channel.probabilities[-5:], start=1):
        drawn = symbols[levels == level]
        check_counts(np.bincount(drawn, minlength=shares.size), shares)
        check_independent(drawn[::2], drawn[1::2], classes=4)
