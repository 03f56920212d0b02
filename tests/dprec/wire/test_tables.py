import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dprec.wire import tables
from dprec.wire.tables import (
    FARTHEST,
    MOST_NUMBERS,
    Reader,
    encode_integers,
    encode_numbers,
    fitted,
    step_of,
)
from tests.hostile import devices_sent

SINGLE = 1e-6
"""What single precision changes of a step."""

numbers = arrays(np.float64, array_shapes(max_dims=3, max_side=9), elements=st.floats(-1e6, 1e6))
widths = st.sampled_from((0, 1, 2, 5, 15, 16, 255, 256, 257, 2 * FARTHEST))


@given(numbers, st.floats(1e-3, 1e4), st.binary(max_size=9), st.booleans())
def test_numbers_come_back_within_half_a_step(
    sent: np.ndarray, step: float, after: bytes, by_row: bool
) -> None:
    steps = np.geomspace(step, 10 * step, len(sent)) if by_row else np.array([step])
    data = encode_numbers(sent, steps)
    reader = Reader(data + after)
    read, own = reader.rounded_rows(sent.shape, steps.size)
    assert reader.rest() == after
    largest = np.abs(sent.reshape(steps.size, -1)).max(axis=1)
    assert own == pytest.approx(np.maximum(steps, largest / (FARTHEST + 0.25)), rel=SINGLE)
    apart = np.abs(read - sent).reshape(steps.size, -1)
    assert (apart <= own[:, None] * (0.5 + 1e-9)).all()
    assert encode_numbers(read, own) == data


@given(st.data(), widths, st.integers(0, 40))
def test_integers_come_back_however_many_have_room_in_a_byte(
    data: st.DataObject, span: int, count: int
) -> None:
    low = data.draw(st.integers(-FARTHEST, FARTHEST - span))
    drawn = st.lists(st.integers(low, low + span), min_size=count, max_size=count)
    sent = np.array(data.draw(drawn), dtype=np.int64)
    reader = Reader(encode_integers(sent) + b"after")
    np.testing.assert_array_equal(reader.integers(count), sent)
    assert reader.rest() == b"after"


@given(st.data(), widths, st.integers(1, 30))
def test_no_bytes_make_other_numbers_than_their_steps_allow(
    data: st.DataObject, span: int, count: int
) -> None:
    sent = np.linspace(0, min(span, FARTHEST), count).astype(np.int64).astype(np.float64)
    for read, step in devices_sent(
        data, encode_numbers(sent, 1.0), lambda received: Reader(received).rounded((count,))
    ):
        assert read.shape == (count,)
        assert (np.abs(read) <= 3 * (FARTHEST + 1) * step).all()


@pytest.mark.parametrize(
    ("data", "count"),
    [
        pytest.param(encode_integers(np.arange(9))[:-1], 9, id="cut short"),
        pytest.param(encode_integers(np.arange(9))[:3], 9, id="without a heading"),
        pytest.param(encode_integers(np.arange(9)), 8, id="more than there are"),
        pytest.param(encode_integers(np.arange(9)), 13, id="fewer than there are"),
        # Five digits of base 3 are at most 242, and those after the last are 0.
        pytest.param(b"\0\0\2\0" + tables._deflated(b"\xf3", 0), 5, id="beyond the digits of a byte"),
        pytest.param(b"\0\0\2\0" + tables._deflated(b"\x51", 0), 4, id="digits after the last"),
        pytest.param(b"\0\0\0\1" + tables._deflated(b"\1\1", 0), 1, id="beyond the span, in two bytes"),
        pytest.param(b"\0\0\2\0" + b"\xff" * 9, 5, id="not compressed"),
    ],
)
def test_integers_are_refused_that_no_sender_writes(data: bytes, count: int) -> None:
    with pytest.raises(ValueError, match=r"bytes|numbers"):
        Reader(data).integers(count)


@pytest.mark.parametrize("step", [0.0, -1.0, np.nan, np.inf])
def test_steps_are_refused_that_are_not_above_zero(step: float) -> None:
    data = np.float32(step).tobytes() + encode_integers(np.arange(3))
    with pytest.raises(ValueError, match="steps that are not above 0"):
        Reader(data).rounded((3,))


def test_a_few_bytes_take_no_more_memory_than_the_numbers_that_are_asked_for() -> None:
    with pytest.raises(ValueError, match=f"{MOST_NUMBERS + 1} numbers"):
        Reader(encode_integers(np.zeros(1, dtype=np.int64))).integers(MOST_NUMBERS + 1)
    # A hundred million zeros, compressed: 100 kB.
    bomb = b"\0\0\1\0" + tables._deflated(bytes(100_000_000), 0)
    tracemalloc.start()
    with pytest.raises(ValueError, match="no 125 bytes, compressed"):
        Reader(bomb).integers(1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * len(bomb) + 100_000


def test_numbers_take_little_more_than_their_entropy() -> None:
    random = np.random.default_rng(1)
    for step in (0.25, 1.0, 2.0, 6.0):
        sent = random.standard_normal((100, 400))
        _, counts = np.unique(np.rint(sent / step), return_counts=True)
        shares = counts / sent.size
        entropy = -sent.size * float(shares @ np.log2(shares)) / 8
        assert len(encode_numbers(sent, step)) < 1.06 * entropy + 120
    assert len(encode_numbers(np.full((300, 300), 0.3), 0.1)) == 8


def test_a_step_is_a_fraction_of_the_numbers_whose_square_it_adds_a_twelfth_of() -> None:
    sent = 3 * np.random.default_rng(2).standard_normal(200_000)
    step = step_of(sent, 0.5)
    assert step == pytest.approx(1.5, rel=0.02)
    read, _ = Reader(encode_numbers(sent, step)).rounded(sent.shape)
    assert ((read - sent) ** 2).mean() == pytest.approx(step**2 / 12, rel=0.02)
    assert step_of(np.zeros(3), 0.5) == step_of(np.zeros(0), 0.5) == 1.0


def test_steps_grow_until_they_fit_or_nothing_does() -> None:
    sent = np.random.default_rng(3).standard_normal(1000)
    sizes = [len(encode_numbers(sent, 0.1 * 2.0 ** (halves / 2))) for halves in range(9)]
    assert sizes == sorted(sizes, reverse=True)
    for most in (sizes[0], sizes[3], sizes[3] - 1, sizes[8]):
        found = fitted(lambda longer: encode_numbers(sent, 0.1 * longer), len, most, 16.0)
        assert found is not None
        assert len(found) == next(size for size in sizes if size <= most)
    assert fitted(lambda longer: encode_numbers(sent, 0.1 * longer), len, sizes[8] - 1, 16.0) is None
