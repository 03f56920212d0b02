"""Files of the items that relevant ones are ranked among: read, written, and refused with the line."""

from pathlib import Path

import numpy as np
import pytest

from dprec.datasets import GIVEN, DelimitedTable
from dprec.datasets.negatives import Given, save_negatives
from dprec.errors import InputError
from dprec.predictions import Sampled, Unrated
from dprec.ratings import Ratings
from tests import make

TESTED = make.ratings((0, 1, 3), (2, 0, 4), (2, 4, 4), users=4, items=6)


def given(path: Path, text: str, relevant: Ratings = TESTED) -> Given:
    path.write_text(text)
    return Given.read(path, relevant)


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
        Given.read(tmp_path / "absent", TESTED)


def test_what_is_drawn_is_read_as_it_was_written(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    cells = random.permutation(30 * 40)[:500]
    rated = make.ratings(*((*divmod(int(cell), 40), 3) for cell in cells), users=30, items=40)
    test, train = rated.select(np.arange(500) % 5 == 0), rated.select(np.arange(500) % 5 > 0)
    drawn, users = Sampled(Unrated(train), test, test, 7, 1), np.flatnonzero(test.counts)
    save_negatives(tmp_path / "drawn", drawn, test)
    np.testing.assert_array_equal(Given.read(tmp_path / "drawn", test)(users), drawn(users))
    # Again, the file stays; other draws are not written over it.
    before = (tmp_path / "drawn").read_bytes()
    save_negatives(tmp_path / "drawn", drawn, test)
    with pytest.raises(InputError, match="other items"):
        save_negatives(tmp_path / "drawn", Sampled(Unrated(train), test, test, 7, 2), test)
    assert (tmp_path / "drawn").read_bytes() == before


def test_a_folder_in_the_layout_of_ncf_is_a_given_split(tmp_path: Path) -> None:
    (tmp_path / "ml.train.rating").write_text("0\t10\t5\t1\n0\t11\t3\t2\n1\t10\t4\t1\n")
    (tmp_path / "ml.test.rating").write_text("0\t12\t4\t3\n1\t11\t5\t3\n")
    (tmp_path / "ml.test.negative").write_text("(0,12)\t11\n(1,11)\t12\n")
    dataset = DelimitedTable(path=str(tmp_path), positive="> 0")
    train, test = dataset.load_fold(GIVEN)
    assert (train.count, test.count, dataset.fold_names()) == (3, 2, (GIVEN,))
    found = Given.read(tmp_path / "ml.test.negative", test)
    assert found(np.array([0, 1])).astype(int).tolist() == [[0, 1, 1], [0, 1, 1]]
    (tmp_path / "other.train.rating").write_text("0\t10\t5\t1\n")
    assert DelimitedTable(path=str(tmp_path)).fold_names() == ()
