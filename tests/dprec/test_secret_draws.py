"""What the words of a device that stands by itself depend on."""

import numpy as np
import pytest
from numpy.typing import NDArray

from dprec.randomness import SECRET_BYTES, SecretDraws

SECRET = bytes(range(SECRET_BYTES))
ITEMS, VALUES = np.array([3, 9]), np.array([1.0, 4.5])
ALL = np.arange(40)


def draws(
    secret: bytes = SECRET,
    items: NDArray[np.integer] = ITEMS,
    values: NDArray[np.float64] = VALUES,
    purpose: str = "report",
) -> SecretDraws:
    return SecretDraws.of(secret, items, values, purpose)


def cells(source: SecretDraws, round_index: int = 1) -> list[int]:
    words: list[int] = source.per_cell(np.array([40]), ALL, round_index).tolist()
    return words


def test_every_part_of_what_words_are_for_changes_all_of_them() -> None:
    own = draws()
    different = [
        cells(own),
        cells(own, round_index=2),
        cells(draws(secret=bytes(SECRET_BYTES))),
        cells(draws(purpose="choice")),
        cells(draws(values=np.array([1.0, 4.0]))),
        cells(draws(items=np.array([3, 8]))),
        cells(draws(items=ITEMS[:1], values=VALUES[:1])),
        cells(own.asked(b"one")),
        cells(own.asked(b"two")),
        cells(own.given(np.array([0, 2]), ITEMS, VALUES)),
        [int(own.per_user(index, 1)[0]) for index in range(40)],
        [int(own.per_user(index, 2)[0]) for index in range(40)],
    ]
    words = [word for part in different for word in part]
    assert len(set(words)) == len(words) == 40 * len(different)


@pytest.mark.parametrize("chosen", [[0], [39, 2, 2], []])
def test_a_word_is_that_of_its_item_whatever_is_asked_beside_it(chosen: list[int]) -> None:
    items = np.array(chosen, dtype=np.int64)
    expected = [cells(draws())[item] for item in chosen]
    assert draws().per_cell(np.array([items.size]), items, 1).tolist() == expected


def test_the_order_of_a_profile_does_not_matter() -> None:
    assert cells(draws(items=ITEMS[::-1], values=VALUES[::-1].copy())) == cells(draws())


def test_words_use_all_their_bits() -> None:
    # Each of 64 bits is set in about half of 20,000 words; any of them is more than 6.5 standard
    # deviations off with a probability below 64 * 1e-10 < 1e-8.
    words = draws().per_cell(np.array([20_000]), np.arange(20_000), 1)
    bits = (words[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).sum(axis=0)
    assert np.abs(bits.astype(int) - 10_000).max() < 6.5 * np.sqrt(5_000)
