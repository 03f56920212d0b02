import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dprec.randomness import generator, uniforms, words


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_stretch_is_the_same_wherever_it_is_cut(start: int, count: int) -> None:
    whole = words(7, "report", 0, 600)
    assert words(7, "report", start, count).tolist() == whole[start : start + count].tolist()


def test_far_indices_are_reached_directly() -> None:
    far = 10**15 + 3
    assert words(7, "report", far, 9)[4:].tolist() == words(7, "report", far + 4, 5).tolist()


def test_no_draw_is_shared() -> None:
    streams = [
        words(seed, purpose, 0, 200, round_index=round_index)
        for seed in (1, 11, 10**30)
        for purpose in ("report", "split")
        for round_index in (0, 1, 11)
    ]
    everything = np.concatenate(streams)
    # 3,600 words of 64 bits coincide by chance with probability 4e-13.
    assert np.unique(everything).size == everything.size


FIRST_WORDS = [10444859541723225495, 6840357338804703175, 18117867909872558782]
FIRST_INTEGERS = [42, 48, 998, 144, 585]


def test_the_words_do_not_change_from_release_to_release() -> None:
    assert words(0, "report", 0, 3).tolist() == FIRST_WORDS
    assert generator(0, "split").integers(0, 1000, 5).tolist() == FIRST_INTEGERS


def test_every_bit_is_fair() -> None:
    draws = words(3, "fairness", 5, 20_000)
    ones = np.array([int(((draws >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])
    # 64 bits, each off by more than 6 standard deviations with probability 2e-9: 1.3e-7 in all.
    assert np.all(np.abs(ones - 10_000) <= 6 * np.sqrt(5_000))


def test_uniforms() -> None:
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    low, high = uniforms(extremes)
    assert low == 0.0
    assert high == 1 - 2.0**-53
    # Kolmogorov and Smirnov's test; rejects a true uniform with probability 1e-7.
    assert stats.kstest(uniforms(words(4, "uniform", 0, 10_000)), "uniform").pvalue > 1e-7


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_the_shape_is_what_was_asked_for(count: int) -> None:
    assert words(0, "shape", 2, count).shape == (count,)
    assert words(0, "shape", 2, count).dtype == np.uint64


def test_generators_repeat_themselves() -> None:
    assert generator(5, "a").random(4).tolist() == generator(5, "a").random(4).tolist()
    assert generator(5, "a").random() != generator(5, "b").random()
    assert generator(5, "a").random() != generator(6, "a").random()
