"""AlterEgos on profiles small enough to follow."""

import numpy as np
import pytest
import scipy.sparse as sp

from dprec.crossdomain import Candidates, ReplacementDraws, ReplacementOptions, alter_egos
from dprec.errors import InputError
from dprec.randomness import words

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
