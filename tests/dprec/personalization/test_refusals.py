"""Levels of users who send much, little and nothing, and tables that are for all of them."""

import numpy as np
import pytest

from dprec.accounting import BudgetChoice, OwnBudgets
from dprec.mechanisms import ThresholdBit
from dprec.observations import Observations
from dprec.ordinal import cut_points, level_probabilities
from dprec.personalization import for_everybody
from dprec.randomness import generator
from dprec.reports import ProfileLevels, Wanted
from dprec.wire import ItemTable
from tests.make import STARS

CUTS = cut_points([0.05, 0.1, 0.3, 0.35, 0.2], 0.5)
USERS, ITEMS, EACH = 3000, 40, 20
SHARES = {0: 0.25, 0.5: 0.25, 1: 0.25, 3: 0.25}


class Words:
    """Random words as devices have them, without keys."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, purpose):
        self.random = generator(self.seed, purpose)
        return self

    def per_cell(self, counts, items, round_index):
        return self.random.integers(2**64, size=items.size, dtype=np.uint64)


def population(strength: float, shares=SHARES, seed: int = 1) -> tuple[Observations, np.ndarray, float]:
    """Return reports of users whose choices go with their taste, their numbers, and the mean level of all.

    Item biases are 0: a level is all that a rating depends on.
    """
    random = generator(seed, "levels of a test")
    levels = random.normal(0.0, 0.5, USERS)
    budgets = OwnBudgets.of(shares, choice=BudgetChoice(by="taste", strength=strength))
    numbers = budgets.chosen(np.full(USERS, EACH), levels, seed)
    cells = np.repeat(np.arange(USERS), EACH)
    probabilities = level_probabilities(levels[cells], CUTS)[0]
    drawn = (random.random((cells.size, 1)) > np.cumsum(probabilities, axis=1)).sum(axis=1) + 1
    items = np.sort(random.random((USERS, ITEMS)).argsort(axis=1)[:, :EACH], axis=1).ravel()
    family = ThresholdBit().family(budgets, STARS, ITEMS)
    profiles = ProfileLevels(np.full(USERS, EACH), items.astype(np.int32), drawn.astype(np.uint8), numbers)
    reader = family.reader(USERS, Wanted(symbols=True))
    reader.take(np.arange(USERS), family.encode(profiles, Words(seed)))
    return reader.observations(), numbers.astype(np.int64), float(levels.mean())


def estimated(strength: float, shares=SHARES, *, public: bool = False) -> float:
    seen, numbers, _ = population(strength, shares)
    table = ItemTable.of_biases(CUTS, np.zeros(ITEMS), np.full(ITEMS, 0.2))
    moved = for_everybody(table, seen, numbers, public=public).means
    assert np.ptp(moved) == 0
    return float(moved[0])


@pytest.mark.parametrize("strength", [1.0, -1.0])
def test_refusals_continue_the_line_of_those_who_send(strength: float) -> None:
    """Those who send are .2 from the mean of all, as three quarters of a normal distribution are."""
    assert estimated(strength) == pytest.approx(0.0, abs=0.08)
    alone = estimated(strength, {0: 0.25, 1: 0.75})
    assert abs(alone) == pytest.approx(0.2, abs=0.06)


def test_without_a_line_the_public_shares_decide_the_more_refuse() -> None:
    alone = estimated(1.0, {0: 0.5, 1: 0.5})
    assert alone == pytest.approx(0.4, abs=0.06)
    assert abs(estimated(1.0, {0: 0.1, 1: 0.9}, public=True)) < 0.1
    assert abs(estimated(1.0, {0: 0.5, 1: 0.5}, public=True)) < 0.25 * alone + 0.05


def test_hostile_or_uniform_reports_leave_a_table_of_numbers() -> None:
    """Everybody rates everything highest: the most probable level stays one of people who use the scale."""
    family = ThresholdBit().family(OwnBudgets.of({0: 0.5, 8: 0.5}), STARS, ITEMS)
    items = np.tile(np.arange(ITEMS, dtype=np.int32), 10)
    profiles = ProfileLevels(
        np.full(10, ITEMS), items, np.full(items.size, 5, dtype=np.uint8), np.ones(10, np.uint8)
    )
    reader = family.reader(20, Wanted(symbols=True))
    reader.take(np.arange(10), family.encode(profiles, Words(1)))
    table = ItemTable.of_biases(CUTS, np.zeros(ITEMS), np.full(ITEMS, 0.2))
    numbers = np.repeat([1, 0], 10)
    moved = for_everybody(table, reader.observations(), numbers, public=False).means
    assert np.isfinite(moved).all()
    assert 0.5 < moved[0] <= 2
