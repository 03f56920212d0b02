import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprec.kernels.discrete_laplace import draw, philox
from tests.interpreted import twin

WORDS = st.integers(0, 2**64 - 1)


@given(WORDS, WORDS, st.integers(0, 2**63 - 1))
def test_words_are_those_of_numpy(key: int, second_key: int, index: int) -> None:
    block, lane = divmod(index, 4)
    stream = np.random.Philox(key=np.array([key, second_key], dtype=np.uint64), counter=block)
    assert (
        philox(np.uint64(key), np.uint64(second_key), np.uint64(index)) == stream.random_raw(lane + 1)[lane]
    )


def test_draws_are_the_same_where_nothing_is_compiled() -> None:
    keys = np.random.default_rng(0).integers(0, 2**64, (96, 2), dtype=np.uint64)
    indices = np.array([0, 1, 2, 3, 5, 2**40, 2**62])
    for bits in (1, 32):
        drawn = np.zeros((2, indices.size), dtype=np.int64)
        assert draw(drawn[0], indices, keys, bits)
        assert twin(draw)(drawn[1], indices, keys, bits)
        np.testing.assert_array_equal(drawn[0], drawn[1])
        assert np.unique(drawn[0]).size > 1
        assert not draw(drawn[0], indices, keys[:1], bits)
