"""AlterEgos on profiles small enough to follow.

Rows of candidates and AlterEgos, there and back, and what is malformed.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dprec.crossdomain import (
    STEPS,
    AlterEgoCodec,
    AlterEgos,
    Candidates,
    ReplacementDraws,
    RowCodec,
    ValueCode,
    alter_egos,
)
from dprec.crossdomain.alter_egos import CODES
from dprec.randomness import generator, words
from tests.hostile import devices_sent
from tests.make import STARS

# Items 0 to 3 are of the source domain, 4 to 6 of the target; 0 and 1 become target item 2, 2 becomes 0.
TABLE = Candidates.of(sp.coo_array(([1.0, 1.0, 1.0], ([0, 1, 2], [2, 2, 0])), shape=(7, 3)).tocsr())


def egos(users: list[int], items: list[int], values: list[float], n_users: int):
    draws = ReplacementDraws.prepare(TABLE, 0.0, 2.0, 3, whole_catalogue=False)
    return alter_egos(
        np.array(users), np.array(items), np.array(values), n_users, draws, words(1, "test", 0, len(users)), 4
    )


def test_items_are_replaced_collisions_averaged_and_own_ratings_win() -> None:
    made = egos([0, 0, 0, 2], [0, 1, 2, 1], [5.0, 2.0, 3.0, 1.0], 3)
    assert (made.indptr.tolist(), made.targets.tolist()) == ([0, 2, 2, 3], [0, 2, 2])
    assert made.values.tolist() == [3.0, 3.5, 1.0]
    made = egos([0, 0, 0, 1], [0, 2, 6, 0], [5.0, 2.0, 1.0, 4.0], 2)
    assert (made.indptr.tolist(), made.targets.tolist()) == ([0, 1, 2], [0, 2])
    assert made.values.tolist() == [2.0, 4.0]


N_ITEMS, N_TARGETS = 300, 400


def table(rows: int, most: int, seed: int = 1) -> Candidates:
    random = generator(seed, "rows")
    items = np.sort(random.choice(N_ITEMS, rows, replace=False))
    counts = random.integers(1, most + 1, rows)
    targets = [np.sort(random.choice(N_TARGETS, count, replace=False)) for count in counts]
    steps = random.integers(-STEPS, STEPS + 1, counts.sum())
    return Candidates(items, np.concatenate([[0], np.cumsum(counts)]), np.concatenate(targets), steps)


@pytest.mark.parametrize("with_means", [False, True])
@pytest.mark.parametrize("with_steps", [False, True])
@pytest.mark.parametrize("most", [1, 20, 400])
def test_rows_there_and_back(with_steps: bool, with_means: bool, most: int) -> None:
    sent, codec = table(40, most), RowCodec(N_ITEMS, N_TARGETS, with_steps=with_steps, with_means=with_means)
    means = np.arange(40) * 6
    rows = codec.rows(sent)
    data = codec.pack(sent.items, rows, means)
    received, read_means = codec.unpack(data)
    np.testing.assert_array_equal(received.items, sent.items)
    np.testing.assert_array_equal(received.indptr, sent.indptr)
    np.testing.assert_array_equal(received.targets, sent.targets)
    np.testing.assert_array_equal(received.steps, sent.steps if with_steps else np.zeros_like(sent.steps))
    assert read_means.tolist() == (means.tolist() if with_means else [])


@given(data=st.data())
def test_a_damaged_message_is_refused_or_a_table_of_the_catalogue(data: st.DataObject) -> None:
    sent, codec = table(5, 20), RowCodec(N_ITEMS, N_TARGETS, with_steps=True, with_means=True)
    good = codec.pack(sent.items, codec.rows(sent), np.zeros(5, int))
    for bad in (good[: data.draw(st.integers(1, len(good) - 1))], good + b"\0", b"\3" + good[1:]):
        with pytest.raises(ValueError):
            codec.unpack(bad)
    for received, _ in devices_sent(data, good, codec.unpack):
        assert np.abs(received.steps).max(initial=0) <= STEPS
        assert received.targets.max(initial=0) < N_TARGETS
        assert received.items.max(initial=0) < N_ITEMS


@pytest.mark.parametrize("deviations", [False, True])
def test_values_keep_to_half_a_part(deviations: bool) -> None:
    scale = STARS
    code = ValueCode.of(scale, deviations=deviations)
    values = np.linspace(code.low, code.high, 1001)
    part = (code.high - code.low) / (CODES - 1)
    assert np.abs(code.decode(code.encode(values)) - values).max() <= part / 2 + 1e-12
    if not deviations:
        thirds = np.array([1, 4 / 3, 2.5, 4.2, 4.25, 5])
        np.testing.assert_allclose(code.decode(code.encode(thirds)), thirds)
    assert code.encode(np.array([code.low - 1, code.high + 1])).tolist() == [0, CODES - 1]


def test_alter_egos_there_and_back() -> None:
    code = ValueCode.of(STARS, deviations=False)
    codec = AlterEgoCodec(N_TARGETS, code)
    sent = AlterEgos(np.array([0, 2, 2, 3]), np.array([3, 399, 0]), np.array([4.0, 2.5, 1.0]))
    reports = codec.encode(sent)
    assert reports[1] == b""
    valid, received = codec.decode([*reports, b"\xff\xff\xff\xff"])
    assert valid.tolist() == [True, True, True, False]
    assert received.indptr.tolist() == [0, 2, 2, 3, 3]
    assert received.targets.tolist() == sent.targets.tolist()
    np.testing.assert_allclose(received.values, sent.values)


FALSE_ALARM = 1e-7
TARGETS = 12


def table_replacement(*rows: dict[int, float]) -> Candidates:
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
    draws = prepared(table_replacement(*ROWS), epsilon, whole)
    for row, values in enumerate(ROWS):
        expected = exponential(values, epsilon, 2, whole)
        found = draws.channel_beside(draws, row).probabilities[0]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-16)
        assert int(draws._draws(row).sum()) == 1 << 60


@pytest.mark.parametrize("whole", [False, True])
def test_a_million_draws_follow_the_probabilities(whole: bool) -> None:
    draws = prepared(table_replacement(*ROWS), 6.0, whole)
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


@given(
    steps=st.lists(
        st.tuples(st.integers(-STEPS, STEPS), st.integers(-STEPS, STEPS)), min_size=1, max_size=TARGETS
    ),
    epsilon=st.floats(1e-6, 20),
)
def test_neighbouring_tables_are_within_epsilon(steps: list[tuple[int, int]], epsilon: float) -> None:
    # Any two tables are neighbours: a user moves an X-Sim value by at most the width of its range.
    one, other = (
        prepared(
            table_replacement({target: pair[side] / STEPS for target, pair in enumerate(steps)}),
            epsilon,
            True,
        )
        for side in (0, 1)
    )
    assert one.channel_beside(other, 0).epsilon <= epsilon


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


def test_a_source_item_without_candidates_is_drawn_for_all_the_same() -> None:
    items = np.arange(3)
    some = table_replacement({0: 0.5, 4: -0.5}, {2: 1.0}).covering(items)
    none = Candidates(*(np.zeros(size, dtype=np.int64) for size in (0, 1, 0, 0))).covering(items)
    assert (some.items.tolist(), some.counts.tolist()) == ([0, 1, 2], [2, 1, 1])
    assert (none.items.tolist(), none.counts.tolist()) == ([0, 1, 2], [1, 1, 1])
    one, other = prepared(some, 1.0, True), prepared(none, 1.0, True)
    # Candidates that appear are hidden by the whole catalogue only.
    assert prepared(some, 1.0, False).channel_beside(prepared(none, 1.0, False), 0).epsilon == np.inf
    evenly = other.channel_beside(other, 1).probabilities[0]
    assert evenly == pytest.approx(np.full(TARGETS, 1 / TARGETS))
    for row in items.tolist():
        assert one.channel_beside(other, row).epsilon <= 1.0
        assert other.channel_beside(one, row).epsilon <= 1.0


def test_a_draw_of_a_single_unit_is_not_lost_to_rounding() -> None:
    # Weights need all 60 bits: a word just above the first candidate's share must draw the second.
    candidates = table_replacement({0: 0.0, 1: 0.0})
    weights = np.array([(1 << 59) + 1, (1 << 59) - 1], dtype=np.uint64)
    draws = ReplacementDraws(candidates, weights, np.zeros(1, dtype=np.uint64), TARGETS)
    last_of_first = np.array([1 << 59, (1 << 59) + 1], dtype=np.uint64) << np.uint64(4)
    assert draws.draw(np.zeros(2, dtype=np.int64), last_of_first).tolist() == [0, 1]
