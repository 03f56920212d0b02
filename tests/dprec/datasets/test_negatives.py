"""Files of the items that relevant ones are ranked among: read, written, and refused with the line."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dprec.datasets import GIVEN, DelimitedTable
from dprec.datasets.negatives import Given, lines_among
from dprec.errors import InputError
from dprec.predictions import Sampled, Unrated
from tests import make

TESTED = make.ratings((0, 1, 3), (2, 0, 4), (2, 4, 4), users=4, items=6)
HELD = make.ratings((0, 0, 3), (1, 4, 4), (2, 2, 1), users=4, items=6)


def given(path: Path, text: str) -> Given:
    path.write_text(text)
    return Given.read(path, TESTED, TESTED, HELD)


def test_items_of_all_lines_of_a_user_are_candidates_beside_the_relevant_ones(tmp_path: Path) -> None:
    found = given(tmp_path / "n", "(2,0)\t1\t3\n(0, 1)\t5\t5\n(2,4)\t3\t5\n")
    assert found(np.array([2, 0])).astype(int).tolist() == [[1, 1, 0, 1, 1, 1], [0, 1, 0, 0, 0, 1]]
    assert found.most == 3


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        ("(0,1)\t2\n2\t0\t1\n", "line 2", repr("2\t0\t1")),
        ("(0,1)\n", "line 1", "'(0,1)'"),
        ("(0,1)\t2\n(9,1)\t2\n", "line 2", "user '9'"),
        ("(0,1)\t2\n(2,0)\t1\t77\n", "line 2", "item '77'"),
        ("(0,1)\t2\n(2,5)\t1\n", "line 2", "(2,5)"),
        ("(0,1)\t2\n(2,0)\t1\t2\n", "line 2", "item '2', which the user has in training"),
        ("(0,1)\t2\n", "n", "no line of user 2"),
        ("", "n", "no line of user 0"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line(
    text: str, where: str, found: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refusal:
        given(tmp_path / "n", text)
    assert (refusal.value.where.endswith(where), refusal.value.found) == (True, found)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        Given.read(tmp_path / "absent", TESTED, TESTED, HELD)


def test_what_is_drawn_is_read_as_it_was_written(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    cells = random.permutation(30 * 40)[:500]
    rated = make.ratings(*((*divmod(int(cell), 40), 3) for cell in cells), users=30, items=40)
    test, train = rated.select(np.arange(500) % 5 == 0), rated.select(np.arange(500) % 5 > 0)
    drawn, users = Sampled(Unrated(train), test, test, 7, 1), np.flatnonzero(test.counts)
    (tmp_path / "drawn").write_text("".join(lines_among(drawn, test)))
    read = Given.read(tmp_path / "drawn", test, test, train)
    np.testing.assert_array_equal(read(users), drawn(users))


@pytest.mark.parametrize(("user", "item"), [("0", "a, b"), ("0", "a\tb"), ("0\t", "a"), ("0", " a")])
def test_identifiers_that_lines_would_not_keep_apart_are_refused(user: str, item: str) -> None:
    tested = make.ratings((0, 0, 3), users=1, items=2)
    tested = replace(tested, user_ids=np.array([user]), item_ids=np.array([item, "c"]))
    with pytest.raises(InputError, match="identifier"):
        list(lines_among(Unrated(tested), tested))


def test_a_folder_in_the_layout_of_ncf_is_a_given_split(tmp_path: Path) -> None:
    (tmp_path / "ml.train.rating").write_text("0\t10\t5\t1\n0\t13\t3\t2\n1\t10\t4\t1\n")
    (tmp_path / "ml.test.rating").write_text("0\t12\t4\t3\n1\t11\t5\t3\n")
    (tmp_path / "ml.test.negative").write_text("(0,12)\t11\n(1,11)\t12\n")
    dataset = DelimitedTable(path=str(tmp_path), positive="> 0")
    train, test = dataset.load_fold(GIVEN)
    assert (train.count, test.count, dataset.fold_names()) == (3, 2, (GIVEN,))
    found = Given.read(tmp_path / "ml.test.negative", test, test, train)
    assert found(np.array([0, 1])).astype(int).tolist() == [[0, 1, 1, 0], [0, 1, 1, 0]]
    (tmp_path / "other.train.rating").write_text("0\t10\t5\t1\n")
    assert DelimitedTable(path=str(tmp_path)).fold_names() == ()
