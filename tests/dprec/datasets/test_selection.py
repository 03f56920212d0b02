"""What is taken of a data set: sets by a threshold, users with enough items, and copies of users."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.datasets import DelimitedTable, InMemory, copied, selected
from dprec.errors import InputError
from dprec.ratings import ColdRatings, Ratings, held_by_tested
from dprec.splits import ColdUsers, Holdout, LeaveOneOut, Split, Temporal, UserHoldout
from tests.refusals import refused_at


def pairs(ratings: Ratings) -> list[tuple[int, int]]:
    ids = ratings.user_ids[ratings.users], ratings.item_ids[ratings.items]
    return list(zip(*(column.tolist() for column in ids), strict=True))


def test_ratings_that_pass_become_pairs_without_a_rating() -> None:
    users, items = [1, 1, 2, 2, 3, 3, 3, 4, 4, 4], [1, 2, 1, 3, 1, 2, 3, 1, 3, 4]
    rows = users, items, [2, 3, 4, 1, 5, 3.0, 4, 4, 5, 4]
    sets = selected(InMemory.of(rows, positive=">= 4")).load()
    assert sets.scale.implicit
    assert pairs(sets) == [(2, 1), (3, 1), (3, 3), (4, 1), (4, 3), (4, 4)]
    assert sets.levels.tolist() == [1] * 6
    with pytest.raises(TypeError, match="no ratings"):
        sets.values  # noqa: B018
    assert selected(InMemory.of(rows, positive="> 4")).load().count == 2
    np.testing.assert_array_equal(sets.to_sets().toarray().sum(axis=1), [0, 1, 2, 3])


STARRED: dict[str, Any] = {"low": 1, "high": 5, "step": 1}


def test_a_run_and_a_tuning_have_the_users_and_items_of_all_parts(tmp_path: Path) -> None:
    parts = {"train": "a,x,5 a,y,3 b,x,2", "test": "a,z,4 b,w,1 b,q,1", "validation": "a,w,5 b,y,2 a,q,1"}
    for name, rows in parts.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(rows.split()) + "\n")
    table = selected(DelimitedTable(path=str(tmp_path), min_users=2, min_items=2, **STARRED))
    (train, test), (again, judging) = map(table.load_fold, ("given", "validation"))
    assert pairs(train) == pairs(again) == [("a", "x"), ("a", "y"), ("b", "x")]
    assert (pairs(test), pairs(judging)) == ([("b", "q"), ("b", "w")], [("a", "q"), ("a", "w"), ("b", "y")])
    for part in (train, test, judging):
        assert part.item_ids.tolist() == ["q", "w", "x", "y"]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_part_of_which_nothing_is_left_is_refused(swapped: bool) -> None:
    often, once = ([1, 1, 2, 2], [1, 2, 1, 2], [3, 3, 3, 3]), ([1, 2], [3, 4], [5, 1])
    parts = (once, often) if swapped else (often, once)
    with refused_at("min_users") as caught:
        selected(InMemory.of(*parts, min_users=2, **STARRED)).load_fold("given")
    assert f"no {'train' if swapped else 'test'} ratings" in caught.value.found


def test_identifiers_of_copies_fit_into_64_bits() -> None:
    pairs = Ratings.from_pairs([1, 2**63 - 2], [1, 1])
    assert copied(pairs, pairs, 3, seed=0)[0].user_ids[-1] == 2**63 - 1
    with refused_at("copies"):
        copied(pairs, pairs, 4, seed=0)


Rows = list[tuple[int, int, int]]
"""User, item and rating."""


@st.composite
def drawn(draw: st.DrawFn) -> Rows:
    cells = draw(
        st.lists(st.tuples(st.integers(1, 7), st.integers(1, 9)), unique=True, min_size=12, max_size=45)
    )
    return [(user, item, draw(st.integers(1, 5))) for user, item in cells]


SPLITS = [
    UserHoldout(test_fraction=0.4),
    LeaveOneOut(),
    Temporal(),
    Temporal(of="user", test_fraction=0.5),
    Holdout(),
    ColdUsers(test_users=0.3),
]


@given(drawn(), st.sampled_from(SPLITS), st.integers(1, 4), st.sampled_from([None, ">= 3"]), st.data())
def test_a_split_divides_what_is_selected_and_copies_add_train_profiles(
    rows: Rows, split: Split, least: int, rule: str | None, data: st.DataObject
) -> None:
    timed = *map(list, zip(*rows, strict=True)), [place * 7 % 5 + 0.5 for place in range(len(rows))]
    stars: dict[str, Any] = {"low": 1, "high": 5, "step": 1}
    dataset, seed = InMemory.of(timed, min_items=least, positive=rule, **stars), data.draw(st.integers(0, 99))
    try:
        train, test = split.split(selected(dataset), seed)
    except InputError:
        return
    held = held_by_tested(train, test)
    everything = [*pairs(train), *pairs(test), *([] if held is train else pairs(held))]
    passing = [(user, item) for user, item, value in rows if rule is None or value >= 3]
    often = {user: sum(user == other for other, _ in passing) for user, _ in passing}
    assert sorted(everything) == sorted((user, item) for user, item in passing if often[user] >= least)
    assert train.item_ids.tolist() == sorted({item for _, item, _ in rows})
    users = data.draw(st.integers(1, 30))
    try:
        copies, tested = copied(train, test, users, seed)
    except InputError as refused:
        assert refused.where == "copies"  # noqa: PT017
        assert users < train.n_users
        return
    _check_copies((train, test), (copies, tested), users)


def _check_copies(original: tuple[Ratings, Ratings], made: tuple[Ratings, Ratings], users: int) -> None:
    (train, test), (many, tested) = original, made
    assert many.n_users == users
    assert (np.diff(many.user_ids) > 0).all()
    profiles = [own.tolist() for own in np.split(many.items, many.indptr[1:-1])]
    originals = [own.tolist() for own in np.split(train.items, train.indptr[1:-1])]
    often = [profiles.count(own) / originals.count(own) for own in originals]
    assert users < train.n_users or min(often) >= users // train.n_users
    assert max(often) <= -(-users // train.n_users) * max(map(originals.count, originals))
    if isinstance(test, ColdRatings):
        assert tested is test
        assert not np.isin(many.user_ids, test.user_ids).any()
        return
    assert tested.n_users == users
    assert set(pairs(tested)) <= set(pairs(test))
    if users >= train.n_users:
        assert pairs(tested) == pairs(test)
        assert pairs(many)[: train.count] == pairs(train)
