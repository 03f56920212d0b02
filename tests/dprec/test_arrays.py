"""Every function on ragged rows against the same rows as Python lists."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dprec import arrays
from dprec.arrays import (
    GrowingArray,
    Pieces,
    all_between,
    blocks,
    different,
    find,
    masked,
    offsets,
    places_of,
    row_maxima,
    rows_of,
    segments,
    sortable,
    sum_of_parts,
    true_of_rows,
)
from dprec.completion import COMPLETIONS, ItemAverage, MatrixFactorization
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.fitting import fit
from dprec.mechanisms import BoundedLaplace, RandomizedResponse, Raw
from dprec.ordinal import NETFLIX, cut_points, level_probabilities, level_shares
from tests.refusals import refused_at

COUNTS = st.lists(st.integers(0, 5), max_size=12)
ROWS = st.lists(st.lists(st.integers(0, 2**40), max_size=5), max_size=12)


def whole(numbers: list[int], dtype: type[np.integer] = np.int64) -> np.ndarray:
    return np.array(numbers, dtype=dtype)


@given(COUNTS, st.sampled_from([np.int64, np.int32, np.uint8]))
def test_offsets_are_where_rows_begin_and_the_last_one_ends(
    counts: list[int], dtype: type[np.integer]
) -> None:
    found = offsets(whole(counts, dtype))
    assert found.dtype == np.int64
    assert found.tolist() == [sum(counts[:row]) for row in range(len(counts) + 1)]


@given(COUNTS)
def test_every_cell_has_its_row_and_its_place_in_it(counts: list[int]) -> None:
    cells = [(row, place) for row, count in enumerate(counts) for place in range(count)]
    found = zip(rows_of(whole(counts)).tolist(), places_of(whole(counts)).tolist(), strict=True)
    assert list(found) == cells


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5)), max_size=12))
def test_segments_count_up_from_their_starts(pairs: list[tuple[int, int]]) -> None:
    starts, counts = whole([start for start, _ in pairs], np.int32), whole([count for _, count in pairs])
    found = segments(starts, counts)
    assert found.dtype == np.int64
    assert found.tolist() == [start + place for start, count in pairs for place in range(count)]


@given(ROWS)
def test_maxima_are_those_of_each_row(rows: list[list[int]]) -> None:
    values = whole([value for row in rows for value in row])
    indptr = offsets(whole([len(row) for row in rows]))
    assert row_maxima(values, indptr).tolist() == [max(row, default=0) for row in rows]


@given(st.lists(st.lists(st.booleans(), max_size=5), max_size=12), st.integers(1, 9))
def test_what_is_true_is_counted_by_row_and_taken_a_part_at_a_time(
    rows: list[list[bool]], at_once: int
) -> None:
    mask = np.array([cell for row in rows for cell in row], dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_AT_ONCE", at_once)
        found = true_of_rows(mask, offsets(whole([len(row) for row in rows])))
        assert found.tolist() == [sum(row) for row in rows]
        assert masked(np.arange(mask.size), mask).tolist() == np.flatnonzero(mask).tolist()


@pytest.mark.parametrize("size", [0, 7, 1000, 1 << 18, 1_234_567])
def test_a_sum_of_parts_has_the_bits_of_that_of_the_whole(size: int) -> None:
    random = np.random.default_rng(size)
    numbers = random.normal(size=size) * 10.0 ** random.integers(-8, 8, size)
    for cuts in ([], np.sort(random.integers(0, size + 1, 20))):
        assert sum_of_parts(np.split(numbers, cuts), size) == numbers.sum()


@given(
    st.lists(st.sampled_from([-1.0, 0.5]) | st.floats(-9, 9), min_size=1, max_size=60),
    st.integers(1, 60),
    st.integers(0, 9),
    st.integers(1, 70),
)
def test_order_statistics_are_those_of_sorted_values(
    values: list[float], sample: int, margin: int, at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # So small a sample is often wrong.
        for name, number in (("_SAMPLE", sample), ("_MARGIN", margin), ("_AT_ONCE", at_once)):
            patch.setattr(arrays, name, number)
        found = arrays.order_statistics(np.array(values), np.arange(len(values)))
    assert found.tolist() == sorted(values)


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_different_integers_are_placed(values: list[int]) -> None:
    few, places = different(whole(values))
    assert few.tolist() == sorted(set(values))
    assert few[places].tolist() == values


@given(st.lists(st.integers(0, 60), max_size=20), st.sampled_from([np.int32, np.int64]))
def test_integers_that_occur_are_numbered(values: list[int], dtype: type[np.integer[Any]]) -> None:
    given = np.array(values, dtype=dtype)
    occurring, places = arrays.numbered(given)
    expected = np.unique(given, return_inverse=True)
    assert occurring.tolist() == expected[0].tolist()
    assert places.tolist() == expected[1].tolist()


@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, -1.5]) | st.floats(allow_nan=False), max_size=12))
def test_integers_are_in_the_order_of_numbers(values: list[float]) -> None:
    numbers = np.array(values)
    keys = sortable(numbers)
    assert (keys[:, None] < keys).tolist() == (numbers[:, None] < numbers).tolist()


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=12), st.data())
def test_pieces_are_a_sequence_of_bytes(each: list[bytes], data: st.DataObject) -> None:
    pieces = Pieces.of(each)
    assert Pieces.of(pieces) is pieces
    assert (pieces.data, bytes(pieces.buffer)) == (b"".join(each), b"".join(each))
    assert pieces.sizes.tolist() == [len(piece) for piece in each]
    assert pieces == each
    assert each == pieces
    assert pieces != [*each, b""]
    places = data.draw(st.lists(st.integers(-len(each), len(each) - 1), max_size=9))
    chosen = pieces.chosen(whole(places))
    assert chosen == [pieces[place] for place in places] == [each[place] for place in places]
    part = slice(*data.draw(st.tuples(*[st.none() | st.integers(-13, 13)] * 2)))
    assert pieces[part] == each[part]
    assert Pieces.joined([pieces, each, chosen]) == [*each, *each, *chosen]
    with pytest.raises(IndexError):
        pieces[len(each)]


@given(COUNTS, st.integers(1, 12))
def test_blocks_are_consecutive_and_of_about_the_size_that_is_asked_for(counts: list[int], most: int) -> None:
    found = list(blocks(whole(counts), most))
    assert [row for block in found for row in range(block.start, block.stop)] == list(range(len(counts)))
    largest = max(counts, default=0)
    assert all(sum(counts[block]) < most + largest for block in found)
    assert len(found) <= 1 + sum(counts) // most


NUMBERS = st.lists(st.integers(-20, 20), max_size=15)


@given(st.sets(st.integers(-20, 20), max_size=15), NUMBERS)
def test_what_is_present_stands_at_its_place(known: set[int], wanted: list[int]) -> None:
    keys, values = np.array(sorted(known), dtype=np.int64), np.array(wanted, dtype=np.int64)
    places, present = find(keys, values)
    assert present.tolist() == [value in known for value in wanted]
    assert keys[places[present]].tolist() == values[present].tolist()
    assert np.all((places >= 0) & (places < max(len(known), 1)))


@given(st.lists(st.lists(st.integers(0, 2**15), max_size=40), max_size=12))
def test_it_holds_its_parts_one_after_the_other(parts: list[list[int]]) -> None:
    growing = GrowingArray(np.uint16)
    for part in parts:
        growing.extend(np.array(part, dtype=np.uint16))
    taken = growing.take()
    assert taken.dtype == np.uint16
    assert taken.tolist() == [value for part in parts for value in part]
    growing.extend(np.ones(1, dtype=np.uint16))
    assert taken.size == sum(map(len, parts))
    assert growing.take().tolist() == [1]


RATINGS = Synthetic(users=30, items=12, ratings=200, seed=1).load()


@pytest.fixture
def frame() -> pd.DataFrame:
    frame = RATINGS.to_pandas()
    return frame.assign(user="u" + frame["user"].astype(str), item="i" + frame["item"].astype(str))


def test_a_frame_and_a_matrix_are_completed_alike(frame: pd.DataFrame) -> None:
    users, items = np.array([3, 4, 7]), np.array([5, 6, 2])
    named = RATINGS.user_ids[users], RATINGS.item_ids[items]
    predicted = [
        fit(ItemAverage(), sp.csr_array(RATINGS.to_sparse())).predict(users, items),
        fit(ItemAverage(), RATINGS).predict(*named),
        fit(ItemAverage(), frame).predict(
            [f"u{user}" for user in named[0]], [f"i{item}" for item in named[1]]
        ),
    ]
    np.testing.assert_allclose(predicted[1:], [predicted[0]] * 2, atol=1e-12)
    assert fit(MatrixFactorization(rank=2), RATINGS).predict(named[0][0], RATINGS.item_ids).shape == (12,)


@pytest.mark.parametrize("kind", [kind for kind in COMPLETIONS.kinds if kind != "one-bit"])
def test_every_completion_reads_what_a_mechanism_sends(kind: str) -> None:
    fitted = fit(COMPLETIONS[kind](), RATINGS, mechanism=RandomizedResponse(), epsilon=1.0, seed=2)
    assert np.isfinite(fitted.predict(RATINGS.user_ids, RATINGS.item_ids[0])).all()
    assert fitted.observations.noise_variance > 1


def test_the_noise_is_that_of_the_mechanism_and_the_seed() -> None:
    sent = [fit(ItemAverage(), RATINGS, mechanism=BoundedLaplace(), epsilon=1.0, seed=s) for s in (1, 1, 2)]
    values = [fitted.observations.values.tolist() for fitted in sent]
    assert values[0] == values[1] != values[2]
    clear = fit(ItemAverage(), RATINGS).observations
    assert (clear.values.tolist(), clear.noise_variance) == (RATINGS.values.tolist(), None)


def test_a_budget_and_a_private_mechanism_belong_together() -> None:
    for mechanism in (None, Raw()):
        with pytest.raises(InputError) as caught:
            fit(ItemAverage(), RATINGS, mechanism=mechanism, epsilon=0.01)
        assert str(caught.value) == (
            "epsilon: 0.01, with mechanism none, which adds no noise; "
            "accepted: an epsilon beside a private mechanism, or none"
        )
    with refused_at("epsilon"):
        fit(ItemAverage(), RATINGS, mechanism=RandomizedResponse())
    noisy = fit(ItemAverage(), RATINGS, mechanism=RandomizedResponse(), epsilon=0.01).observations
    assert noisy.noise_variance is not None
    assert noisy.noise_variance > 1


SHARES = (0.1, 0.2, 0.4, 0.3)


@pytest.mark.parametrize("variance", [0.0, 0.5, 2.0])
def test_over_everybody_the_levels_have_their_shares(variance: float) -> None:
    cuts = cut_points(SHARES, variance)
    assert (np.diff(cuts) > 0).all()
    if variance == 0:
        shares = level_probabilities(np.zeros(1), cuts)[0][0]
    else:
        prior = stats.norm(scale=np.sqrt(variance))
        shares = [
            integrate.quad(
                lambda t, k=k: prior.pdf(t) * level_probabilities(np.array([t]), cuts)[0][0, k], -9, 9
            )[0]
            for k in range(4)
        ]
    np.testing.assert_allclose(shares, SHARES, atol=1e-8)


def test_slopes_are_the_derivatives_of_the_probabilities() -> None:
    cuts, latent = cut_points(SHARES, 0.5), np.linspace(-3, 3, 13)
    above, below = (level_probabilities(latent + step, cuts)[0] for step in (1e-6, -1e-6))
    probabilities, slopes = level_probabilities(latent, cuts)
    np.testing.assert_allclose(slopes, (above - below) / 2e-6, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(slopes.sum(axis=1), 0, atol=1e-15)


def test_far_levels_keep_their_digits_on_both_sides() -> None:
    cuts, latent = cut_points(SHARES, 0.5), np.linspace(-9, 9, 7)
    probabilities, slopes = level_probabilities(latent, cuts)
    mirrored, falling = level_probabilities(-latent, -cuts[::-1])
    np.testing.assert_allclose(probabilities, mirrored[:, ::-1], rtol=1e-12)
    np.testing.assert_allclose(slopes, -falling[:, ::-1], rtol=1e-12)
    # The log probability of a normal tail falls by about its distance.
    assert (np.abs(slopes / probabilities) < 12).all()


@pytest.mark.parametrize(("levels", "joined"), [(5, 1), (10, 2), (15, 3)])
def test_the_public_histogram_fits_any_scale(levels: int, joined: int) -> None:
    shares = np.array(level_shares("netflix", levels))
    assert (shares > 0).all()
    np.testing.assert_allclose(shares.reshape(5, joined).sum(axis=1), NETFLIX)
    np.testing.assert_allclose(shares.reshape(5, joined), shares[::joined, None].repeat(joined, axis=1))


def test_the_least_integer_is_in_no_range_that_its_size_would_be_in() -> None:
    least = -(2**63)
    assert all_between(np.array([-3, 0, 3]), -3, 3)
    assert all_between(np.zeros(0, dtype=np.int64), 0, 0)
    for outside in ([4], [-4], [least], [0, least]):
        assert not all_between(np.array(outside), -3, 3)
