from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dprec.arrays import offsets
from dprec.datasets import Synthetic
from dprec.randomness import DeviceDraws
from dprec.ratings import Ratings

MASTER = bytes(range(16))
USERS, ITEMS = 30, 40


def ratings() -> Ratings:
    whole = Synthetic(users=USERS, items=ITEMS, ratings=400).load()
    # The first, a middle and the last user have no ratings.
    return whole.select(~np.isin(whole.users, [0, 11, USERS - 1]))


def draws(held: Ratings, start: int = 0, stop: int = USERS, **changes: Any) -> DeviceDraws:
    part = slice(held.indptr[start], held.indptr[stop])
    settings = {"master": MASTER, "purpose": "test", **changes}
    return DeviceDraws.of(
        settings["master"],
        start,
        offsets(held.counts[start:stop]),
        held.items[part],
        held.values[part],
        settings["purpose"],
    )


def words(held: Ratings, round_index: int = 1, **changes: Any) -> NDArray[np.uint64]:
    """Return the word of every cell of the matrix, shape (users, items)."""
    everywhere = np.tile(np.arange(ITEMS), USERS)
    cells = draws(held, **changes).per_cell(np.full(USERS, ITEMS), everywhere, round_index)
    return cells.reshape(USERS, ITEMS)


@given(st.lists(st.integers(0, USERS), max_size=3))
def test_draws_do_not_depend_on_the_cohort(cuts: list[int]) -> None:
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


def test_the_order_of_a_profile_does_not_matter() -> None:
    held = ratings()
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
    raised = Ratings(
        held.indptr,
        held.items,
        np.where(np.arange(held.count) == victim, held.levels % 5 + 1, held.levels).astype(np.uint8),
        held.scale,
        held.user_ids,
        held.item_ids,
    )
    for changed in (held.select(np.arange(held.count) != victim), raised):
        same = words(changed) == before
        # A word is the same by chance with probability 5e-20.
        assert not same[7].any()
        assert np.delete(same, 7, axis=0).all()


def test_nobody_at_all() -> None:
    nobody = DeviceDraws.of(MASTER, 5, np.zeros(1, dtype=np.int64), np.zeros(0, int), np.zeros(0), "test")
    assert nobody.keys.shape == (2, 0)
    assert nobody.per_user(0, 1).size == 0


def test_the_words_do_not_change_from_release_to_release() -> None:
    one = DeviceDraws.of(MASTER, 4, np.array([0, 2]), np.array([3, 9]), np.array([1.0, 4.5]), "report")
    assert one.per_user(9, 1).tolist() == [1734203991917409750]
