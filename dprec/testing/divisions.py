"""What every split must do with a small data set."""

from typing import ClassVar

import numpy as np
import pytest

from dprec.arrays import find
from dprec.datasets import Dataset, Synthetic
from dprec.datasets.synthetic import Arrivals
from dprec.layout import division_defect
from dprec.ratings import ColdRatings, Ratings
from dprec.splits import Split
from dprec.testing.rules import Contract, described


class SplitContract(Contract):
    """Tests of a split, given by the fixture `split`.

    Attributes
    ----------
    dataset : Dataset
        What is divided, by default ratings with times; one with two domains or folds for a split of them.
    """

    dataset: ClassVar[Dataset] = Synthetic(users=30, items=40, ratings=240, arrivals=Arrivals())

    @pytest.fixture
    def split(self) -> Split:
        """Return the split that is tested."""
        raise NotImplementedError("a subclass gives the split")

    def test_describes_itself(self, split: Split) -> None:
        """A sentence as the docstring, and words for each setting: option("...", default)."""
        described(split)

    @pytest.mark.parametrize("seed", [0, 1, 2**40])
    def test_no_rating_is_in_both_parts(self, split: Split, seed: int) -> None:
        """Two parts that have ratings, in one space of users and items; cold users have one of their own."""
        defect = division_defect(split.split(self.dataset, seed))
        assert defect is None, defect

    def test_divides_what_there_is(self, split: Split) -> None:
        """Each rating of a part is one of the data set, whose items keep their order."""
        whole = self.dataset.load()
        for part in _parts(*split.split(self.dataset, 1)):
            assert np.array_equal(part.item_ids, whole.item_ids), "other item_ids"
            users, known = find(whole.user_ids, part.user_ids)
            assert known.all(), "users whom the data set does not have"
            cells = users[part.users] * whole.n_items + part.items
            places, rated = find(whole.cells, cells)
            assert rated.all(), f"{np.count_nonzero(~rated)} ratings that the data set does not have"
            assert np.array_equal(whole.levels[places], part.levels), "ratings at other levels"

    def test_divides_the_same_again(self, split: Split) -> None:
        """The same parts for the same seed."""
        twice = (_parts(*split.split(self.dataset, 7)) for _ in range(2))
        for part, again in zip(*twice, strict=True):
            for name in ("indptr", "items", "levels", "user_ids"):
                assert np.array_equal(getattr(part, name), getattr(again, name)), f"other {name}"


def _parts(train: Ratings, test: Ratings) -> list[Ratings]:
    return [train, test, *([test.given] if isinstance(test, ColdRatings) else [])]
