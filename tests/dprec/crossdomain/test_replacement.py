"""Private replacement: the probabilities, the draws, and what they promise."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dprec.crossdomain import STEPS, Candidates, ReplacementDraws
from dprec.randomness import words

FALSE_ALARM = 1e-7
TARGETS = 12


def table(*rows: dict[int, float]) -> Candidates:
    cells = [(row, target, value) for row, values in enumerate(rows) for target, value in values.items()]
    row, target, value = zip(*cells, strict=True)
    matrix = sp.coo_array((value, (row, target)), shape=(len(rows), TARGETS)).tocsr()
    return Candidates.of(matrix)


def prepared(candidates: Candidates, epsilon: float, whole: bool, sensitivity: float = 2) -> ReplacementDraws:
    return ReplacementDraws.prepare(candidates, epsilon, sensitivity, TARGETS, whole_catalogue=whole)


def exponential(values: dict[int, float], epsilon: float, sensitivity: float, whole: bool):
    steps = {target: round(value * STEPS) / STEPS for target, value in values.items()}
    support = range(TARGETS) if whole else steps
    weights = np.zeros(TARGETS)
    for target in support:
        weights[target] = np.exp(epsilon * steps.get(target, 0.0) / (2 * sensitivity))
    return weights / weights.sum()


ROWS = ({0: 1.0, 3: -0.5, 7: 0.0}, {2: 0.25}, {5: -1.0, 6: -0.9, 11: -0.2})


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 0.6, 2.0, 20.0])
def test_probabilities_are_those_of_the_exponential_mechanism(whole: bool, epsilon: float) -> None:
    draws = prepared(table(*ROWS), epsilon, whole)
    for row, values in enumerate(ROWS):
        expected = exponential(values, epsilon, 2, whole)
        np.testing.assert_allclose(draws.probabilities(row), expected, rtol=1e-12, atol=1e-16)
        assert int(draws._draws(row).sum()) == 1 << 60


@pytest.mark.parametrize("whole", [False, True])
def test_a_million_draws_follow_the_probabilities(whole: bool) -> None:
    draws = prepared(table(*ROWS), 6.0, whole)
    size = 1_000_000
    rows = np.arange(size) % 2 * 2
    drawn = draws.draw(rows, words(5, "test", 0, size))
    for row in (0, 2):
        counts = np.bincount(drawn[rows == row], minlength=TARGETS)
        expected = exponential(ROWS[row], 6.0, 2, whole) * (size / 2)
        possible = expected > 0
        assert counts[~possible].sum() == 0
        statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
        # Fails by chance once in ten million runs.
        assert statistic < scipy.stats.chi2.isf(FALSE_ALARM, possible.sum() - 1)


def test_the_ends_of_the_words_reach_the_ends_of_a_row() -> None:
    for whole, last in ((False, 11), (True, 10)):
        draws = prepared(table(*ROWS), 1.0, whole)
        ends = np.array([0, 2**64 - 1], dtype=np.uint64)
        assert draws.draw(np.array([2, 2]), ends).tolist() == [5, last]


@given(
    steps=st.lists(
        st.tuples(st.integers(-STEPS, STEPS), st.integers(-STEPS, STEPS)), min_size=1, max_size=TARGETS
    ),
    epsilon=st.floats(1e-6, 20),
)
def test_neighbouring_tables_are_within_epsilon(steps: list[tuple[int, int]], epsilon: float) -> None:
    # Any two tables are neighbours: a user moves an X-Sim value by at most the width of its range.
    one, other = (
        prepared(table({target: pair[side] / STEPS for target, pair in enumerate(steps)}), epsilon, True)
        for side in (0, 1)
    )
    assert one.channel_beside(other, 0).epsilon <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 0.6, 2.0, 8.0])
def test_the_worst_neighbouring_tables(epsilon: float) -> None:
    one = prepared(table({0: 1.0, **dict.fromkeys(range(1, TARGETS), -1.0)}), epsilon, False)
    other = prepared(table({0: -1.0, **dict.fromkeys(range(1, TARGETS), 1.0)}), epsilon, False)
    loss = one.channel_beside(other, 0).epsilon
    assert 0.9 * epsilon < loss <= epsilon or epsilon > 4
    assert loss <= epsilon


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_the_rounding_of_a_large_catalogue_exceeds_no_epsilon(epsilon: float) -> None:
    """Rounding costs about n^2 of 2^60 draws at most; the mechanism falls short of epsilon by epsilon / n."""
    targets = 20_000
    tables = []
    for sign in (1, -1):
        steps = np.full(targets, -sign * STEPS)
        steps[0] = sign * STEPS
        listed = Candidates(np.zeros(1, dtype=np.int64), np.array([0, targets]), np.arange(targets), steps)
        tables.append(ReplacementDraws.prepare(listed, epsilon, 2, targets, whole_catalogue=True))
    assert epsilon * 0.9 < tables[0].channel_beside(tables[1], 0).epsilon <= epsilon


def test_candidates_that_appear_are_hidden_by_the_whole_catalogue_only() -> None:
    one, other = table({0: 0.5, 4: 0.5}), table({0: 0.5})
    listed = [prepared(candidates, 1.0, False) for candidates in (one, other)]
    whole = [prepared(candidates, 1.0, True) for candidates in (one, other)]
    assert listed[0].channel_beside(listed[1], 0).epsilon == np.inf
    assert whole[0].channel_beside(whole[1], 0).epsilon <= 1.0


def test_a_source_item_without_candidates_is_drawn_for_all_the_same() -> None:
    items = np.arange(3)
    some = table({0: 0.5, 4: -0.5}, {2: 1.0}).covering(items)
    none = Candidates(*(np.zeros(size, dtype=np.int64) for size in (0, 1, 0, 0))).covering(items)
    assert (some.items.tolist(), some.counts.tolist()) == ([0, 1, 2], [2, 1, 1])
    assert (none.items.tolist(), none.counts.tolist()) == ([0, 1, 2], [1, 1, 1])
    one, other = prepared(some, 1.0, True), prepared(none, 1.0, True)
    assert other.probabilities(1) == pytest.approx(np.full(TARGETS, 1 / TARGETS))
    for row in items.tolist():
        assert one.channel_beside(other, row).epsilon <= 1.0
        assert other.channel_beside(one, row).epsilon <= 1.0


def test_no_budget_draws_uniformly() -> None:
    draws = prepared(table({0: 1.0, 3: -1.0, 9: 0.2}), 0.0, False)
    assert draws.probabilities(0)[[0, 3, 9]] == pytest.approx([1 / 3] * 3)


def test_the_best_candidates() -> None:
    matrix = sp.csr_array(np.array([[0.1, 0.5, 0.5, -0.2], [0.0, 0.0, 0.0, 0.0], [0.0, -0.3, 0.0, 0.0]]))
    candidates = Candidates.of(sp.csr_array(matrix))
    assert candidates.items.tolist() == [0, 2]
    best = candidates.best(matrix, 2)
    assert best.targets.tolist() == [1, 2, 1]
    assert best.counts.tolist() == [2, 1]
    assert candidates.best(matrix, 1).targets.tolist() == [1, 1]
    one = candidates.rows(np.array([1]))
    assert (one.items.tolist(), one.targets.tolist(), one.steps.tolist()) == ([2], [1], [-38])


def test_many_rows_do_not_disturb_each_other() -> None:
    # The cumulative sums of forty rows pass 2**64.
    draws = prepared(table(*({0: 0.5, 11: 0.5} for _ in range(40))), 1.0, False)
    half = np.array([2**63 - 1, 2**63], dtype=np.uint64)
    for row in (0, 20, 39):
        assert draws.draw(np.array([row, row]), half).tolist() == [0, 11]


def test_a_draw_of_a_single_unit_is_not_lost_to_rounding() -> None:
    # Weights need all 60 bits: a word just above the first candidate's share must draw the second.
    candidates = table({0: 0.0, 1: 0.0})
    weights = np.array([(1 << 59) + 1, (1 << 59) - 1], dtype=np.uint64)
    draws = ReplacementDraws(candidates, weights, np.zeros(1, dtype=np.uint64), TARGETS)
    last_of_first = np.array([1 << 59, (1 << 59) + 1], dtype=np.uint64) << np.uint64(4)
    assert draws.draw(np.zeros(2, dtype=np.int64), last_of_first).tolist() == [0, 1]
