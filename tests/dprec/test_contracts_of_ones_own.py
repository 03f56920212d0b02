"""The contract of a user-defined component, in one line each."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.binarization import MeanThreshold
from dprec.completion import Completed, Completion, ItemAverage, Observations
from dprec.components import option
from dprec.datasets import Dataset, Synthetic
from dprec.gradients import FullGradient
from dprec.mechanisms import Channel, Mechanism
from dprec.progress import Progress, silent
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily
from dprec.splits import Split
from dprec.testing import DatasetContract, FamilyContract, contract
from tests.own_family import LongerBits, OwnBits
from tests.refusals import refused_at


@dataclass(frozen=True, kw_only=True)
class Geometric(Mechanism):
    """A level of the scale, whose probability falls by the same factor with every step."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        levels = np.arange(scale.levels)
        steps = np.abs(levels[:, None] - levels) / (scale.levels - 1)
        return Channel.from_probabilities(np.exp(-epsilon * steps), scale.values, scale.values, epsilon)


class Average(Completion):
    """The mean of an item."""

    def fit(self, observations: Observations, seed: int, progress: Progress = silent) -> Completed:
        return ItemAverage().fit(observations, seed, progress)


@dataclass(frozen=True, kw_only=True)
class Few(Dataset):
    """A few ratings."""

    users: int = option("Users.")

    def load(self) -> Ratings:
        return Synthetic(users=self.users, items=10, ratings=50).load()


class Halves(Split):
    """The first half of all ratings, and the others."""

    def split(self, dataset: Dataset, seed: int) -> tuple[Ratings, Ratings]:
        ratings = dataset.load()
        first = np.arange(ratings.count) < ratings.count // 2
        return ratings.select(first), ratings.select(~first)


TestMechanism = contract(Geometric())
TestCompletion = contract(Average(), repeats_one_rating=False)
TestDataset = contract(Few(users=10))
TestGradient = contract(FullGradient())
TestSplit = contract(Halves())


CHANGES: dict[str, Callable[[Ratings], Any]] = {
    "reversed": lambda ratings: replace(ratings, items=ratings.items[::-1].copy()),
    "beyond": lambda ratings: replace(ratings, items=ratings.items + np.int32(ratings.n_items)),
    "alike": lambda ratings: replace(ratings, user_ids=np.zeros(ratings.n_users, dtype=np.int64)),
    "rows": Ratings.to_rows,
}


@dataclass(frozen=True, kw_only=True)
class Broken(Few):
    """Ratings that are changed in some way, which stands where others have a file."""

    path: str = option("How they are changed.")

    def known_size(self) -> tuple[int, int, int]:
        return self.users, 11, 50

    def load(self) -> Ratings:
        changed: Ratings = CHANGES.get(self.path, lambda ratings: ratings)(super().load())
        return changed


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("reversed", "[0-9]+ items that do not ascend within their user"),
        ("beyond", "item 1[0-9] of 10"),
        ("alike", "user_ids of which some are alike"),
        ("rows", "a value of type RatingRows"),
    ],
)
def test_a_data_set_in_another_layout_is_refused_by_its_name(change: str, found: str) -> None:
    with refused_at(f"{__name__}:Broken") as refused:
        Broken(users=10, path=change).load()
    assert re.fullmatch(f"its load returned {found}", refused.value.found)
    loaded: Any = inspect.unwrap(DatasetContract.loaded)
    with pytest.raises(pytest.fail.Exception, match=f"its load returned {found}; accepted: "):
        loaded(DatasetContract(), Broken(users=10, path=change))


@pytest.mark.parametrize(
    ("change", "test", "said"),
    [
        ("", "what_is_known_without_the_ratings_is_true", "assert .*10, 11, 50"),
        ("", "refuses_a_place_where_nothing_is", "no error"),
    ],
)
def test_a_data_set_is_told_in_one_line_which_rule_it_breaks(
    change: str, test: str, said: str, tmp_path: Path
) -> None:
    dataset = Broken(users=10, path=change)
    broken = getattr(DatasetContract(), f"test_{test}")
    given = {"dataset": dataset, "loaded": dataset.load(), "tmp_path": tmp_path}
    wanted = {name: given[name] for name in inspect.signature(broken).parameters}
    with pytest.raises(pytest.fail.Exception) as failed:
        broken(**wanted)
    rule = test.replace("_", " ")
    assert re.fullmatch(f"{rule}: seen {said}.*; expected: .*", str(failed.value)), failed.value


def family_of(mechanism: Mechanism) -> ReportFamily:
    budget = PrivacyBudget(epsilon=FamilyContract.epsilon, per="user")
    return mechanism.family(budget, FamilyContract.scale, FamilyContract.n_items)


def test_a_family_whose_lengths_tell_a_rating_breaks_that_rule_alone() -> None:
    rules, rule = FamilyContract(), "test_the_length_of_a_report_tells_nothing_more"
    family = family_of(LongerBits())
    for other in {name for name in dir(rules) if name.startswith("test_")} - {rule}:
        getattr(rules, other)(family)
    getattr(rules, rule)(family_of(OwnBits()))
    with pytest.raises(pytest.fail.Exception, match="reports of the same symbols in several lengths"):
        getattr(rules, rule)(family)


def test_what_has_no_contract_is_refused() -> None:
    for components in ((), (MeanThreshold(),), (Geometric(), Average())):
        with pytest.raises(TypeError, match="accepted: instances of one of Mechanism, Completion"):
            contract(*components)
