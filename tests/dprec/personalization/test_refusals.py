"""Levels of users who send much, little and nothing, and tables that are for all of them."""

import numpy as np
import pytest

from dprec.accounting import BudgetChoice, OwnBudgets
from dprec.mechanisms import ThresholdBit
from dprec.observations import Observations
from dprec.ordinal import cut_points, level_probabilities
from dprec.personalization import for_everybody
from dprec.personalization.broadcast import Broadcast
from dprec.personalization.refusals import Levels
from dprec.randomness import generator
from dprec.ratings import RatingScale
from dprec.reports import Profiles, Wanted
from dprec.wire import ItemTable

STARS = RatingScale.evenly(1, 5, 1)
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
    profiles = Profiles(np.full(USERS, EACH), items.astype(np.int32), drawn.astype(np.uint8), numbers)
    reader = family.reader(USERS, Wanted(symbols=True))
    reader.take(np.arange(USERS), family.encode(profiles, Words(seed)))
    return reader.observations(), numbers.astype(np.int64), float(levels.mean())


def estimated(strength: float, shares=SHARES, *, public: bool = False) -> tuple[Levels, np.ndarray]:
    seen, numbers, _ = population(strength, shares)
    found = np.bincount(numbers, minlength=len(shares)) / USERS
    return Levels.of(seen, np.zeros(ITEMS), CUTS, numbers, found, public=public), numbers


def test_choices_at_random_move_nothing() -> None:
    levels, _ = estimated(0.0)
    assert levels.everybody == pytest.approx(0.0, abs=0.06)
    assert levels.of_number == pytest.approx(np.zeros(4), abs=0.12)


@pytest.mark.parametrize("strength", [1.0, -1.0])
def test_refusals_continue_the_line_of_those_who_send(strength: float) -> None:
    """Those who send are .17 above the mean of all on average: quarters of a normal distribution."""
    levels, _ = estimated(strength)
    assert levels.everybody == pytest.approx(0.0, abs=0.08)
    quarters = 0.5 * strength * np.array([-1.27, -0.32, 0.32, 1.27])
    assert levels.of_number == pytest.approx(quarters, abs=0.15)


def test_without_a_line_the_public_shares_decide_the_more_refuse() -> None:
    few, _ = estimated(1.0, {0: 0.1, 1: 0.9}, public=True)
    many, _ = estimated(1.0, {0: 0.5, 1: 0.5}, public=True)
    alone, _ = estimated(1.0, {0: 0.5, 1: 0.5})
    assert alone.everybody == pytest.approx(0.4, abs=0.06)  # what those who send say
    assert abs(few.everybody) < 0.1
    assert abs(many.everybody) < 0.25 * alone.everybody + 0.05


def test_what_is_sent_moves_as_a_whole_for_those_whose_level_is_everybodys() -> None:
    seen, numbers, _ = population(1.0)
    table = ItemTable.of_biases(CUTS, np.full(ITEMS, 0.1), np.full(ITEMS, 0.2))
    before = Broadcast(table, np.zeros((USERS, 1)))
    after = for_everybody(before, seen, numbers, public=False)
    moved = after.table.means - table.means
    assert np.ptp(moved) == pytest.approx(0.0, abs=1e-12)
    refusers, keenest = after.priors[numbers == 0, 0], after.priors[numbers == 3, 0]
    assert refusers.max() < -0.4
    assert keenest.min() > 0.4
    # Together, item biases and priors say of each group what its reports do.
    assert (moved.mean() + keenest.mean()) == pytest.approx(0.64 - 0.1, abs=0.15)


def test_reports_of_one_budget_have_no_line() -> None:
    levels, _ = estimated(1.0, {1: 1.0})
    assert levels.everybody == pytest.approx(levels.of_number[0], abs=1e-9)
