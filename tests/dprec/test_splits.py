"""Splits: exact sizes, nothing lost, nothing twice, a function of the seed."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.datasets import Dataset, InMemory, Synthetic, SyntheticDomains, selected
from dprec.layout import DIVISION
from dprec.ratings import ColdRatings, Ratings, RatingScale, held_by_tested
from dprec.splits import (
    ColdStart,
    ColdUsers,
    Holdout,
    KFold,
    LeaveOneOut,
    Predefined,
    RandomSplit,
    Split,
    Temporal,
    UserHoldout,
)
from dprec.testing import contract
from tests import make
from tests.refusals import refused_at


@dataclass(frozen=True, kw_only=True)
class Given(Dataset):
    """Ratings from a list."""

    kind: Literal["given"] = "given"
    folds: ClassVar[tuple[str, ...]] = ("half",)
    ratings: Ratings

    def load(self) -> Ratings:
        return self.ratings

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        self.check_fold(fold)
        return halves(self.ratings)


def halves(ratings: Ratings) -> tuple[Ratings, Ratings]:
    first = np.arange(ratings.count) < ratings.count // 2
    return ratings.select(first), ratings.select(~first)


def cells(ratings: Ratings) -> np.ndarray:
    return ratings.cells


def assert_partition(whole: Ratings, *parts: Ratings) -> None:
    for part in parts:
        np.testing.assert_array_equal(part.user_ids, whole.user_ids)
        np.testing.assert_array_equal(part.item_ids, whole.item_ids)
        positions = np.searchsorted(cells(whole), cells(part))
        np.testing.assert_array_equal(cells(whole)[positions], cells(part))
        np.testing.assert_array_equal(whole.levels[positions], part.levels)
    np.testing.assert_array_equal(np.sort(np.concatenate([cells(part) for part in parts])), cells(whole))


@st.composite
def datasets(draw: st.DrawFn, smallest: int = 2) -> Given:
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)).filter(lambda s: s[0] * s[1] >= smallest))
    places = draw(
        st.lists(st.integers(0, shape[0] * shape[1] - 1), unique=True, min_size=smallest, max_size=60)
    )
    rows = ((*divmod(place, shape[1]), 1 + place * 7 % 5) for place in places)
    return Given(ratings=make.ratings(*rows, users=shape[0], items=shape[1]))


SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize(
    "split", [KFold(), Holdout(), LeaveOneOut(by="random")], ids=lambda split: split.kind
)
def test_no_rating_is_in_both_parts(split: KFold | Holdout | LeaveOneOut) -> None:
    dataset = Synthetic(users=20, items=10, ratings=120)
    assert_partition(dataset.load(), *split.split(dataset, 1))


@given(datasets(), SEEDS, st.data())
def test_folds_partition_the_ratings(dataset: Given, seed: int, data: st.DataObject) -> None:
    whole = dataset.load()
    folds = data.draw(st.integers(2, min(10, whole.count)))
    pairs = [KFold(folds=folds, fold=fold).split(dataset, seed) for fold in range(folds)]
    assert_partition(whole, *[test for _, test in pairs])
    for train, test in pairs:
        assert_partition(whole, train, test)
    sizes = [test.count for _, test in pairs]
    assert max(sizes) - min(sizes) <= 1


@given(datasets(), SEEDS, st.floats(0.01, 0.99), st.integers(1, 4))
def test_a_split_takes_its_share_or_is_refused(
    dataset: Given, seed: int, fraction: float, count: int
) -> None:
    whole = dataset.load()
    left = np.where(whole.counts > count, count, 0)
    for split, expected in (
        (Holdout(test_fraction=fraction), round(fraction * whole.count)),
        (LeaveOneOut(by="random", count=count), int(left.sum())),
    ):
        if expected in (0, whole.count):
            with refused_at("split"):
                split.split(dataset, seed)
            continue
        train, test = split.split(dataset, seed)
        assert test.count == expected
        assert isinstance(split, Holdout) or test.counts.tolist() == left.tolist()
        assert_partition(whole, train, test)


@given(datasets(), SEEDS, st.floats(0.01, 0.99))
def test_each_user_is_tested_on_a_share_and_keeps_an_item(dataset: Given, seed: int, fraction: float) -> None:
    whole = dataset.load()
    if whole.counts.max() < 2:
        with refused_at("split"):
            UserHoldout(test_fraction=fraction).split(dataset, seed)
        return
    train, test = UserHoldout(test_fraction=fraction).split(dataset, seed)
    assert_partition(whole, train, test)
    several = whole.counts > 1
    share = np.clip(np.rint(fraction * whole.counts), 1, whole.counts - 1)
    np.testing.assert_array_equal(test.counts, np.where(several, share, 0))


@given(datasets(), SEEDS, st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_cold_users_take_no_part(dataset: Given, seed: int, users: float, fraction: float) -> None:
    whole, split = dataset.load(), ColdUsers(test_users=users, test_fraction=fraction)
    able, wanted = whole.counts > 1, round(users * whole.n_users)
    if not 1 <= wanted <= min(able.sum(), np.count_nonzero(whole.counts) - 1):
        with refused_at("split.test_users"):
            split.split(dataset, seed)
        return
    train, test = split.split(dataset, seed)
    assert isinstance(test, ColdRatings)
    assert train.count
    assert not np.isin(test.user_ids, train.user_ids).any()
    assert test.n_users == wanted
    np.testing.assert_array_equal(np.sort(np.append(train.user_ids, test.user_ids)), whole.user_ids)
    np.testing.assert_array_equal(train.item_ids, whole.item_ids)
    given_to_devices = held_by_tested(train, test)
    assert given_to_devices is test.given
    own = whole.of_users(test.user_ids, test.user_ids)
    assert_partition(own, test.given, test)
    assert test.counts.min() >= 1
    assert test.given.counts.min() >= 1
    assert train.count + own.count == whole.count


@pytest.mark.parametrize(
    "split", [KFold(), Holdout(), LeaveOneOut(by="random", count=3), UserHoldout(), ColdUsers()]
)
def test_the_seed_decides(split: Split) -> None:
    dataset = Synthetic(users=60, items=100, ratings=2000)
    one, again, other = (split.split(dataset, seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(cells(one), cells(again))
    assert not np.array_equal(cells(one), cells(other))


def test_every_rating_is_as_likely_to_be_tested() -> None:
    dataset = Synthetic(users=40, items=50, ratings=1000)
    whole = dataset.load()
    for split, share in (
        (Holdout(test_fraction=0.2), 0.2),
        (LeaveOneOut(by="random", count=5), 5 / whole.counts),
    ):
        times = np.zeros(whole.count)
        for seed in range(400):
            times += np.isin(cells(whole), cells(split.split(dataset, seed)[1]))
        expected = np.broadcast_to(share, whole.n_users)[whole.users]
        spread = np.sqrt(400 * expected * (1 - expected))
        assert np.max(np.abs(times - 400 * expected) / spread) < 5


def test_predefined_is_the_data_sets_own() -> None:
    whole = Synthetic(users=5, items=5, ratings=20).load()
    dataset = Given(ratings=whole)
    for part, half in zip(Predefined(fold="half").split(dataset, 0), halves(whole), strict=True):
        np.testing.assert_array_equal(cells(part), cells(half))
    for name in ("u1", 1):
        with refused_at("split.fold") as refused:
            Predefined(fold=name).split(dataset, 0)  # type: ignore[arg-type]
        assert (refused.value.found, refused.value.accepted) == (repr(str(name)), "half")
    with refused_at("split.fold"):
        Predefined(fold="u1").split(Synthetic(), 0)


TestOurs = contract(
    *(KFold(folds=3, fold=1), Holdout(), LeaveOneOut(), UserHoldout(), ColdUsers(), Temporal(of="user")),
    *(Temporal(test_fraction=0.3), LeaveOneOut(by="random", count=2)),
)
TestOfTwoDomains = contract(ColdStart(), dataset=SyntheticDomains())
TestOfFolds = contract(
    Predefined(fold="half"), dataset=Given(ratings=Synthetic(users=9, items=9, ratings=50).load())
)


@dataclass(frozen=True, kw_only=True)
class Own(Split):
    """What is done with the ratings of a data set, by name."""

    does: str = "twice"

    def split(self, dataset: Dataset, seed: int) -> Any:
        return WRONG[self.does][0](dataset.load())


def shifted(ratings: Ratings) -> Any:
    train, test = halves(ratings)
    return train, replace(test, item_ids=test.item_ids + 1)


def cold(ratings: Ratings) -> Any:
    train, test = halves(ratings)
    parts = {column.name: getattr(test, column.name) for column in fields(Ratings)}
    return train, ColdRatings(**parts, given=train)


def select_rows(ratings: Ratings, rows: list[int]) -> Any:
    first = replace(ratings, items=ratings.items[rows], levels=ratings.levels[rows])
    return replace(first, indptr=np.append(np.zeros(ratings.n_users, dtype=np.int64), len(rows))), ratings


WRONG: dict[str, tuple[Callable[[Ratings], Any], str]] = {
    "twice": (
        lambda ratings: (ratings, ratings),
        "20 of 20 test ratings in the train part too, as of user 1",
    ),
    "shifted": (shifted, "other item_ids in the test part than in the train part"),
    "of others": (
        lambda ratings: (halves(ratings)[0], replace(halves(ratings)[1], user_ids=ratings.user_ids + 1)),
        "other user_ids in the test part than in the train part",
    ),
    "on another scale": (
        lambda ratings: (ratings, replace(ratings, scale=RatingScale.evenly(1, 9, 1))),
        "another scale in the test part than in the train part",
    ),
    "repeated rows": (lambda ratings: select_rows(ratings, [3, 3]), "a train part with 1 items that do not"),
    "nothing": (
        lambda ratings: (ratings, ratings.select(np.zeros(ratings.count, dtype=np.bool_))),
        "a test part with no rating",
    ),
    "a list": (lambda ratings: [ratings, ratings], "a value of type list"),
    "three parts": (lambda ratings: (ratings, ratings, ratings), "a value of type tuple of 3"),
    "arrays": (lambda ratings: (ratings.items, ratings.items), "a train part with a value of type ndarray"),
    "cold users who are warm": (cold, "cold users who are among those of the train part"),
}


@pytest.mark.parametrize("does", WRONG)
def test_what_is_no_division_is_refused_by_the_name_of_the_class(does: str) -> None:
    with refused_at(f"{__name__}:Own") as refused:
        Own(does=does).split(Synthetic(users=5, items=5, ratings=20), 0)
    assert refused.value.found.startswith(f"its split returned {WRONG[does][1]}")
    assert refused.value.accepted == DIVISION


@dataclass(frozen=True, kw_only=True)
class Rows(RandomSplit):
    """Rows that are given."""

    rows: Any

    def test_rows(self, ratings: Ratings, seed: int) -> Any:
        return self.rows


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (np.array([3, -1]), "position -1 of 20 ratings"),
        (np.array([20]), "position 20 of 20 ratings"),
        (np.array([2, 3, 3]), "1 of 3 positions that are there before"),
        (np.arange(20) < 4, "a value of type ndarray of bool, shape (20,)"),
        ([1, 2], "a value of type list"),
    ],
)
def test_rows_that_are_no_positions_are_refused_by_the_name_of_the_class(rows: Any, found: str) -> None:
    dataset = Synthetic(users=5, items=5, ratings=20)
    with refused_at(f"{__name__}:Rows") as refused:
        Rows(rows=rows).split(dataset, 0)
    assert refused.value.found == f"its test_rows returned {found}"
    assert Rows(rows=np.array([4, 1])).split(dataset, 0)[1].count == 2


@dataclass(frozen=True, kw_only=True)
class Twice(Given):
    """A fold of which all is in both parts."""

    kind: Literal["twice"] = "twice"  # type: ignore[assignment]

    def load_fold(self, fold: str) -> tuple[Ratings, Ratings]:
        return self.ratings, self.ratings


def test_a_fold_with_ratings_in_both_parts_is_refused_by_the_name_of_the_class() -> None:
    dataset = Twice(ratings=Synthetic(users=5, items=5, ratings=20).load())
    with refused_at(f"{__name__}:Twice") as refused:
        Predefined(fold="half").split(dataset, 0)
    assert refused.value.found.startswith("its load_fold returned 20 of 20 test ratings in the train part")


@dataclass(frozen=True, kw_only=True)
class Timed(Given):
    """The same, with times."""

    kind: Literal["timed"] = "timed"  # type: ignore[assignment]

    def load(self) -> Ratings:
        return replace(self.ratings, times=None)

    def load_timed(self) -> Ratings:
        return self.ratings


@pytest.mark.parametrize("split", [Temporal(), Temporal(of="user", test_fraction=0.4), LeaveOneOut(count=2)])
def test_nothing_is_learned_from_what_came_after_what_is_tested(split: Temporal | LeaveOneOut) -> None:
    whole = Synthetic(users=20, items=10, ratings=120).load()
    times = np.random.default_rng(3).permutation(whole.count).astype(np.float64)
    train, test = split.split(Timed(ratings=replace(whole, times=times)), 1)
    assert_partition(whole, train, test)
    learned, tested = (times[np.searchsorted(whole.cells, part.cells)] for part in (train, test))
    if isinstance(split, Temporal) and split.of == "all":
        assert learned.max() < tested.min()
        assert test.count == round(split.test_fraction * whole.count)
        return
    for user in np.flatnonzero(test.counts).tolist():
        assert learned[train.users == user].max(initial=-1) < tested[test.users == user].min()


def timed(*times: float) -> Timed:
    """Return a rating at each time, of items in order by users who take turns."""
    ratings = make.ratings(*((1 + place % 2, 1 + place, 3) for place in range(len(times))))
    by_user = np.argsort(np.arange(len(times)) % 2, kind="stable")
    return Timed(ratings=replace(ratings, times=np.array(times, dtype=np.float64)[by_user]))


DAY = 86_400
NOON = 1_117_627_200
"""2005-06-01 12:00 in UTC."""


@pytest.mark.parametrize(
    ("split", "learned", "tested"),
    [
        (Temporal(before="1970-01-03"), 2, 4),
        (Temporal(after="1970-01-03 12:00:00"), 3, 3),
        (Temporal(before="1970-01-02", after="1970-01-06"), 1, 1),
        (Temporal(before="1970-01-03", after="1970-01-03"), 2, 4),
        (Temporal(before=2.0 * DAY), 2, 4),
        (Temporal(before=1, after=4.0 * DAY), 1, 2),
        (Temporal(before="1", after=4.0 * DAY), 1, 2),
    ],
)
def test_a_date_divides_the_ratings(split: Temporal, learned: int, tested: int) -> None:
    train, test = split.split(timed(*(day * DAY for day in range(6))), 1)
    assert np.sort(train.items).tolist() == list(range(learned))
    assert np.sort(test.items).tolist() == list(range(6 - tested, 6))
    assert train.times is test.times is None


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30), st.integers(0, 50), st.integers(0, 50))
def test_numbers_divide_times_of_any_unit(times: list[int], one: int, other: int) -> None:
    first, last = sorted((one, other))
    split, dataset = Temporal(before=first, after=last), timed(*times)
    stored = dataset.ratings
    assert stored.times is not None
    learned, tested = stored.times < first, stored.times >= last
    if not (learned.any() and tested.any()):
        with refused_at("split") as caught:
            split.split(dataset, 1)
        assert caught.value.accepted == f"times within {min(times)} to {max(times)}"
        return
    parts = split.split(dataset, 1)
    for part, rows in zip(parts, (learned, tested), strict=True):
        np.testing.assert_array_equal(cells(part), stored.cells[rows])


def test_dates_that_leave_nothing_name_the_times_that_there_are() -> None:
    dataset = timed(*(1000.0 * (NOON + day * DAY) for day in range(4)))
    for split, name in ((Temporal(before="2005-06-01"), "train"), (Temporal(after="2006-01-01"), "test")):
        with refused_at("split") as caught:
            split.split(dataset, 1)
        assert f"no {name} ratings" in caught.value.found
        assert "2005-06-01 12:00:00 (1117627200000) to 2005-06-04 12:00:00" in caught.value.accepted


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"before": "2005-06-01", "test_fraction": 0.2}, "test_fraction"),
        ({"after": 5.0, "of": "all"}, "of"),
        ({"before": "2005-06-02", "after": "2005-06-01"}, "after"),
        ({"before": 1.0, "after": "2005-06-01"}, "after"),
        ({"before": "1136073600", "after": "2006"}, "after"),
        ({"before": "yesterday"}, "before"),
        ({"after": ""}, "after"),
        ({"before": True}, "before"),
    ],
)
def test_dates_that_contradict_themselves_or_a_share(settings: dict[str, Any], key: str) -> None:
    with refused_at(key):
        Temporal(**settings)


def test_a_share_is_for_splits_without_a_date() -> None:
    assert Temporal() == Temporal(test_fraction=0.2, of="all")
    dated = Temporal(before="2005-06-01")
    assert (dated.test_fraction, dated.of) == (None, None)
    assert replace(dated, after="2005-06-01").ends == dated.ends


@pytest.mark.parametrize(("ties", "tested"), [("last", [3, 9]), ("first", [2, 9])])
def test_of_equal_times_the_line_in_the_file_says_which_is_the_latest(
    ties: Literal["last", "first"], tested: list[int]
) -> None:
    """Neither the item's number nor what is left out before it does."""
    columns = [1, 1, 1, 1, 2, 2], [4, 2, 5, 3, 9, 8], [1, 5, 5, 5, 5, 5], [7, 7, 7, 7, 7, 6]
    dataset = InMemory.of(columns, positive=">= 2", low=1, high=5, step=1)
    train, test = LeaveOneOut(ties=ties).split(selected(dataset), 0)
    assert test.item_ids[test.items].tolist() == tested
    assert train.count == 3
