"""Two domains in one matrix, the data sets that make them, and the cold-start split."""

from pathlib import Path

import numpy as np
import pytest

from dprec.crossdomain import CrossDomainRatings, joined
from dprec.datasets import DelimitedDomains, Douban, MovieLensGenres, SyntheticDomains
from dprec.datasets.published import genres_in_b
from dprec.ratings import Ratings
from dprec.splits import ColdStart
from tests import make
from tests.refusals import refused_at

BOOKS = make.ratings((1, 10, 5), (1, 9, 3), (2, 10, 1), (7, 9, 2))
MUSIC = make.ratings((2, 10, 4), (7, 3, 5), (8, 3, 1))


def cells(of: Ratings) -> set[tuple[object, str, float]]:
    names = of.item_ids[of.items].tolist()
    return set(zip(of.user_ids[of.users].tolist(), names, of.values.tolist(), strict=True))


@pytest.mark.parametrize("names", [("book", "music"), ("music", "book"), ("b", "bb"), ("bb", "b")])
def test_domains_are_side_by_side(names: tuple[str, str]) -> None:
    both = joined(BOOKS, MUSIC, names)
    one, other = names
    assert cells(both) == {
        (1, f"{one}:10", 5), (1, f"{one}:9", 3), (2, f"{one}:10", 1), (7, f"{one}:9", 2),
        (2, f"{other}:10", 4), (7, f"{other}:3", 5), (8, f"{other}:3", 1),
    }  # fmt: skip
    target = both.item_ids[both.in_target].tolist()
    assert target == [f"{other}:10", f"{other}:3"]
    assert both.target_stop - both.target_start == 2
    assert both.user_ids[both.straddlers()].tolist() == [2, 7]


def write(folder: Path, name: str, *lines: str) -> str:
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / name)


def test_douban_with_a_source_and_a_target(tmp_path: Path) -> None:
    write(tmp_path, "book.dat", "1\t5\t4", "2\t6\t1")
    write(tmp_path, "music.dat", "2\t5\t3")
    both = Douban(path=str(tmp_path), source="book", target="music").load()
    assert cells(both) == {(1, "book:5", 4), (2, "book:6", 1), (2, "music:5", 3)}
    assert not isinstance(Douban(path=str(tmp_path), domain="music").load(), CrossDomainRatings)
    for named in ("source", "target"):
        with refused_at("target" if named == "source" else "source"):
            Douban(path=str(tmp_path), **{named: "book"}).load()


def test_two_delimited_files(tmp_path: Path) -> None:
    one = write(tmp_path, "a.csv", "user,item,rating", "ann,x,1", "bob,y,3")
    other = write(tmp_path, "b.csv", "user,item,rating", "bob,x,5")
    both = DelimitedDomains(path=one, target_path=other).load()
    assert cells(both) == {("ann", "source:x", 1), ("bob", "source:y", 3), ("bob", "target:x", 5)}
    assert (both.scale.low, both.scale.high) == (1, 5)
    bad = write(tmp_path, "bad.csv", "user,item,rating", "bob,x,many")
    with refused_at("bad.csv, line 2"):
        DelimitedDomains(path=one, target_path=bad).load()


def test_genres_go_to_the_domains_in_turn() -> None:
    # Sizes 4, 3, 2, 1: genres 0 and 2 are A's, 1 and 3 are B's.
    genres = np.array([
        [1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0],
    ]).astype(bool)  # fmt: skip
    # The film with one genre of each goes to A, the next equal one, without any, to B.
    assert genres_in_b(genres).tolist() == [False, True, False, False, False, True, True]


def film(number: int, *genres: int) -> str:
    flags = "|".join("1" if genre in genres else "0" for genre in range(19))
    return f"{number}|A film|01-Jan-1995||http://example.org|{flags}"


def test_movielens_by_genre(tmp_path: Path) -> None:
    write(tmp_path, "u.data", "1\t1\t5\t0", "1\t2\t4\t0", "2\t3\t3\t0")
    write(tmp_path, "u.item", film(1, 4), film(2, 5), film(3, 4))
    both = MovieLensGenres(path=str(tmp_path)).load()
    assert cells(both) == {(1, "A:1", 5), (1, "B:2", 4), (2, "A:3", 3)}
    assert (both.source, both.target) == ("A", "B")
    assert MovieLensGenres(path=str(tmp_path), target="A").load().target == "A"
    for lines, where in (
        ([film(1, 4), film(2, 5)], "u.item"),
        ([film(1, 4), "2|only a title"], "u.item, line 2"),
    ):
        write(tmp_path, "u.item", *lines)
        with refused_at(where):
            MovieLensGenres(path=str(tmp_path)).load()


def test_a_cold_start_takes_the_whole_target_profile() -> None:
    dataset = SyntheticDomains(users=100, items=40, ratings=2000)
    whole = dataset.load()
    train, test = ColdStart(test_fraction=0.25).split(dataset, 3)
    cold = np.unique(test.users)
    assert cold.size == round(0.25 * whole.straddlers().sum())
    assert whole.straddlers()[cold].all()
    assert test.in_target[test.items].all()
    assert not train.in_target[train.items][np.isin(train.users, cold)].any()
    assert train.count + test.count == whole.count
    assert cells(train) | cells(test) == cells(whole)
    assert not np.array_equal(cold, np.unique(ColdStart(test_fraction=0.25).split(dataset, 4)[1].users))
