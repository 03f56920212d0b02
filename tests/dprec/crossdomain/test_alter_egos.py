"""AlterEgos on profiles small enough to follow.

Rows of candidates and AlterEgos, there and back, and what is malformed.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.crossdomain import (
    STEPS,
    AlterEgoCodec,
    AlterEgos,
    Candidates,
    ReplacementDraws,
    ReplacementOptions,
    RowCodec,
    ValueCode,
    alter_egos,
)
from dprec.crossdomain.alter_egos import CODES
from dprec.errors import InputError
from dprec.randomness import generator, words
from dprec.ratings import RatingScale

# Items 0 to 3 are of the source domain, 4 to 6 of the target; 0 and 1 become target item 2, 2 becomes 0.
TABLE = Candidates.of(sp.coo_array(([1.0, 1.0, 1.0], ([0, 1, 2], [2, 2, 0])), shape=(7, 3)).tocsr())


def egos(users: list[int], items: list[int], values: list[float], n_users: int):
    draws = ReplacementDraws.prepare(TABLE, 0.0, 2.0, 3, whole_catalogue=False)
    return alter_egos(
        np.array(users), np.array(items), np.array(values), n_users, draws, words(1, "test", 0, len(users)), 4
    )


def test_items_are_replaced_and_collisions_averaged() -> None:
    made = egos([0, 0, 0, 2], [0, 1, 2, 1], [5.0, 2.0, 3.0, 1.0], 3)
    assert made.indptr.tolist() == [0, 2, 2, 3]
    assert made.targets.tolist() == [0, 2, 2]
    assert made.values.tolist() == [3.0, 3.5, 1.0]


def test_own_ratings_win() -> None:
    made = egos([0, 0, 0, 1], [0, 2, 6, 0], [5.0, 2.0, 1.0, 4.0], 2)
    assert (made.targets.tolist(), made.values.tolist()) == ([0, 2], [2.0, 4.0])
    assert made.indptr.tolist() == [0, 1, 2]


def test_what_has_no_candidate_is_left_out() -> None:
    assert egos([0, 0], [3, 5], [5.0, 2.0], 1).targets.size == 0
    nothing = Candidates(*(np.zeros(size, dtype=np.int64) for size in (0, 1, 0, 0)))
    draws = ReplacementDraws.prepare(nothing, 0.6, 2.0, 3, whole_catalogue=False)
    made = alter_egos(np.array([0]), np.array([1]), np.array([3.0]), 1, draws, words(1, "t", 0, 1), 4)
    assert made.indptr.tolist() == [0, 0]


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="epsilon: none, with private selection"):
        ReplacementOptions(selection="private")
    with pytest.raises(InputError, match="epsilon: a budget, with selection 'best'"):
        ReplacementOptions(selection="best", epsilon=1.0)
    for epsilon in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="epsilon"):
            ReplacementOptions(selection="private", epsilon=epsilon)
    options = ReplacementOptions(selection="private", epsilon=0.6, global_sensitivity=1.0)
    assert options.sensitivity("cosine") == 1.0
    with pytest.raises(InputError, match=r"global_sensitivity: 1, with adjusted-cosine similarity.*2"):
        options.sensitivity("adjusted-cosine")
    assert ReplacementOptions().sensitivity("adjusted-cosine") == 2.0


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


def test_sizes_are_known_without_packing() -> None:
    sent = table(60, 400)
    codec = RowCodec(N_ITEMS, N_TARGETS, with_steps=True, with_means=True)
    rows = codec.rows(sent)
    random = generator(2, "users")
    messages = [np.sort(random.choice(60, size, replace=False)) for size in (0, 1, 2, 7, 60, 0)]
    indptr = np.concatenate([[0], np.cumsum([len(places) for places in messages])])
    places = np.concatenate(messages).astype(np.int64)
    sizes = np.array([len(row) for row in rows])
    packed = [
        len(codec.pack(sent.items[chosen], [rows[place] for place in chosen], np.zeros(chosen.size, int)))
        for chosen in (message.astype(np.int64) for message in messages)
    ]
    assert codec.packed_sizes(indptr, sent.items[places], sizes[places]).tolist() == packed


def test_nothing_is_no_byte() -> None:
    codec = RowCodec(N_ITEMS, N_TARGETS, with_steps=True, with_means=True)
    assert codec.pack(np.zeros(0, int), [], np.zeros(0, int)) == b""
    received, means = codec.unpack(b"")
    assert received.items.size == means.size == 0


def test_a_cut_or_longer_message_is_refused() -> None:
    sent = table(5, 20)
    codec = RowCodec(N_ITEMS, N_TARGETS, with_steps=True, with_means=True)
    data = codec.pack(sent.items, codec.rows(sent), np.zeros(5, int))
    for length in range(1, len(data)):
        with pytest.raises(ValueError):
            codec.unpack(data[:length])
    with pytest.raises(ValueError):
        codec.unpack(data + b"\0")
    with pytest.raises(ValueError):
        codec.unpack(b"\3" + data[1:])


def test_noise_never_raises_anything_else() -> None:
    codec = RowCodec(N_ITEMS, N_TARGETS, with_steps=True, with_means=True)
    random = generator(3, "noise")
    sent = table(5, 20)
    data = codec.pack(sent.items, codec.rows(sent), np.zeros(5, int))
    for _ in range(300):
        noise = bytearray(data)
        noise[random.integers(len(data))] = random.integers(256)
        try:
            received, _ = codec.unpack(bytes(noise))
        except ValueError:
            continue
        assert np.abs(received.steps).max() <= STEPS
        assert received.targets.max() < N_TARGETS
        assert received.items.max() < N_ITEMS


@pytest.mark.parametrize("deviations", [False, True])
def test_values_keep_to_half_a_part(deviations: bool) -> None:
    scale = RatingScale.evenly(1, 5, 1)
    code = ValueCode.of(scale, deviations=deviations)
    values = np.linspace(code.low, code.high, 1001)
    part = (code.high - code.low) / (CODES - 1)
    assert np.abs(code.decode(code.encode(values)) - values).max() <= part / 2 + 1e-12
    if not deviations:
        thirds = np.array([1, 4 / 3, 2.5, 4.2, 4.25, 5])
        np.testing.assert_allclose(code.decode(code.encode(thirds)), thirds)
    assert code.encode(np.array([code.low - 1, code.high + 1])).tolist() == [0, CODES - 1]


def test_alter_egos_there_and_back() -> None:
    code = ValueCode.of(RatingScale.evenly(1, 5, 1), deviations=False)
    codec = AlterEgoCodec(N_TARGETS, code)
    sent = AlterEgos(np.array([0, 2, 2, 3]), np.array([3, 399, 0]), np.array([4.0, 2.5, 1.0]))
    reports = codec.encode(sent)
    assert reports[1] == b""
    valid, received = codec.decode([*reports, b"\xff\xff\xff\xff"])
    assert valid.tolist() == [True, True, True, False]
    assert received.indptr.tolist() == [0, 2, 2, 3, 3]
    assert received.targets.tolist() == sent.targets.tolist()
    np.testing.assert_allclose(received.values, sent.values)
