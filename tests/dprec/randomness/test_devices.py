"""What the words of a device that stands by itself depend on."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from dprec.arrays import offsets
from dprec.randomness import (
    SECRET_BYTES,
    DeviceDraws,
    MemoisedDraws,
    RunKeys,
    SecretDraws,
    public_words,
    uniforms,
)
from dprec.ratings import Ratings
from tests import make

MASTER = bytes(range(16))
USERS, ITEMS = 30, 40


def ratings() -> Ratings:
    return make.synthetic(USERS, ITEMS, 400, without=[0, 11, USERS - 1])


def draws(held: Ratings, start: int = 0, stop: int = USERS, **changes: Any) -> DeviceDraws:
    part = slice(held.indptr[start], held.indptr[stop])
    master, purpose = changes.get("master", MASTER), changes.get("purpose", "test")
    indptr = offsets(held.counts[start:stop])
    return DeviceDraws.of(master, start, indptr, held.items[part], held.values[part], purpose)


def words(held: Ratings, round_index: int = 1, **changes: Any) -> NDArray[np.uint64]:
    """Return the word of every cell of the matrix, shape (users, items)."""
    everywhere = np.tile(np.arange(ITEMS), USERS)
    cells = draws(held, **changes).per_cell(np.full(USERS, ITEMS), everywhere, round_index)
    return cells.reshape(USERS, ITEMS)


@given(st.lists(st.integers(0, USERS), max_size=3))
def test_draws_do_not_depend_on_the_partition(cuts: list[int]) -> None:
    held = ratings()
    bounds = sorted({0, USERS, *cuts})
    parts = [draws(held, start, stop).keys for start, stop in pairwise(bounds)]
    assert np.concatenate(parts, axis=1).tolist() == draws(held).keys.tolist()


def test_a_word_belongs_to_its_item_wherever_it_stands() -> None:
    held = ratings()
    whole = words(held)
    rated = draws(held).per_cell(held.counts, held.items, 1)
    assert rated.tolist() == whole[held.users, held.items].tolist()
    assert draws(held).per_user(3, 1).tolist() == whole[:, 3].tolist()
    order = np.lexsort((-held.items, held.users))
    turned = DeviceDraws.of(MASTER, 0, held.indptr, held.items[order], held.values[order], "test")
    assert turned.keys.tolist() == draws(held).keys.tolist()


def test_users_rounds_purposes_and_secrets_share_no_word() -> None:
    held = ratings()
    families = [
        words(held),
        words(held, round_index=2),
        words(held, purpose="other"),
        words(held, master=MASTER[::-1]),
    ]
    everything = np.concatenate(families)
    # 4,800 words of 64 bits coincide by chance with probability 6e-13.
    assert np.unique(everything).size == everything.size


def test_a_changed_profile_renews_its_own_draws_alone() -> None:
    held = ratings()
    before = words(held)
    victim = held.indptr[7]
    levels = np.where(np.arange(held.count) == victim, held.levels % 5 + 1, held.levels)
    raised = replace(held, levels=levels.astype(np.uint8))
    for changed in (held.select(np.arange(held.count) != victim), raised):
        same = words(changed) == before
        # A word is the same by chance with probability 5e-20.
        assert not same[7].any()
        assert np.delete(same, 7, axis=0).all()


def test_the_words_do_not_change_from_release_to_release() -> None:
    one = DeviceDraws.of(MASTER, 4, np.array([0, 2]), np.array([3, 9]), np.array([1.0, 4.5]), "report")
    assert one.per_user(9, 1).tolist() == [1734203991917409750]


SECRET = bytes(range(SECRET_BYTES))
OWN_ITEMS, VALUES = np.array([3, 9]), np.array([1.0, 4.5])
ALL = np.arange(40)


def secret_draws(secret: bytes = SECRET, purpose: str = "report", **profile: Any) -> SecretDraws:
    return SecretDraws.of(secret, profile.get("items", OWN_ITEMS), profile.get("values", VALUES), purpose)


def cells(source: SecretDraws, round_index: int = 1) -> list[int]:
    words: list[int] = source.per_cell(np.array([40]), ALL, round_index).tolist()
    return words


def test_every_part_of_what_words_are_for_changes_all_of_them() -> None:
    own = secret_draws()
    different = [
        cells(own),
        cells(own, round_index=2),
        cells(secret_draws(secret=bytes(SECRET_BYTES))),
        cells(secret_draws(purpose="choice")),
        cells(secret_draws(values=np.array([1.0, 4.0]))),
        cells(secret_draws(items=np.array([3, 8]))),
        cells(secret_draws(items=OWN_ITEMS[:1], values=VALUES[:1])),
        cells(own.asked(b"one")),
        cells(own.asked(b"two")),
        cells(own.given(np.array([0, 2]), OWN_ITEMS, VALUES)),
        [int(own.per_user(index, 1)[0]) for index in range(40)],
        [int(own.per_user(index, 2)[0]) for index in range(40)],
    ]
    words = [word for part in different for word in part]
    assert len(set(words)) == len(words) == 40 * len(different)


def test_a_word_is_that_of_its_item_whatever_is_asked_beside_it() -> None:
    chosen = np.array([39, 2, 2])
    expected = [cells(secret_draws())[item] for item in chosen]
    assert secret_draws().per_cell(np.array([3]), chosen, 1).tolist() == expected


MEMORY = "mechanism and budget"


def of_all_runs(
    held: Ratings, run: str = "", start: int = 0, stop: int = USERS, **changes: Any
) -> MemoisedDraws:
    part = slice(held.indptr[start], held.indptr[stop])
    keys = RunKeys.derive(changes.get("seed", 1), run).installed
    purpose, memory = changes.get("purpose", "test"), changes.get("memory", MEMORY)
    indptr = offsets(held.counts[start:stop])
    return keys.memoised(start, indptr, held.items[part], held.values[part], purpose, memory)


def word_of_each(held: Ratings, round_index: int = 1, **changes: Any) -> NDArray[np.uint64]:
    """Return the word of every rating that every run repeats; 0 where nothing is rated."""
    table = np.zeros((USERS, ITEMS), dtype=np.uint64)
    memoised = of_all_runs(held, **changes)
    table[held.users, held.items] = memoised.per_cell(held.counts, held.items, round_index)
    return table


def test_a_memoised_word_is_that_of_its_rating_in_any_run_and_profile() -> None:
    held = ratings()
    whole = word_of_each(held)
    assert np.array_equal(word_of_each(held, run="another"), whole)
    levels = np.where(held.users == 7, held.levels % 5 + 1, held.levels).astype(np.uint8)
    same = (word_of_each(replace(held, levels=levels)) == whole)[held.users, held.items]
    assert np.array_equal(same, held.users != 7), "another value has another word"
    half = held.select(np.arange(held.count) % 2 == 0)
    assert np.array_equal(word_of_each(half), np.where(word_of_each(half) > 0, whole, 0))
    parts = [
        of_all_runs(held, start=start, stop=stop).per_cell(
            held.counts[start:stop], held.items[held.indptr[start] : held.indptr[stop]], 1
        )
        for start, stop in pairwise([0, 7, 11, USERS])
    ]
    assert np.concatenate(parts).tolist() == whole[held.users, held.items].tolist()


def test_memoised_words_of_different_ends_are_different() -> None:
    held = ratings()
    families = [
        word_of_each(held),
        word_of_each(held, round_index=2),
        word_of_each(held, purpose="other"),
        word_of_each(held, memory="another budget"),
        word_of_each(held, seed=2),
        words(held),
    ]
    everything = np.concatenate([table[held.users, held.items] for table in families])
    # Some 2,000 words of 64 bits coincide by chance with probability 1e-13.
    assert np.unique(everything).size == everything.size


def test_what_another_run_could_change_is_no_part_of_what_is_memoised() -> None:
    held = ratings()
    memoised = of_all_runs(held)
    for ask in (
        lambda: memoised.per_cell(held.counts, held.items + 1, 1),
        lambda: memoised.per_user(0, 1),
        lambda: memoised.asked(b"which"),
        lambda: memoised.given(held.indptr, held.items, held.values),
    ):
        with pytest.raises(ValueError, match="words that every run repeats, for"):
            ask()


def test_memoised_words_of_a_secret() -> None:
    own = SecretDraws.of_all_runs(SECRET, "report")
    different = [
        own.of_rating("9", 4.5),
        own.of_rating("9", 4.0),
        own.of_rating("8", 4.5),
        SecretDraws.of_all_runs(SECRET, "other").of_rating("9", 4.5),
        SecretDraws.of_all_runs(bytes(SECRET_BYTES), "report").of_rating("9", 4.5),
        secret_draws(),
    ]
    words = [int(draws.per_user(0, round_index)[0]) for draws in different for round_index in (1, 2)]
    assert len(set(words)) == 2 * len(different)
    memoised = MemoisedDraws(OWN_ITEMS, [own.of_rating("4", 1.0), own.of_rating("9", 4.5)])
    assert memoised.per_cell(np.array([2]), OWN_ITEMS, 1)[1] == words[0]
    nothing = MemoisedDraws(OWN_ITEMS[:0], [])
    assert nothing.per_cell(np.array([0]), OWN_ITEMS[:0], 1).size == 0


def test_public_words_are_uniform_and_the_users_own() -> None:
    users, items = np.divmod(np.arange(20_000), 200)
    numbers = public_words(7, users, items)
    np.testing.assert_array_equal(public_words(7, users[500:], items[500:]), numbers[500:])
    assert kstest(uniforms(numbers), "uniform").pvalue > 1e-6  # false alarms: one in a million
    families = [numbers, *(public_words(other, users, items) for other in (8, 7 + (1 << 64)))]
    assert np.unique(families).size == 3 * numbers.size
