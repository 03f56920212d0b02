"""Answers about whole profiles at a budget per user: how many, how long, and what they cost."""

import itertools
import math
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets
from dprec.mechanisms.thresholds import UserLevelBit
from dprec.randomness import DRAW_BITS, DRAWS, DeviceDraws, words
from dprec.reports import ProfileFamily
from dprec.reports.base import ProfileLevels
from dprec.reports.profiles import ProfileCode, profile_elements
from tests.make import STARS


def calibrated(epsilon: float, composition: Literal["sum", "pld"] = "sum", **options: int) -> ProfileFamily:
    budget = PrivacyBudget(epsilon=epsilon, per="user", composition=composition)
    own = UserLevelBit(**options).family(budget, STARS, 60)
    assert isinstance(own, ProfileFamily)
    return own


def test_no_profile_marks_more_blocks_than_the_loss_allows() -> None:
    own, items = calibrated(1.0, profile=200), np.arange(60)
    kept, elements = own.elements(np.array([60]), items, np.resize(np.arange(1, 6, dtype=np.uint8), 60))
    assert kept.tolist() == [elements.size] == [own.code.marked]
    assert own.code.marked < 60


def test_who_has_no_ratings_answers_as_drawn_and_all_others_lie() -> None:
    own, users = calibrated(1.0), 30
    counts = np.array([0] + [2] * users)
    items, levels = np.tile(np.array([7, 9], dtype=np.int32), users), np.tile([1, 5], users)
    people = ProfileLevels(counts, items, levels.astype(np.uint8))
    drawn = partial(DeviceDraws.of, bytes(16), 0, offsets(counts), items, levels.astype(float))
    liars = replace(people, counts=counts[1:])
    of_liars = partial(DeviceDraws.of, bytes(16), 1, offsets(counts[1:]), items, levels.astype(float))
    crafted, honest = list(own.crafted(people, drawn)), list(own.encode(people, drawn))
    assert crafted[0] == honest[0]
    assert crafted[1:] == list(own.crafted(liars, of_liars))
    # Of each, one of both ratings, which are as far from its mean; under any multiplier.
    count = own.code.multipliers
    choice = np.array([-(-(each << 32) // count) << 32 for each in range(count)], dtype=np.uint64)
    kept = profile_elements(np.array([2]), items[:2], people.levels[:2], STARS, 60)[1]
    named = {int(each) for element in kept for each in own.code.naming(np.full(choice.size, element), choice)}
    valid, answers = own.numbers.decode(crafted[1:])
    assert valid.all()
    assert set(answers.ravel().tolist()) <= named


def test_two_answers_share_a_budget() -> None:
    own = calibrated(6.0)
    assert own.code.epsilon == pytest.approx(3.0)
    assert own.channel(17) is own.channel(1)
    assert math.log(own.code.draws / own.code.fewest_draws) == pytest.approx(3.0)


STEPS = 1 << 12


def even_words() -> NDArray[np.uint64]:
    """Return words whose draws are spread evenly over all."""
    steps = (np.arange(STEPS, dtype=np.uint64) << np.uint64(DRAW_BITS - 12)) + np.uint64(1 << 40)
    return steps << np.uint64(64 - DRAW_BITS)


def shares(code: ProfileCode, elements: tuple[int, ...], multiplier: int) -> NDArray[np.float64]:
    """Return how probable each block is, to within 1 / `STEPS` at each of two ends."""
    counts, choice = np.full(STEPS, len(elements)), np.full(STEPS, 0, dtype=np.uint64)
    # A word for which the multiplier is the one wanted.
    choice += np.uint64(math.ceil((multiplier - 1) * 2**32 / code.multipliers)) << np.uint64(32)
    numbers = code.answers(counts, np.tile(np.array(elements, dtype=np.int64), STEPS), choice, even_words())
    assert (numbers // code.blocks == multiplier - 1).all()
    return np.bincount(numbers % code.blocks, minlength=code.blocks) / STEPS


@pytest.mark.parametrize(
    ("size", "marked", "multipliers"), [(1, 1, (1,)), (1, 2, (1,)), (2, 1, (1, 3)), (2, 2, (2, 5))]
)
def test_no_two_profiles_differ_by_more_than_epsilon(
    size: int, marked: int, multipliers: tuple[int, ...]
) -> None:
    """All sets of at most so many of six elements: the largest ratio of all is e^epsilon, and is reached."""
    code, epsilon = ProfileCode.with_blocks(1.5, 6, size, marked), 1.5
    profiles = [own for many in range(marked + 1) for own in itertools.combinations(range(6), many)]
    assert epsilon - 1e-6 < code.epsilon <= epsilon
    for multiplier in multipliers:
        table = np.array([shares(code, own, multiplier) for own in profiles])
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
        largest = np.log(table.max(axis=0) / table.min(axis=0)).max()
        assert largest == pytest.approx(epsilon, abs=0.03)
        marked_blocks = multiplier * np.array(profiles[-1]) % code.modulus // size
        assert set(np.argsort(table[-1])[-len(set(marked_blocks.tolist())) :]) == set(marked_blocks.tolist())


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 2.0, 4.0, 7.5, 20.0])
@pytest.mark.parametrize("n_items", [1, 2, 100, 1682])
def test_the_loss_is_the_budget_for_any_catalogue(epsilon: float, n_items: int) -> None:
    code = ProfileCode.at(epsilon, n_items, 64)
    assert epsilon * (1 - 1e-4) < code.epsilon <= epsilon
    assert code.marked * code.draws + (code.blocks - code.marked) * code.fewest_draws <= DRAWS
    assert 1 <= code.marked <= code.blocks // 2
    assert code.channel(STARS).epsilon == code.epsilon
    share = 1 / (math.exp(epsilon) + 1)
    assert code.marked == 1 or code.marked / code.blocks == pytest.approx(share, rel=0.5)


def test_an_answer_names_the_elements_of_its_block() -> None:
    code = ProfileCode.at(1.0, 300, 10)
    assert code.size > 1
    choice, noise = (words(3, purpose, 0, 400) for purpose in ("choice", "noise"))
    elements = np.arange(400) % code.elements
    numbers = code.answers(np.ones(400, dtype=np.int64), elements, choice, noise)
    total = np.zeros(code.elements, dtype=np.int64)
    for number in numbers.tolist():
        multiplier, block = number // code.blocks + 1, number % code.blocks
        named = [x for x in range(code.elements) if multiplier * x % code.modulus // code.size == block]
        total[named] += 1
    assert code.counted(numbers).tolist() == total.tolist()


@pytest.mark.parametrize(("epsilon", "answers"), [(0.1, 1), (4, 1), (4.1, 2), (8, 2), (20, 5), (1e9, 64)])
def test_an_answer_gets_a_budget_of_four_at_most(epsilon: float, answers: int) -> None:
    assert UserLevelBit().asked(epsilon) == answers
    assert UserLevelBit(answers=3).asked(epsilon) == 3


def test_the_ratings_farthest_from_the_users_mean_count() -> None:
    counts = np.array([3, 0, 4])
    items, levels = np.array([0, 4, 7, 1, 2, 3, 5]), np.array([1, 3, 5, 4, 2, 5, 1], dtype=np.uint8)
    kept, elements = profile_elements(counts, items, levels, STARS, 2)
    assert kept.tolist() == [2, 0, 2]
    # The mean of the second user is 3: its 5 and its 1 are farthest.
    assert elements.tolist() == [0, 15, 7, 10]
    kept, elements = profile_elements(counts, items, levels, STARS, 9)
    assert kept.tolist() == [3, 0, 4]
    assert elements.tolist() == [0, 8, 15, 3, 4, 7, 10]


@pytest.mark.parametrize("marked", [1, 2, 3])
def test_no_two_profiles_are_told_apart_better_than_those_of_the_channel(marked: int) -> None:
    """At any delta: the hockey-stick divergence of all pairs of sets of at most so many of six blocks."""
    code = ProfileCode.with_blocks(1.2, 6, 1, marked)
    sets = [own for many in range(marked + 1) for own in itertools.combinations(range(6), many)]
    rows = np.array([[(DRAWS - len(own) * code.draws) / (6 - len(own))] * 6 for own in sets])
    for row, own in zip(rows, sets, strict=True):
        row[list(own)] = code.draws
    rows, worst = rows / DRAWS, code.channel(STARS).probabilities[[0, -1]]
    for factor in np.exp(np.linspace(-1.5, 1.5, 13)):
        divergences = np.maximum(rows[:, None] - factor * rows, 0).sum(axis=2)
        bound = np.maximum(worst[0] - factor * worst[1], 0).sum()
        assert divergences.max() <= bound + 1e-12
